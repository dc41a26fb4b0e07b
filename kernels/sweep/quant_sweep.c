/*
 * Cases of dequantise and of products with quantised weights: two tiles and part of one, each block
 * format, one column, a few and many.
 */
#include "core/check.h"
#include "guarded.h"
#include "kernel_sweep.h"
#include "quantised/formats/dequantise.h"
#include "quantised/product/quant_product_trial.h"

#include <stdlib.h>
#include <string.h>

/* ---- dequantise ------------------------------------------------------------------------------ */

static tol_status quant_sweep_dequantise(struct sweep *sweep, struct kn_dequantise problem,
                                         struct kn_deviation *deviation, size_t *touched) {
    tol_status status = TOL_OK;
    struct tol_context *context = kn_kernels_context(sweep->kernels);
    const size_t count = problem.count, element = kn_type_bytes(problem.type);
    const size_t blocks = count / kn_quant_block_elements(problem.quant);
    const size_t block_bytes = blocks * kn_quant_block_bytes(problem.quant);
    struct kn_guarded in = {0}, out = {0};
    void *bytes = malloc(block_bytes), *made = malloc(count * element);
    float *values = malloc(count * sizeof *values);
    double *oracle = malloc(count * sizeof *oracle);
    TOL_CHECK(bytes != NULL && made != NULL && values != NULL && oracle != NULL,
              TOL_OUT_OF_HOST_MEMORY, "%zu elements", count);
    TOL_TRY(kn_guarded_create(context, block_bytes, 0, &in));
    TOL_TRY(kn_guarded_create(context, count * element, 0, &out));
    kn_quant_draw(problem.quant, KN_BLOCKS_USUAL, &sweep->random, blocks, bytes);
    kn_quant_values(problem.quant, bytes, blocks, values);
    /* In the type that is made: it is made bit for bit. */
    kn_numbers_store(problem.type, values, count, made);
    kn_numbers_load(problem.type, made, count, values);
    for (size_t i = 0; i < count; i++) oracle[i] = (double)values[i];
    TOL_TRY(kn_guarded_write(&in, bytes));
    problem.blocks = (struct kn_place){tol_buffer_address(in.buffer) + in.offset, in.bytes};
    problem.values = (struct kn_place){tol_buffer_address(out.buffer) + out.offset, out.bytes};
    TOL_TRY(kn_dequantise(sweep->kernels, sweep->stream, &problem));
    TOL_TRY(tol_stream_synchronize(sweep->stream));
    TOL_TRY(kn_guarded_read(&out, made));
    TOL_TRY(kn_guarded_check(&out, touched));
    *deviation =
        kn_deviation_of(problem.type, made, oracle, count, (struct kn_tolerance){0, 0}, NULL);
out:
    kn_guarded_destroy(&in);
    kn_guarded_destroy(&out);
    free(bytes);
    free(made);
    free(values);
    free(oracle);
    return status;
}

static void run_dequantise(struct sweep *sweep, enum kn_quant quant, enum kn_type type,
                           const char *variant) {
    struct kn_deviation deviation = {.first = KN_NOWHERE, .worst = KN_NOWHERE};
    size_t touched = 0;
    /* A block of the wide kernel for halves of Q6_K has the most: 32768 elements. */
    const size_t count = quant == KN_Q8_0 ? 9600 : 36096;
    if (!sweep_begin(sweep, "dequantise %s %s to %s, %zu elements", variant, kn_quant_name(quant),
                     kn_type_name(type), count)) {
        return;
    }
    const tol_status status = quant_sweep_dequantise(
        sweep,
        (struct kn_dequantise){.quant = quant, .type = type, .count = count, .variant = variant},
        &deviation, &touched);
    sweep_judge(sweep, status, &deviation, touched);
}

/* ---- products -------------------------------------------------------------------------------- */

