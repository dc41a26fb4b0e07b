/*
 * The table of kernels with a defect, for saboteurs. Only programs that name it link it.
 */
#include "gemm_maps.h"
#include "gemm_pack.h"

KN_IMAGES(gemm_planted);
KN_IMAGES(gemm_hopper_planted);

/* What a kernel requires besides its precision. */
enum { MAPS = 1, COPIES = 2 };

static const char *gemm_planted_planted_refuses(const struct kn_variant *row, const void *problem) {
    const struct gemm_problem *p = problem;
    const struct kn_gemm *g = p->gemm;
    if ((row->types & 1U << g->precision) == 0) return "it is for another precision";
    if ((row->needs & MAPS) == 0) return NULL;
    if (g->transpose_a || g->transpose_b) return "it is for nn";
    if ((row->needs & COPIES) != 0) {
        if (gemm_pack_bytes(p) > gemm_room(p)) return "copies do not fit the workspace";
    } else if (!p->a_is_aligned || !p->b_is_aligned) {
        return "a row does not begin at a multiple of 16 bytes";
    }
    return p->arguments.k > 0 && gemm_maps_serve(p) ? NULL : "no tensor maps can be made";
}

enum {
    FLOATS = 1 << KN_GEMM_F32 | 1 << KN_GEMM_TF32 | 1 << KN_GEMM_F32_TENSOR,
    F16 = 1 << KN_GEMM_F16,
    BF16 = 1 << KN_GEMM_BF16
};

#define ROW(which, type, takes)                                                                    \
    {                                                                                              \
        .name = #which, .entry = "gemm_" #which "_" #type, .images = kn_images_gemm_planted,       \
        .compute_capability_min = 75, .types = takes, .refuse = gemm_planted_planted_refuses,      \
        .threads = 256, .tile = {                                                                  \
            16,                                                                                    \
            16,                                                                                    \
            1                                                                                      \
        }                                                                                          \
    }
#define ROWS(which) ROW(which, f32, FLOATS), ROW(which, f16, F16), ROW(which, bf16, BF16)

#define PIPELINE(which, type, takes, blocks, has_parts)                                            \
    {                                                                                              \
        .name = #which, .entry = "gemm_" #which "_" #type,                                         \
        .images = kn_images_gemm_hopper_planted, .compute_capability_min = 90, .types = takes,     \
        .needs = MAPS | ((has_parts) ? COPIES : 0), .refuse = gemm_planted_planted_refuses,        \
        .threads = 384, .shared_bytes = 226 << 10, .tile = {128, 128, 64}, .cluster = (blocks),    \
        .packs = has_parts                                                                         \
    }
#define HOPPER(which, blocks) PIPELINE(which, bf16, BF16, blocks, false)

static const struct kn_variant rows[] = {
    ROWS(lost_step),
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
    PIPELINE(wrong_words, tf32, 1 << KN_GEMM_TF32, 1, false),
    PIPELINE(lost_part, f32, 1 << KN_GEMM_F32_TENSOR, 1, true),
    PIPELINE(lost_mend, f32, 1 << KN_GEMM_F32_TENSOR, 1, true)};

const struct kn_variants kn_gemm_planted_variants = {"gemm, with a defect", rows,
                                                     sizeof rows / sizeof rows[0]};
