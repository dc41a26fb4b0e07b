// Kernels whose speed bench-soft measures: products of square matrices in three ways, a sum of
// vectors, softmax by rows, and narrow loads. Sizes are whole multiples of the blocks.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

extern "C" __global__ void gemm_naive(const float *a, const float *b, float *c, int n) {
    int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < n; k++) sum += a[row * n + k] * b[k * n + col];
    c[row * n + col] = sum;
}

// A block of 32 by 32 threads, one element per thread, loops over tiles in shared memory.
extern "C" __global__ void gemm_tiled(const float *a, const float *b, float *c, int n) {
    __shared__ float left[32][32], right[32][32];
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 32 + y, col = blockIdx.x * 32 + x;
    float sum = 0;
    for (int t = 0; t < n; t += 32) {
        left[y][x] = a[row * n + t + x];
        right[y][x] = b[(t + y) * n + col];
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 32; k++) sum += left[y][k] * right[k][x];
        __syncthreads();
    }
    c[row * n + col] = sum;
}

// 16 by 16 threads, four by four elements each, from tiles of 64 by 16.
extern "C" __global__ void gemm_blocked(const float *a, const float *b, float *c, int n) {
    __shared__ float left[16][64], right[16][64];
    int x = threadIdx.x, y = threadIdx.y, t = y * 16 + x;
    int top = blockIdx.y * 64, begin = blockIdx.x * 64;
    float sum[4][4] = {};
    for (int step = 0; step < n; step += 16) {
        float4 four = *(const float4 *)&a[(top + t / 4) * n + step + t % 4 * 4];
        left[t % 4 * 4][t / 4] = four.x;
        left[t % 4 * 4 + 1][t / 4] = four.y;
        left[t % 4 * 4 + 2][t / 4] = four.z;
        left[t % 4 * 4 + 3][t / 4] = four.w;
        *(float4 *)&right[y][x * 4] = *(const float4 *)&b[(step + y) * n + begin + x * 4];
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 16; k++) {
            float4 l = *(const float4 *)&left[k][y * 4], r = *(const float4 *)&right[k][x * 4];
            const float ls[4] = {l.x, l.y, l.z, l.w}, rs[4] = {r.x, r.y, r.z, r.w};
#pragma unroll
            for (int i = 0; i < 4; i++) {
#pragma unroll
                for (int j = 0; j < 4; j++) sum[i][j] += ls[i] * rs[j];
            }
        }
        __syncthreads();
    }
    for (int i = 0; i < 4; i++) {
        *(float4 *)&c[(top + y * 4 + i) * n + begin + x * 4] =
            make_float4(sum[i][0], sum[i][1], sum[i][2], sum[i][3]);
    }
}

extern "C" __global__ void add_vectors(const float *a, const float *b, float *c, uint32_t count) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) c[i] = a[i] + b[i];
}

static __device__ float of_block(float mine, bool is_sum) {
    __shared__ float of_warps[32];
    for (int offset = 16; offset > 0; offset /= 2) {
        float other = __shfl_xor_sync(0xffffffffu, mine, offset);
        mine = is_sum ? mine + other : fmaxf(mine, other);
    }
    if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = mine;
    __syncthreads();
    mine = of_warps[0];
    for (uint32_t w = 1; w < blockDim.x / 32; w++) {
        mine = is_sum ? mine + of_warps[w] : fmaxf(mine, of_warps[w]);
    }
    __syncthreads();
    return mine;
}

// One row per block.
extern "C" __global__ void softmax_rows(const float *in, float *out, uint32_t width) {
    const float *row = in + (size_t)blockIdx.x * width;
    float most = -INFINITY, sum = 0;
    for (uint32_t i = threadIdx.x; i < width; i += blockDim.x) most = fmaxf(most, row[i]);
    most = of_block(most, false);
    for (uint32_t i = threadIdx.x; i < width; i += blockDim.x) sum += __expf(row[i] - most);
    sum = of_block(sum, true);
    for (uint32_t i = threadIdx.x; i < width; i += blockDim.x) {
        out[(size_t)blockIdx.x * width + i] = __expf(row[i] - most) / sum;
    }
}

// Bytes and halves in memory, numbers in registers, as in a quantized model.
extern "C" __global__ void scale_bytes(const uint8_t *in, const int8_t *by, uint8_t *out,
                                       uint32_t count) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[i] = (uint8_t)(in[i] * by[i] >> 3);
}
extern "C" __global__ void scale_halves(const __half *in, const int16_t *by, __nv_bfloat16 *out,
                                        uint32_t count) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[i] = __float2bfloat16_rn(__half2float(in[i]) * (float)by[i]);
}

extern "C" __global__ void empty() {}
