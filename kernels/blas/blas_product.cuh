// blas_product: D = follow(alpha A B + beta C + bias) for matrices of any strides (BLAS's gemm,
// gemv, ger, syrk and dot, and cublasLt's matmul). T is the type of A and B, U of C and D, S of the
// sums.
#pragma once

#include "blas_number.cuh"

// 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), the approximation of cuBLASLt's epilogues.
__device__ inline float blas_gelu(float x) {
    return 0.5f * x * (1.0f + tanhf(0.797884561f * fmaf(0.044715f * x * x, x, x)));
}

template <typename S> __device__ inline S blas_follow_by(int follow, S x) {
    return follow == BLAS_FOLLOW_RELU && x < 0 ? (S)0 : x;
}
template <> __device__ inline float blas_follow_by<float>(int follow, float x) {
    if (follow == BLAS_FOLLOW_GELU) return blas_gelu(x);
    return follow == BLAS_FOLLOW_RELU && x < 0 ? 0.0f : x;
}
template <> __device__ inline blas_complex<float> blas_follow_by(int, blas_complex<float> x) {
    return x;
}
template <> __device__ inline blas_complex<double> blas_follow_by(int, blas_complex<double> x) {
    return x;
}

__device__ inline bool blas_is_filled(int fill, int row, int column) {
    return fill == BLAS_FILL_ALL || (fill == BLAS_FILL_LOWER ? row >= column : row <= column);
}

// Stores one element of D.
template <typename U, typename S>
__device__ inline void blas_store(const blas_product &x, int batch, int row, int column, S sum) {
    const S alpha = blas_scale_at<S>(x.alpha, x.scale, row, column, batch);
    const S beta = blas_scale_at<S>(x.beta, x.scale, row, column, batch);
    S value = is_zero(alpha) ? S{} : alpha * sum;
    if (!is_zero(beta)) {
        const U *c = blas_matrix_of<const U>(x.c, batch);
        value = multiply_add(beta, blas_as<S>::of(c[row * x.c.row + column * x.c.column]), value);
    }
    if (x.bias.address != nullptr) {
        const U *bias = blas_matrix_of<const U>(x.bias, batch);
        value = value + blas_as<S>::of(bias[row * x.bias.row + column * x.bias.column]);
    }
    if (x.follow != BLAS_FOLLOW_NONE) value = blas_follow_by(x.follow, value);
    blas_matrix_of<U>(x.d, batch)[row * x.d.row + column * x.d.column] =
        blas_stored<U, S>::of(value);
}

// Whether any element of a tile needs the product. A vector of alphas may have any.
template <typename S> __device__ inline int blas_steps(const blas_product &x, int batch) {
    const bool is_vector = x.alpha.row != 0 || x.alpha.column != 0;
    return is_vector || !is_zero(blas_scale_at<S>(x.alpha, x.scale, 0, 0, batch)) ? x.k : 0;
}

enum { BLAS_STEP = 16 };

// tile[l][i] = matrix(first + i, step + l), 0 outside. Neighbours in a warp read neighbours.
template <typename T, typename S>
__device__ inline void blas_load(S *tile, int pitch, const T *matrix, long long other,
                                 long long along, int first, int count, int step, int steps,
                                 int is_conjugate) {
    const bool by_step = along == 1;
#pragma unroll 2
    for (int i = threadIdx.x; i < BLAS_TILE * BLAS_STEP; i += blockDim.x) {
        const int l = by_step ? i % BLAS_STEP : i / BLAS_TILE;
        const int at = by_step ? i / BLAS_STEP : i % BLAS_TILE;
        S value = S{};
        if (first + at < count && step + l < steps) {
            value = blas_as<S>::of(matrix[(first + at) * other + (step + l) * along]);
        }
        tile[l * pitch + at] = conjugate_if(is_conjugate, value);
    }
}

// Stores a tile whose sums the threads have. Half of each thread's rows at a time go through shared
// memory, where the steps were, so that neighbours in a warp store neighbours.
template <typename U, typename S, int R>
__device__ inline void blas_store_tile(const blas_product &x, int batch, int row, int column,
                                       const S (&sum)[R][R], S *shared) {
    constexpr int SIDE = BLAS_TILE / R, HALF = R / 2;
    const int y = threadIdx.x / SIDE, z = threadIdx.x % SIDE * R;
#pragma unroll 1
    for (int half = 0; half < 2; half++) {
#pragma unroll
        for (int i = 0; i < R; i++) {
#pragma unroll
            for (int j = 0; j < R; j++) {
                if (i / HALF == half) {
                    shared[(y * HALF + i % HALF) * BLAS_TILE + z + j] = sum[i][j];
                }
            }
        }
        __syncthreads(); // other threads wrote what this one reads
#pragma unroll 1
        for (int i = threadIdx.x; i < BLAS_TILE * BLAS_TILE / 2; i += blockDim.x) {
            const int line = i / BLAS_TILE;
            const int r = row + line / HALF * R + half * HALF + line % HALF;
            const int c = column + i % BLAS_TILE;
            if (r < x.m && c < x.n && blas_is_filled(x.fill, r, c)) {
                blas_store<U, S>(x, batch, r, c, shared[i]);
            }
        }
        __syncthreads(); // it is overwritten next
    }
}

