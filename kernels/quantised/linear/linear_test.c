/*
 * linear and embed: every format against the definition in double, columns alone and together, and
 * what is refused.
 */
#include "quantised/linear/linear.h"
#include "decode/embed.h"
#include "guarded.h"
#include "inputs.h"
#include "kernel_scene.h"
#include "quantised/formats/quant_draw.h"

#include "test/test_device.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

TestSuite(linear, .fini = kernel_scene_end);

/* Weights of a format, of some 0.01 to 1. */
static uint8_t *draw(enum kn_weight_format format, size_t rows, size_t k, uint64_t *state) {
    const size_t count = rows * k, bytes = rows * kn_weight_row_bytes(format, k);
    uint8_t *weights = malloc(bytes);
    float *values = malloc(count * sizeof *values);
    cr_assert(weights != NULL && values != NULL);
    kn_inputs_draw(KN_UNIFORM, state, 1, values, count);
    switch (format) {
    case KN_WEIGHT_F32:
        memcpy(weights, values, bytes);
        break;
    case KN_WEIGHT_F16:
        kn_numbers_store(KN_F16, values, count, weights);
        break;
    case KN_WEIGHT_BF16:
        kn_numbers_store(KN_BF16, values, count, weights);
        break;
    case KN_WEIGHT_Q8_0:
        kn_quant_draw(KN_Q8_0, KN_BLOCKS_USUAL, state, count / 32, weights);
        break;
    case KN_WEIGHT_Q4_K:
        kn_quant_draw(KN_Q4_K, KN_BLOCKS_USUAL, state, count / 256, weights);
        break;
    case KN_WEIGHT_Q6_K:
        kn_quant_draw(KN_Q6_K, KN_BLOCKS_USUAL, state, count / 256, weights);
        break;
    default:
        for (size_t i = 0; i < bytes; i++) weights[i] = (uint8_t)kn_random(state);
        for (size_t i = 0; i < bytes; i += 176) { /* finite d and dmin */
            const uint16_t d[2] = {kn_f16_of(0.001f + (float)i * 1e-6f), kn_f16_of(0.002f)};
            memcpy(weights + i, d, sizeof d);
        }
    }
    free(values);
    return weights;
}

struct stage {
    enum kn_weight_format format;
    size_t rows, columns, k;
    uint8_t *weights, *gates;
    float *x, *y, *bias;
    float *bytes;              /* x rounded to bytes, as floats */
    double *w, *g;             /* the values of both matrices */
    double *w_parts, *g_parts; /* |d sc q| + |dmin m|, where a value is their difference */
};

static double *values_of(const struct stage *s, const uint8_t *weights) {
    float *values = malloc(s->rows * s->k * sizeof *values);
    double *wide = malloc(s->rows * s->k * sizeof *wide);
    cr_assert(values != NULL && wide != NULL);
    kn_weight_values(s->format, weights, s->rows * s->k, values);
    for (size_t i = 0; i < s->rows * s->k; i++) wide[i] = (double)values[i];
    free(values);
    return wide;
}

/* The sum of the two parts of a value: the first is the value if dmin is 0. */
static double *parts_of(const struct stage *s, const uint8_t *weights, const double *values) {
    const bool has_least = s->format == KN_WEIGHT_Q4_K || s->format == KN_WEIGHT_Q5_K;
    const size_t bytes = s->rows * kn_weight_row_bytes(s->format, s->k), count = s->rows * s->k;
    uint8_t *without = malloc(bytes);
    cr_assert(without != NULL);
    memcpy(without, weights, bytes);
    for (size_t i = 0; has_least && i < bytes; i += kn_weight_row_bytes(s->format, 256)) {
        memset(without + i + 2, 0, 2);
    }
    double *parts = values_of(s, without);
    for (size_t i = 0; i < count; i++) parts[i] = fabs(parts[i]) + fabs(parts[i] - values[i]);
    free(without);
    return parts;
}

/* What the header says of a chunk. */
static void round_chunk(const float *x, float *rounded) {
    float most = 0;
    for (int i = 0; i < 256; i++) most = fmaxf(most, fabsf(x[i]));
    const float scale = most < 0x1p-100f ? 0 : most / 127;
    const float factor = most < 0x1p-100f ? 0 : 127 / most;
    for (int i = 0; i < 256; i++) rounded[i] = scale * rintf(x[i] * factor);
}

