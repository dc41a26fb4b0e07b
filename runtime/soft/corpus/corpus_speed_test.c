/*
 * The results of the corpus's kernels whose speed bench-soft measures.
 */
#include "corpus_scene.h"

#include "corpus.h"
#include "ops/half.h"

#include <math.h>
#include <string.h>

TestSuite(corpus_speed, .fini = test_soft_close);

/* Small whole numbers, so that every order and every fma gives the same. */
static void check_products(CUmodule module) {
    enum { N = 64 };
    static const struct {
        const char *name;
        unsigned block, tile;
    } kernels[] = {{"gemm_naive", 32, 32}, {"gemm_tiled", 32, 32}, {"gemm_blocked", 16, 64}};
    static float a[N * N], b[N * N], c[N * N];
    int n = N;
    for (uint32_t i = 0; i < N * N; i++) {
        a[i] = (float)(corpus_mix(i) % 21) - 10;
        b[i] = (float)(corpus_mix(i + N * N) % 21) - 10;
    }
    CUdeviceptr x = corpus_put(a, sizeof a), y = corpus_put(b, sizeof b);
    for (size_t k = 0; k < sizeof kernels / sizeof kernels[0]; k++) {
        CUdeviceptr z = corpus_put(NULL, sizeof c);
        unsigned blocks = N / kernels[k].tile, side = kernels[k].block;
        CORPUS_LAUNCH_2D(module, kernels[k].name, blocks, blocks, side, side, 0, &x, &y, &z, &n);
        corpus_get(z, c, sizeof c);
        for (uint32_t i = 0; i < N * N; i++) {
            float sum = 0;
            for (uint32_t j = 0; j < N; j++) sum += a[i / N * N + j] * b[j * N + i % N];
            cr_assert_eq(c[i], sum, "%s: %s %u: %g, not %g", corpus_version(), kernels[k].name, i,
                         (double)c[i], (double)sum);
        }
    }
}

static void check_vectors(CUmodule module) {
    enum { COUNT = 1000, WIDTH = 200, ROWS = COUNT / WIDTH };
    static float a[COUNT], b[COUNT], c[COUNT];
    uint32_t count = COUNT, width = WIDTH;
    for (uint32_t i = 0; i < COUNT; i++) {
        a[i] = (float)(corpus_mix(i) % 1000) / 64;
        b[i] = (float)(corpus_mix(i + 5) % 1000) / 64;
    }
    CUdeviceptr x = corpus_put(a, sizeof a), y = corpus_put(b, sizeof b);
    CUdeviceptr z = corpus_put(NULL, sizeof c);
    CORPUS_LAUNCH(module, "add_vectors", 4, 256, 0, &x, &y, &z, &count);
    corpus_get(z, c, sizeof c);
    for (uint32_t i = 0; i < COUNT; i++) cr_assert_eq(c[i], a[i] + b[i], "%s", corpus_version());
    CORPUS_LAUNCH(module, "softmax_rows", ROWS, 128, 0, &x, &z, &width);
    corpus_get(z, c, sizeof c);
    for (uint32_t r = 0; r < ROWS; r++) {
        double most = 0, sum = 0;
        for (uint32_t i = 0; i < WIDTH; i++) {
            if ((double)a[r * WIDTH + i] > most) most = (double)a[r * WIDTH + i];
        }
        for (uint32_t i = 0; i < WIDTH; i++) sum += exp((double)a[r * WIDTH + i] - most);
        for (uint32_t i = r * WIDTH; i < (r + 1) * WIDTH; i++) {
            double expected = exp((double)a[i] - most) / sum;
            cr_assert(fabs((double)c[i] - expected) <= 1e-5 * expected,
                      "%s: softmax %u: %g, not %g", corpus_version(), i, (double)c[i], expected);
        }
    }
}

static void check_narrow(CUmodule module) {
    enum { COUNT = 1000 };
    static uint8_t bytes[COUNT], scaled[COUNT];
    static int8_t by[COUNT];
    static uint16_t halves[COUNT], results[COUNT];
    static int16_t factors[COUNT];
    uint32_t count = COUNT;
    for (uint32_t i = 0; i < COUNT; i++) {
        bytes[i] = (uint8_t)corpus_mix(i);
        by[i] = (int8_t)corpus_mix(i + 1);
        halves[i] = (uint16_t)(corpus_mix(i + 2) % 0x3c00);
        factors[i] = (int16_t)(corpus_mix(i + 3) % 1000) - 500;
    }
    CUdeviceptr x = corpus_put(bytes, sizeof bytes), y = corpus_put(by, sizeof by);
    CUdeviceptr z = corpus_put(NULL, sizeof results);
    CORPUS_LAUNCH(module, "scale_bytes", 4, 256, 0, &x, &y, &z, &count);
    corpus_get(z, scaled, sizeof scaled);
    x = corpus_put(halves, sizeof halves), y = corpus_put(factors, sizeof factors);
    CORPUS_LAUNCH(module, "scale_halves", 4, 256, 0, &x, &y, &z, &count);
    corpus_get(z, results, sizeof results);
    for (uint32_t i = 0; i < COUNT; i++) {
        cr_assert_eq(scaled[i], (uint8_t)(bytes[i] * by[i] >> 3), "%s: byte %u", corpus_version(),
                     i);
        float product = float_of_f16(halves[i]) * (float)factors[i];
        cr_assert_eq(results[i], bf16_of_float(product), "%s: half %u: 0x%x", corpus_version(), i,
                     results[i]);
    }
}

static void check_speed(CUmodule module) {
    check_products(module);
    check_vectors(module);
    check_narrow(module);
}

Test(corpus_speed, speed) {
    cr_assert_eq(corpus_each("speed", check_speed), 3);
}
