/*
 * Times dequantising, and products with quantised rows: cold, with weights read from device memory
 * each time, and hot, with weights in the L2 cache if they fit.
 */
#include "alike.h"
#include "bench_check.h"
#include "gemm/gemm.h"
#include "quantised/formats/dequantise.h"
#include "quantised/formats/quant_draw.h"
#include "quantised/product/quant_product.h"

#include "core/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct work {
    struct kn_bench *bench;
    struct tol_buffer *blocks[KN_BENCH_SETS_MAX], *out[KN_BENCH_SETS_MAX];
    struct tol_buffer *x, *workspace;
    size_t sets; /* that are made */
    size_t used; /* of those, in turns */
    struct kn_dequantise dequantise;
    struct kn_quant_product product;
    struct tol_buffer *weights, *x_halves; /* of what step 8 of the product replaces */
    struct kn_gemm gemm;
    double reading_cold_us, reading_hot_us; /* the same weights; 0: not measured */
};

/* Blocks as models have them, the same few over and over: no two neighbours are equal. */
static tol_status quant_bench_make_blocks(struct work *work, enum kn_quant quant, size_t blocks,
                                          struct tol_buffer **buffer) {
    enum { DRAWN = 4096 };
    tol_status status = TOL_OK;
    const size_t bytes = kn_quant_block_bytes(quant);
    uint64_t seed = work->sets;
    char *drawn = malloc(DRAWN * bytes);
    TOL_CHECK(drawn != NULL, TOL_OUT_OF_HOST_MEMORY, "%zu bytes", DRAWN * bytes);
    kn_quant_draw(quant, KN_BLOCKS_USUAL, &seed, DRAWN, drawn);
    TOL_TRY(tol_buffer_create(work->bench->context, blocks, bytes, buffer));
    for (size_t at = 0; at < blocks; at += DRAWN) {
        const size_t now = blocks - at < DRAWN ? blocks - at : DRAWN;
        TOL_TRY(tol_buffer_write_at(*buffer, at * bytes, drawn, now * bytes));
    }
out:
    free(drawn);
    return status;
}

static tol_status quant_bench_make(struct work *work, enum kn_quant quant, size_t blocks,
                                   size_t out_bytes) {
    tol_status status = TOL_OK;
    const size_t set_bytes = blocks * kn_quant_block_bytes(quant) + out_bytes;
    const size_t sets = kn_bench_sets(work->bench, set_bytes);
    for (work->sets = 0; work->sets < sets; work->sets++) {
        TOL_TRY(quant_bench_make_blocks(work, quant, blocks, &work->blocks[work->sets]));
        TOL_TRY(tol_buffer_create(work->bench->context, out_bytes, 1, &work->out[work->sets]));
    }
    work->used = sets;
out:
    return status;
}

static void quant_bench_destroy(struct work *work) {
    for (size_t i = 0; i < KN_BENCH_SETS_MAX; i++) {
        tol_buffer_destroy(work->blocks[i]);
        tol_buffer_destroy(work->out[i]);
    }
    tol_buffer_destroy(work->x);
    tol_buffer_destroy(work->workspace);
    tol_buffer_destroy(work->weights);
    tol_buffer_destroy(work->x_halves);
}

/* ---- dequantise ------------------------------------------------------------------------------ */

static tol_status launch_dequantise(void *user, size_t turn) {
    struct work *work = user;
    work->dequantise.blocks = kn_place_of(work->blocks[turn % work->used], 0);
    work->dequantise.values = kn_place_of(work->out[turn % work->used], 0);
    return kn_dequantise(work->bench->kernels, work->bench->stream, &work->dequantise);
}

/* The first blocks, after they were timed. */
static tol_status check_dequantise(struct work *work, const struct kn_bench_row *row) {
    enum { BLOCKS = 4, ELEMENTS = BLOCKS * 256 };
    tol_status status = TOL_OK;
    char blocks[ELEMENTS * 2];
    double values[ELEMENTS];
    const enum kn_quant quant = work->dequantise.quant;
    const enum kn_type type = work->dequantise.type;
    const struct kn_bench_right right = {
        values,
        NULL,
        {1e-6, 1e-6 + 1.01 * kn_type_roundoff(type)}, /* differences may cancel */
        BLOCKS * kn_quant_block_elements(quant)};
    TOL_TRY(tol_buffer_read_at(work->blocks[0], 0, blocks, BLOCKS * kn_quant_block_bytes(quant)));
    kn_quant_values_exact(quant, blocks, BLOCKS, values);
    status = kn_bench_check(work->bench, row, row->variant, type, work->out[0], 0, &right);
out:
    return status;
}

