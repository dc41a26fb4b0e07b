// The mathematical functions of libdevice, one row of results per function.
#include <math.h>
#include <stdint.h>

#define ROW(n, expression)                                                                         \
    case n:                                                                                        \
        y = expression;                                                                            \
        break

extern "C" __global__ void single(const float *in, float *out, uint32_t count) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    float x = in[i], y = 0;
    switch (blockIdx.y) {
        ROW(0, sinf(x));
        ROW(1, cosf(x));
        ROW(2, tanf(x));
        ROW(3, expf(x));
        ROW(4, logf(fabsf(x)));
        ROW(5, powf(fabsf(x), 1.7f));
        ROW(6, erff(x));
        ROW(7, tgammaf(x));
        ROW(8, cbrtf(x));
        ROW(9, atan2f(x, 2.0f));
        ROW(10, hypotf(x, 3.0f));
        ROW(11, tanhf(x));
        ROW(12, sqrtf(fabsf(x)));
        ROW(13, floorf(x) + ceilf(x * 0.5f));
        ROW(14, fmodf(x, 0.7f));
        ROW(15, log1pf(fabsf(x)));
        ROW(16, exp2f(x));
        ROW(17, asinf(x / (1.0f + fabsf(x))));
        ROW(18, sinhf(x * 0.1f));
        ROW(19, lgammaf(x));
        ROW(20, rsqrtf(fabsf(x) + 0.1f));
        ROW(21, ldexpf(x, 3));
        ROW(22, roundf(x));
        ROW(23, rintf(x));
        ROW(24, expm1f(x * 0.01f));
        ROW(25, erfcf(x * 0.1f));
    }
    out[blockIdx.y * count + i] = y;
}

extern "C" __global__ void twice(const double *in, double *out, uint32_t count) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    double x = in[i], y = 0;
    switch (blockIdx.y) {
        ROW(0, sin(x));
        ROW(1, cos(x));
        ROW(2, tan(x));
        ROW(3, exp(x));
        ROW(4, log(fabs(x)));
        ROW(5, pow(fabs(x), 1.7));
        ROW(6, erf(x));
        ROW(7, tgamma(x));
        ROW(8, cbrt(x));
        ROW(9, atan2(x, 2.0));
        ROW(10, hypot(x, 3.0));
        ROW(11, tanh(x));
        ROW(12, sqrt(fabs(x)));
        ROW(13, floor(x) + ceil(x * 0.5));
        ROW(14, fmod(x, 0.7));
        ROW(15, log1p(fabs(x)));
        ROW(16, exp2(x));
        ROW(17, asin(x / (1.0 + fabs(x))));
        ROW(18, sinh(x * 0.1));
        ROW(19, lgamma(x));
        ROW(20, rsqrt(fabs(x) + 0.1));
        ROW(21, ldexp(x, 3));
        ROW(22, round(x));
        ROW(23, rint(x));
        ROW(24, expm1(x * 0.01));
        ROW(25, erfc(x * 0.1));
    }
    out[blockIdx.y * count + i] = y;
}

// The fast functions, and those with an explicit rounding.
extern "C" __global__ void fast(const float *in, float *out, uint32_t count) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    float x = in[i], y = 0;
    switch (blockIdx.y) {
        ROW(0, __sinf(x));
        ROW(1, __cosf(x));
        ROW(2, __expf(x));
        ROW(3, __logf(fabsf(x)));
        ROW(4, __fdividef(x, 3.0f));
        ROW(5, __fmaf_rn(x, x, 1.0f));
        ROW(6, __fadd_rz(x, 1e-3f));
        ROW(7, __fmul_ru(x, 1.1f));
        ROW(8, __fdiv_rd(x, 3.0f));
        ROW(9, __fsqrt_ru(fabsf(x)));
        ROW(10, __frcp_rz(x));
        ROW(11, __saturatef(x));
        ROW(12, (float)__float2int_rd(x));
        ROW(13, __int_as_float(__float_as_int(x) ^ 0x80000000));
        ROW(14, __powf(fabsf(x), 0.5f));
        ROW(15, (float)__double2int_rn(x * 1.5));
    }
    out[blockIdx.y * count + i] = y;
}
