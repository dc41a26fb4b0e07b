// attention, step 2: fp32 in tiles of shared memory.
// Target: compute_80
//
// The idea: a block keeps QUERIES rows of q in shared memory and iterates over tiles of KEYS keys,
// so each key and value is read from device memory once for all of these rows. The products of a
// tile are two small matrix products in registers; the online softmax of step 1 runs once per
// tile.
// Owner: the threads form a square of 16 x 16. Thread (x, y) owns rows y, y + 16, ... of the tile;
// of the scores columns x, x + 16, ...; of out elements 4 x to 4 x + 3, 4 x + 64, ... The 16
// threads of a row are half of a warp.
// Bound by: fp32 multiplications.
// Requires: blockDim = (256, 1, 1), gridDim = (tiles of QUERIES rows, heads, batch), TILED_BYTES of
// dynamic shared memory; head_size is D; any alignment.
#include "attention.cuh"

enum { SIDE = 16, TILED_THREADS = SIDE * SIDE };

// Loads rows of a tile. They are a pitch apart, four words more than a multiple of 32 banks.
template <int D, int ROWS>
__device__ inline void load_rows(float *tile, const float *from, long long stride, int rows) {
    constexpr int QUADS = D / 4;
    const bool aligned = (uintptr_t)from % 16 == 0 && stride % 4 == 0;
    for (int i = threadIdx.x; i < ROWS * QUADS; i += TILED_THREADS) {
        const int row = i / QUADS, d = i % QUADS * 4;
        const float *source = from + row * stride + d;
        float4 value = {0, 0, 0, 0}; // rows past the last: 0 times them must be 0
        if (row < rows && aligned) value = *(const float4 *)source;
        if (row < rows && !aligned) value = {source[0], source[1], source[2], source[3]};
        *(float4 *)(tile + row * (D + 4) + d) = value;
    }
}

__device__ inline float dot(float4 a, float4 b, float sum) {
    return fmaf(a.x, b.x, fmaf(a.y, b.y, fmaf(a.z, b.z, fmaf(a.w, b.w, sum))));
}

__device__ inline float half_warp_max(float x) {
    for (int lanes = SIDE / 2; lanes > 0; lanes /= 2) x = fmaxf(x, __shfl_xor_sync(~0u, x, lanes));
    return x;
}
__device__ inline float half_warp_sum(float x) {
    for (int lanes = SIDE / 2; lanes > 0; lanes /= 2) x += __shfl_xor_sync(~0u, x, lanes);
    return x;
}

