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
    must_be_near(APPROX("sin.approx"), sin, -3.14f, 3.14f);
    must_be_near(APPROX("cos.approx"), cos, -3.14f, 3.14f);
    must_be_near(APPROX("sin.approx"), sin, 1e-30f, 3.14f);
}

/* Outside -pi to pi an H200 gave these sines. Its own sine of the reduced argument is not known to
 * the bit. */
Test(approx, sines_of_large_arguments_are_those_of_a_gpu) {
    static const float sines[][2] = {
        {72545017856.0f, 0}, {22741, 0.83654767f},
        {1e5f, 0.04293802f}, {30.5f, -0.7931294f},
        {1e30f, 0},          {1e7f, 1},
        {3e8f, 0},           {-5e12f, -0.0f},
    };
    enum { SINES = sizeof sines / sizeof *sines };
    float values[32] = {0};
    for (int i = 0; i < SINES; i++) values[i] = sines[i][0];
    TEST_RUN(APPROX("sin.approx"), 1, 32, values);
    for (int i = 0; i < SINES; i++) {
        cr_assert(fabsf(values[i] - sines[i][1]) < 0x1p-20f, "sin of %.9g: %.9g, not %.9g",
                  (double)sines[i][0], (double)values[i], (double)sines[i][1]);
        cr_assert_eq(signbit(values[i]), signbit(sines[i][1]));
    }
    values[0] = 1e30f;
    TEST_RUN(APPROX("cos.approx"), 1, 32, values);
    cr_assert_eq(values[0], 1);
}

Test(approx, tangents_and_roots) {
    must_be_near(APPROX("tanh.approx"), tanh, -12, 12);
    must_be_near(APPROX("rsqrt.approx"), rsqrt, 1e-37f, 1e38f);
}
