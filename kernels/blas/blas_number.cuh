// The numbers of the kernels of blas: what is stored, and what sums are kept in.
#pragma once

#include "../tile.cuh"
#include "blas_arguments.h"

template <typename T> struct blas_complex { T x, y; };

template <typename T>
__device__ inline blas_complex<T> operator*(blas_complex<T> a, blas_complex<T> b) {
    return {a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x};
}
template <typename T>
__device__ inline blas_complex<T> operator+(blas_complex<T> a, blas_complex<T> b) {
    return {a.x + b.x, a.y + b.y};
}

// sum + a b, rounded once where the numbers are real.
__device__ inline float multiply_add(float a, float b, float sum) {
    return fmaf(a, b, sum);
}
__device__ inline double multiply_add(double a, double b, double sum) {
    return fma(a, b, sum);
}
__device__ inline int multiply_add(int a, int b, int sum) {
    return a * b + sum;
}
template <typename T>
__device__ inline blas_complex<T> multiply_add(blas_complex<T> a, blas_complex<T> b,
                                               blas_complex<T> sum) {
    return {multiply_add(a.x, b.x, multiply_add(-a.y, b.y, sum.x)),
            multiply_add(a.x, b.y, multiply_add(a.y, b.x, sum.y))};
}

// A stored number as one of a sum, and back.
template <typename S> struct blas_as {
    template <typename T> __device__ static S of(T x) { return (S)to_float(x); }
    __device__ static S of(double x) { return (S)x; }
    __device__ static S of(int x) { return (S)x; }
    __device__ static S of(signed char x) { return (S)x; }
};
template <typename T> struct blas_as<blas_complex<T>> {
    __device__ static blas_complex<T> of(blas_complex<T> x) { return x; }
};
template <typename T, typename S> struct blas_stored {
    __device__ static T of(S x) { return (T)x; }
};
template <> struct blas_stored<__half, float> {
    __device__ static __half of(float x) { return __float2half_rn(x); }
};
template <> struct blas_stored<__nv_bfloat16, float> {
    __device__ static __nv_bfloat16 of(float x) { return __float2bfloat16_rn(x); }
};

template <typename S> __device__ inline bool is_zero(S x) {
    return x == 0;
}
template <typename T> __device__ inline bool is_zero(blas_complex<T> x) {
    return x.x == 0 && x.y == 0;
}

template <typename S> __device__ inline S conjugate_if(int is_conjugate, S x) {
    return x;
}
template <typename T>
__device__ inline blas_complex<T> conjugate_if(int is_conjugate, blas_complex<T> x) {
    return {x.x, is_conjugate ? -x.y : x.y};
}

template <typename S> __device__ inline S from_lane(S x, int distance) {
    return __shfl_down_sync(~0u, x, distance);
}
template <typename T> __device__ inline blas_complex<T> from_lane(blas_complex<T> x, int distance) {
    return {__shfl_down_sync(~0u, x.x, distance), __shfl_down_sync(~0u, x.y, distance)};
}

// The sum over a block of up to 256 threads, in a fixed order; thread 0 gets it.
template <typename S> __device__ inline S blas_block_sum(S sum) {
    __shared__ S parts[BLAS_THREADS / WARP];
    for (int lanes = WARP / 2; lanes > 0; lanes /= 2) sum = sum + from_lane(sum, lanes);
    if (blockDim.x == WARP) return sum;
    if (threadIdx.x % WARP == 0) parts[threadIdx.x / WARP] = sum;
    __syncthreads();
    for (int i = 1; threadIdx.x == 0 && i < blockDim.x / WARP; i++) sum = sum + parts[i];
    return sum;
}

template <typename S> struct blas_scale_of {
    __device__ static S value(const blas_scalar &x) { return (S)x.value[0]; }
};
template <typename T> struct blas_scale_of<blas_complex<T>> {
    __device__ static blas_complex<T> value(const blas_scalar &x) {
        return {(T)x.value[0], (T)x.value[1]};
    }
};

// alpha or beta, of row and column of a matrix of a batch.
template <typename S>
__device__ inline S blas_scale_at(const blas_scalar &x, int scale, long long row, long long column,
                                  long long batch) {
    if (x.address == nullptr) return blas_scale_of<S>::value(x);
    const long long at = row * x.row + column * x.column + batch * x.batch;
    if constexpr (sizeof(S) == sizeof(float)) {
        if (scale == BLAS_SCALE_F16) return blas_as<S>::of(((const __half *)x.address)[at]);
        if (scale == BLAS_SCALE_BF16) return blas_as<S>::of(((const __nv_bfloat16 *)x.address)[at]);
    }
    return ((const S *)x.address)[at];
}

// The matrix of a batch. The compiler may take it for global memory, whose loads are faster than
// generic ones.
template <typename T> __device__ inline T *blas_matrix_of(const blas_matrix &x, long long batch) {
    T *matrix =
        x.is_array ? ((T *const *)x.address)[batch * x.batch] : (T *)x.address + batch * x.batch;
    __builtin_assume(__isGlobal(matrix));
    return matrix;
}
