/*
 * The table of gemm's kernels and what each requires of a problem, from gemm_variants.def.
 */
#include "gemm_maps.h"
#include "gemm_pack.h"

#include <math.h>

KN_IMAGES(gemm_1_naive);
KN_IMAGES(gemm_2_shared);
KN_IMAGES(gemm_3_registers);
KN_IMAGES(gemm_4_vector);
KN_IMAGES(gemm_5_tensor);
KN_IMAGES(gemm_6_async);
KN_IMAGES(gemm_7_tf32);
KN_IMAGES(gemm_8_sum);
KN_IMAGES(gemm_9_gathered);
KN_IMAGES(gemm_10_hopper);
KN_IMAGES(gemm_12_narrow);
KN_IMAGES(gemm_13_tf32);
KN_IMAGES(gemm_14_parts);
KN_IMAGES(gemm_15_wide);

/* What a kernel serves. */
enum {
    F32 = 1 << KN_GEMM_F32,
    TF32 = 1 << KN_GEMM_TF32,
    F16 = 1 << KN_GEMM_F16,
    BF16 = 1 << KN_GEMM_BF16,
    F32_TENSOR = 1 << KN_GEMM_F32_TENSOR,
    FLOATS =
        F32 | TF32 | F32_TENSOR, /* what multiplies floats exactly serves where less would do */
    PRECISIONS = FLOATS | F16 | BF16,
    NN = 1 << 8, /* A and B as they are; B transposed; A; both */
    NT = NN << 1,
    TN = NN << 2,
    TT = NN << 3,
    TN_TT = TN | TT,
    ANY_OP = NN | NT | TN | TT,
    ALIGNED = 1 << 16, /* only where each row begins at a multiple of 16 bytes */
    MANY = 1 << 17,    /* unless forced, only where its tiles keep a large device busy */
    LARGE = 1 << 18,   /* unless forced, only where c does not fit a tile of 64 x 64 */
    BY_MAPS = 1 << 19, /* only where tensor maps describe the matrices, and there are steps */
    WIDE = 1 << 20,    /* unless forced, only where tiles of 128 x 256 are done sooner */
    BY_COPY = 1 << 21, /* copies rows of A and B that are not aligned to the workspace */
    BY_2 = 1 << 22,    /* so many blocks share the steps of a tile */
    BY_4 = 1 << 23,
    FULL = 1 << 25,   /* unless forced, only where tiles of 64 x 128 are one a multiprocessor */
    MOST = 1 << 26,   /* unless forced, only where tiles of 128 x 128 are many for each */
    NARROW = 1 << 24, /* unless forced, only where wider tiles leave multiprocessors idle */
    NARROW_1 = BY_MAPS | NARROW,
    NARROW_2 = NARROW_1 | BY_2,
    COPIED = BY_MAPS | BY_COPY,
    WIDE_COPIED = COPIED | WIDE,
    WIDE_MAPS = BY_MAPS | WIDE
};

/* Two tiles for each multiprocessor of an H200: with fewer, smaller tiles are done sooner. */
static bool has_many_tiles(const struct kn_gemm *gemm) {
    const double tiles = ceil((double)gemm->m / 128) * ceil((double)gemm->n / 256);
    return tiles * (double)(gemm->batch != 0 ? gemm->batch : 1) >= 264;
}

/* Floats without tensor cores, as an H100 has measured: from 1024 cubed on; 4096 cubed has 1,024
 * tiles of 128 x 128. */
static bool has_tiles(const struct kn_gemm *gemm, double rows, double least) {
    const double tiles = ceil((double)gemm->m / rows) * ceil((double)gemm->n / 128);
    return tiles * (double)(gemm->batch != 0 ? gemm->batch : 1) >= least;
}

/* The multiprocessors of an H200: another device gives the same bits. */
enum { HOPPER_BLOCKS = 132, SHARE_MIN = 256 };

static double tiles_of(const struct kn_gemm *gemm, double columns) {
    return ceil((double)gemm->m / 128) * ceil((double)gemm->n / columns) *
           (double)(gemm->batch != 0 ? gemm->batch : 1);
}

/* Whether step 10 or 13 has done with tiles of 128 x 256 sooner than with tiles of 128 x 128, on an
 * H200. A tile of half the size takes 0.52 of the time there, or 0.65 if A comes from registers.
 * Then C may be made as its transpose. */
static bool is_better_wide(const struct kn_gemm *gemm) {
    const bool is_tf32 = gemm->precision == KN_GEMM_TF32;
    const double narrow_time = is_tf32 && (gemm->transpose_a || !gemm->transpose_b) ? 0.65 : 0.52;
    struct kn_gemm made = *gemm;
    if (is_tf32 && !gemm->transpose_a && !gemm->transpose_b) made.m = gemm->n, made.n = gemm->m;
    return ceil(tiles_of(&made, 256) / HOPPER_BLOCKS) <=
           narrow_time * ceil(tiles_of(&made, 128) / HOPPER_BLOCKS);
}

/* Whether there are so few tiles of 128 x 128, and so many steps, that four blocks share each. With
 * more tiles those of 64 columns are better: an H200 has no room for 32 clusters of four. */
static bool is_better_shared(const struct kn_gemm *gemm, unsigned shares) {
    return tiles_of(gemm, 128) * shares <= HOPPER_BLOCKS / 2 &&
           gemm->k >= (size_t)SHARE_MIN * shares;
}

/* The blocks of a cluster; 0: the kernel takes no maps. */
#define SHARES(serves)                                                                             \
    (((serves)&BY_MAPS) == 0 ? 0U : ((serves)&BY_4) ? 4U : ((serves)&BY_2) ? 2U : 1U)

