// Attention of a few rows whose heads share keys, as when a decoder with grouped queries makes one
// token: attention_4_decode reads keys once for each head of q, this once for all. The 16 rows of
// an mma are the rows of all heads that share a head of k and v. Block (s, h, b) has share s of the
// keys of that head; its warps take tiles of 16 keys in turns, each with a ring of its own, so that
// no barrier stands between them and 8 KiB a warp are always on the way. The parts of warps are
// merged in shared memory, and those of blocks by attention_5_combine.
// q, k, v and out begin at multiples of 16 bytes, row by row.
// Target: compute_80
#include "attention_tensor.cuh"

enum { GROUPED_ROWS = 16, GROUPED_KEYS = 16, GROUPED_SLOTS = 2 };

template <int D> constexpr int GROUPED_WARPS = D == 256 ? 2 : 4;

// A tile's scores that a row does not see: behind the share, or with causal behind the row.
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

// A warp's part of all rows in shared memory: sums of D elements, the base and the sum of weights.
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

// The warps' parts together: rows of out, or of a share.
template <typename T, int D>
__device__ inline void merge_parts(const attention_arguments &x,
                                   const float (*parts)[GROUPED_ROWS][D + 2]) {
    constexpr int WARPS = GROUPED_WARPS<D>;
    const int split = blockIdx.x, batch = blockIdx.z, warp = threadIdx.x / WARP;
    const long long rows = (long long)x.batch * x.heads * x.q_length;
    for (int r = warp; r < x.group * x.q_length; r += WARPS) {
        const int head = blockIdx.y * x.group + r / x.q_length, row = r % x.q_length;
        float base = -INFINITE, sum = 0, grown[WARPS];
#pragma unroll
        for (int w = 0; w < WARPS; w++) base = fmaxf(base, parts[w][r][D]);
#pragma unroll
        for (int w = 0; w < WARPS; w++) {
            grown[w] = exp2f(parts[w][r][D] - finite_base(base));
            sum = fmaf(parts[w][r][D + 1], grown[w], sum);
        }
        const long long index = ((long long)batch * x.heads + head) * x.q_length + row;
        float *part = (float *)x.part + (split * rows + index) * (D + 1);
        T *out = (T *)attention_row<T>(x.out, x.out_strides, batch, head, row);
        for (int d = threadIdx.x % WARP; d < D; d += WARP) {
            float value = 0;
#pragma unroll
            for (int w = 0; w < WARPS; w++) value = fmaf(parts[w][r][d], grown[w], value);
            value *= share_of(sum);
            if (x.splits == 1) {
                out[d] = from_float<T>(value);
            } else {
                part[d] = value;
            }
        }
        if (threadIdx.x % WARP != 0) continue;
        if (x.splits == 1) {
            store_lse(x, batch, head, row, base, sum);
        } else {
            part[D] = sum == 0 ? -INFINITE : base + log2f(sum);
        }
    }
}

template <typename T, int D>
__device__ inline void attention_grouped(const attention_arguments &x) {
    using tile_of = attention_tile<D>;
    constexpr int WARPS = GROUPED_WARPS<D>, KEYS = GROUPED_KEYS;
    constexpr int TILE_BYTES = KEYS * tile_of::ROW_BYTES, SLOT_BYTES = 2 * TILE_BYTES;
    static_assert(WARPS * GROUPED_ROWS * (D + 2) * 4 <= WARPS * GROUPED_SLOTS * SLOT_BYTES,
                  "the parts lie where the rings were");
    extern __shared__ __align__(ATTENTION_ALIGNMENT) uint4 shared[];
    const uint32_t queries = shared_address(shared);
    const int lane = threadIdx.x % WARP, warp_index = threadIdx.x / WARP;
    const uint32_t ring = queries + GROUPED_ROWS * tile_of::ROW_BYTES +
                          warp_index * GROUPED_SLOTS * SLOT_BYTES;
    const int kv_head = blockIdx.y, batch = blockIdx.z;
    const int each = ceil_div(ceil_div(x.kv_length, x.splits), KEYS) * KEYS;
    const int begin = blockIdx.x * each, end = min(x.kv_length, begin + each);
    int key = begin + warp_index * KEYS; // the warp's next tile to be asked for

    for (int i = threadIdx.x; i < GROUPED_ROWS * tile_of::CHUNKS; i += WARPS * WARP) {
        const int r = i / tile_of::CHUNKS, chunk = i % tile_of::CHUNKS;
        const bool there = r < x.group * x.q_length;
        const T *row =
            attention_row<T>(x.q, x.q_strides, batch,
                             kv_head * x.group + (there ? r / x.q_length : 0), r % x.q_length);
        copy_async_16(queries + tile_of::at(r, chunk), row + chunk * 8, there ? 16 : 0);
    }
    attention_copier<T, D, KEYS, WARP> keys(
        attention_row<T>(x.k, x.k_strides, batch, kv_head, key), x.k_strides.row);
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
        copy_async_commit(); // also of nothing, so that groups can be counted
    };
    copy_async_commit();
    ask(ring);
    copy_async_wait<1>();
    __syncthreads(); // the queries are there for all

    const uint32_t of_queries = queries + tile_of::at(lane % 16, lane / 16);
    const uint32_t of_keys = tile_of::at(lane / 16 * 8 + lane % 8, lane / 8 % 2);
    const uint32_t of_values = TILE_BYTES + tile_of::at(lane % 16, lane / 16);
    attention_warp<D, 1, KEYS> warp = {};
    warp.base[0][0] = warp.base[0][1] = -INFINITE;
    uint32_t slot = ring, other = ring + SLOT_BYTES;
    for (int at = begin + warp_index * KEYS; at < end; at += WARPS * KEYS) {
        ask(other); // all lanes have read it
        copy_async_wait<1>();
        __syncwarp(); // what all lanes asked for is there
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
    __syncthreads(); // nobody reads or fills a ring any more
    auto parts = (float(*)[GROUPED_ROWS][D + 2])(
        (char *)shared + GROUPED_ROWS * tile_of::ROW_BYTES);
    leave_part(warp, parts[warp_index]);
    __syncthreads(); // all parts are there
    merge_parts<T, D>(x, parts);
}

#define ATTENTION_GROUPED(name, T, d)                                                              \
    extern "C" __global__ void __launch_bounds__(GROUPED_WARPS<d> *WARP)                           \
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