static void quant_sweep_run_product(struct sweep *sweep, const char *variant, enum kn_quant quant,
                                    enum kn_quant_arithmetic arithmetic, size_t rows,
                                    size_t columns, size_t k) {
    struct kn_quant_finding finding = {0};
    /* Blocks of Q8_0 are short: k is no multiple of 256. */
    if (quant == KN_Q8_0 && strncmp(variant, "wgmma", 5) != 0) k -= 96;
    if (!sweep_begin(sweep, "product %s %s %s %zu x %zu, k %zu", variant, kn_quant_name(quant),
                     kn_quant_arithmetic_name(arithmetic), rows, columns, k)) {
        return;
    }
    const bool gaps = columns > 1;
    const tol_status status = kn_quant_trial(sweep->kernels, sweep->stream,
                                             &(struct kn_quant_trial){.quant = quant,
                                                                      .arithmetic = arithmetic,
                                                                      .rows = rows,
                                                                      .columns = columns,
                                                                      .k = k,
                                                                      .variant = variant,
                                                                      .distribution = KN_NORMAL,
                                                                      .scale = 1,
                                                                      .seed = rows + columns,
                                                                      .x_gap = gaps ? 8 : 0,
                                                                      .y_gap = gaps ? 5 : 0,
                                                                      .y_skew = 4},
                                             &finding);
    sweep_judge(sweep, status, &finding.deviation, finding.changed + finding.gaps_changed);
}

void sweep_quant(struct sweep *sweep) {
    static const char *const alone[] = {"early_1", "staged_1", "bulk_early"};
    for (enum kn_quant quant = 0; quant < KN_QUANTS; quant++) {
        for (enum kn_type type = KN_F32; type <= KN_F16; type++) {
            run_dequantise(sweep, quant, type, "wide");
            run_dequantise(sweep, quant, type, "naive");
        }
        quant_sweep_run_product(sweep, "naive", quant, KN_QUANT_F32, 130, 2, 512);
        quant_sweep_run_product(sweep, "rows", quant, KN_QUANT_F32, 19, 1, 2304);
        quant_sweep_run_product(sweep, "rows", quant, KN_QUANT_F32, 19, 6, 768);
        quant_sweep_run_product(sweep, "tensor", quant, KN_QUANT_F16, 35, 9, 768);
        quant_sweep_run_product(sweep, "tensor", quant, KN_QUANT_F16, 66, 67, 512);
        quant_sweep_run_product(sweep, "wgmma", quant, KN_QUANT_F16, 19, 9, 2048);
        quant_sweep_run_product(sweep, "wgmma_256", quant, KN_QUANT_F16, 130, 257, 2048);
        quant_sweep_run_product(sweep, "wgmma", quant, KN_QUANT_F16, 130, 131,
                                quant == KN_Q6_K ? 2048 : 512);
        /* k split in three parts, or eight. */
        const size_t shared_k = quant == KN_Q6_K ? 2048 : 768;
        quant_sweep_run_product(sweep, "wgmma_split", quant, KN_QUANT_F16, 19, 9, shared_k);
        quant_sweep_run_product(sweep, "wgmma_split", quant, KN_QUANT_F16, 130, 33, shared_k);
        quant_sweep_run_product(sweep, "wgmma_split", quant, KN_QUANT_F16, 19, 130, shared_k);
        quant_sweep_run_product(sweep, "integers", quant, KN_QUANT_Q8_1, 19, 1, 2304);
        quant_sweep_run_product(sweep, "integers", quant, KN_QUANT_Q8_1, 19, 11, 768);
    }
    /* A tile of one height, below and above 16 rows; k within a slot, and around the ring. */
    quant_sweep_run_product(sweep, "columns", KN_Q4_K, KN_QUANT_Q8_1, 37, 5, 256);
    quant_sweep_run_product(sweep, "columns", KN_Q4_K, KN_QUANT_Q8_1, 130, 8, 2304);
    quant_sweep_run_product(sweep, "columns", KN_Q4_K, KN_QUANT_Q8_1, 2, 2, 30 * 256);
    /* k at the ends of what lanes have at a time, and more; and the longest that fits. */
    for (int i = 0; i < 3; i++) {
        quant_sweep_run_product(sweep, alone[i], KN_Q4_K, KN_QUANT_Q8_1, 37, 1, 256);
        quant_sweep_run_product(sweep, alone[i], KN_Q4_K, KN_QUANT_Q8_1, 37, 1, 2304);
        quant_sweep_run_product(sweep, alone[i], KN_Q4_K, KN_QUANT_Q8_1, 2, 1,
                                (size_t)(i < 2 ? 153 : 147) * 256);
    }
}
