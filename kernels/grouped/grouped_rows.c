/*
 * The table of grouped's kernels and what each requires of a problem, from grouped_rows.def.
 */
#include "choose/cost.h"
#include "grouped_check.h"

#include <math.h>

KN_IMAGES(grouped_1_naive);
KN_IMAGES(grouped_2_tensor);
KN_IMAGES(grouped_3_hopper);
KN_IMAGES(grouped_4_pair);

/* A row's types, and what it needs of a problem. */
enum {
    F16 = 1 << KN_GROUPED_F16,
    BF16 = 1 << KN_GROUPED_BF16,
    E4M3 = 1 << KN_GROUPED_E4M3,
    NN = 1 << 0, /* B_g as k x n, or as n x k */
    NT = NN << 1,
    ANY_OP = NN | NT,
    MAPS = 1 << 2, /* tensor maps describe A and B, and there are steps */
    WIDE = 1 << 3  /* preferred only where its wide tiles are done sooner */
};

/* Groups are taken to be equally long. A tile of 256 columns takes as long as 1 / 0.52 of 128 on an
 * H200; one of 192 of e4m3 takes 1.45 of that time on an H100. */
static bool is_better_wide(const struct grouped_problem *problem, unsigned columns) {
    const struct grouped_arguments *x = &problem->arguments;
    const double down = ceil(ceil((double)x->m / x->groups) / 128) * x->groups;
    return kn_cost_wide_wins(down * ceil((double)x->n / columns), columns == 192 ? 1.45 : 1 / 0.52,
                             down * ceil((double)x->n / 128));
}

static const char *grouped_refuses(const struct kn_variant *row, const void *of) {
    const struct grouped_problem *problem = of;
    const struct kn_grouped *g = problem->grouped;
    if ((row->types & 1U << g->type) == 0) return "it is for another type";
    if ((row->needs & (g->transpose_b ? (unsigned)NT : (unsigned)NN)) == 0) {
        return "it is for another order of b";
    }
    if (grouped_tiles_most(&problem->arguments, row->tile[0], row->tile[1]) > INT32_MAX) {
        return "there are too many of its tiles";
    }
    if ((row->needs & MAPS) == 0) return NULL;
    if (problem->arguments.k == 0) return "there is nothing to multiply";
    if (!problem->is_aligned) return "a row of a or b does not begin at a multiple of 16 bytes";
    return problem->has_maps ? NULL : "no tensor maps can be made";
}

static const char *grouped_declines(const struct kn_variant *row, const void *problem,
                                    const struct tol_device *device) {
    (void)device; /* another device gives the same bits */
    return (row->needs & WIDE) != 0 && !is_better_wide(problem, row->tile[1])
               ? "smaller tiles fill a device better"
               : NULL;
}

/* clang-format off */
#define ROW(name_, entry_, types_, op, image, capability, needs_, threads_, kib, cluster_, m, n)   \
    {.name = #name_, .entry = "grouped_" entry_, .images = kn_images_grouped_##image,              \
     .compute_capability_min = capability, .types = types_, .needs = (op) | (needs_),              \
     .refuse = grouped_refuses, .decline = grouped_declines, .threads = threads_,                  \
     .shared_bytes = (kib) << 10, .tile = {m, n, 0}, .cluster = cluster_},
#define HALVES(name, needs, n)                                                                     \
    ROW(name, #name "_f16_nn", F16, NN, 3_hopper, 90, needs, 384, 226, 1, 128, n)                  \
    ROW(name, #name "_f16_nt", F16, NT, 3_hopper, 90, needs, 384, 226, 1, 128, n)                  \
    ROW(name, #name "_bf16_nn", BF16, NN, 3_hopper, 90, needs, 384, 226, 1, 128, n)                \
    ROW(name, #name "_bf16_nt", BF16, NT, 3_hopper, 90, needs, 384, 226, 1, 128, n)
#define BYTES(name, image, needs, cluster, m, n)                                                   \
    ROW(name, #name "_e4m3_nt", E4M3, NT, image, 90, needs, 384, 226, cluster, m, n)
#define ANY(name, image, capability, m, n)                                                         \
    ROW(name, #name "_f16", F16, ANY_OP, image, capability, 0, 128, 0, 0, m, n)                    \
    ROW(name, #name "_bf16", BF16, ANY_OP, image, capability, 0, 128, 0, 0, m, n)                  \
    ROW(name, #name "_e4m3", E4M3, ANY_OP, image, capability, 0, 128, 0, 0, m, n)
/* clang-format on */

static const struct kn_variant rows[] = {
#include "grouped_rows.def"
};

const struct kn_variants kn_grouped_variants = {"grouped", rows, sizeof rows / sizeof rows[0]};
