// Matrix products by tiles, a five-point stencil with a halo, and a sparse matrix by rows.
#include <stdint.h>

template <typename T, int TILE>
__device__ void product(const T *a, const T *b, T *c, uint32_t m, uint32_t n, uint32_t k) {
    __shared__ T left[TILE][TILE], right[TILE][TILE + 1];
    uint32_t row = blockIdx.y * TILE + threadIdx.y, col = blockIdx.x * TILE + threadIdx.x;
    T sum = T(0);
    for (uint32_t t = 0; t < k; t += TILE) {
        left[threadIdx.y][threadIdx.x] =
            row < m && t + threadIdx.x < k ? a[row * k + t + threadIdx.x] : T(0);
        right[threadIdx.y][threadIdx.x] =
            t + threadIdx.y < k && col < n ? b[(t + threadIdx.y) * n + col] : T(0);
        __syncthreads();
#pragma unroll
        for (int i = 0; i < TILE; i++) sum += left[threadIdx.y][i] * right[i][threadIdx.x];
        __syncthreads();
    }
    if (row < m && col < n) c[row * n + col] = sum;
}

extern "C" __global__ void product_float(const float *a, const float *b, float *c, uint32_t m,
                                         uint32_t n, uint32_t k) {
    product<float, 16>(a, b, c, m, n, k);
}
extern "C" __global__ void product_double(const double *a, const double *b, double *c, uint32_t m,
                                          uint32_t n, uint32_t k) {
    product<double, 8>(a, b, c, m, n, k);
}
extern "C" __global__ void product_int(const int *a, const int *b, int *c, uint32_t m, uint32_t n,
                                       uint32_t k) {
    product<int, 8>(a, b, c, m, n, k);
}

// Four columns per thread, read and written as vectors.
extern "C" __global__ void add_rows(const float4 *in, const float *bias, float4 *out, uint32_t rows,
                                    uint32_t width) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= rows * width) return;
    float4 v = __ldg(&in[i]);
    float b = bias[i / width];
    out[i] = make_float4(v.x + b, v.y - b, v.z * b, fmaxf(v.w, b));
}

extern "C" __global__ void heat(const float *from, float *to, int width, int height) {
    __shared__ float tile[10][34];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    for (int dy = threadIdx.y; dy < 10; dy += 8) {
        for (int dx = threadIdx.x; dx < 34; dx += 32) {
            int sx = (int)blockIdx.x * 32 + dx - 1, sy = (int)blockIdx.y * 8 + dy - 1;
            sx = min(max(sx, 0), width - 1);
            sy = min(max(sy, 0), height - 1);
            tile[dy][dx] = from[sy * width + sx];
        }
    }
    __syncthreads();
    if (x >= width || y >= height) return;
    int tx = threadIdx.x + 1, ty = threadIdx.y + 1;
    float around = tile[ty - 1][tx] + tile[ty + 1][tx] + tile[ty][tx - 1] + tile[ty][tx + 1];
    to[y * width + x] = 0.5f * tile[ty][tx] + 0.125f * around;
}

extern "C" __global__ void sparse_by_threads(const uint32_t *begins, const uint32_t *columns,
                                             const double *values, const double *x, double *y,
                                             uint32_t rows) {
    uint32_t row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    double sum = 0;
    for (uint32_t i = begins[row]; i < begins[row + 1]; i++) sum += values[i] * x[columns[i]];
    y[row] = sum;
}

extern "C" __global__ void sparse_by_warps(const uint32_t *begins, const uint32_t *columns,
                                           const double *values, const double *x, double *y,
                                           uint32_t rows) {
    uint32_t row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x & 31;
    if (row >= rows) return;
    double sum = 0;
    for (uint32_t i = begins[row] + lane; i < begins[row + 1]; i += 32)
        sum += values[i] * x[columns[i]];
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
    if (lane == 0) y[row] = sum;
}