static struct stage stage_make(enum kn_weight_format format, size_t rows, size_t columns,
                               size_t k) {
    uint64_t state = 7 + (uint64_t)format;
    struct stage s = {.format = format, .rows = rows, .columns = columns, .k = k};
    s.weights = draw(format, rows, k, &state);
    s.gates = draw(format, rows, k, &state);
    s.x = malloc(columns * k * sizeof(float));
    s.y = malloc(columns * rows * sizeof(float));
    s.bias = malloc(rows * sizeof(float));
    cr_assert(s.x != NULL && s.y != NULL && s.bias != NULL);
    kn_inputs_draw(KN_NORMAL, &state, 0.1, s.x, columns * k);
    kn_inputs_draw(KN_NORMAL, &state, 1, s.y, columns * rows);
    kn_inputs_draw(KN_NORMAL, &state, 1, s.bias, rows);
    s.bytes = malloc(columns * k * sizeof(float));
    cr_assert(s.bytes != NULL);
    for (size_t i = 0; k % 256 == 0 && i < columns * k; i += 256) {
        round_chunk(s.x + i, s.bytes + i);
    }
    s.w = values_of(&s, s.weights);
    s.g = values_of(&s, s.gates);
    s.w_parts = parts_of(&s, s.weights, s.w);
    s.g_parts = parts_of(&s, s.gates, s.g);
    return s;
}

static void stage_end(struct stage *s) {
    free(s->weights), free(s->gates), free(s->x), free(s->y), free(s->bias);
    free(s->bytes);
    free(s->w), free(s->g), free(s->w_parts), free(s->g_parts);
}

static double dot(const double *w, const double *parts, const float *x, size_t k,
                  double *magnitude) {
    double sum = 0;
    *magnitude = 0;
    for (size_t i = 0; i < k; i++) {
        sum += w[i] * (double)x[i];
        *magnitude += fabs(parts[i] * (double)x[i]);
    }
    return sum;
}

static bool is_bytes(const char *variant) {
    return strcmp(variant, "bytes") == 0 || strcmp(variant, "early") == 0;
}

enum form { PLAIN, BIASED, ADDED, GATED, FORMS };

/* Computes `columns` columns from the first of the stage's on, into `got`. */
static void run(const struct stage *s, const char *variant, enum form form, size_t first,
                size_t columns, float *got) {
    const size_t matrix = s->rows * kn_weight_row_bytes(s->format, s->k);
    struct kn_guarded y = {0};
    tol_auto_buffer struct tol_buffer *weights = NULL, *gates = NULL, *x = NULL, *bias = NULL;
    const bool has_room = strcmp(variant, "wide") == 0 || is_bytes(variant);
    struct kn_guarded workspace = {0};
    size_t changed = 1;
    MUST(kn_guarded_create(test_context(), kn_linear_workspace(columns, s->k), 16, &workspace));
    const struct kn_place room = {tol_buffer_address(workspace.buffer) + workspace.offset,
                                  workspace.bytes};
    MUST(tol_buffer_create(test_context(), matrix, 1, &weights));
    MUST(tol_buffer_create(test_context(), matrix, 1, &gates));
    MUST(tol_buffer_create(test_context(), columns * s->k, sizeof(float), &x));
    MUST(tol_buffer_create(test_context(), s->rows, sizeof(float), &bias));
    MUST(kn_guarded_create(test_context(), columns * s->rows * sizeof(float), 4, &y));
    MUST(tol_buffer_write(weights, s->weights, matrix));
    MUST(tol_buffer_write(gates, s->gates, matrix));
    MUST(tol_buffer_write(x, s->x + first * s->k, columns * s->k * sizeof(float)));
    MUST(tol_buffer_write(bias, s->bias, s->rows * sizeof(float)));
    if (form == ADDED) MUST(kn_guarded_write(&y, s->y + first * s->rows));
    MUST(kn_linear(
        kernels, stream,
        &(struct kn_linear){.format = s->format,
                            .rows = s->rows,
                            .columns = columns,
                            .k = s->k,
                            .weights = kn_place_of(weights, 0),
                            .gate = form == GATED ? kn_place_of(gates, 0) : (struct kn_place){0, 0},
                            .bias = form == BIASED ? kn_place_of(bias, 0) : (struct kn_place){0, 0},
                            .x = kn_place_of(x, 0),
                            .y = {tol_buffer_address(y.buffer) + y.offset, y.bytes},
                            .x_stride = s->k,
                            .y_stride = s->rows,
                            .adds = form == ADDED,
                            .workspace = has_room ? room : (struct kn_place){0, 0},
                            .variant = variant}));
    MUST(tol_stream_synchronize(stream));
    MUST(kn_guarded_read(&y, got));
    MUST(kn_guarded_check(&y, &changed));
    cr_assert(changed == 0);
    MUST(kn_guarded_check(&workspace, &changed));
    cr_assert(changed == 0);
    kn_guarded_destroy(&y);
    kn_guarded_destroy(&workspace);
}

