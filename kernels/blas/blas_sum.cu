// blas_sum: D = alpha A + beta B by elements, for matrices of any strides (BLAS's axpy, scal, copy
// and geam). If beta is 0, B is not read; if alpha and k are 0, A is not. D may be A or B.
//
// Requires: blockDim.x = BLAS_THREADS; gridDim.x walks the columns, gridDim.y the rows.
#include "blas_number.cuh"

template <typename T, typename S> __device__ inline void blas_sum(const blas_product &x) {
    const S alpha = blas_scale_at<S>(x.alpha, x.scale, 0, 0, 0);
    const S beta = blas_scale_at<S>(x.beta, x.scale, 0, 0, 0);
    const bool reads_a = x.k != 0 || !is_zero(alpha), reads_b = !is_zero(beta);
    const T *const a_matrix = (const T *)x.a.address, *const b_matrix = (const T *)x.b.address;
    const int first = blockIdx.x * blockDim.x + threadIdx.x, step = gridDim.x * blockDim.x;
    for (int row = blockIdx.y; row < x.m; row += gridDim.y) {
        const T *a = a_matrix + row * x.a.row + first * x.a.column;
        const T *b = b_matrix + row * x.b.row + first * x.b.column;
        T *d = (T *)x.d.address + row * x.d.row + first * x.d.column;
        for (long long column = first; column < x.n; column += step) {
            S value = S{};
            __builtin_assume(__isGlobal(d));
            if (reads_b) {
                __builtin_assume(__isGlobal(b));
                value = beta * conjugate_if(x.b.is_conjugate, blas_as<S>::of(*b));
            }
            if (reads_a) {
                __builtin_assume(__isGlobal(a));
                value =
                    multiply_add(alpha, conjugate_if(x.a.is_conjugate, blas_as<S>::of(*a)), value);
            }
            *d = blas_stored<T, S>::of(value);
            a += step * x.a.column;
            b += step * x.b.column;
            d += step * x.d.column;
        }
    }
}

#define BLAS_SUM(name, T, S)                                                                       \
    extern "C" __global__ void __launch_bounds__(BLAS_THREADS) blas_sum_##name(blas_product x) {   \
        blas_sum<T, S>(x);                                                                         \
    }
BLAS_SUM(f32, float, float)
BLAS_SUM(f64, double, double)
BLAS_SUM(f16, __half, float)
BLAS_SUM(bf16, __nv_bfloat16, float)
BLAS_SUM(c32, blas_complex<float>, blas_complex<float>)
BLAS_SUM(c64, blas_complex<double>, blas_complex<double>)
