#include "test_vector.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct test_kind test_kinds[TEST_KINDS] = {
    {"S", "Sdot", "Snrm2", "Sasum", CUDA_R_32F, CUDA_R_32F},
    {"D", "Ddot", "Dnrm2", "Dasum", CUDA_R_64F, CUDA_R_64F},
    {"C", "Cdotc", "Scnrm2", "Scasum", CUDA_C_32F, CUDA_R_32F},
    {"Z", "Zdotc", "Dznrm2", "Dzasum", CUDA_C_64F, CUDA_R_64F}};
const int test_steps[TEST_STEPS][2] = {{1, 1}, {2, 3}, {-1, 2}, {2, -2}};
const struct test_number test_scalars[3] = {{2, 0}, {0, 0}, {-1, 0}};

size_t test_vector_at(const struct test_vector *x, int i) {
    const int64_t first = x->step < 0 ? (int64_t)(1 - x->count) * x->step : 0;
    return (size_t)(first + (int64_t)i * x->step);
}

struct test_vector test_vector_draw(int type, int count, int step) {
    struct test_vector x = {.count = count, .step = step};
    const size_t all = (size_t)count * (size_t)abs(step) + 1;
    x.numbers = test_draw(type, all);
    for (size_t i = 0; i < all; i++) {
        if (i % (size_t)abs(step) != 0 || i >= (size_t)count * (size_t)abs(step))
            test_spoil(&x.numbers, i);
    }
    test_send(&x.numbers);
    return x;
}

struct test_number test_vector_get(const struct test_vector *x, int i) {
    return test_get(&x->numbers, test_vector_at(x, i));
}

void *test_vector_address(const struct test_vector *x) {
    return test_address(&x->numbers, 0);
}

struct test_number test_plus(struct test_number a, struct test_number b) {
    return (struct test_number){a.real + b.real, a.imaginary + b.imaginary};
}

struct test_number test_conjugate(struct test_number a) {
    return (struct test_number){a.real, -a.imaginary};
}

test_function test_function_of(const char *letter, const char *name, bool is_wide) {
    char text[64];
    snprintf(text, sizeof text, "cublas%s%s_v2%s", letter, name, is_wide ? "_64" : "");
    return test_cublas(text);
}

void test_vector_check(struct test_vector *x, const char *what) {
    const size_t bytes = x->numbers.count * test_bytes(x->numbers.type);
    unsigned char *expected = malloc(bytes);
    cr_assert(expected != NULL);
    memcpy(expected, x->numbers.host, bytes);
    test_fetch(&x->numbers);
    for (size_t i = 0; i < x->numbers.count; i++) {
        const size_t at = i * test_bytes(x->numbers.type);
        const struct test_number is = test_get(&x->numbers, i),
                                 to_be = test_load(x->numbers.type, expected + at);
        cr_assert((is.real == to_be.real && is.imaginary == to_be.imaginary) ||
                      (isnan(is.real) && isnan(to_be.real)),
                  "%s, type %d, step %d: [%zu] is %g + %g i, not %g + %g i", what, x->numbers.type,
                  x->step, i, is.real, is.imaginary, to_be.real, to_be.imaginary);
    }
    free(expected);
}
