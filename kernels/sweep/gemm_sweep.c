/*
 * Cases of gemm: two tiles and part of one in each dimension. For kernels with a ring in shared
 * memory, k is longer than the ring.
 */
#include "gemm/gemm_trial.h"
#include "kernel_sweep.h"

#include <string.h>

static void gemm_sweep_run_case(struct sweep *sweep, const struct kn_gemm_trial *trial) {
    const struct kn_gemm *g = &trial->gemm;
    struct kn_gemm_outcome outcome = {0};
    if (!sweep_begin(sweep, "gemm %s %s %s%s %zu x %zu x %zu", g->variant,
                     kn_gemm_precision_name(g->precision), g->transpose_a ? "t" : "n",
                     g->transpose_b ? "t" : "n", g->m, g->n, g->k)) {
        return;
    }
    const tol_status status = kn_gemm_try(sweep->kernels, sweep->stream, trial, &outcome);
    sweep_judge(sweep, status, &outcome.deviation, outcome.touched);
}

/* Ways: transpositions, both types of C, beta zero and not; aligned and unaligned rows. */
static void gemm_sweep_run_way(struct sweep *sweep, unsigned way, const char *variant,
                               enum kn_gemm_precision precision, size_t m, size_t n, size_t k,
                               size_t batch, bool is_aligned) {
    gemm_sweep_run_case(
        sweep, &(struct kn_gemm_trial){
                   .gemm = {.precision = precision,
                            .c_type = way % 2 == 0 ? KN_F32 : kn_gemm_input_type(precision),
                            .transpose_a = way / 2 == 1,
                            .transpose_b = way % 2 == 1,
                            .m = m,
                            .n = n,
                            .k = k,
                            .batch = batch,
                            .alpha = way == 0 ? 1 : 1.25f,
                            .beta = way == 1 || way == 2 ? 0.5f : 0,
                            .variant = variant},
                   .gap = is_aligned ? 8 : 3,
                   .align = is_aligned ? 8 : 0,
                   .skew = is_aligned ? 0 : 1,
                   .seed = way + 1});
}

static void gemm_sweep_run_cases(struct sweep *sweep, const char *variant,
                                 enum kn_gemm_precision precision, size_t m, size_t n, size_t k,
                                 size_t batch, bool is_aligned) {
    for (unsigned way = 0; way < 4; way++) {
        gemm_sweep_run_way(sweep, way, variant, precision, m, n, k, batch, is_aligned);
    }
}

/* Step 13: each transposition, an even and an odd number of stages, C in pairs and not; the last
 * are copied to the workspace, one of them as its transpose. */
static void run_tf32(struct sweep *sweep) {
    for (unsigned way = 0; way < 16; way++) {
        const unsigned op = way % 4;
        const bool is_copied = way >= 8 || op == 2; /* tn */
        const bool is_wide = way / 4 % 2 == 0;
        const char *const copied = is_wide ? "packed_256" : "packed_128";
        gemm_sweep_run_case(
            sweep, &(struct kn_gemm_trial){.gemm = {.precision = KN_GEMM_TF32,
                                                    .transpose_a = op >= 2,
                                                    .transpose_b = op % 2 == 1,
                                                    .m = 133,
                                                    .n = is_wide ? 262 : 134,
                                                    .k = (is_wide ? 5 : 6) * 32 + 5,
                                                    .batch = 1 + way / 12,
                                                    .alpha = 1.25f,
                                                    .beta = way >= 4 && way < 12 ? 0.5f : 0,
                                                    .variant = is_copied ? copied
                                                               : is_wide ? "wgmma_256"
                                                                         : "wgmma_128"},
                                           .gap = way < 8 ? 0 : 3,
                                           .align = way < 8 ? 4 : 0,
                                           .skew = way < 8 ? 0 : 1,
                                           .workspace = is_copied,
                                           .seed = 51 + way});
    }
}

/* Step 14: each transposition, stages gone round, aligned floats and others. */
static void run_parts(struct sweep *sweep) {
    for (unsigned op = 0; op < 4; op++) {
        gemm_sweep_run_case(sweep, &(struct kn_gemm_trial){.gemm = {.precision = KN_GEMM_F32_TENSOR,
                                                                    .transpose_a = op >= 2,
                                                                    .transpose_b = op % 2 == 1,
                                                                    .m = 133,
                                                                    .n = 134,
                                                                    .k = 3 * 64 + 5,
                                                                    .batch = 1 + op / 2,
                                                                    .alpha = 1.25f,
                                                                    .beta = op == 1 ? 0.5f : 0,
                                                                    .variant = "parts_128"},
                                                           .gap = op < 2 ? 0 : 3,
                                                           .align = op < 2 ? 4 : 0,
                                                           .skew = op < 2 ? 0 : 1,
                                                           .workspace = true,
                                                           .seed = 71 + op});
    }
}

