/*
 * rounded and best: what is stored, byte by byte, against their definitions; what is refused.
 */
#include "decode/best.h"
#include "guarded.h"
#include "inputs.h"
#include "kernel_scene.h"
#include "quantised/formats/linear_arguments.h"
#include "quantised/formats/rounded.h"
#include "row/argmax.h"

#include "test/test_device.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

TestSuite(rounded, .fini = kernel_scene_end);
TestSuite(best, .fini = kernel_scene_end);

static struct kn_place place(const struct kn_guarded *g) {
    return (struct kn_place){tol_buffer_address(g->buffer) + g->offset, g->bytes};
}

/* Rounds columns of floats; weight may be NULL. The caller frees the bytes. */
static uint8_t *rounded(const float *x, size_t columns, size_t k, const float *weight,
                        const char *variant) {
    const size_t bytes = kn_rounded_bytes(columns, k);
    uint8_t *got = calloc(1, bytes);
    struct kn_guarded out = {0};
    size_t changed = 1;
    tol_auto_buffer struct tol_buffer *in = NULL, *norm = NULL;
    cr_assert(got != NULL);
    MUST(tol_buffer_create(test_context(), columns * k, sizeof(float), &in));
    MUST(tol_buffer_create(test_context(), k, sizeof(float), &norm));
    MUST(tol_buffer_write(in, x, columns * k * sizeof(float)));
    if (weight != NULL) MUST(tol_buffer_write(norm, weight, k * sizeof(float)));
    MUST(kn_guarded_create(test_context(), bytes, 16, &out));
    MUST(kn_guarded_write(&out, got));
    MUST(kn_rounded(kernels, stream,
                    &(struct kn_rounded){.columns = columns,
                                         .k = k,
                                         .x = kn_place_of(in, 0),
                                         .x_stride = k,
                                         .norm = weight != NULL ? kn_place_of(norm, 0)
                                                                : (struct kn_place){0, 0},
                                         .epsilon = 1e-5f,
                                         .out = place(&out),
                                         .variant = variant}));
    MUST(tol_stream_synchronize(stream));
    MUST(kn_guarded_read(&out, got));
    MUST(kn_guarded_check(&out, &changed));
    cr_assert(changed == 0);
    kn_guarded_destroy(&out);
    return got;
}

/* Element i of chunk `chunk` of a column: where linear_arguments.h says that it is. */
static int number_of(const uint8_t *tile, size_t column, size_t i) {
    const size_t sub = i / 32, at = i % 32;
    return (int8_t)
        tile[sub / 2 * 512 + (column * 4 + at % 16 / 4) * 16 + sub % 2 * 8 + at / 16 * 4 + at % 4];
}

static float scale_of(const uint8_t *tile, size_t column) {
    float scale;
    memcpy(&scale, tile + ROUNDED_UNITS_AT + 64 * column + 8, sizeof scale);
    return scale;
}

static void check_chunk(const uint8_t *tile, size_t column, const float *x, double slack) {
    const double scale = (double)scale_of(tile, column);
    double most = 0;
    for (size_t i = 0; i < 256; i++) most = fmax(most, fabs((double)x[i]));
    cr_assert(fabs(scale * 127 - most) <= most * (slack + 0x1p-23));
    for (size_t group = 0; group < 16; group++) {
        int sum = 0;
        for (size_t i = 16 * group; i < 16 * group + 16; i++) {
            const int q = number_of(tile, column, i);
            sum += q;
            cr_assert(fabs(q * scale - (double)x[i]) <= scale * 0.5 + most * (slack + 0x1p-22),
                      "element %zu: %g, of %d times %g", i, (double)x[i], q, scale);
        }
        const uint8_t *unit = tile + ROUNDED_UNITS_AT + 64 * column + group / 4 * 16;
        cr_assert((int8_t)unit[group % 4] + 128 * (int8_t)unit[4 + group % 4] == sum);
    }
}

static const uint8_t *tile_of(const uint8_t *all, size_t column, size_t chunk, size_t chunks) {
    return all + (column / 8 * chunks + chunk) * ROUNDED_CHUNK;
}

