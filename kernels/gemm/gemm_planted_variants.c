/*
 * The table of kernels with a defect, for saboteurs. Only programs that name it link it.
 */
#include "gemm_maps.h"

KN_IMAGES(gemm_planted);
KN_IMAGES(gemm_hopper_planted);

static const char *only_floats(const void *problem) {
    const struct gemm_problem *p = problem;
    return kn_gemm_input_type(p->gemm->precision) == KN_F32 ? NULL : "it is for floats";
}

static const char *only_f16(const void *problem) {
    const struct gemm_problem *p = problem;
    return p->gemm->precision == KN_GEMM_F16 ? NULL : "it is for f16";
}

static const char *only_bf16(const void *problem) {
    const struct gemm_problem *p = problem;
    return p->gemm->precision == KN_GEMM_BF16 ? NULL : "it is for bf16";
}

static const char *only_hopper(const void *problem) {
    const struct gemm_problem *p = problem;
    const struct kn_gemm *g = p->gemm;
    if (g->precision != KN_GEMM_BF16 || g->transpose_a || g->transpose_b)
        return "it is for bf16 nn";
    if (!p->a_is_aligned || !p->b_is_aligned)
        return "a row does not begin at a multiple of 16 bytes";
    return p->arguments.k > 0 && gemm_maps_serve(p) ? NULL : "no tensor maps can be made";
}

#define ROW(which, type, accepts)                                                                  \
    {                                                                                              \
        .name = #which, .entry = "gemm_" #which "_" #type, .images = kn_images_gemm_planted,       \
        .compute_capability_min = 75, .refuse = accepts, .threads = 256, .tile = {                 \
            16,                                                                                    \
            16,                                                                                    \
            1                                                                                      \
        }                                                                                          \
    }
#define ROWS(which)                                                                                \
    ROW(which, f32, only_floats), ROW(which, f16, only_f16), ROW(which, bf16, only_bf16)

#define HOPPER(which, blocks)                                                                      \
    {                                                                                              \
        .name = #which, .entry = "gemm_" #which "_bf16", .images = kn_images_gemm_hopper_planted,  \
        .compute_capability_min = 90, .refuse = only_hopper, .threads = 384,                       \
        .shared_bytes = 226 << 10, .tile = {128, 128, 64}, .cluster = (blocks)                     \
    }

static const struct kn_variant rows[] = {ROWS(lost_step),
                                         ROWS(lost_tail),
                                         ROWS(lost_beta),
                                         ROWS(reads_c),
                                         ROWS(swapped),
                                         ROWS(half_sum),
                                         ROWS(writes_gap),
                                         ROWS(lost_share),
                                         HOPPER(early_release, 1),
                                         HOPPER(lost_consumer, 1),
                                         HOPPER(wrong_stage, 1),
                                         HOPPER(lost_stage, 1),
                                         HOPPER(lost_block, 4)};

const struct kn_variants kn_gemm_planted_variants = {"gemm, with a defect", rows,
                                                     sizeof rows / sizeof rows[0]};
