// attention, step 6: a few rows of q whose heads share keys, as in decoding with GQA.
// Target: compute_80
//
// The idea: attention_4_decode reads the keys once for each head of q; this kernel reads them once
// for all heads that share them. The rows of these heads are the 16 rows of one mma. Each warp has
// its own ring of tiles of 16 keys, so warps need no barrier between tiles and each keeps 8 KiB of
// copies in flight (with heads of 128 elements).
// Owner: block (s, h, b) owns part s of the keys of head h of k and v; its warps take the tiles of
// the part in turn. The results of the warps are merged in shared memory, those of the blocks by
// attention_5_combine.
// Bound by: reads of k and v.
// Requires: blockDim = (32 GROUPED_WARPS, 1, 1), gridDim = (splits, heads of k and v, batch),
// GROUPED_BYTES of dynamic shared memory; group * q_length at most 16; each row of q, k, v and out
// begins at a multiple of 16 bytes.
#include "attention_tensor.cuh"

enum { GROUPED_ROWS = 16, GROUPED_KEYS = 16, GROUPED_SLOTS = 2 };

template <int D> constexpr int GROUPED_THREADS = D == 256 ? 2 * WARP : 4 * WARP;
template <int D> constexpr int GROUPED_WARPS = GROUPED_THREADS<D> / WARP;

// Masks the scores of keys that a row does not see: past the share, or with causal past the row.
template <int D>
__device__ inline void mask_grouped(attention_warp<D, 1, GROUPED_KEYS> &warp,
                                    const attention_arguments &x, int key, int end) {
    const int lane = threadIdx.x % WARP;
#pragma unroll
    for (int e = 0; e < GROUPED_KEYS / 2; e++) {
        const int of_key = key + e / 4 * 8 + lane % 4 * 2 + e % 2;
        const int row = (lane / 4 + e % 4 / 2 * 8) % x.q_length;
        if (of_key >= min(end, keys_seen(x, row))) warp.scores[0][e / 4][e % 4] = -INFINITE;
    }
}

// Writes a warp's part of all rows to shared memory: sums of D elements, the base and the sum of
// weights.
template <int D>
__device__ inline void leave_part(const attention_warp<D, 1, GROUPED_KEYS> &warp,
                                  float (&part)[GROUPED_ROWS][D + 2]) {
    const int lane = threadIdx.x % WARP;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        float *row = part[lane / 4 + h * 8];
        float total = warp.sum[0][h];
        total += __shfl_xor_sync(~0u, total, 1);
        total += __shfl_xor_sync(~0u, total, 2);
        if (lane % 4 == 0) row[D] = warp.base[0][h], row[D + 1] = total;
#pragma unroll
        for (int p = 0; p < D / 8; p++) {
            const float *pair = &warp.sums[0][p][2 * h];
            *(float2 *)(row + p * 8 + lane % 4 * 2) = make_float2(pair[0], pair[1]);
        }
    }
}

// Merges the warps' parts into rows of out, or of the part of a share; a warp merges a row at a
// time.
template <typename T, int D>
__device__ inline void merge_parts(const attention_arguments &x,
                                   const float (*parts)[GROUPED_ROWS][D + 2]) {
    constexpr int WARPS = GROUPED_WARPS<D>, PITCH = GROUPED_ROWS * (D + 2);
    for (int r = threadIdx.x / WARP; r < x.group * x.q_length; r += WARPS) {
        const int head = blockIdx.y * x.group + r / x.q_length;
        merge_warps<T, D, WARPS, PITCH>(x, parts[0][r], blockIdx.z, head, r % x.q_length,
                                        threadIdx.x % WARP, WARP);
    }
}