static void try(size_t columns, size_t k, bool has_norm, const char *variant) {
    uint64_t state = columns + k;
    float *x = malloc(columns * k * sizeof *x), *weight = malloc(k * sizeof *weight);
    float *normed = malloc(k * sizeof *normed);
    cr_assert(x != NULL && weight != NULL && normed != NULL);
    kn_inputs_draw(KN_NORMAL, &state, 3, x, columns * k);
    kn_inputs_draw(KN_UNIFORM, &state, 2, weight, k);
    for (size_t i = 0; i < 256; i++) x[i] *= 1e-20f; /* a chunk of another size */
    uint8_t *got = rounded(x, columns, k, has_norm ? weight : NULL, variant);
    for (size_t c = 0; c < columns; c++) {
        double squares = 0;
        for (size_t i = 0; i < k; i++) squares += (double)x[c * k + i] * (double)x[c * k + i];
        const double share = has_norm ? 1 / sqrt(squares / (double)k + 1e-5) : 1;
        for (size_t i = 0; i < k; i++) {
            normed[i] = (float)((double)x[c * k + i] * share * (has_norm ? (double)weight[i] : 1));
        }
        for (size_t i = 0; i < k; i += 256) {
            check_chunk(tile_of(got, c, i / 256, k / 256), c % 8, normed + i,
                        has_norm ? 0x1p-18 : 0);
        }
    }
    free(got), free(x), free(weight), free(normed);
}

Test(rounded, columns_are_within_half_a_scale_and_sums_are_of_the_bytes) {
    kernel_scene_begin();
    const bool has_early = tol_context_device(test_context())->compute_capability >= 90;
    for (int norm = 0; norm < 2; norm++) {
        try(1, 256, norm, "warp");
        try(11, 4608, norm, "warp");
        if (has_early) try(9, 1024, norm, "early");
    }
}

Test(rounded, what_is_no_number_stays_in_its_chunk_and_little_becomes_nothing) {
    enum { K = 512 };
    float x[2 * K];
    kernel_scene_begin();
    for (size_t i = 0; i < 2 * K; i++) x[i] = (float)(i % 9) * 0x1p-104f;
    x[K + 3] = NAN;
    x[K + 300] = INFINITY;
    x[256] = 1;
    uint8_t *got = rounded(x, 2, K, NULL, "warp");
    cr_assert(scale_of(tile_of(got, 0, 0, 2), 0) == 0);
    for (size_t i = 0; i < 256; i++) cr_assert(number_of(tile_of(got, 0, 0, 2), 0, i) == 0);
    cr_assert(scale_of(tile_of(got, 0, 1, 2), 0) == 1 / 127.0f);
    cr_assert(number_of(tile_of(got, 0, 1, 2), 0, 0) == 127);
    cr_assert(isnan(scale_of(tile_of(got, 1, 0, 2), 1)));
    cr_assert(isnan(scale_of(tile_of(got, 1, 1, 2), 1)));
    free(got);
}

static void try_best(size_t rows, size_t columns, const float *values, const char *variant) {
    struct kn_guarded out = {0};
    size_t changed = 1;
    int *got = malloc(rows * sizeof *got);
    tol_auto_buffer struct tol_buffer *in = NULL, *keys = NULL;
    cr_assert(got != NULL);
    MUST(tol_buffer_create(test_context(), rows * columns, sizeof(float), &in));
    MUST(tol_buffer_create(test_context(), kn_best_workspace(rows), 1, &keys));
    MUST(kn_guarded_create(test_context(), rows * sizeof(int), 4, &out));
    MUST(tol_buffer_write(in, values, rows * columns * sizeof(float)));
    MUST(kn_best(kernels, stream,
                 &(struct kn_best){.rows = rows,
                                   .columns = columns,
                                   .in = kn_place_of(in, 0),
                                   .in_stride = columns,
                                   .out = place(&out),
                                   .workspace = kn_place_of(keys, 0),
                                   .variant = variant}));
    MUST(tol_stream_synchronize(stream));
    MUST(kn_guarded_read(&out, got));
    MUST(kn_guarded_check(&out, &changed));
    cr_assert(changed == 0);
    for (size_t r = 0; r < rows; r++) {
        const int expected = kn_argmax_oracle(values + r * columns, columns);
        cr_assert(got[r] == expected, "row %zu of %zu: %d, not %d", r, columns, got[r], expected);
    }
    kn_guarded_destroy(&out);
    free(got);
}

