/*
 * Cases of grouped: a tile and part of one, a group of one row and an empty one, rows in no group;
 * more stages than the ring has, and each thing that may follow a product.
 */
#include "grouped/grouped_trial.h"
#include "kernel_sweep.h"

enum { GROUPS = 4 };

static void grouped_sweep_run_case(struct sweep *sweep, const char *variant,
                                   enum kn_grouped_type type, bool transpose_b, size_t n, size_t k,
                                   unsigned way) {
    static const int32_t begins[GROUPS + 1] = {2, 135, 136, 136, 150};
    const bool is_wide = way < KN_GROUPED_E4M3, is_aligned = variant[0] == 'w';
    struct kn_grouped_outcome outcome = {0};
    const struct kn_grouped_trial trial = {.grouped = {.type = type,
                                                       .c_type = way,
                                                       .transpose_b = transpose_b,
                                                       .m = 153,
                                                       .n = n,
                                                       .k = k,
                                                       .groups = GROUPS,
                                                       .alpha = 1.25f,
                                                       .c_scale = is_wide ? 0 : 0.25f,
                                                       .activation = way % KN_ACTIVATIONS,
                                                       .residual_type = way % (KN_GROUPED_BF16 + 1),
                                                       .variant = variant},
                                           .begins = begins,
                                           .has_bias = way != 2,
                                           .has_a_scale = way != 1,
                                           .has_b_scale = way != 0,
                                           .has_residual = way >= KN_GROUPED_BF16,
                                           .is_in_place = way == 1,
                                           .gap = is_aligned ? 16 : 3,
                                           .align = is_aligned ? 16 : 0,
                                           .skew = is_aligned ? 0 : 1,
                                           .seed = 100 + way};
    if (!sweep_begin(sweep, "grouped %s %s %s %zu x %zu to %s", variant, kn_grouped_type_name(type),
                     transpose_b ? "nt" : "nn", n, k, kn_grouped_type_name(way))) {
        return;
    }
    const tol_status status = kn_grouped_try(sweep->kernels, sweep->stream, &trial, &outcome);
    sweep_judge(sweep, status, &outcome.deviation, outcome.touched);
}

/* Both orders of B, where the variant takes them, and all types of C. */
static void grouped_sweep_run_cases(struct sweep *sweep, const char *variant,
                                    enum kn_grouped_type type, size_t n, size_t k) {
    const bool takes_nn = variant[0] != 'w' || type != KN_GROUPED_E4M3;
    for (unsigned way = 0; way < KN_GROUPED_TYPES; way++) {
        grouped_sweep_run_case(sweep, variant, type, !takes_nn || way % 2 == 0, n, k, way);
    }
}

void sweep_grouped(struct sweep *sweep) {
    for (enum kn_grouped_type type = KN_GROUPED_F16; type <= KN_GROUPED_E4M3; type++) {
        grouped_sweep_run_cases(sweep, "naive", type, 33, 19);
        grouped_sweep_run_cases(sweep, "tensor", type, 67, 45);
        grouped_sweep_run_cases(sweep, "wgmma_128", type, 136,
                                type == KN_GROUPED_E4M3 ? 7 * 128 + 5 : 7 * 64 + 5);
        if (type != KN_GROUPED_E4M3)
            grouped_sweep_run_cases(sweep, "wgmma_256", type, 264, 5 * 64 + 5);
        if (type == KN_GROUPED_E4M3)
            grouped_sweep_run_cases(sweep, "wgmma_pair", type, 200, 6 * 128 + 5);
        if (type == KN_GROUPED_E4M3)
            grouped_sweep_run_cases(sweep, "wgmma_192", type, 200, 6 * 128 + 5);
    }
}
