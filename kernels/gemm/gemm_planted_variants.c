/*
 * The table of kernels with a defect, for saboteurs. Only programs that name it link it.
 */
#include "gemm_maps.h"
#include "gemm_pack.h"

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

static const char *only_words(const void *problem) {
    const struct gemm_problem *p = problem;
    const struct kn_gemm *g = p->gemm;
    if (g->precision != KN_GEMM_TF32 || g->transpose_a || g->transpose_b)
        return "it is for tf32 nn";
    if (!p->a_is_aligned || !p->b_is_aligned)
        return "a row does not begin at a multiple of 16 bytes";
    return p->arguments.k > 0 && gemm_maps_serve(p) ? NULL : "no tensor maps can be made";
}

static const char *only_parts(const void *problem) {
    const struct gemm_problem *p = problem;
    const struct kn_gemm *g = p->gemm;
    const size_t room = g->workspace != NULL ? tol_buffer_bytes(g->workspace) : 0;
    if (g->precision != KN_GEMM_F32_TENSOR || g->transpose_a || g->transpose_b)
        return "it is for f32_tensor nn";
    if (!p->is_planned && gemm_pack_bytes(p) > room) return "copies do not fit the workspace";
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

#define PIPELINE(which, type, accepts, blocks, has_parts)                                          \
    {                                                                                              \
        .name = #which, .entry = "gemm_" #which "_" #type,                                         \
        .images = kn_images_gemm_hopper_planted, .compute_capability_min = 90, .refuse = accepts,  \
        .threads = 384, .shared_bytes = 226 << 10, .tile = {128, 128, 64}, .cluster = (blocks),    \
        .packs = has_parts                                                                         \
    }
#define HOPPER(which, blocks) PIPELINE(which, bf16, only_hopper, blocks, false)

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
                                         HOPPER(lost_block, 4),
                                         PIPELINE(wrong_words, tf32, only_words, 1, false),
                                         PIPELINE(lost_part, f32, only_parts, 1, true),
                                         PIPELINE(lost_mend, f32, only_parts, 1, true)};

const struct kn_variants kn_gemm_planted_variants = {"gemm, with a defect", rows,
                                                     sizeof rows / sizeof rows[0]};
