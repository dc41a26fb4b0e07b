/*
 * Products of matrices of doubles: each sum is a chain of fma.f64 from the first column of A to the
 * last, rounded as the instruction says. This file is compiled with -frounding-math.
 * Source: PTX ISA 9.0, sections 9.7.14.4 and 9.7.14.5.
 */
#include "float_bits.h"
#include "ops_tensor.h"

#include <fenv.h>

static void gather_doubles(const struct soft_warp *warp, const struct fragment *f,
                           const uint32_t *slots, double *matrix) {
    for (unsigned r = 0; r < f->registers; r++) {
        const double *values = SLOT(double, slots[r]);
        double *to = matrix + f->of_register[r];
        for (int i = 0; i < SOFT_LANES; i++) to[f->of_lane[i]] = values[i];
    }
}

OP_WHOLE(mma_f64) {
    static const int directions[4] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
    struct tensor t = tensor_of(warp, in);
    struct soft_tensor_shape s = t.shape;
    struct fragment fa = fragment_of(s, SOFT_TENSOR_A, SOFT_TENSOR_F64);
    struct fragment fb = fragment_of(s, SOFT_TENSOR_B, SOFT_TENSOR_F64);
    struct fragment fc = fragment_of(s, SOFT_TENSOR_C, SOFT_TENSOR_F64);
    double a[256] = {0}, b[128] = {0}, c[128] = {0};
    gather_doubles(warp, &fa, t.a_slots, a);
    gather_doubles(warp, &fb, t.b_slots, b);
    gather_doubles(warp, &fc, t.c_slots, c);
    fesetround(directions[in->mode & 3]);
    for (unsigned row = 0; row < s.m; row++) {
        for (unsigned k = 0; k < s.k; k++) {
            for (unsigned column = 0; column < s.n; column++) {
                double x = a[row * s.k + k], y = b[k * s.n + column], *sum = &c[row * s.n + column];
                *sum = nan_of_3(__builtin_fma(x, y, *sum), y, *sum, x);
            }
        }
    }
    fesetround(FE_TONEAREST);
    for (unsigned r = 0; r < fc.registers; r++) {
        double *values = SLOT(double, t.d_slots[r]);
        for (int i = 0; i < SOFT_LANES; i++) {
            values[i] = c[fc.of_register[r] + fc.of_lane[i]];
        }
    }
    return in + 1;
}
