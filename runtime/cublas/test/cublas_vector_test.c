/*
 * Operations on vectors against plain loops: increments of both signs, both pointer modes, every
 * type. The numbers are small and whole, so results are exact.
 */
#include "test_vector.h"

#include <math.h>
#include <stdio.h>

TestSuite(cublas_vector, .init = test_cublas_begin, .fini = test_cublas_end);

enum { N = 300 };

/* ---- vectors become others ---- */

static void check_sums(int kind, int step, int mode, struct test_number by) {
    const bool is_wide = step % 2 != 0;
    const int type = test_kinds[kind].type;
    struct test_vector x = test_vector_draw(type, N, test_steps[step][0]);
    struct test_vector y = test_vector_draw(type, N, test_steps[step][1]);
    const void *alpha = test_scalar(mode, type, by);
    test_set_pointer_mode(mode);
    OK(test_function_of(test_kinds[kind].letter, "axpy",
                        is_wide)(test_handle, N, alpha, test_vector_address(&x), (long)x.step,
                                 test_vector_address(&y), (long)y.step));
    for (int i = 0; i < N; i++) {
        test_set(&y.numbers, test_vector_at(&y, i),
                 test_plus(test_times(by, test_vector_get(&x, i)), test_vector_get(&y, i)));
    }
    test_vector_check(&y, "axpy");
    OK(test_function_of(test_kinds[kind].letter, "copy",
                        is_wide)(test_handle, N, test_vector_address(&x), (long)x.step,
                                 test_vector_address(&y), (long)y.step));
    for (int i = 0; i < N; i++) test_set(&y.numbers, test_vector_at(&y, i), test_vector_get(&x, i));
    test_vector_check(&y, "copy");
    OK(test_function_of(test_kinds[kind].letter, "scal",
                        is_wide)(test_handle, N, alpha, test_vector_address(&x), (long)x.step));
    for (int i = 0; x.step > 0 && i < N; i++)
        test_set(&x.numbers, test_vector_at(&x, i), test_times(by, test_vector_get(&x, i)));
    test_vector_check(&x, "scal");
}

Test(cublas_vector, axpy_copy_and_scal) {
    for (int i = 0; i < TEST_KINDS * TEST_STEPS * 2 * 3; i++) {
        check_sums(i % TEST_KINDS, i / TEST_KINDS % TEST_STEPS, i / TEST_KINDS / TEST_STEPS % 2,
                   test_scalars[i / TEST_KINDS / TEST_STEPS / 2]);
        test_free();
    }
}

/* 0 NaN is NaN; axpy with 0 reads no x. */
Test(cublas_vector, zero_times_nan) {
    const float zero = 0;
    struct test_vector x = test_vector_draw(CUDA_R_32F, 3, 1),
                       y = test_vector_draw(CUDA_R_32F, 3, 1);
    test_spoil(&x.numbers, 1);
    test_send(&x.numbers);
    OK(test_cublas("cublasSaxpy_v2")(test_handle, 3, &zero, test_vector_address(&x), 1,
                                     test_vector_address(&y), 1));
    test_vector_check(&y, "axpy");
    OK(test_cublas("cublasSscal_v2")(test_handle, 3, &zero, test_vector_address(&x), 1));
    test_set(&x.numbers, 0, (struct test_number){0, 0});
    test_set(&x.numbers, 2, (struct test_number){0, 0});
    test_vector_check(&x, "scal");
}

Test(cublas_vector, complex_numbers_times_a_real_one) {
    for (int kind = 2; kind < TEST_KINDS; kind++) {
        for (int mode = 0; mode < 2; mode++) {
            struct test_vector x = test_vector_draw(test_kinds[kind].type, N, 2);
            const struct test_number by = {-2, 0};
            const void *alpha = test_scalar(mode, test_kinds[kind].real, by);
            test_set_pointer_mode(mode);
            OK(test_function_of(kind == 2 ? "Cs" : "Zd", "scal",
                                false)(test_handle, N, alpha, test_vector_address(&x), 2));
            for (int i = 0; i < N; i++)
                test_set(&x.numbers, test_vector_at(&x, i), test_times(by, test_vector_get(&x, i)));
            test_vector_check(&x, "scal");
        }
    }
}