static tol_status measure_dequantise(struct kn_bench *bench, enum kn_quant quant,
                                     enum kn_type type) {
    tol_status status = TOL_OK;
    static const char *const variants[] = {"wide", "naive"};
    const size_t rows = bench->is_small ? 16 : 4096, k = bench->is_small ? 1024 : 14336;
    const size_t blocks = rows * k / kn_quant_block_elements(quant);
    const size_t out_bytes = rows * k * kn_type_bytes(type);
    struct work work = {.bench = bench,
                        .dequantise = {.quant = quant, .type = type, .count = rows * k}};
    struct kn_bench_row row = {.operation = "quant",
                               .bytes = (double)(blocks * kn_quant_block_bytes(quant)) +
                                        (double)out_bytes};
    snprintf(row.shape, sizeof row.shape, "%s to %s %zu x %zu", kn_quant_name(quant),
             kn_type_name(type), rows, k);
    if (!kn_bench_wants(bench, &row)) return TOL_OK;
    TOL_TRY(quant_bench_make(&work, quant, blocks, out_bytes));
    for (size_t i = 0; i < 2; i++) {
        struct kn_bench_row one = row;
        one.turns = work.used;
        snprintf(one.variant, sizeof one.variant, "%s", variants[i]);
        work.dequantise.variant = variants[i];
        TOL_TRY(kn_bench_measure(bench, &one, launch_dequantise, &work));
        TOL_TRY(check_dequantise(&work, &one));
    }
out:
    quant_bench_destroy(&work);
    return status;
}

/* ---- products -------------------------------------------------------------------------------- */

static tol_status quant_bench_launch_product(void *user, size_t turn) {
    struct work *work = user;
    work->product.weights = kn_place_of(work->blocks[turn % work->used], 0);
    work->product.y = kn_place_of(work->out[turn % work->used], 0);
    return kn_quant_product(work->bench->kernels, work->bench->stream, &work->product);
}

/* One element of the last column. As x has elements of unit variance, y has the norm of the weights
 * for its own deviation; of that a share is allowed, ten times what rounding adds. The bound of the
 * worst case, which tests use, is larger than y itself. */
static tol_status check_element(struct work *work, const struct kn_bench_row *row, size_t index,
                                char *blocks, double *weights, float *x) {
    static const double shares[KN_QUANT_ARITHMETICS] = {1e-3, 5e-3, 0.06};
    tol_status status = TOL_OK;
    const struct kn_quant_product *p = &work->product;
    const size_t count = p->k / kn_quant_block_elements(p->quant);
    const size_t bytes = count * kn_quant_block_bytes(p->quant), last = p->columns - 1;
    double y = 0, squares = 0;
    TOL_TRY(tol_buffer_read_at(work->blocks[0], index * bytes, blocks, bytes));
    TOL_TRY(kn_bench_read(KN_F32, work->x, last * p->k, p->k, x));
    kn_quant_values_exact(p->quant, blocks, count, weights);
    for (size_t i = 0; i < p->k; i++) {
        y += weights[i] * (double)x[i];
        squares += weights[i] * weights[i];
    }
    const struct kn_bench_right right = {&y, NULL, {shares[p->arithmetic] * sqrt(squares), 0}, 1};
    status = kn_bench_check(work->bench, row, row->variant, KN_F32, work->out[0],
                            last * p->rows + index, &right);
out:
    return status;
}

/* A few elements, after they were timed. */
static tol_status check_product(struct work *work, const struct kn_bench_row *row) {
    tol_status status = TOL_OK;
    const size_t k = work->product.k, rows = work->product.rows;
    const size_t indices[] = {0, rows / 3, rows / 2 + 1, rows - 1};
    char *blocks = malloc(2 * k); /* fewer bytes, in every format */
    double *weights = malloc(k * sizeof *weights);
    float *x = malloc(k * sizeof *x);
    TOL_CHECK(blocks != NULL && weights != NULL && x != NULL, TOL_OUT_OF_HOST_MEMORY, "k %zu", k);
    for (size_t i = 0; i < sizeof indices / sizeof indices[0]; i++) {
        TOL_TRY(check_element(work, row, indices[i], blocks, weights, x));
    }
out:
    free(blocks);
    free(weights);
    free(x);
    return status;
}