// A tile of D per block, R x R elements of it per thread.
// Requires: blockDim.x = (BLAS_TILE / R)^2, gridDim.x = tiles, gridDim.y walks the batch.
template <typename T, typename U, typename S, int R>
__device__ inline void blas_tile(const blas_product &x) {
    constexpr int SIDE = BLAS_TILE / R, PITCH = BLAS_TILE + 16 / sizeof(S);
    __shared__ __align__(16) S shared[2 * BLAS_STEP * PITCH];
    S *const a_tile = shared, *const b_tile = shared + BLAS_STEP * PITCH;
    const int columns = ceil_div(x.n, BLAS_TILE);
    const int row = blockIdx.x / columns * BLAS_TILE, column = blockIdx.x % columns * BLAS_TILE;
    const int y = threadIdx.x / SIDE * R, z = threadIdx.x % SIDE * R;
    for (int batch = blockIdx.y; batch < x.batch; batch += gridDim.y) {
        const int steps = blas_steps<S>(x, batch);
        const T *a = steps > 0 ? blas_matrix_of<const T>(x.a, batch) : nullptr;
        const T *b = steps > 0 ? blas_matrix_of<const T>(x.b, batch) : nullptr;
        S sum[R][R] = {};
        for (int l = 0; l < steps; l += BLAS_STEP) {
            blas_load(a_tile, PITCH, a, x.a.row, x.a.column, row, x.m, l, steps, x.a.is_conjugate);
            blas_load(b_tile, PITCH, b, x.b.column, x.b.row, column, x.n, l, steps,
                      x.b.is_conjugate);
            __syncthreads(); // other threads wrote what this one reads
#pragma unroll 4
            for (int s = 0; s < BLAS_STEP; s++) {
#pragma unroll
                for (int i = 0; i < R; i++) {
#pragma unroll
                    for (int j = 0; j < R; j++) {
                        sum[i][j] = multiply_add(a_tile[s * PITCH + y + i],
                                                 b_tile[s * PITCH + z + j], sum[i][j]);
                    }
                }
            }
            __syncthreads(); // the tiles are overwritten next
        }
        blas_store_tile<U, S, R>(x, batch, row, column, sum, shared);
    }
}

// An element of D per block, for products of few rows or columns.
// Requires: blockDim.x = 32 or BLAS_THREADS; gridDim.x walks the elements, gridDim.y the batch.
template <typename T, typename U, typename S>
__device__ inline void blas_element(const blas_product &x) {
    for (int batch = blockIdx.y; batch < x.batch; batch += gridDim.y) {
        const int steps = blas_steps<S>(x, batch);
        const T *a = steps > 0 ? blas_matrix_of<const T>(x.a, batch) : nullptr;
        const T *b = steps > 0 ? blas_matrix_of<const T>(x.b, batch) : nullptr;
        for (long long i = blockIdx.x; i < (long long)x.m * x.n; i += gridDim.x) {
            const int row = (int)(i / x.n), column = (int)(i % x.n);
            if (!blas_is_filled(x.fill, row, column)) continue;
            S sum = S{};
            for (long long l = threadIdx.x; l < steps; l += blockDim.x) {
                const S left = blas_as<S>::of(a[row * x.a.row + l * x.a.column]);
                const S right = blas_as<S>::of(b[l * x.b.row + column * x.b.column]);
                sum = multiply_add(conjugate_if(x.a.is_conjugate, left),
                                   conjugate_if(x.b.is_conjugate, right), sum);
            }
            sum = blas_block_sum(sum);
            if (threadIdx.x == 0) blas_store<U, S>(x, batch, row, column, sum);
            __syncthreads(); // the partial sums are overwritten next
        }
    }
}

#define BLAS_PRODUCT(name, T, U, S, R)                                                             \
    extern "C" __global__ void __launch_bounds__((BLAS_TILE / R) * (BLAS_TILE / R))                \
        blas_tile_##name(blas_product x) {                                                         \
        blas_tile<T, U, S, R>(x);                                                                  \
    }                                                                                              \
    extern "C" __global__ void __launch_bounds__(BLAS_THREADS)                                     \
        blas_element_##name(blas_product x) {                                                      \
        blas_element<T, U, S>(x);                                                                  \
    }