static double silu(double x) {
    return x / (1 + exp(-x));
}

static void check(const struct stage *s, const char *variant, enum form form, const float *got) {
    const bool is_tensor = strcmp(variant, "fma") != 0;
    const double steps = (double)s->k / 32 + 16;
    const double each = is_bytes(variant) ? ((double)s->k / 256 + 16) * 0x1p-22
                        : is_tensor       ? 0x1p-17 + steps * 0x1p-22
                                          : steps * 0x1p-24;
    const float *x = is_bytes(variant) ? s->bytes : s->x;
    const double *w = is_tensor ? s->w_parts : s->w, *g = is_tensor ? s->g_parts : s->g;
    for (size_t i = 0; i < s->columns * s->rows; i++) {
        const size_t c = i / s->rows, r = i % s->rows;
        double magnitude, other = 0;
        double sum = dot(s->w + r * s->k, w + r * s->k, x + c * s->k, s->k, &magnitude);
        double bound = each * magnitude;
        if (form == GATED) {
            const double gate = dot(s->g + r * s->k, g + r * s->k, x + c * s->k, s->k, &other);
            /* |silu'| is at most 1.1 */
            bound = bound * fabs(silu(gate)) + 1.1 * each * other * fabs(sum) * 1.01;
            sum *= silu(gate);
        }
        if (form == BIASED) sum += (double)s->bias[r];
        if (form == ADDED) sum += (double)s->y[i];
        bound += fabs(sum) * 0x1p-20 + 1e-30;
        cr_assert(!(fabs((double)got[i] - sum) > bound),
                  "%s, form %d, row %zu of column %zu: %g is "
                  "not %g within %g",
                  kn_weight_name(s->format), (int)form, r, c, (double)got[i], sum, bound);
    }
}

static void try(enum kn_weight_format format, const char *variant, size_t rows, size_t columns,
                size_t k) {
    struct stage s = stage_make(format, rows, columns, k);
    float *all = malloc(columns * rows * sizeof *all), *one = malloc(rows * sizeof *one);
    cr_assert(all != NULL && one != NULL);
    for (enum form form = PLAIN; form < FORMS; form++) {
        run(&s, variant, form, 0, columns, all);
        check(&s, variant, form, all);
        for (size_t c = 0; c < columns; c++) { /* alone, and beside others: the same bits */
            run(&s, variant, form, c, 1, one);
            cr_assert(memcmp(one, all + c * rows, rows * sizeof *one) == 0,
                      "%s, %s, form %d, column %zu", kn_weight_name(format), variant, (int)form, c);
        }
    }
    stage_end(&s);
    free(all), free(one);
}

static void try_bytes(enum kn_weight_format format, size_t rows, size_t columns, size_t k) {
    struct stage s = stage_make(format, rows, columns, k);
    const size_t count = columns * rows;
    float *bytes = malloc(count * sizeof *bytes), *early = malloc(count * sizeof *early);
    cr_assert(bytes != NULL && early != NULL);
    try(format, "bytes", rows, columns, k);
    for (enum form form = PLAIN; form < FORMS; form++) {
        if (tol_context_device(test_context())->compute_capability < 90) break;
        run(&s, "bytes", form, 0, columns, bytes);
        run(&s, "early", form, 0, columns, early);
        cr_assert(memcmp(bytes, early, count * sizeof *bytes) == 0, "%s, form %d",
                  kn_weight_name(format), (int)form);
    }
    stage_end(&s);
    free(bytes), free(early);
}