static tol_status measure_cold_and_hot(struct work *work, const struct kn_bench_row *row,
                                       const char *variant) {
    tol_status status = TOL_OK;
    struct kn_bench_row cold = *row, hot = *row;
    const char *name = variant != NULL ? variant : "", *gap = variant != NULL ? " " : "";
    work->product.variant = variant;
    cold.alike = hot.alike = "reading as much";
    cold.alike_us = work->reading_cold_us, hot.alike_us = work->reading_hot_us;
    work->used = work->sets;
    cold.turns = work->sets, hot.turns = 1;
    cold.turn_bytes = hot.turn_bytes = (double)tol_buffer_bytes(work->blocks[0]);
    snprintf(cold.variant, sizeof cold.variant, "%s%scold", name, gap);
    TOL_TRY(kn_bench_measure(work->bench, &cold, quant_bench_launch_product, work));
    TOL_TRY(check_product(work, &cold));
    work->used = 1;
    hot.ggml_us = kn_bench_ggml_us(work->bench, kn_quant_name(work->product.quant),
                                   work->product.rows, work->product.columns, work->product.k);
    snprintf(hot.variant, sizeof hot.variant, "%s%shot", name, gap);
    TOL_TRY(kn_bench_measure(work->bench, &hot, quant_bench_launch_product, work));
    TOL_TRY(check_product(work, &hot));
out:
    return status;
}

/* The weights are read and nothing is done with them: no product can be faster. */
static tol_status measure_reading(struct work *work, const struct kn_bench_row *row) {
    tol_status status = TOL_OK;
    struct kn_bench_row cold = *row, hot = *row;
    const size_t bytes = tol_buffer_bytes(work->blocks[0]);
    cold.bytes = hot.bytes = (double)bytes;
    cold.turns = work->sets, hot.turns = 1;
    snprintf(cold.variant, sizeof cold.variant, "reading cold");
    TOL_TRY(kn_bench_reading(work->bench, &cold, work->blocks, work->sets, bytes));
    work->reading_cold_us = cold.us;
    snprintf(hot.variant, sizeof hot.variant, "reading hot");
    TOL_TRY(kn_bench_reading(work->bench, &hot, work->blocks, 1, bytes));
    work->reading_hot_us = hot.us;
out:
    return status;
}

/* By name, each name once, where the device has what they need. */
static tol_status measure_variants(struct work *work, const struct kn_bench_row *row,
                                   const struct kn_variants *variants) {
    tol_status status = TOL_OK;
    const int capability = tol_context_device(work->bench->context)->compute_capability;
    for (size_t i = 0; i < variants->count; i++) {
        const struct kn_variant *one = &variants->rows[i];
        bool is_again = false;
        for (size_t j = 0; j < i; j++) {
            is_again = is_again || strcmp(one->name, variants->rows[j].name) == 0;
        }
        const bool is_alone = one->cluster != 0 && capability != 90; /* compute_90a is for 9.0 */
        /* None of these is for one column alone; if another row of its name is, that came first. */
        const bool is_wide = work->product.columns == 1 && one->tile[1] > 1;
        if (is_again || is_alone || is_wide || one->compute_capability_min > capability) continue;
        TOL_TRY(measure_cold_and_hot(work, row, one->name));
    }
out:
    return status;
}

/* The weights become halves in memory, and x is given in halves: two kernels. */
static tol_status launch_apart(void *user, size_t turn) {
    struct work *work = user;
    tol_status status = TOL_OK;
    work->dequantise.blocks = kn_place_of(work->blocks[turn % work->used], 0);
    work->gemm.c.buffer = work->out[turn % work->used];
    TOL_TRY(kn_dequantise(work->bench->kernels, work->bench->stream, &work->dequantise));
    status = kn_gemm(work->bench->kernels, work->bench->stream, &work->gemm);
out:
    return status;
}

/* What has its weights in registers, beside dequantise and gemm. */
static tol_status measure_beside_gemm(struct work *work, const struct kn_bench_row *row) {
    tol_status status = TOL_OK;
    const struct kn_quant_product *p = &work->product;
    const struct kn_bench_peer peer = {"dequantise, gemm", launch_apart, work};
    struct kn_bench_row beside = *row;
    TOL_TRY(tol_buffer_create(work->bench->context, p->rows * p->k, kn_type_bytes(KN_F16),
                              &work->weights));
    TOL_TRY(kn_bench_buffer(work->bench, KN_F16, p->columns * p->k, 1, &work->x_halves));
    work->dequantise = (struct kn_dequantise){.quant = p->quant,
                                              .type = KN_F16,
                                              .count = p->rows * p->k,
                                              .values = kn_place_of(work->weights, 0)};
    work->gemm = (struct kn_gemm){.precision = KN_GEMM_F16,
                                  .c_type = KN_F32,
                                  .transpose_b = true,
                                  .m = p->columns,
                                  .n = p->rows,
                                  .k = p->k,
                                  .alpha = 1,
                                  .a.buffer = work->x_halves,
                                  .b.buffer = work->weights};
    work->used = work->sets;
    work->product.variant = "wgmma";
    snprintf(beside.variant, sizeof beside.variant, "wgmma beside gemm");
    status = kn_bench_compare(work->bench, &beside, quant_bench_launch_product, work, &peer);
out:
    return status;
}

