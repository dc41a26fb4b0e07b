/*
 * The sealed product: the plain one's numbers within their bound, whatever rows and blocks are left
 * over; another key gives other numbers; refusals.
 */
#include "seal/sealed_product.h"

#include "guarded.h"
#include "inputs.h"
#include "kernel_scene.h"
#include "quantised/formats/quant_draw.h"
#include "seal/chacha.h"
#include "test/test_device.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

TestSuite(sealed_product, .fini = kernel_scene_end, .timeout = 300);

static struct kn_place place_of(const struct kn_guarded *g) {
    return (struct kn_place){tol_buffer_address(g->buffer) + g->offset, g->bytes};
}

struct trial {
    size_t rows, blocks;
    unsigned rounds;
    uint32_t first_unit;
    enum kn_quant_blocks kind;
    float scale;
    uint64_t seed;
    const char *variant;
};

/* The sum of a row with x rounded as the kernel rounds it, in double, and how far off it may be:
 * quant_product.h, KN_QUANT_F32 with the rounded x. */
static double sum_of(const struct kn_block_q4_k *row, size_t k, const float *x, double *allowed) {
    double sum = 0, parts = 0, *w = calloc(k, sizeof *w);
    cr_assert(w != NULL);
    kn_quant_values_exact(KN_Q4_K, row, k / 256, w);
    for (size_t i = 0; i < k; i++) {
        float most = 0;
        uint8_t scale, minimum;
        for (size_t j = i / 32 * 32; j < i / 32 * 32 + 32; j++) most = fmaxf(most, fabsf(x[j]));
        const float step = most / 127;
        const double rounded = step > 0 ? (double)step * rint((double)(x[i] / step)) : 0;
        kn_q4_k_scale(row[i / 256].scales, (int)(i % 256 / 32), &scale, &minimum);
        const double spread =
            fabs(w[i]) + 2 * fabs((double)kn_f16_value(row[i / 256].dmin)) * minimum;
        sum += w[i] * rounded;
        parts += spread * (fabs((double)x[i]) + (double)step);
    }
    *allowed = (64 + (double)k / 64) * 0x1p-24 * parts + (double)k * 0x1p-135;
    free(w);
    return sum;
}

static void must_multiply(const struct trial *t) {
    const size_t k = t->blocks * 256, row_bytes = kn_sealed_row_bytes(k);
    const size_t plain_bytes = t->blocks * sizeof(struct kn_block_q4_k);
    uint64_t random = t->seed;
    uint8_t key[32], nonce[12] = {0}, *sealed = calloc(t->rows, row_bytes + 1);
    struct kn_block_q4_k *plain = calloc(t->rows * t->blocks + 1, sizeof *plain);
    float *x = calloc(k + 1, sizeof *x), *y = calloc(t->rows, sizeof *y);
    struct kn_guarded in = {0}, of_x = {0}, of_y = {0};
    struct seal_stream secret;
    size_t changed[3];
    cr_assert(sealed != NULL && plain != NULL && x != NULL && y != NULL);
    for (size_t i = 0; i < sizeof key; i++) key[i] = (uint8_t)kn_random(&random);
    kn_chacha_begin(key, nonce, &secret);
    kn_quant_draw(KN_Q4_K, t->kind, &random, t->rows * t->blocks, plain);
    kn_inputs_draw(KN_NORMAL, &random, (double)t->scale, x, k);
    for (size_t i = 0; i < t->rows; i++) {
        memcpy(sealed + i * row_bytes, plain + i * t->blocks, plain_bytes);
    }
    kn_chacha_add(&secret, t->rounds, t->first_unit, sealed, sealed, t->rows * row_bytes);
    MUST(kn_guarded_create(test_context(), t->rows * row_bytes, 16, &in));
    MUST(kn_guarded_create(test_context(), k * sizeof *x, 16, &of_x));
    MUST(kn_guarded_create(test_context(), t->rows * sizeof *y, 4, &of_y));
    MUST(kn_guarded_write(&in, sealed));
    MUST(kn_guarded_write(&of_x, x));
    const struct kn_sealed_product problem = {.rows = t->rows,
                                              .k = k,
                                              .weights = place_of(&in),
                                              .x = place_of(&of_x),
                                              .y = place_of(&of_y),
                                              .rounds = t->rounds,
                                              .first_unit = t->first_unit,
                                              .stream = &secret,
                                              .variant = t->variant};
    MUST(kn_sealed_product(kernels, stream, &problem));
    MUST(tol_stream_synchronize_for(stream, KN_PATIENCE_MS));
    MUST(kn_guarded_read(&of_y, y));
    MUST(kn_guarded_check(&in, &changed[0]));
    MUST(kn_guarded_check(&of_x, &changed[1]));
    MUST(kn_guarded_check(&of_y, &changed[2]));
    cr_assert(changed[0] + changed[1] + changed[2] == 0, "bytes outside have changed");
    for (size_t i = 0; i < t->rows; i++) {
        double allowed = 0;
        const double exact = sum_of(plain + i * t->blocks, k, x, &allowed);
        cr_assert(fabs((double)y[i] - exact) <= allowed,
                  "row %zu of %zu, %zu blocks, %u rounds: %.9g, not %.9g within %.3g", i, t->rows,
                  t->blocks, t->rounds, (double)y[i], exact, allowed);
    }
    kn_guarded_destroy(&in), kn_guarded_destroy(&of_x), kn_guarded_destroy(&of_y);
    free(sealed), free(plain), free(x), free(y);
}