static void try_wide(enum kn_weight_format format, size_t rows, size_t columns, size_t k) {
    struct stage s = stage_make(format, rows, columns, k);
    const size_t count = columns * rows;
    float *wide = malloc(count * sizeof *wide), *narrow = malloc(count * sizeof *narrow);
    cr_assert(wide != NULL && narrow != NULL);
    for (enum form form = PLAIN; form < FORMS; form++) {
        run(&s, "wide", form, 0, columns, wide);
        check(&s, "wide", form, wide);
        run(&s, "tensor", form, 0, columns, narrow);
        cr_assert(memcmp(wide, narrow, count * sizeof *wide) == 0, "%s, form %d",
                  kn_weight_name(format), (int)form);
    }
    stage_end(&s);
    free(wide), free(narrow);
}

Test(linear, products_are_the_definition_and_the_same_beside_others) {
    kernel_scene_begin();
    for (enum kn_weight_format format = 0; format < KN_WEIGHT_FORMATS; format++) {
        const size_t grain = kn_weight_grain(format);
        if (test_takes_trial()) try(format, "fma", 9, 5, grain > 32 ? 512 : 352);
        if (test_takes_trial()) try(format, "fma", 1, 2, grain);
    }
}

/* Rows and columns that fill no tile, several passes of x, chunks for some of the warps only, a
 * last chunk that is cut, and rows of Q6_K at no multiple of 4. */
Test(linear, tensor_products_are_the_definition_and_the_same_beside_others) {
    kernel_scene_begin();
    if (tol_context_device(test_context())->compute_capability < 80) return;
    for (enum kn_weight_format format = KN_WEIGHT_Q8_0; format < KN_WEIGHT_FORMATS; format++) {
        const size_t grain = kn_weight_grain(format);
        if (test_takes_trial()) try(format, "tensor", 21, 3, grain > 32 ? 2304 : 2336);
        if (test_takes_trial()) try(format, "tensor", 5, 9, grain > 32 ? 768 : 352);
        if (test_takes_trial()) try(format, "tensor", 1, 1, grain);
        if (test_takes_trial()) try(format, "tensor", 3, 8, 2304);
    }
}

/* Rows and columns that fill no tile, one tile of columns and several, shares without a chunk and
 * rings that are filled again, and rows of Q6_K at no multiple of 16. */
Test(linear, products_of_bytes_are_the_definition_and_the_same_beside_others) {
    kernel_scene_begin();
    if (tol_context_device(test_context())->compute_capability < 80) return;
    for (enum kn_weight_format format = KN_WEIGHT_Q4_K; format < KN_WEIGHT_FORMATS; format++) {
        if (test_takes_trial()) try_bytes(format, 21, 3, 2304);
        if (test_takes_trial()) try_bytes(format, 37, 10, 768);
        if (test_takes_trial()) try_bytes(format, 33, 35, 512);
        if (test_takes_trial()) try_bytes(format, 1, 1, 256);
        if (test_takes_trial()) try_bytes(format, 17, 8, 10240);
    }
}

/* Rows that fill no warp, several warps and tiles of columns, shares of k without a chunk, and a
 * last chunk that is cut. */
Test(linear, wide_products_are_those_of_tensor_bit_for_bit) {
    kernel_scene_begin();
    if (tol_context_device(test_context())->compute_capability < 80) return;
    for (enum kn_weight_format format = KN_WEIGHT_Q8_0; format < KN_WEIGHT_FORMATS; format++) {
        const size_t grain = kn_weight_grain(format);
        if (test_takes_trial()) try_wide(format, 50, 3, grain > 32 ? 2304 : 2336);
        if (test_takes_trial()) try_wide(format, 5, 67, grain > 32 ? 768 : 352);
        if (test_takes_trial()) try_wide(format, 33, 1, grain);
    }
}

/* The largest whole numbers that quants, scales and x can be: nothing is rounded, so the result is
 * exact. */