template <int D, int QUERIES, int KEYS>
__device__ inline void attention_tiled(const attention_arguments &x) {
    constexpr int ROWS = QUERIES / SIDE, COLUMNS = KEYS / SIDE, QUADS = ceil_div(D, 4 * SIDE);
    constexpr int PITCH = D + 4, SCORES = KEYS + 4;
    extern __shared__ float4 shared[];
    float *queries = (float *)shared, *keys = queries + QUERIES * PITCH;
    float *weights = keys + KEYS * PITCH;
    const int tx = threadIdx.x % SIDE, ty = threadIdx.x / SIDE;
    const int tile = x.causal ? gridDim.x - 1 - blockIdx.x : blockIdx.x; // the longest tiles first
    const int first = tile * QUERIES, head = blockIdx.y, batch = blockIdx.z;
    const int rows = min(QUERIES, x.q_length - first);
    const float *k = attention_row<float>(x.k, x.k_strides, batch, head / x.group, 0);
    const float *v = attention_row<float>(x.v, x.v_strides, batch, head / x.group, 0);
    load_rows<D, QUERIES>(queries, attention_row<float>(x.q, x.q_strides, batch, head, first),
                          x.q_strides.row, rows);
    float4 sums[ROWS][QUADS] = {};
    float largest[ROWS], sum[ROWS] = {};
#pragma unroll
    for (int i = 0; i < ROWS; i++) largest[i] = -INFINITE;
    const int seen = keys_seen(x, first + rows - 1);
    for (int key = first_key_seen(x, first) / KEYS * KEYS; key < seen; key += KEYS) {
        const int here = min(KEYS, x.kv_length - key);
        __syncthreads(); // all have read the values of the previous tile
        load_rows<D, KEYS>(keys, k + key * x.k_strides.row, x.k_strides.row, here);
        __syncthreads();
        float scores[ROWS][COLUMNS] = {};
#pragma unroll 4
        for (int d = 0; d < D; d += 4) {
            float4 a[ROWS], b[COLUMNS];
#pragma unroll
            for (int i = 0; i < ROWS; i++) {
                a[i] = *(const float4 *)(queries + (ty + i * SIDE) * PITCH + d);
            }
#pragma unroll
            for (int j = 0; j < COLUMNS; j++) {
                b[j] = *(const float4 *)(keys + (tx + j * SIDE) * PITCH + d);
            }
#pragma unroll
            for (int i = 0; i < ROWS; i++) {
#pragma unroll
                for (int j = 0; j < COLUMNS; j++) scores[i][j] = dot(a[i], b[j], scores[i][j]);
            }
        }
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            const int limit = keys_seen(x, first + ty + i * SIDE) - key;
            const int from = first_key_seen(x, first + ty + i * SIDE) - key;
            float most = largest[i];
#pragma unroll
            for (int j = 0; j < COLUMNS; j++) {
                const bool sees = tx + j * SIDE < limit && tx + j * SIDE >= from;
                scores[i][j] = sees ? scores[i][j] * x.scale_log2 : -INFINITE;
                most = fmaxf(most, scores[i][j]);
            }
            most = half_warp_max(most);
            const float base = finite_base(most), grown = exp2f(largest[i] - base);
            largest[i] = most;
            sum[i] *= grown;
#pragma unroll
            for (int j = 0; j < COLUMNS; j++) {
                const float weight = exp2f(scores[i][j] - base);
                weights[(ty + i * SIDE) * SCORES + tx + j * SIDE] = weight;
                sum[i] += weight;
            }
#pragma unroll
            for (int c = 0; c < QUADS; c++) {
                sums[i][c].x *= grown, sums[i][c].y *= grown;
                sums[i][c].z *= grown, sums[i][c].w *= grown;
            }
        }
        __syncthreads(); // all have read the keys and written the weights
        load_rows<D, KEYS>(keys, v + key * x.v_strides.row, x.v_strides.row, here);
        __syncthreads();
        for (int j = 0; j < here; j++) {
            float weight[ROWS];
#pragma unroll
            for (int i = 0; i < ROWS; i++) weight[i] = weights[(ty + i * SIDE) * SCORES + j];
#pragma unroll
            for (int c = 0; c < QUADS; c++) {
                if (D % (4 * SIDE) != 0 && (tx + c * SIDE) * 4 >= D) continue;
                const float4 value = *(const float4 *)(keys + j * PITCH + (tx + c * SIDE) * 4);
#pragma unroll
                for (int i = 0; i < ROWS; i++) {
                    sums[i][c].x = fmaf(weight[i], value.x, sums[i][c].x);
                    sums[i][c].y = fmaf(weight[i], value.y, sums[i][c].y);
                    sums[i][c].z = fmaf(weight[i], value.z, sums[i][c].z);
                    sums[i][c].w = fmaf(weight[i], value.w, sums[i][c].w);
                }
            }
        }
    }
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        const int row = first + ty + i * SIDE;
        const float total = half_warp_sum(sum[i]), share = share_of(total);
        if (row >= x.q_length) continue;
        float *out = (float *)attention_row<float>(x.out, x.out_strides, batch, head, row);
#pragma unroll
        for (int c = 0; c < QUADS; c++) {
            const int d = (tx + c * SIDE) * 4;
            if (d >= D) continue;
            out[d] = sums[i][c].x * share, out[d + 1] = sums[i][c].y * share;
            out[d + 2] = sums[i][c].z * share, out[d + 3] = sums[i][c].w * share;
        }
        if (tx == 0) store_lse(x, batch, head, row, largest[i], total);
    }
}

#define ATTENTION_TILED(d, queries, keys)                                                          \
    extern "C" __global__ void __launch_bounds__(TILED_THREADS, 1)                                 \
        attention_tiled_f32_##d(attention_arguments x) {                                           \
        attention_tiled<d, queries, keys>(x);                                                      \
    }
ATTENTION_TILED(64, 64, 64)
ATTENTION_TILED(80, 64, 64)
ATTENTION_TILED(96, 64, 64)
ATTENTION_TILED(128, 64, 64)
ATTENTION_TILED(256, 32, 32)