Test(best, it_is_the_first_of_the_largest) {
    static const size_t lengths[] = {1, 31, 257, 24577, 60001};
    static float values[3 * 60001];
    kernel_scene_begin();
    const bool has_early = tol_context_device(test_context())->compute_capability >= 90;
    for (size_t l = 0; l < sizeof lengths / sizeof lengths[0]; l++) {
        const size_t n = lengths[l];
        uint64_t state = n;
        for (size_t i = 0; i < 3 * n; i++) values[i] = (float)(kn_random(&state) % 50) - 60;
        if (n > 100) values[n + 90] = NAN, values[n + 40] = INFINITY;
        for (size_t i = 2 * n; i < 3 * n; i++) values[i] = i % 2 == 0 ? -0.0f : 0.0f;
        try_best(3, n, values, "parts");
        if (has_early) try_best(3, n, values, "early");
    }
}

#define REFUSED(call, change, status, text)                                                        \
    do {                                                                                           \
        change;                                                                                    \
        MUST_FAIL(call, status, text);                                                             \
    } while (0)

Test(rounded, what_makes_no_sense_is_refused) {
    const struct kn_rounded good = {.columns = 2,
                                    .k = 512,
                                    .x = {0x10000, 4096},
                                    .x_stride = 512,
                                    .norm = {0x20000, 2048},
                                    .out = {0x30000, 1 << 20}};
    const struct kn_best fine = {.rows = 2,
                                 .columns = 5,
                                 .in = {0x10000, 40},
                                 .in_stride = 5,
                                 .out = {0x20000, 8},
                                 .workspace = {0x30000, 1 << 20}};
    struct kn_rounded p;
    struct kn_best b;
    kernel_scene_begin();
    cr_assert(kn_rounded_bytes(9, 512) == 4 * ROUNDED_CHUNK);
#define ROUNDED(change, status, text)                                                              \
    REFUSED(kn_rounded(kernels, stream, &p), (p = good, change), status, text)
#define BEST(change, status, text)                                                                 \
    REFUSED(kn_best(kernels, stream, &b), (b = fine, change), status, text)
    ROUNDED(p.k = 500, TOL_INVALID_ARGUMENT, "500 elements");
    ROUNDED(p.k = 0, TOL_INVALID_ARGUMENT, "0 elements");
    ROUNDED(p.columns = 1 << 16, TOL_OVER_LIMIT, "65536 columns");
    ROUNDED(p.x.bytes--, TOL_OUT_OF_RANGE, "2 rows of x");
    ROUNDED(p.x_stride = 511, TOL_INVALID_ARGUMENT, "511 apart");
    ROUNDED(p.norm.bytes--, TOL_OUT_OF_RANGE, "weight needs 2048");
    ROUNDED(p.out.address = 0x10000, TOL_INVALID_ARGUMENT, "overlaps x");
    ROUNDED(p.out.address += 8, TOL_INVALID_ARGUMENT, "aligned to 16");
    ROUNDED((p.k = 16640, p.x_stride = 16640, p.x.bytes = 1 << 20), TOL_OVER_LIMIT,
            "norm of 16640");
    ROUNDED(p.variant = "none", TOL_NOT_FOUND, "early");
    BEST(b.columns = 0, TOL_INVALID_ARGUMENT, "no elements");
    BEST(b.columns = (size_t)1 << 31, TOL_OVER_LIMIT, "2147483648");
    BEST(b.in_stride = 4, TOL_INVALID_ARGUMENT, "4 apart");
    BEST(b.in.bytes--, TOL_OUT_OF_RANGE, "2 rows of in");
    BEST(b.out.bytes--, TOL_OUT_OF_RANGE, "out needs 8");
    BEST(b.workspace.bytes = 1535, TOL_OUT_OF_RANGE, "workspace needs 1536");
    MUST_FAIL(kn_rounded(NULL, stream, &good), TOL_INVALID_ARGUMENT, "needs kernels");
    MUST_FAIL(kn_best(NULL, stream, &fine), TOL_INVALID_ARGUMENT, "needs kernels");
    p = good, p.columns = 0;
    MUST(kn_rounded(kernels, stream, &p));
    b = fine, b.rows = 0;
    MUST(kn_best(kernels, stream, &b));
}