/* A product of few columns is bound by memory and shown in bytes, else in operations. */
static tol_status measure_product(struct kn_bench *bench, enum kn_quant quant,
                                  enum kn_quant_arithmetic arithmetic, size_t columns, size_t k) {
    enum { FEW = 8 };
    tol_status status = TOL_OK;
    const size_t rows = bench->is_small ? 64 : 4096;
    const size_t blocks = rows * k / kn_quant_block_elements(quant);
    const size_t space = kn_quant_product_workspace(arithmetic, columns, k);
    struct work work = {
        .bench = bench,
        .product = {
            .quant = quant, .arithmetic = arithmetic, .rows = rows, .columns = columns, .k = k}};
    struct kn_bench_row row = {
        .operation = "quant",
        .operations = columns > FEW ? 2.0 * (double)rows * (double)k * (double)columns : 0,
        .bytes = (double)(blocks * kn_quant_block_bytes(quant)) +
                 (double)((rows + k) * columns * sizeof(float))};
    snprintf(row.shape, sizeof row.shape, "%s %s %zu x %zu x %zu", kn_quant_name(quant),
             kn_quant_arithmetic_name(arithmetic), rows, columns, k);
    if (!kn_bench_wants(bench, &row)) return TOL_OK;
    TOL_TRY(quant_bench_make(&work, quant, blocks, rows * columns * sizeof(float)));
    TOL_TRY(kn_bench_buffer(bench, KN_F32, columns * k, 1, &work.x));
    work.product.x = kn_place_of(work.x, 0);
    if (space > 0) {
        TOL_TRY(tol_buffer_create(bench->context, space, 1, &work.workspace));
        work.product.workspace = kn_place_of(work.workspace, 0);
    }
    if (columns == 1) TOL_TRY(measure_reading(&work, &row));
    TOL_TRY(measure_cold_and_hot(&work, &row, NULL));
    if (arithmetic == KN_QUANT_Q8_1 && quant == KN_Q4_K) { /* there is a choice */
        const int capability = tol_context_device(bench->context)->compute_capability;
        if (columns == 1) {
            TOL_TRY(measure_variants(&work, &row, kn_quant_product_variants(quant, arithmetic)));
        } else if (columns <= FEW && capability >= 90) {
            TOL_TRY(measure_cold_and_hot(&work, &row, "columns"));
            TOL_TRY(measure_cold_and_hot(&work, &row, "integers"));
        }
    }
    if (columns > FEW && arithmetic == KN_QUANT_F16) { /* so there is here */
        TOL_TRY(measure_variants(&work, &row, kn_quant_product_variants(quant, arithmetic)));
        if (tol_context_device(bench->context)->compute_capability == 90) {
            TOL_TRY(measure_beside_gemm(&work, &row));
        }
    }
out:
    quant_bench_destroy(&work);
    return status;
}

static tol_status quant_bench_run(struct kn_bench *bench) {
    static const size_t few[] = {2, 4}, many[] = {16, 32, 64, 128, 256, 2048};
    const size_t columns[] = {1, 8, bench->is_small ? 16 : 512};
    const size_t k = bench->is_small ? 2048 : 14336;
    tol_status status = TOL_OK;
    for (enum kn_quant quant = 0; quant < KN_QUANTS; quant++) {
        for (enum kn_type type = KN_F32; type <= KN_F16; type++) {
            TOL_TRY(measure_dequantise(bench, quant, type));
        }
        for (size_t i = 0; i < 3; i++) {
            for (enum kn_quant_arithmetic a = 0; a < KN_QUANT_ARITHMETICS; a++) {
                TOL_TRY(measure_product(bench, quant, a, columns[i], k));
            }
        }
    }
    /* Few columns by bytes on tensor cores and by dp4a; 8 columns are among the above. */
    for (size_t i = 0; !bench->is_small && i < 2; i++) {
        TOL_TRY(measure_product(bench, KN_Q4_K, KN_QUANT_Q8_1, few[i], k));
    }
    /* From how many columns on steps 8 and 9 of the product are the faster ones. */
    for (size_t i = 0; !bench->is_small && i < sizeof many / sizeof many[0]; i++) {
        TOL_TRY(measure_product(bench, KN_Q4_K, KN_QUANT_F16, many[i], k));
    }
    for (enum kn_quant quant = KN_Q4_K + 1; !bench->is_small && quant < KN_QUANTS; quant++) {
        TOL_TRY(measure_product(bench, quant, KN_QUANT_F16, 64, k));
    }
    /* A matrix of 9 MB, which every device reads in little time. */
    for (size_t i = 0; !bench->is_small && i < 2; i++) {
        TOL_TRY(measure_product(bench, KN_Q4_K, KN_QUANT_Q8_1, columns[i], 4096));
    }
out:
    return status;
}

KN_BENCH(quant, quant_bench_run)
