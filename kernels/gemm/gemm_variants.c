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

/* What a kernel serves. */
enum {
    F32 = 1 << KN_GEMM_F32,
    TF32 = 1 << KN_GEMM_TF32,
    F16 = 1 << KN_GEMM_F16,
    BF16 = 1 << KN_GEMM_BF16,
    FLOATS = F32 | TF32, /* what multiplies floats exactly serves where tf32 would do */
    NN = 1 << 8,         /* A and B as they are; B transposed; A; both */
    NT = NN << 1,
    TN = NN << 2,
    TT = NN << 3,
    ANY_OP = NN | NT | TN | TT,
    ALIGNED = 1 << 16, /* only where each row begins at a multiple of 16 bytes */
    MANY = 1 << 17,    /* unless forced, only where its tiles keep a large device busy */
    LARGE = 1 << 18,   /* unless forced, only where c does not fit a tile of 64 x 64 */
    BY_MAPS = 1 << 19, /* only where tensor maps describe the matrices, and there are steps */
    BY_TWO = 1 << 20,  /* clusters of two; unless forced, only where wide tiles are done sooner */
    BY_COPY = 1 << 21, /* copies rows that are not aligned to the workspace */
    MAPS = ALIGNED | BY_MAPS,
    PAIRS = MAPS | BY_TWO,
    COPIES = BY_MAPS | BY_COPY,
    COPIED_PAIRS = COPIES | BY_TWO
};

/* Two tiles for each multiprocessor of an H200: with fewer, smaller tiles are done sooner. */
static bool has_many_tiles(const struct kn_gemm *gemm) {
    const double tiles = ceil((double)gemm->m / 128) * ceil((double)gemm->n / 256);
    return tiles * (double)(gemm->batch != 0 ? gemm->batch : 1) >= 264;
}

/* Whether step 10 has done with tiles of 128 x 256 in pairs sooner than with tiles of 128 x 128, on
 * an H200. That a tile of half the size takes 0.6 of the time is a guess: nothing was measured. */
static bool is_better_wide(const struct kn_gemm *gemm) {
    const double blocks = 132, narrow_time = 0.6;
    const double m = (double)gemm->m, n = (double)gemm->n;
    const double batch = (double)(gemm->batch != 0 ? gemm->batch : 1);
    const double wide = 2 * ceil(m / 256) * ceil(n / 256) * batch;
    const double narrow = ceil(m / 128) * ceil(n / 128) * batch;
    return ceil(wide / blocks) <= narrow_time * ceil(narrow / blocks);
}

/* Step 10 counts clusters in an int. */
static bool can_count(const struct kn_gemm *gemm) {
    const double tiles = ceil((double)gemm->m / 128) * ceil((double)gemm->n / 128);
    return tiles * (double)(gemm->batch != 0 ? gemm->batch : 1) <= INT32_MAX;
}

static const char *refuse_copies(const struct gemm_problem *problem) {
    enum { MATRICES_MAX = 65535 };
    const struct kn_gemm *gemm = problem->gemm;
    const size_t bytes = gemm_pack_bytes(problem);
    const size_t room = gemm->workspace != NULL ? tol_buffer_bytes(gemm->workspace) : 0;
    if (gemm_is_aligned(problem)) return "all rows begin at multiples of 16 bytes";
    if (gemm->batch > MATRICES_MAX || bytes == SIZE_MAX) return "there are too many matrices";
    if (!problem->is_planned && bytes > room) return "copies of a and b do not fit the workspace";
    if (gemm->variant == NULL && !gemm_pack_wins(problem)) return "copies cost more than they save";
    return NULL;
}

static const char *refuse(const struct gemm_problem *problem, unsigned serves) {
    const struct kn_gemm *gemm = problem->gemm;
    const unsigned op = (unsigned)gemm->transpose_a * 2 + (unsigned)gemm->transpose_b;
    if ((serves & 1u << gemm->precision) == 0) return "it is for another precision";
    if ((serves & (unsigned)NN << op) == 0) return "it is for other transpositions";
    if ((serves & ALIGNED) != 0 && !gemm_is_aligned(problem)) {
        return "a row does not begin at a multiple of 16 bytes";
    }
    if ((serves & BY_MAPS) != 0) {
        if (problem->arguments.k == 0) return "there is nothing to multiply";
        if (!gemm_maps_serve(problem)) return "no tensor maps can be made";
        if (!can_count(gemm)) return "there are too many of its tiles";
        const char *why = (serves & BY_COPY) != 0 ? refuse_copies(problem) : NULL;
        if (why != NULL) return why;
    }
    if ((serves & BY_TWO) != 0 && gemm->variant == NULL && !is_better_wide(gemm)) {
        return "smaller tiles fill a device better";
    }
    if ((serves & MANY) != 0 && gemm->variant == NULL && !has_many_tiles(gemm)) {
        return "there are too few of its tiles";
    }
    if ((serves & LARGE) != 0 && gemm->variant == NULL && gemm->m <= 64 && gemm->n <= 64) {
        return "a tile of 64 is enough";
    }
    return NULL;
}

#define GEMM(name, entry, image, capability, serves, ...)                                          \
    static const char *refuse_##name##_##entry(const void *problem) {                              \
        return refuse(problem, serves);                                                            \
    }
#include "gemm_variants.def"
#undef GEMM

#define CLUSTER(serves) (((serves)&BY_MAPS ? 1U : 0U) + ((serves)&BY_TWO ? 1U : 0U))
static const struct kn_variant rows[] = {
#define GEMM(name_, entry_, image_, capability, serves, threads_, shared_kib, m, n, k)             \
    {.name = #name_,                                                                               \
     .entry = "gemm_" #entry_,                                                                     \
     .images = kn_images_gemm_##image_,                                                            \
     .compute_capability_min = capability,                                                         \
     .refuse = refuse_##name_##_##entry_,                                                          \
     .threads = threads_,                                                                          \
     .shared_bytes = shared_kib << 10,                                                             \
     .tile = {m, n, k},                                                                            \
     .cluster = CLUSTER(serves),                                                                   \
     .is_candidate = ((serves)&BY_MAPS) != 0},
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