/* ---- vectors become a number ---- */

/* What a function makes of x, and of y if there is one. Its result goes where the pointer mode
 * wants it. */
static struct test_number reduce(int mode, int type, const char *name, bool is_wide,
                                 const struct test_vector *x, const struct test_vector *y) {
    struct test_numbers to = test_draw(type, 1);
    void *result = mode == CUBLAS_POINTER_MODE_DEVICE ? test_address(&to, 0) : to.host;
    const test_function function = test_function_of("", name, is_wide);
    const long n = x->count, step = x->step; /* 64 bits serve where 32 are read */
    test_set_pointer_mode(mode);
    OK(y == NULL ? function(test_handle, n, test_vector_address(x), step, result)
                 : function(test_handle, n, test_vector_address(x), step, test_vector_address(y),
                            (long)y->step, result));
    if (mode == CUBLAS_POINTER_MODE_DEVICE) test_fetch(&to);
    return test_get(&to, 0);
}

static double size_of(struct test_number x) {
    return fabs(x.real) + fabs(x.imaginary);
}

static int extreme(const struct test_vector *x, bool largest) {
    int best = 0;
    for (int i = 1; i < x->count; i++) {
        const double one = size_of(test_vector_get(x, i)),
                     before = size_of(test_vector_get(x, best));
        if (largest ? one > before : one < before) best = i;
    }
    return best + 1;
}

static void check_reductions(int kind, int step, int mode) {
    const int type = test_kinds[kind].type, real = test_kinds[kind].real, n = step == 3 ? 20000 : N;
    const char low[] = {(char)(test_kinds[kind].letter[0] + 'a' - 'A'), '\0'};
    char largest[16], smallest[16];
    struct test_vector x = test_vector_draw(type, n, test_steps[step][0]);
    struct test_vector y = test_vector_draw(type, n, test_steps[step][1]);
    struct test_number dot = {0, 0};
    double squares = 0, sizes = 0;
    for (int i = 0; i < n; i++) {
        const struct test_number a = test_vector_get(&x, i);
        dot = test_plus(dot, test_times(kind < 2 ? a : test_conjugate(a), test_vector_get(&y, i)));
        squares += a.real * a.real + a.imaginary * a.imaginary;
        sizes += size_of(a);
    }
    if (x.step < 0) squares = sizes = 0;
    snprintf(largest, sizeof largest, "I%samax", low);
    snprintf(smallest, sizeof smallest, "I%samin", low);
    const struct test_number is = reduce(mode, type, test_kinds[kind].dot, false, &x, &y);
    cr_assert(is.real == dot.real && is.imaginary == dot.imaginary, "%s: %g + %g i, not %g + %g i",
              test_kinds[kind].dot, is.real, is.imaginary, dot.real, dot.imaginary);
    const double norm = reduce(mode, real, test_kinds[kind].norm, true, &x, NULL).real;
    cr_assert(fabs(norm - sqrt(squares)) <= 1e-7 * norm, "%g, not %g", norm, sqrt(squares));
    const double sum = reduce(mode, real, test_kinds[kind].magnitude, false, &x, NULL).real;
    cr_assert(sum == sizes, "%g, not %g", sum, sizes);
    const double first = reduce(mode, CUDA_R_32I, largest, false, &x, NULL).real;
    cr_assert(first == (x.step < 0 ? 0 : extreme(&x, true)), "%g", first);
    const double last = reduce(mode, CUDA_R_32I, smallest, false, &x, NULL).real;
    cr_assert(last == (x.step < 0 ? 0 : extreme(&x, false)), "%g", last);
}