void sweep_gemm(struct sweep *sweep) {
    static const enum kn_gemm_precision types[] = {KN_GEMM_F32, KN_GEMM_F16, KN_GEMM_BF16};
    for (int i = 0; i < 3; i++) {
        gemm_sweep_run_cases(sweep, "naive", types[i], 17, 33, 19, 2, false);
        gemm_sweep_run_cases(sweep, "shared", types[i], 33, 65, 67, 2, false);
    }
    gemm_sweep_run_cases(sweep, "registers", KN_GEMM_F32, 131, 133, 21, 1, false);
    gemm_sweep_run_cases(sweep, "vector", KN_GEMM_F32, 131, 133, 29, 1, true);
    /* B transposed, which alone it serves. */
    gemm_sweep_run_way(sweep, 1, "wide_short", KN_GEMM_F32, 131, 133, 9 * 8 + 5, 1, true);
    gemm_sweep_run_cases(sweep, "wide_64", KN_GEMM_F32, 131, 133, 7 * 16 + 5, 1, true);
    for (enum kn_gemm_precision p = KN_GEMM_TF32; p <= KN_GEMM_BF16; p++) {
        gemm_sweep_run_cases(sweep, "tensor", p, 67, 65, 99, 2, false);
        gemm_sweep_run_cases(sweep, "gathered", p, 133, 131, 261, 1, false);
    }
    for (enum kn_gemm_precision p = KN_GEMM_TF32; p <= KN_GEMM_BF16; p++) {
        gemm_sweep_run_cases(sweep, "async_128", p, 133, 131, 261, 1, true);
        gemm_sweep_run_cases(sweep, "async_256", p, 133, 259, 261, 1, true);
    }
    for (enum kn_gemm_precision p = KN_GEMM_F16; p <= KN_GEMM_BF16; p++) {
        gemm_sweep_run_cases(sweep, "wgmma_128", p, 133, 131, 7 * 64 + 5, 1, true);
        gemm_sweep_run_cases(sweep, "wgmma_256", p, 133, 259, 5 * 64 + 5, 1, true);
        gemm_sweep_run_cases(sweep, "wgmma_k4", p, 133, 131, 5 * 64 + 5, 1, true);
        gemm_sweep_run_cases(sweep, "wgmma_64", p, 133, 67, 9 * 64 + 5, 1, true);
        gemm_sweep_run_cases(sweep, "wgmma_64_k2", p, 133, 67, 5 * 64 + 5, 1, true);
    }
    run_tf32(sweep);
    run_parts(sweep);
    for (int i = 0; i < 2; i++) { /* rows copied to the workspace */
        gemm_sweep_run_case(sweep, &(struct kn_gemm_trial){
                                       .gemm = {.precision = KN_GEMM_BF16,
                                                .c_type = i == 0 ? KN_BF16 : KN_F32,
                                                .transpose_a = i == 1,
                                                .m = 133,
                                                .n = 131,
                                                .k = 67,
                                                .batch = 2,
                                                .alpha = 1.25f,
                                                .beta = i == 0 ? 0.5f : 0,
                                                .variant = i == 0 ? "packed_128" : "packed_256"},
                                       .gap = 3,
                                       .skew = 1,
                                       .workspace = true,
                                       .seed = 11 + (uint64_t)i});
    }
    gemm_sweep_run_case(sweep,
                        &(struct kn_gemm_trial){.gemm = {.precision = KN_GEMM_BF16,
                                                         .c_type = KN_BF16,
                                                         .m = 133,
                                                         .n = 136,
                                                         .k = 67,
                                                         .alpha = 1,
                                                         .variant = "wgmma_256"}, /* whole pieces */
                                                .align = 8,
                                                .seed = 9});
    /* One tile with k split among blocks, for each type of C. */
    for (enum kn_gemm_precision p = KN_GEMM_F32; p <= KN_GEMM_BF16; p++) {
        gemm_sweep_run_case(
            sweep,
            &(struct kn_gemm_trial){.gemm = {.precision = p,
                                             .c_type = kn_gemm_input_type(p),
                                             .m = 17,
                                             .n = 33,
                                             .k = 1024 + 3,
                                             .alpha = 1.25f,
                                             .beta = 0.5f,
                                             .variant = p == KN_GEMM_F32 ? "vector" : "async_128"},
                                    .align = 8,
                                    .workspace = true,
                                    .seed = p + 1});
    }
}