/* Blocks that leave 0 to 3 of a group over, rows that leave lanes over, and the longest k. */
Test(sealed_product, it_stays_within_the_bound_of_the_plain_one) {
    static const size_t sizes[][2] = {/* rows, blocks */
                                      {1, 1},  {3, 2},   {37, 3},  {5, 4},   {33, 5}, {70, 7},
                                      {17, 8}, {130, 9}, {2, 140}, {64, 16}, {1, 31}, {600, 1}};
    static const unsigned rounds[] = {20, 12, 8};
    kernel_scene_begin();
    const int capability = tol_context_device(test_context())->compute_capability;
    const char *early = capability >= 90 ? "early" : NULL;
    for (unsigned i = 0; i < 36; i++) {
        if (!test_takes_trial()) continue;
        must_multiply(&(struct trial){.rows = sizes[i % 12][0],
                                      .blocks = sizes[i % 12][1],
                                      .rounds = rounds[i / 12],
                                      .first_unit = i % 5 * 1000003u,
                                      .kind = i % 2 ? KN_BLOCKS_USUAL : KN_BLOCKS_ANY,
                                      .scale = 1,
                                      .seed = i + 1,
                                      .variant = (i + i / 12) % 2 ? "product" : early});
    }
}

Test(sealed_product, rows_begin_at_whole_units) {
    static const size_t bytes[] = {0, 192, 320, 448, 576, 768, 896, 1024, 1152};
    for (size_t blocks = 0; blocks < sizeof bytes / sizeof bytes[0]; blocks++) {
        cr_assert_eq(kn_sealed_row_bytes(256 * blocks), bytes[blocks], "%zu blocks", blocks);
    }
}

/* More rows than a wave of the device has warps for, so that several lanes share none. */
Test(sealed_product, many_rows_are_shared_out) {
    kernel_scene_begin();
    must_multiply(&(struct trial){9001, 1, 8, 0, KN_BLOCKS_USUAL, 1, 3, NULL});
    must_multiply(&(struct trial){300, 13, 12, 7, KN_BLOCKS_USUAL, 1, 4, NULL});
}

Test(sealed_product, what_makes_no_sense_is_refused) {
    kernel_scene_begin();
    static const struct seal_stream secret;
    struct tol_buffer *buffer = NULL;
    MUST(tol_buffer_create(test_context(), 16384, 1, &buffer));
    MUST(tol_buffer_fill_at(buffer, 0, 0, 1, 16384));
    const struct kn_sealed_product good = {.rows = 4,
                                           .k = 256,
                                           .weights = kn_place_of(buffer, 0),
                                           .x = kn_place_of(buffer, 4096),
                                           .y = kn_place_of(buffer, 8192),
                                           .rounds = 20,
                                           .stream = &secret};
    MUST(kn_sealed_product(kernels, stream, &good));
#define REFUSED(status, text, ...)                                                                 \
    do {                                                                                           \
        struct kn_sealed_product p = good;                                                         \
        __VA_ARGS__;                                                                               \
        MUST_FAIL(kn_sealed_product(kernels, stream, &p), status, text);                           \
    } while (0)
    REFUSED(TOL_INVALID_ARGUMENT, "key stream", p.stream = NULL);
    REFUSED(TOL_INVALID_ARGUMENT, "9 rounds", p.rounds = 9);
    REFUSED(TOL_INVALID_ARGUMENT, "no whole blocks", p.k = 255);
    REFUSED(TOL_OVER_LIMIT, "48 KiB", p.k = 256 * 150);
    REFUSED(TOL_OUT_OF_RANGE, "32 bits", p.first_unit = UINT32_MAX - 2);
    REFUSED(TOL_INVALID_ARGUMENT, "W at", p.weights.address += 8);
    REFUSED(TOL_INVALID_ARGUMENT, "x at", p.x.address = 0);
    REFUSED(TOL_OUT_OF_RANGE, "y needs 16", p.y.bytes = 12);
    REFUSED(TOL_OUT_OF_RANGE, "W needs 768", p.weights.bytes = 767);
    REFUSED(TOL_INVALID_ARGUMENT, "overlaps", p.y.address = p.x.address + 16);
    MUST(tol_stream_synchronize_for(stream, KN_PATIENCE_MS));
    tol_buffer_destroy(buffer);
}