Test(cublas_vector, dot_norms_and_indices) {
    for (int i = 0; i < TEST_KINDS * TEST_STEPS * 2; i++) {
        check_reductions(i % TEST_KINDS, i / TEST_KINDS % TEST_STEPS, i / TEST_KINDS / TEST_STEPS);
        test_free();
    }
}

/* Copies to pinned memory do not wait by themselves. */
Test(cublas_vector, a_result_on_the_host_is_there_when_the_call_returns) {
    enum { COUNT = 200000 };
    const struct tol_driver_table *driver = tol_driver_functions(test_driver());
    struct tol_stream *stream = NULL;
    float *result = NULL;
    double expected = 0;
    struct test_vector x = test_vector_draw(CUDA_R_32F, COUNT, 1);
    for (int i = 0; i < COUNT; i++) expected += fabs(test_vector_get(&x, i).real);
    MUST(tol_stream_create(test_context(), NULL, &stream));
    cr_assert(driver->cuMemHostAlloc((void **)&result, sizeof *result, 0) == 0);
    OK(test_cublas("cublasSetStream_v2")(test_handle, tol_stream_handle(stream)));
    for (int i = 0; i < 4; i++) {
        *result = -1;
        OK(test_cublas("cublasSasum_v2")(test_handle, COUNT, test_vector_address(&x), 1, result));
        cr_assert((double)*result == expected, "%g, not %g", (double)*result, expected);
    }
    cr_assert(driver->cuMemFreeHost(result) == 0);
    OK(test_cublas("cublasSetStream_v2")(test_handle, NULL));
    tol_stream_destroy(stream);
}

Test(cublas_vector, an_empty_vector_has_the_results_of_nothing) {
    int64_t index = 7;
    struct test_vector x = test_vector_draw(CUDA_R_32F, 1, 1);
    x.count = 0;
    cr_assert(reduce(0, CUDA_R_32F, "Sdot", false, &x, &x).real == 0);
    cr_assert(reduce(0, CUDA_R_64F, "Dasum", false, &x, NULL).real == 0);
    x.count = -1;
    cr_assert(reduce(1, CUDA_R_32F, "Snrm2", false, &x, NULL).real == 0);
    test_set_pointer_mode(CUBLAS_POINTER_MODE_HOST);
    OK(test_cublas("cublasIdamax_v2_64")(test_handle, 0L, NULL, 1L, &index));
    cr_assert(index == 0);
}

/* An infinite number decides, also beside NaN. */
Test(cublas_vector, norms_neither_overflow_nor_lose_what_is_not_finite) {
    static const double cases[][4] = {{3e30, 4e30, 0, 5e30},
                                      {3e-30, 4e-30, 0, 5e-30},
                                      {1, INFINITY, 2, INFINITY},
                                      {0, NAN, 0, NAN},
                                      {2, NAN, -3, NAN},
                                      {INFINITY, NAN, 0, INFINITY},
                                      {NAN, 0, -INFINITY, INFINITY},
                                      {0, 0, 0, 0},
                                      {3e300, -4e300, 0, 5e300}};
    enum { CASES = sizeof cases / sizeof cases[0] };
    const int mode = CUBLAS_POINTER_MODE_HOST;
    for (int i = 0; i < CASES * 2; i++) {
        const double *row = cases[i / 2];
        const bool is_double = i % 2 != 0;
        struct test_vector x = test_vector_draw(is_double ? CUDA_R_64F : CUDA_R_32F, 3, 1);
        if (!is_double && row[0] == 3e300) continue;
        for (int j = 0; j < 3; j++)
            test_set(&x.numbers, (size_t)j, (struct test_number){row[j], 0});
        test_send(&x.numbers);
        const double norm =
            reduce(mode, x.numbers.type, is_double ? "Dnrm2" : "Snrm2", false, &x, NULL).real;
        cr_assert(isnan(row[3]) ? isnan(norm)
                                : norm == row[3] || fabs(norm - row[3]) <= 1e-7 * row[3],
                  "%g, %g: %g, not %g", row[0], row[1], norm, row[3]);
    }
}

