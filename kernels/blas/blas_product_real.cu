// blas_product of real numbers. The sums of 16-bit numbers are kept in float, those of 8-bit
// integers in 32 bits or in float.
#include "blas_product.cuh"

BLAS_PRODUCT(f32, float, float, float, 8)
BLAS_PRODUCT(f64, double, double, double, 8)
BLAS_PRODUCT(f16, __half, __half, float, 8)
BLAS_PRODUCT(f16_f32, __half, float, float, 8)
BLAS_PRODUCT(bf16, __nv_bfloat16, __nv_bfloat16, float, 8)
BLAS_PRODUCT(bf16_f32, __nv_bfloat16, float, float, 8)
BLAS_PRODUCT(i8_i32, signed char, int, int, 8)
BLAS_PRODUCT(i8_f32, signed char, float, float, 8)
