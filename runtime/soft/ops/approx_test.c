/*
 * The approximate functions are within half a unit of the last place, and a little for their
 * series, of what libm says in double precision, as ops_approx.c promises. The manual would allow
 * much more.
 */
#include "test/test_soft.h"

#include <math.h>
#include <string.h>

enum { BLOCKS = 128, THREADS = 256, COUNT = BLOCKS * THREADS };

static const double units_max = 0.51;

TestSuite(approx, .fini = test_soft_close);

#define APPROX(operation)                                                                          \
    TEST_KERNEL("ld.global.f32 %f1, [%rd2];\n" operation ".f32 %f2, %f1;\n"                        \
                "st.global.f32 [%rd2], %f2;\n")

/* Runs COUNT arguments from low to high, evenly; or by their logarithms, where low is positive. */
static void must_be_near(const char *ptx, double (*exact)(double), float low, float high) {
    static float in[COUNT], out[COUNT];
    for (int i = 0; i < COUNT; i++) {
        double share = (double)i / (COUNT - 1);
        in[i] = (float)(low > 0 ? low * pow((double)high / low, share)
                                : low + share * ((double)high - low));
    }
    memcpy(out, in, sizeof out);
    TEST_RUN(ptx, BLOCKS, THREADS, out);
    for (int i = 0; i < COUNT; i++) {
        double expected = exact((double)in[i]);
        int exponent = 0;
        frexp(expected, &exponent);
        double unit = ldexp(1, exponent - 24), off = fabs((double)out[i] - expected);
        cr_assert(off <= units_max * unit, "of %.9g: %.9g, not %.9g: %.3f units off", (double)in[i],
                  (double)out[i], expected, off / unit);
    }
}

static double rsqrt(double x) {
    return 1 / sqrt(x);
}

Test(approx, powers_and_logarithms_of_two) {
    must_be_near(APPROX("ex2.approx"), exp2, -125, 127);
    must_be_near(APPROX("lg2.approx"), log2, 1e-37f, 1e38f);
    must_be_near(APPROX("lg2.approx"), log2, 0.5f, 2.0f);
}

Test(approx, sines_and_cosines) {
    must_be_near(APPROX("sin.approx"), sin, -100, 100);
    must_be_near(APPROX("cos.approx"), cos, -100, 100);
    must_be_near(APPROX("sin.approx"), sin, 1e-30f, 3.2f);
}

Test(approx, tangents_and_roots) {
    must_be_near(APPROX("tanh.approx"), tanh, -12, 12);
    must_be_near(APPROX("rsqrt.approx"), rsqrt, 1e-37f, 1e38f);
}
