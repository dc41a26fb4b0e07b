/*
 * The corpus's matrix products on tensor cores. Inputs are chosen so that every order of additions
 * gives the same result, so the results equal those of plain C to the bit.
 */
#include "corpus_scene.h"

#include "tensors.h"

#include <stdlib.h>

TestSuite(corpus_tensors, .fini = test_soft_close);

enum { M = TENSORS_M, N = TENSORS_N, K = TENSORS_K };

/* The sum for an element, of the whole numbers; of the quarters it is a sixteenth. */
static int expected_at(unsigned row, unsigned column) {
    int sum = 0;
    for (unsigned k = 0; k < K; k++) {
        sum += tensors_input(row * K + k) * tensors_input(k * N + column + 7777);
    }
    return sum;
}

static void check_float(const char *what, const float *c, float factor, float more) {
    for (unsigned i = 0; i < M * N; i++) {
        float expected = factor * (float)expected_at(i / N, i % N) / 16 + more;
        cr_assert(c[i] == expected, "%s: %s[%u] is %g, not %g", corpus_version(), what, i,
                  (double)c[i], (double)expected);
    }
}

static void check_tensors(CUmodule module) {
    static float c[M * N];
    static int whole[M * N];
    CUdeviceptr a = corpus_put(NULL, 2 * M * K), b = corpus_put(NULL, 2 * K * N);
    CUdeviceptr small_a = corpus_put(NULL, M * K), small_b = corpus_put(NULL, K * N);
    CUdeviceptr to = corpus_put(NULL, sizeof c);
    CORPUS_LAUNCH(module, "fill", (M * K + 127) / 128, 128, 0, &a, &b, &small_a, &small_b);
    CORPUS_LAUNCH_2D(module, "product_wmma", N / 16, M / 16, 32, 1, 0, &a, &b, &to);
    corpus_get(to, c, sizeof c);
    check_float("wmma", c, 2, 1);
    CORPUS_LAUNCH_2D(module, "product_mma", N / 16, M / 32, 128, 1, 0, &a, &b, &to);
    corpus_get(to, c, sizeof c);
    check_float("mma", c, 1, 0);
    CORPUS_LAUNCH_2D(module, "product_wmma_int", N / 8, M / 32, 32, 1, 0, &small_a, &small_b, &to);
    corpus_get(to, whole, sizeof whole);
    for (unsigned i = 0; i < M * N; i++) {
        int expected = expected_at(i % M, i / M); /* by columns */
        cr_assert_eq(whole[i], expected, "%s: [%u] is %d, not %d", corpus_version(), i, whole[i],
                     expected);
    }
}

CORPUS_TEST(corpus_tensors, products_are_those_of_the_host,
            { cr_assert_eq(corpus_each("tensors", check_tensors), 3); })