template <typename T, int D>
__device__ inline void attention_grouped(const attention_arguments &x) {
    using tile_of = attention_tile<D>;
    constexpr int WARPS = GROUPED_WARPS<D>, KEYS = GROUPED_KEYS;
    constexpr int TILE_BYTES = KEYS * tile_of::ROW_BYTES, SLOT_BYTES = 2 * TILE_BYTES;
    static_assert(WARPS * GROUPED_ROWS * (D + 2) * 4 <= WARPS * GROUPED_SLOTS * SLOT_BYTES,
                  "the parts overwrite the rings");
    extern __shared__ __align__(ATTENTION_ALIGNMENT) uint4 shared[];
    const uint32_t queries = shared_address(shared);
    const int lane = threadIdx.x % WARP, warp_index = threadIdx.x / WARP;
    const uint32_t ring =
        queries + GROUPED_ROWS * tile_of::ROW_BYTES + warp_index * GROUPED_SLOTS * SLOT_BYTES;
    const int kv_head = blockIdx.y, batch = blockIdx.z;
    const int each = ceil_div(ceil_div(x.kv_length, x.splits), KEYS) * KEYS;
    const int begin = blockIdx.x * each, end = min(x.kv_length, begin + each);
    int key = begin + warp_index * KEYS; // the warp's next tile to request

    for (int i = threadIdx.x; i < GROUPED_ROWS * tile_of::CHUNKS; i += WARPS * WARP) {
        const int r = i / tile_of::CHUNKS, chunk = i % tile_of::CHUNKS;
        const bool there = r < x.group * x.q_length;
        const T *row =
            attention_row<T>(x.q, x.q_strides, batch,
                             kv_head * x.group + (there ? r / x.q_length : 0), r % x.q_length);
        copy_async_16(queries + tile_of::at(r, chunk), row + chunk * 8, there ? 16 : 0);
    }
    attention_copier<T, D, KEYS, WARP> keys(attention_row<T>(x.k, x.k_strides, batch, kv_head, key),
                                            x.k_strides.row);
    attention_copier<T, D, KEYS, WARP> values(
        attention_row<T>(x.v, x.v_strides, batch, kv_head, key), x.v_strides.row);
    auto ask = [&](uint32_t slot) {
        if (key + KEYS <= end) {
            keys.whole(slot), values.whole(slot + TILE_BYTES);
        } else if (key < end) {
            keys.some(slot, end - key), values.some(slot + TILE_BYTES, end - key);
        }
        key += WARPS * KEYS;
        keys.advance(WARPS * KEYS), values.advance(WARPS * KEYS);
        copy_async_commit(); // an empty group too, so that groups can be counted
    };
    copy_async_commit();
    ask(ring);
    copy_async_wait<1>();
    __syncthreads(); // all see the queries

    const uint32_t of_queries = queries + tile_of::at(lane % 16, lane / 16);
    const uint32_t of_keys = tile_of::at(lane / 16 * 8 + lane % 8, lane / 8 % 2);
    const uint32_t of_values = TILE_BYTES + tile_of::at(lane % 16, lane / 16);
    attention_warp<D, 1, KEYS> warp = {};
    warp.base[0][0] = warp.base[0][1] = -INFINITE;
    uint32_t slot = ring, other = ring + SLOT_BYTES;
    for (int at = begin + warp_index * KEYS; at < end; at += WARPS * KEYS) {
        ask(other); // all lanes have read that slot
        copy_async_wait<1>();
        __syncwarp(); // the copies of all lanes have arrived
#pragma unroll
        for (int e = 0; e < KEYS / 2; e++) warp.scores[0][e / 4][e % 4] = 0;
        multiply_keys<T>(warp, of_queries, slot + of_keys);
        if (x.causal || at + KEYS > end) mask_grouped(warp, x, at, end);
        follow_maxima<SOUND>(warp, x.scale_log2);
        weigh_scores(warp, x.scale_log2);
        add_values<T>(warp, slot + of_values);
        __syncwarp(); // all lanes have read the slot
        const uint32_t read = slot;
        slot = other, other = read;
    }
    copy_async_wait_all();
    __syncthreads(); // no warp reads or fills a ring any more
    auto parts =
        (float(*)[GROUPED_ROWS][D + 2])((char *)shared + GROUPED_ROWS * tile_of::ROW_BYTES);
    leave_part(warp, parts[warp_index]);
    __syncthreads(); // all parts are written
    merge_parts<T, D>(x, parts);
}

#define ATTENTION_GROUPED(name, T, d)                                                              \
    extern "C" __global__ void __launch_bounds__(GROUPED_THREADS<d>)                               \
        attention_grouped_##name##_##d(attention_arguments x) {                                    \
        attention_grouped<T, d>(x);                                                                \
    }
#define ATTENTION_GROUPED_OF(name, T)                                                              \
    ATTENTION_GROUPED(name, T, 64)                                                                 \
    ATTENTION_GROUPED(name, T, 80)                                                                 \
    ATTENTION_GROUPED(name, T, 96)                                                                 \
    ATTENTION_GROUPED(name, T, 128)                                                                \
    ATTENTION_GROUPED(name, T, 256)
ATTENTION_GROUPED_OF(f16, __half)
ATTENTION_GROUPED_OF(bf16, __nv_bfloat16)
