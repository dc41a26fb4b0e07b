/*
 * Elements of a buffer beside what they must be: within the bound, beyond it, and NaN.
 */
#include "bench/bench_check.h"

#include "bench/bench_state.h"
#include "test/test_device.h"

#include <math.h>

TestSuite(bench_check, .fini = test_end);

enum { COUNT = 8 };

static struct kn_bench_state state;
static const struct kn_bench_row row = {.operation = "op", .shape = "shape", .variant = "one"};

/* How many results are wrong, of elements 2 to 5 of a buffer. */
static size_t wrong_of(enum kn_type type, const float values[COUNT],
                       const struct kn_bench_right *right) {
    struct kn_bench bench = {.context = test_context(), .state = &state};
    struct tol_buffer *buffer = NULL;
    uint32_t elements[COUNT];
    state.wrong = 0;
    kn_numbers_store(type, values, COUNT, elements);
    MUST(tol_buffer_create(bench.context, COUNT, kn_type_bytes(type), &buffer));
    MUST(tol_buffer_write(buffer, elements, COUNT * kn_type_bytes(type)));
    MUST(kn_bench_check(&bench, &row, row.variant, type, buffer, 2, right));
    tol_buffer_destroy(buffer);
    return state.wrong;
}

Test(bench_check, elements_from_the_first_on_are_compared, .timeout = 120) {
    static const double values[] = {1, 2, 3, 4}, allowed[] = {0, 0, 0.5, 0};
    const struct kn_bench_right within = {values, NULL, {0.25, 0}, 4};
    const struct kn_bench_right each = {values, allowed, {0, 0}, 4};
    static const float right[COUNT] = {9, 9, 1, 2, 3.25f, 4, 9, 9};
    static const float beyond[COUNT] = {9, 9, 1, 2, 3, 4.5f, 9, 9};
    static const float last[COUNT] = {9, 9, 1, 2, 3.5f, 4, 9, 9};
    for (enum kn_type type = 0; type < KN_TYPES; type++) {
        cr_assert_eq(wrong_of(type, right, &within), 0);
        cr_assert_eq(wrong_of(type, right, &each), 0);
        cr_assert_eq(wrong_of(type, beyond, &within), 1);
        cr_assert_eq(wrong_of(type, beyond, &each), 1);
        cr_assert_eq(wrong_of(type, last, &within), 1);
        cr_assert_eq(wrong_of(type, last, &each), 0);
    }
}

Test(bench_check, nan_is_wrong, .timeout = 120) {
    static const double values[] = {1, 2, 3, 4};
    const struct kn_bench_right right = {values, NULL, {1e30, 1e30}, 4};
    const float found[COUNT] = {9, 9, 1, 2, NAN, 4, 9, 9};
    const float outside[COUNT] = {NAN, NAN, 1, 2, 3, 4, NAN, NAN};
    cr_assert_eq(wrong_of(KN_BF16, found, &right), 1);
    cr_assert_eq(wrong_of(KN_BF16, outside, &right), 0);
}

Test(bench_check, what_is_outside_the_buffer_is_refused, .timeout = 120) {
    static const double values[] = {1, 2, 3, 4};
    const struct kn_bench_right right = {values, NULL, {1, 1}, 4};
    struct kn_bench bench = {.context = test_context(), .state = &state};
    struct tol_buffer *buffer = NULL;
    float read[4];
    MUST(tol_buffer_create(bench.context, COUNT, sizeof(float), &buffer));
    MUST_FAIL(kn_bench_check(&bench, &row, "one", KN_F32, buffer, 5, &right), TOL_OUT_OF_RANGE, "");
    MUST_FAIL(kn_bench_read(KN_F32, buffer, 5, 4, read), TOL_OUT_OF_RANGE, "");
    tol_buffer_destroy(buffer);
}