/* Whether an H200 runs all blocks of tiles of 64 columns at once. */
static bool is_better_narrow(const struct kn_gemm *gemm, unsigned shares) {
    return tiles_of(gemm, 64) * shares <= HOPPER_BLOCKS && gemm->k >= (size_t)SHARE_MIN * shares;
}

/* A product of few rows or columns is bound by what it reads, and step 6 with its steps split among
 * all blocks reads faster than step 10. */
static bool is_better_split(const struct gemm_problem *problem) {
    const struct kn_gemm *gemm = problem->gemm;
    const bool has_room = problem->is_planned || gemm->workspace != NULL;
    return has_room && (gemm->m <= 64 || gemm->n <= 64);
}

/* Step 10 counts tiles in an int. */
static bool can_count(const struct kn_gemm *gemm) {
    return tiles_of(gemm, 128) * 4 <= INT32_MAX;
}

static const char *refuse_copies(const struct gemm_problem *problem) {
    enum { MATRICES_MAX = 65535 };
    const struct kn_gemm *gemm = problem->gemm;
    const size_t bytes = gemm_pack_bytes(problem);
    const size_t room = gemm->workspace != NULL ? tol_buffer_bytes(gemm->workspace) : 0;
    if (problem->a_is_aligned && problem->b_is_aligned && !gemm_pack_turns_b(gemm) &&
        gemm_pack_parts(gemm) == 1) {
        return "rows of a and b begin at multiples of 16 bytes";
    }
    if (gemm->batch > MATRICES_MAX || bytes == SIZE_MAX) return "there are too many matrices";
    if (!problem->is_planned && bytes > room) return "copies of a and b do not fit the workspace";
    return NULL;
}

static const char *refuse_maps(const struct gemm_problem *problem, unsigned needs) {
    if (problem->arguments.k == 0) return "there is nothing to multiply";
    if (!gemm_maps_serve(problem)) return "no tensor maps can be made";
    if (!can_count(problem->gemm)) return "there are too many of its tiles";
    if ((needs & BY_COPY) != 0) return refuse_copies(problem);
    return problem->a_is_aligned && problem->b_is_aligned
               ? NULL
               : "a row of a or b does not begin at a multiple of 16 bytes";
}

static const char *gemm_refuses(const struct kn_variant *row, const void *of) {
    const struct gemm_problem *problem = of;
    const struct kn_gemm *gemm = problem->gemm;
    const unsigned op = (unsigned)gemm->transpose_a * 2 + (unsigned)gemm->transpose_b;
    if ((row->types & 1u << gemm->precision) == 0) return "it is for another precision";
    if ((row->needs & (unsigned)NN << op) == 0) return "it is for other transpositions";
    if ((row->needs & ALIGNED) != 0 && !gemm_is_aligned(problem)) {
        return "a row does not begin at a multiple of 16 bytes";
    }
    return (row->needs & BY_MAPS) != 0 ? refuse_maps(problem, row->needs) : NULL;
}

static const char *gemm_declines(const struct kn_variant *row, const void *of,
                                 const struct tol_device *device) {
    const struct gemm_problem *problem = of;
    const struct kn_gemm *gemm = problem->gemm;
    const unsigned needs = row->needs;
    (void)device; /* another device gives the same bits */
    if ((needs & BY_MAPS) != 0 && (needs & NARROW) == 0 && is_better_split(problem)) {
        return "it is for more rows";
    }
    if ((needs & BY_COPY) != 0 && !gemm_pack_wins(problem)) {
        return "copies cost more than they save";
    }
    if ((needs & WIDE) != 0 && !is_better_wide(gemm)) return "smaller tiles fill a device better";
    if ((needs & BY_4) != 0 && !is_better_shared(gemm, 4)) return "fewer blocks can share a tile";
    if ((needs & NARROW) != 0 && !is_better_narrow(gemm, row->cluster)) {
        return "wider tiles are enough";
    }
    if (((needs & MANY) != 0 && !has_many_tiles(gemm)) ||
        ((needs & FULL) != 0 && !has_tiles(gemm, 64, 128)) ||
        ((needs & MOST) != 0 && !has_tiles(gemm, 128, 512))) {
        return "there are too few of its tiles";
    }
    return (needs & LARGE) != 0 && gemm->m <= 64 && gemm->n <= 64 ? "a tile of 64 is enough" : NULL;
}

static const struct kn_variant rows[] = {
#define GEMM(name_, entry_, image_, capability, serves, threads_, shared_kib, m, n, k)             \
    {.name = #name_,                                                                               \
     .entry = "gemm_" #entry_,                                                                     \
     .images = kn_images_gemm_##image_,                                                            \
     .compute_capability_min = capability,                                                         \
     .types = (serves)&PRECISIONS,                                                                 \
     .needs = (serves) & ~PRECISIONS,                                                              \
     .refuse = gemm_refuses,                                                                       \
     .decline = gemm_declines,                                                                     \
     .threads = threads_,                                                                          \
     .shared_bytes = shared_kib << 10,                                                             \
     .tile = {m, n, k},                                                                            \
     .cluster = SHARES(serves),                                                                    \
     .packs = ((serves)&BY_COPY) != 0},
#include "gemm_variants.def"
#undef GEMM
};

const struct kn_variants kn_gemm_variants = {"gemm", rows, sizeof rows / sizeof rows[0]};

#define SUM(type)                                                                                  \
    {                                                                                              \
        .name = "sum", .entry = "gemm_sum_" #type, .images = kn_images_gemm_8_sum,                 \
        .compute_capability_min = 75, .threads = 128                                               \
    }
const struct kn_variant kn_gemm_sum[KN_TYPES] = {
    [KN_F32] = SUM(f32), [KN_F16] = SUM(f16), [KN_BF16] = SUM(bf16)};
