// blas_reduce: a number of a vector (BLAS's nrm2, asum, iamax and iamin), by one block in a fixed
// order. Sums are kept in double; norms are scaled by the largest |x|, so that no square overflows.
//
// Requires: blockDim.x = BLAS_THREADS, gridDim.x = 1.
#include "blas_number.cuh"

// The parts of a number, as doubles.
template <typename T> __device__ inline blas_complex<double> blas_parts(T x) {
    return {blas_as<double>::of(x), 0.0};
}
template <typename T> __device__ inline blas_complex<double> blas_parts(blas_complex<T> x) {
    return {(double)x.x, (double)x.y};
}

struct blas_best {
    double value;
    long long index; // -1: there is none
};

__device__ inline blas_best blas_better(blas_best a, blas_best b) {
    if (a.index < 0) return b;
    if (b.index < 0) return a;
    if (a.value != b.value) return a.value > b.value ? a : b;
    return a.index < b.index ? a : b;
}

// The better of each thread; all threads get it.
__device__ inline blas_best blas_block_best(blas_best mine) {
    __shared__ blas_best parts[BLAS_THREADS];
    parts[threadIdx.x] = mine;
    __syncthreads();
    for (int half = BLAS_THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) {
            parts[threadIdx.x] = blas_better(parts[threadIdx.x], parts[threadIdx.x + half]);
        }
        __syncthreads();
    }
    return parts[0];
}

template <typename T, typename R> __device__ inline void blas_reduce(const blas_reduction &x) {
    blas_best best = {0.0, -1};
    double sum = 0, scale = 0;
    for (long long i = threadIdx.x; i < x.count; i += blockDim.x) {
        const blas_complex<double> parts = blas_parts(((const T *)x.x)[i * x.stride]);
        const double size = fabs(parts.x) + fabs(parts.y);
        const double largest = fmax(fmax(fabs(parts.x), fabs(parts.y)), 0.0); // NaN counts as 0
        sum += size;
        best = blas_better(best, {x.kind == BLAS_NORM       ? largest
                                  : x.kind == BLAS_SMALLEST ? -size
                                                            : size,
                                  i});
    }
    if (x.kind != BLAS_MAGNITUDE) best = blas_block_best(best);
    if (x.kind == BLAS_LARGEST || x.kind == BLAS_SMALLEST) {
        if (threadIdx.x == 0 && x.is_wide) *(long long *)x.result = best.index + 1;
        if (threadIdx.x == 0 && !x.is_wide) *(int *)x.result = (int)(best.index + 1);
        return;
    }
    if (x.kind == BLAS_NORM && best.value > 0) { // otherwise the sum is 0 or NaN
        scale = best.value;
        sum = 0;
        for (long long i = threadIdx.x; i < x.count; i += blockDim.x) {
            const blas_complex<double> parts = blas_parts(((const T *)x.x)[i * x.stride]);
            const double real = parts.x / scale, other = parts.y / scale;
            sum += real * real + other * other;
        }
    }
    sum = blas_block_sum(sum);
    if (scale > 0) sum = isinf(scale) ? scale : scale * sqrt(sum); // also beside NaN, as cuBLAS's
    if (threadIdx.x == 0) *(R *)x.result = blas_stored<R, double>::of(sum);
}

#define BLAS_REDUCE(name, T, R)                                                                    \
    extern "C" __global__ void __launch_bounds__(BLAS_THREADS)                                     \
        blas_reduce_##name(blas_reduction x) {                                                     \
        blas_reduce<T, R>(x);                                                                      \
    }
BLAS_REDUCE(f32, float, float)
BLAS_REDUCE(f64, double, double)
BLAS_REDUCE(f16, __half, __half)
BLAS_REDUCE(bf16, __nv_bfloat16, __nv_bfloat16)
BLAS_REDUCE(c32, blas_complex<float>, float)
BLAS_REDUCE(c64, blas_complex<double>, double)
