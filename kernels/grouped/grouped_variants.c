/*
 * The table of grouped's kernels and what each requires of a problem, from grouped_variants.def.
 */
#include "grouped_problem.h"

#include <math.h>

KN_IMAGES(grouped_1_naive);
KN_IMAGES(grouped_2_tensor);
KN_IMAGES(grouped_3_hopper);
KN_IMAGES(grouped_4_pair);

/* What a kernel serves. */
enum {
    F16 = 1 << KN_GROUPED_F16,
    BF16 = 1 << KN_GROUPED_BF16,
    E4M3 = 1 << KN_GROUPED_E4M3,
    TYPES = F16 | BF16 | E4M3,
    NN = 1 << 8, /* B_g as k x n, or as n x k */
    NT = NN << 1,
    ANY_OP = NN | NT,
    BY_MAPS = 1 << 16, /* only where tensor maps describe A and B, and there are steps */
    WIDE = 1 << 17,    /* unless forced, only where its wide tiles are done sooner */
    PAIRS = 1 << 18    /* pairs of blocks own a tile */
};

/* Whether tiles of 128 x `columns` are done sooner than those of 128 x 128, with a block on each
 * multiprocessor of an H200, of which another device gives the same bits. Groups are taken to be
 * equally long. As in gemm, a tile of 128 columns takes 0.52 of the time of one of 256 on an H200;
 * one of 192 of e4m3 takes 1.45 of its time on an H100. */
static bool is_better_wide(const struct grouped_problem *problem, unsigned columns) {
    const double blocks = 132, time = columns == 192 ? 1.45 : 1 / 0.52;
    const struct grouped_arguments *x = &problem->arguments;
    const double down = ceil(ceil((double)x->m / x->groups) / 128) * x->groups;
    return time * ceil(down * ceil((double)x->n / columns) / blocks) <=
           ceil(down * ceil((double)x->n / 128) / blocks);
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
    if ((row->needs & BY_MAPS) == 0) return NULL;
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

static const struct kn_variant rows[] = {
#define GROUPED(name_, entry_, image_, capability, serves, threads_, shared_kib, m, n)             \
    {.name = #name_,                                                                               \
     .entry = "grouped_" #entry_,                                                                  \
     .images = kn_images_grouped_##image_,                                                         \
     .compute_capability_min = capability,                                                         \
     .types = (serves)&TYPES,                                                                      \
     .needs = (serves) & ~TYPES,                                                                   \
     .refuse = grouped_refuses,                                                                    \
     .decline = grouped_declines,                                                                  \
     .threads = threads_,                                                                          \
     .shared_bytes = (shared_kib) << 10,                                                           \
     .tile = {m, n, 0},                                                                            \
     .cluster = ((serves)&PAIRS) != 0 ? 2 : ((serves)&BY_MAPS) != 0},
#include "grouped_variants.def"
#undef GROUPED
};

const struct kn_variants kn_grouped_variants = {"grouped", rows, sizeof rows / sizeof rows[0]};
