/*
 * Shared by the tests of operations on vectors: the types of BLAS's functions, vectors of any
 * increment in device memory, and whether they have become what they must.
 */
#ifndef TEST_VECTOR_H
#define TEST_VECTOR_H

#include "test_cublas.h"

/* The letters of a type's functions. */
enum { TEST_KINDS = 4 };
extern const struct test_kind {
    const char *letter, *dot, *norm, *magnitude;
    int type, real;
} test_kinds[TEST_KINDS];

/* Increments of x and y; scalars, among them 0. */
enum { TEST_STEPS = 4 };
extern const int test_steps[TEST_STEPS][2];
extern const struct test_number test_scalars[3];

/* A vector: count numbers, step apart, which begin at the end if step is negative. What lies
 * between is NaN. */
struct test_vector {
    struct test_numbers numbers;
    int count, step;
};
struct test_vector test_vector_draw(int type, int count, int step);
size_t test_vector_at(const struct test_vector *x, int i);
struct test_number test_vector_get(const struct test_vector *x, int i);
void *test_vector_address(const struct test_vector *x);

/* Fails unless the device has what the host's copy says, and nothing else has changed. */
void test_vector_check(struct test_vector *x, const char *what);

struct test_number test_plus(struct test_number a, struct test_number b);
struct test_number test_conjugate(struct test_number a);

/* cublas<letter><name>_v2, or its variant of 64 bits. */
test_function test_function_of(const char *letter, const char *name, bool is_wide);

#endif
