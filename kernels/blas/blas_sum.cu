// blas_sum: D = alpha A + beta B by elements, for matrices of any strides (BLAS's axpy, scal, copy
// and geam). If beta is 0, B is not read; if alpha and k are 0, A is not. D may be A or B.
//
// Requires: blockDim.x = BLAS_THREADS; gridDim.x walks the elements, gridDim.y the batch.
#include "blas_number.cuh"

template <typename T, typename S>
__device__ inline S blas_part(const blas_matrix &x, int batch, int row, int column) {
    const T *matrix = blas_matrix_of<const T>(x, batch);
    return conjugate_if(x.is_conjugate, blas_as<S>::of(matrix[row * x.row + column * x.column]));
}

template <typename T, typename S> __device__ inline void blas_sum(const blas_product &x) {
    const S alpha = blas_scale_at<S>(x.alpha, x.scale, 0, 0, 0);
    const S beta = blas_scale_at<S>(x.beta, x.scale, 0, 0, 0);
    const long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    for (int batch = blockIdx.y; batch < x.batch; batch += gridDim.y) {
        for (long long i = first; i < (long long)x.m * x.n;
             i += (long long)gridDim.x * blockDim.x) {
            const int row = (int)(i / x.n), column = (int)(i % x.n);
            S value = is_zero(beta) ? S{} : beta * blas_part<T, S>(x.b, batch, row, column);
            if (x.k != 0 || !is_zero(alpha)) {
                value = multiply_add(alpha, blas_part<T, S>(x.a, batch, row, column), value);
            }
            blas_matrix_of<T>(x.d, batch)[row * x.d.row + column * x.d.column] =
                blas_stored<T, S>::of(value);
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
