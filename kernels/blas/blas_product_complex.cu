// blas_product of complex numbers.
#include "blas_product.cuh"

BLAS_PRODUCT(c32, blas_complex<float>, blas_complex<float>, blas_complex<float>, 4)
BLAS_PRODUCT(c64, blas_complex<double>, blas_complex<double>, blas_complex<double>, 4)