Test(linear, a_tensor_product_of_whole_numbers_is_exact) {
    enum { K = 256, ROWS = 2 };
    uint8_t blocks[ROWS * 144] = {0};
    float x[K], y[ROWS] = {0}, values[K];
    tol_auto_buffer struct tol_buffer *weights = NULL, *in = NULL, *out = NULL;
    kernel_scene_begin();
    if (tol_context_device(test_context())->compute_capability < 80) return;
    for (int r = 0; r < ROWS; r++) {
        const uint16_t d[2] = {kn_f16_of(1), kn_f16_of(2)};
        memcpy(blocks + 144 * r, d, sizeof d);
        for (int j = 0; j < 8; j++) kn_q4_k_set_scale(blocks + 144 * r + 4, j, j + 1, 9 - j);
        for (int i = 16; i < 144; i++) blocks[144 * r + i] = (uint8_t)(i * 37 + r);
    }
    for (int i = 0; i < K; i++) x[i] = (float)(i % 7 - 3) * 257; /* nine bits: two numbers */
    MUST(tol_buffer_create(test_context(), sizeof blocks, 1, &weights));
    MUST(tol_buffer_create(test_context(), K, sizeof(float), &in));
    MUST(tol_buffer_create(test_context(), ROWS, sizeof(float), &out));
    MUST(tol_buffer_write(weights, blocks, sizeof blocks));
    MUST(tol_buffer_write(in, x, sizeof x));
    MUST(kn_linear(kernels, stream,
                   &(struct kn_linear){.format = KN_WEIGHT_Q4_K,
                                       .rows = ROWS,
                                       .columns = 1,
                                       .k = K,
                                       .weights = kn_place_of(weights, 0),
                                       .x = kn_place_of(in, 0),
                                       .y = kn_place_of(out, 0),
                                       .x_stride = K,
                                       .y_stride = ROWS,
                                       .variant = "tensor"}));
    MUST(tol_stream_synchronize(stream));
    MUST(tol_buffer_read(out, y, sizeof y));
    for (int r = 0; r < ROWS; r++) {
        float sum = 0;
        kn_weight_values(KN_WEIGHT_Q4_K, blocks + 144 * r, K, values);
        for (int i = 0; i < K; i++) sum += values[i] * x[i];
        cr_assert(y[r] == sum, "row %d: %g is not %g", r, (double)y[r], (double)sum);
    }
}

Test(linear, embedded_rows_are_the_tables_bit_for_bit) {
    enum { ROWS = 5, TABLE = 6 };
    static const int tokens[ROWS] = {5, 0, -1, 6, 3};
    kernel_scene_begin();
    for (enum kn_weight_format format = 0; format < KN_WEIGHT_FORMATS; format++) {
        const size_t k = kn_weight_grain(format) > 32 ? 512 : 96;
        const size_t bytes = TABLE * kn_weight_row_bytes(format, k);
        uint64_t state = 3;
        uint8_t *weights = draw(format, TABLE, k, &state);
        float *values = malloc(TABLE * k * sizeof *values), *got = malloc(ROWS * k * sizeof *got);
        struct kn_guarded out = {0};
        tol_auto_buffer struct tol_buffer *table = NULL, *indices = NULL;
        size_t changed = 1;
        cr_assert(values != NULL && got != NULL);
        MUST(tol_buffer_create(test_context(), bytes, 1, &table));
        MUST(tol_buffer_create(test_context(), ROWS, sizeof(int), &indices));
        MUST(tol_buffer_write(table, weights, bytes));
        MUST(tol_buffer_write(indices, tokens, sizeof tokens));
        MUST(kn_guarded_create(test_context(), ROWS * k * sizeof(float), 4, &out));
        MUST(kn_embed(
            kernels, stream,
            &(struct kn_embed){.format = format,
                               .rows = ROWS,
                               .columns = k,
                               .table_rows = TABLE,
                               .table = kn_place_of(table, 0),
                               .tokens = kn_place_of(indices, 0),
                               .out = {tol_buffer_address(out.buffer) + out.offset, out.bytes},
                               .out_stride = k}));
        MUST(tol_stream_synchronize(stream));
        MUST(kn_guarded_read(&out, got));
        MUST(kn_guarded_check(&out, &changed));
        cr_assert(changed == 0);
        kn_weight_values(format, weights, TABLE * k, values);
        for (size_t i = 0; i < ROWS * k; i++) {
            const int token = tokens[i / k];
            if (token < 0 || token >= TABLE) {
                cr_assert(isnan(got[i]));
            } else {
                cr_assert(got[i] == values[(size_t)token * k + i % k], "%s, element %zu: %g",
                          kn_weight_name(format), i, (double)got[i]);
            }
        }
        kn_guarded_destroy(&out);
        free(weights), free(values), free(got);
    }
}