Test(cublas_vector, halves_with_scalars_in_float) {
    for (int type = CUDA_R_16F; type <= CUDA_R_16BF; type += CUDA_R_16BF - CUDA_R_16F) {
        for (int mode = 0; mode < 2; mode++) {
            struct test_vector x = test_vector_draw(type, N, 1), y = test_vector_draw(type, N, 2);
            const struct test_number by = {3, 0};
            const void *alpha = test_scalar(mode, CUDA_R_32F, by);
            double dot = 0;
            test_set_pointer_mode(mode);
            OK(test_cublas("cublasAxpyEx")(test_handle, N, alpha, CUDA_R_32F,
                                           test_vector_address(&x), type, 1,
                                           test_vector_address(&y), type, 2, CUDA_R_32F));
            for (int j = 0; j < N; j++) {
                test_set(&y.numbers, test_vector_at(&y, j),
                         test_plus(test_times(by, test_vector_get(&x, j)), test_vector_get(&y, j)));
            }
            test_vector_check(&y, "AxpyEx");
            OK(test_cublas("cublasScalEx_64")(test_handle, (long)N, alpha, CUDA_R_32F,
                                              test_vector_address(&x), type, 1L, CUDA_R_32F));
            for (int j = 0; j < N; j++) {
                test_set(&x.numbers, test_vector_at(&x, j), test_times(by, test_vector_get(&x, j)));
                dot += test_vector_get(&x, j).real * test_vector_get(&y, j).real;
            }
            test_vector_check(&x, "ScalEx");
            struct test_numbers to = test_draw(type, 2);
            test_set(&to, 1, (struct test_number){dot, 0}); /* rounded once */
            void *result = mode == CUBLAS_POINTER_MODE_DEVICE ? test_address(&to, 0) : to.host;
            OK(test_cublas("cublasDotEx")(test_handle, N, test_vector_address(&x), type, 1,
                                          test_vector_address(&y), type, 2, result, type,
                                          CUDA_R_32F));
            const struct test_number rounded = test_get(&to, 1);
            if (mode == CUBLAS_POINTER_MODE_DEVICE) test_fetch(&to);
            cr_assert(test_get(&to, 0).real == rounded.real, "%g, not %g", test_get(&to, 0).real,
                      rounded.real);
        }
        test_free();
    }
    const uint16_t half = 0x3c00;
    STATUS(test_cublas("cublasAxpyEx")(test_handle, 1, &half, CUDA_R_16F, NULL, CUDA_R_16F, 1, NULL,
                                       CUDA_R_16F, 1, CUDA_R_32F),
           NOT_SUPPORTED);
    STATUS(test_cublas("cublasDotEx")(test_handle, 1, NULL, CUDA_R_16F, 1, NULL, CUDA_R_32F, 1,
                                      NULL, CUDA_R_32F, CUDA_R_32F),
           NOT_SUPPORTED);
}

Test(cublas_vector, arguments_are_checked) {
    const float one = 1;
    float to = 0;
    STATUS(test_cublas("cublasSaxpy_v2")(NULL, 1, &one, NULL, 1, NULL, 1), NOT_INITIALIZED);
    STATUS(test_cublas("cublasSnrm2_v2")(NULL, 1, &one, 1, &to), NOT_INITIALIZED);
    test_ours_only("to survive NULL in place of a number");
    STATUS(test_cublas("cublasSaxpy_v2")(test_handle, 1, NULL, NULL, 1, NULL, 1), INVALID_VALUE);
    STATUS(test_cublas("cublasSdot_v2")(test_handle, 1, &one, 1, &one, 1, NULL), INVALID_VALUE);
}
