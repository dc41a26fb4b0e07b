/*
 * The quick way to the sums of a product by a warpgroup, beside the slow one.
 */
#include "test/test_soft.h"

#include "ops/half.h"
#include "test/test_wgmma.h"

#include <stdlib.h>
#include <string.h>

static void begin(void) {
    setenv("TOLLENS_SOFT_WORKERS", "1", 1);
    setenv("TOLLENS_SOFT_BUDGET", "20000000", 1);
    test_capture(stderr);
    test_soft_open();
}

TestSuite(wgmma_round, .init = begin, .fini = test_soft_close);

/* A number of either sign with an exponent from -12 to 12 and any fraction. */
static float ordinary(uint32_t i) {
    uint32_t x = i * 2654435761u;
    x = (x ^ x >> 15) * 0x846ca68bu;
    uint32_t bits = (x & 0x807fffff) | (127 - 12 + (x >> 23) % 25) << 23;
    float number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

static void put_ordinary(const struct wgmma_shape *s, uint8_t *to, uint32_t i) {
    float number = ordinary(i);
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    if (s->kind == 'b') bits >>= 16;
    if (s->kind == 'h') bits = f16_of_float(number);
    memcpy(to, &bits, s->bits / 8);
}

/* The same sums are made in two ways: quickly, unless some exponent is extreme. A tiny number in
 * B's first column makes them all the slow ones, and changes that column alone. */
static void compare_ways(const struct wgmma_shape *s) {
    static struct wgmma_text text;
    static struct wgmma_data first, second;
    struct wgmma_layout layout = {32, false};
    struct wgmma_signs signs = {-1, 1, true};
    text.length = 0;
    wgmma_put_head(&text, s->n / 2, true);
    wgmma_put_descriptors(&text, s, layout, layout, true);
    wgmma_put(&text, "wgmma.fence.sync.aligned;\n");
    wgmma_put_product(&text, s, false, layout, layout, &signs);
    wgmma_put(&text, "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n");
    wgmma_put_tail(&text, s->n / 2);
    memset(&first, 0, sizeof first);
    for (unsigned k = 0; k < s->k; k++) {
        for (unsigned row = 0; row < 64; row++) {
            put_ordinary(s, first.shared + wgmma_byte_of(layout, A_AT, 64, s->bits, row, k),
                         row * 64 + k);
        }
        for (unsigned column = 0; column < s->n; column++) {
            put_ordinary(s, first.shared + wgmma_byte_of(layout, B_AT, s->n, s->bits, column, k),
                         99991 + column * 64 + k);
        }
    }
    for (unsigned t = 0; t < THREADS; t++) {
        for (unsigned e = 0; e < s->n / 2; e++) {
            float number = ordinary(777777 + t * D_MAX + e);
            memcpy(&first.d[t][e], &number, sizeof number);
        }
    }
    second = first;
    uint32_t tiny = s->kind == 't' ? 0x00802000 : 0x0080;
    memcpy(second.shared + wgmma_byte_of(layout, B_AT, s->n, s->bits, 0, 3), &tiny, s->bits / 8);
    cr_assert_eq(test_run(text.bytes, 1, THREADS, &first, sizeof first), CUDA_SUCCESS, "%s",
                 test_log());
    cr_assert_eq(test_run(text.bytes, 1, THREADS, &second, sizeof second), CUDA_SUCCESS, "%s",
                 test_log());
    for (unsigned t = 0; t < THREADS; t++) {
        for (unsigned e = 0; e < s->n / 2; e++) {
            unsigned row, column;
            wgmma_place_of_d(t, e, &row, &column);
            cr_assert(column == 0 || first.d[t][e] == second.d[t][e],
                      "%s, row %u, column %u: 0x%08x quickly and 0x%08x slowly", s->types, row,
                      column, first.d[t][e], second.d[t][e]);
        }
    }
}

Test(wgmma_round, quick_sums_are_the_slow_ones) {
    static const struct wgmma_shape some[] = {{".f32.bf16.bf16", 16, 256, 16, 'b', false},
                                              {".f32.tf32.tf32", 32, 64, 8, 't', false}};
    for (size_t i = 0; i < sizeof some / sizeof some[0]; i++) compare_ways(&some[i]);
}