/* d = 2, scale 3, minimum 0: element 33 has nibble 5 and its fifth bit, so 2 * 3 * 21. */
Test(linear, a_q5_k_block_has_the_values_of_its_definition) {
    uint8_t block[176] = {0};
    float values[256];
    const uint16_t d[2] = {kn_f16_of(2), kn_f16_of(0.5f)};
    memcpy(block, d, sizeof d);
    kn_q4_k_set_scale(block + 4, 1, 3, 4);
    kn_q4_k_set_scale(block + 4, 7, 1, 0);
    block[48 + 1] = 5 << 4;
    block[16 + 1] = 1 << 1;
    block[48 + 96 + 31] = 15 << 4;
    kn_weight_values(KN_WEIGHT_Q5_K, block, 256, values);
    cr_assert(values[33] == 2 * 3 * 21 - 0.5f * 4);
    cr_assert(values[34] == -2);
    cr_assert(values[255] == 30);
    cr_assert(values[0] == 0);
}

#define REFUSED(change, status, text)                                                              \
    do {                                                                                           \
        struct kn_linear p = good;                                                                 \
        change;                                                                                    \
        MUST_FAIL(kn_linear(kernels, stream, &p), status, text);                                   \
    } while (0)

Test(linear, what_makes_no_sense_is_refused) {
    const struct kn_linear good = {.format = KN_WEIGHT_Q4_K,
                                   .rows = 5,
                                   .columns = 3,
                                   .k = 512,
                                   .weights = {0x10000, 5 * 288},
                                   .x = {0x20000, 3 * 2048},
                                   .y = {0x30000, 60},
                                   .x_stride = 512,
                                   .y_stride = 5};
    kernel_scene_begin();
    REFUSED(p.format = KN_WEIGHT_FORMATS, TOL_INVALID_ARGUMENT, "no format 7");
    REFUSED(p.k = 500, TOL_INVALID_ARGUMENT, "500 elements, no multiple of 256");
    REFUSED(p.k = 0, TOL_INVALID_ARGUMENT, "0 elements");
    REFUSED(p.weights.address++, TOL_INVALID_ARGUMENT, "not aligned to 16");
    REFUSED(p.weights.bytes--, TOL_OUT_OF_RANGE, "1440 bytes, and there are 1439");
    REFUSED(p.x_stride = 510, TOL_INVALID_ARGUMENT, "are 510 apart");
    REFUSED(p.x_stride = 513, TOL_INVALID_ARGUMENT, "are 513 apart");
    REFUSED(p.x.bytes--, TOL_OUT_OF_RANGE, "3 rows of x");
    REFUSED(p.y.bytes--, TOL_OUT_OF_RANGE, "3 rows of y");
    REFUSED(p.y_stride = 4, TOL_INVALID_ARGUMENT, "are 4 apart");
    REFUSED(p.y.address = 0x20000, TOL_INVALID_ARGUMENT, "overlaps");
    REFUSED(p.bias = ((struct kn_place){0x40000, 19}), TOL_OUT_OF_RANGE, "bias needs 20");
    REFUSED((p.gate = p.weights, p.adds = true), TOL_INVALID_ARGUMENT, "a gate with");
    REFUSED(p.variant = "wide", TOL_UNSUPPORTED, "no workspace");
    REFUSED(p.workspace = ((struct kn_place){0x40000, 100}), TOL_OUT_OF_RANGE, "workspace needs");
    REFUSED(p.workspace = ((struct kn_place){0x40008, 1 << 20}), TOL_INVALID_ARGUMENT, "aligned");
    REFUSED(p.workspace = ((struct kn_place){0x20000, 1 << 20}), TOL_INVALID_ARGUMENT,
            "workspace overlaps");
    REFUSED(p.rows = (size_t)1 << 31, TOL_OVER_LIMIT, "2147483648 rows");
    REFUSED(p.columns = 1 << 18, TOL_OVER_LIMIT, "262144 columns");
    MUST_FAIL(kn_linear(NULL, stream, &good), TOL_INVALID_ARGUMENT, "needs kernels");
    MUST_FAIL(kn_embed(kernels, stream,
                       &(struct kn_embed){.format = KN_WEIGHT_F32, .rows = 1, .columns = 8}),
              TOL_INVALID_ARGUMENT, "no rows");
    struct kn_linear nothing = good;
    nothing.columns = 0;
    MUST(kn_linear(kernels, stream, &nothing));
}
