/*
 * The table of gemm's kernels, what each requires of a problem, and where it is expected to be the
 * fastest, from gemm_rows.def.
 */
#include "choose/cost.h"
#include "gemm_launch.h"
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

/* A row's types: bits of precisions. A kernel that multiplies floats exactly takes whatever allows
 * less. */
enum {
    F32 = 1 << KN_GEMM_F32,
    TF32 = 1 << KN_GEMM_TF32,
    F16 = 1 << KN_GEMM_F16,
    BF16 = 1 << KN_GEMM_BF16,
    F32_TENSOR = 1 << KN_GEMM_F32_TENSOR,
    ALL_FLOATS = F32 | TF32 | F32_TENSOR
};

/* A row's needs: the transpositions that it takes, and the layout. */
enum {
    NN = 1 << 0, /* A and B as they are; B transposed; A; both */
    NT = NN << 1,
    TN = NN << 2,
    TT = NN << 3,
    ANY_OP = NN | NT | TN | TT,
    ALIGNED = 1 << 4, /* each row begins at a multiple of 16 bytes */
    MAPS = 1 << 5,    /* tensor maps describe the matrices, and there are steps */
    PACKS = 1 << 6    /* with MAPS: packing makes rows aligned */
};

/* A row's cost, as gemm_rows.def names it. */
enum {
    ALWAYS = 0,
    WIDE = KN_COST_WIDE,
    CLUSTER = KN_COST_CLUSTER,
    NARROW = KN_COST_NARROW,
    TWO_WAVES = KN_COST_TWO_WAVES,
    FULL = KN_COST_FULL,
    MOST = KN_COST_MOST,
    LARGE = KN_COST_LARGE,
    PACKED = KN_COST_PACKED,
    NO_SPLIT = KN_COST_NO_SPLIT
};

/* ---- what a kernel requires ------------------------------------------------------------------ */

/* The kernels with persistent thread blocks count tiles in an int. */
static bool table_can_count(const struct gemm_arguments *x) {
    return ceil(x->m / 128.0) * ceil(x->n / 128.0) * x->batch * 4 <= INT32_MAX;
}

static const char *table_refuse_packing(const struct gemm_problem *problem) {
    enum { MATRICES_MAX = 65535 };
    const struct kn_gemm *gemm = problem->gemm;
    const size_t bytes = gemm_pack_bytes(problem);
    if (problem->a_is_aligned && problem->b_is_aligned && !gemm_pack_turns_b(gemm) &&
        gemm_pack_parts(gemm) == 1) {
        return "rows of a and b begin at multiples of 16 bytes";
    }
    if (gemm->batch > MATRICES_MAX || bytes == SIZE_MAX) return "there are too many matrices";
    return bytes > gemm_room(problem) ? "copies of a and b do not fit the workspace" : NULL;
}

static const char *table_refuse_maps(const struct gemm_problem *problem, bool packs) {
    if (problem->arguments.k == 0) return "there is nothing to multiply";
    if (!gemm_maps_serve(problem)) return "no tensor maps can be made";
    if (!table_can_count(&problem->arguments)) return "there are too many of its tiles";
    if (packs) return table_refuse_packing(problem);
    return problem->a_is_aligned && problem->b_is_aligned
               ? NULL
               : "a row of a or b does not begin at a multiple of 16 bytes";
}

static const char *table_refuses(const struct kn_variant *row, const void *of) {
    const struct gemm_problem *problem = of;
    const struct kn_gemm *gemm = problem->gemm;
    const unsigned op = (unsigned)gemm->transpose_a * 2 + (unsigned)gemm->transpose_b;
    if ((row->types & 1U << gemm->precision) == 0) return "it is for another precision";
    if ((row->needs & (unsigned)NN << op) == 0) return "it is for other transpositions";
    if ((row->needs & ALIGNED) != 0 && !gemm_is_aligned(problem)) {
        return "a row does not begin at a multiple of 16 bytes";
    }
    return (row->needs & MAPS) != 0 ? table_refuse_maps(problem, row->packs) : NULL;
}

/* ---- where it is expected to be the fastest -------------------------------------------------- */

static const char *table_declines(const struct kn_variant *row, const void *of,
                                  const struct tol_device *device) {
    const struct gemm_problem *problem = of;
    const struct kn_gemm *gemm = problem->gemm;
    const bool is_tf32 = gemm->precision == KN_GEMM_TF32;
    const bool has_maps = row->cluster != 0;
    const bool is_turned = is_tf32 && has_maps && !gemm->transpose_a && !gemm->transpose_b;
    const struct kn_cost_product product = {
        .m = (double)(is_turned ? gemm->n : gemm->m),
        .n = (double)(is_turned ? gemm->m : gemm->n),
        .k = (double)gemm->k,
        .batch = problem->arguments.batch,
        .arithmetic = gemm_pack_parts(gemm) > 1 ? KN_COST_PARTS
                      : is_tf32                 ? KN_COST_TF32
                                                : KN_COST_HALVES,
        .from_registers = is_tf32 && (gemm->transpose_a || !gemm->transpose_b),
        .is_aligned = problem->a_is_aligned && problem->b_is_aligned,
        .has_split = problem->is_planned || gemm->workspace != NULL,
        .packed_bytes = row->packs ? (double)gemm_pack_bytes(problem) : 0};
    (void)device; /* each device picks as an H200 does */
    return kn_cost_declines(row, &product);
}

/* ---- the table ------------------------------------------------------------------------------- */

/* clang-format off */
#define ROW(name_, entry_, types_, ops, image, capability, needs_, cost_, cluster_, threads_, kib, \
            m, n, k)                                                                               \
    {.name = #name_, .entry = "gemm_" entry_, .images = kn_images_gemm_##image,                    \
     .compute_capability_min = capability, .types = types_, .needs = (ops) | (needs_),             \
     .cost = cost_, .refuse = table_refuses, .decline = table_declines, .threads = threads_,       \
     .shared_bytes = (kib) << 10, .tile = {m, n, k}, .cluster = cluster_,                          \
     .packs = ((needs_) & PACKS) != 0},
#define OPS(name, entry, type, types, ...)                                                         \
    ROW(name, entry type "_nn", types, NN, __VA_ARGS__)                                            \
    ROW(name, entry type "_nt", types, NT, __VA_ARGS__)                                            \
    ROW(name, entry type "_tn", types, TN, __VA_ARGS__)                                            \
    ROW(name, entry type "_tt", types, TT, __VA_ARGS__)
#define HALVES(name, entry, ...)                                                                   \
    OPS(name, #entry, "_f16", F16, __VA_ARGS__)                                                    \
    OPS(name, #entry, "_bf16", BF16, __VA_ARGS__)
#define WGMMA(name, entry, tt, needs, cost, n)                                                     \
    HALVES(name, entry, 10_hopper, 90, needs, cost, 1, 384, 226, 128, n, 64)                       \
    ROW(name, #entry "_tf32_nn", TF32, NN, 13_tf32, 90, needs, cost, 1, 384, 226, 128, n, 32)      \
    ROW(name, #entry "_tf32_nt", TF32, NT, 13_tf32, 90, needs, cost, 1, 384, 226, 128, n, 32)      \
    ROW(name, #entry "_tf32_tt", TF32, tt, 13_tf32, 90, needs, cost, 1, 384, 226, 128, n, 32)
#define PARTS(name, entry, needs, cost, n)                                                         \
    OPS(name, #entry, "_f32", F32_TENSOR, 14_parts, 90, needs, cost, 1, 384, 226, 128, n, 64)
#define ASYNC(name, entry, cost, threads, kib, n)                                                  \
    HALVES(name, entry, 6_async, 80, ALIGNED, cost, 0, threads, kib, 128, n, 64)                   \
    OPS(name, #entry, "_tf32", TF32, 7_tf32, 80, ALIGNED, cost, 0, threads, kib, 128, n, 32)
#define TENSOR(name, entry, image, cost, kib, m, n, k)                                             \
    ROW(name, #entry "_f16", F16, ANY_OP, image, 80, 0, cost, 0, 128, kib, m, n, k)                \
    ROW(name, #entry "_bf16", BF16, ANY_OP, image, 80, 0, cost, 0, 128, kib, m, n, k)              \
    ROW(name, #entry "_tf32", TF32, ANY_OP, image, 80, 0, cost, 0, 128, kib, m, n, (k) / 2)
#define SHORT(name, entry, image, capability, cost, ...)                                           \
    ROW(name, #entry "_nt", ALL_FLOATS, NT, image, capability, ALIGNED, cost, 0, __VA_ARGS__)
#define EACH(name, entry, image, capability, cost, ...)                                            \
    OPS(name, #entry, "", ALL_FLOATS, image, capability, ALIGNED, cost, 0, __VA_ARGS__)
#define FLOATS(name, entry, image, threads, ...)                                                   \
    ROW(name, #entry "_f32", ALL_FLOATS, ANY_OP, image, 75, 0, ALWAYS, 0, threads, 0, __VA_ARGS__)
#define EVERY(name, entry, image, threads, ...)                                                    \
    FLOATS(name, entry, image, threads, __VA_ARGS__)                                               \
    ROW(name, #entry "_f16", F16, ANY_OP, image, 75, 0, ALWAYS, 0, threads, 0, __VA_ARGS__)        \
    ROW(name, #entry "_bf16", BF16, ANY_OP, image, 75, 0, ALWAYS, 0, threads, 0, __VA_ARGS__)
/* clang-format on */

static const struct kn_variant rows[] = {
#include "gemm_rows.def"
};

const struct kn_variants kn_gemm_variants = {"gemm", rows, sizeof rows / sizeof rows[0]};

#define SUM(type)                                                                                  \
    {                                                                                              \
        .name = "sum", .entry = "gemm_sum_" #type, .images = kn_images_gemm_8_sum,                 \
        .compute_capability_min = 75, .threads = 128                                               \
    }
const struct kn_variant kn_gemm_sum[KN_TYPES] = {
    [KN_F32] = SUM(f32), [KN_F16] = SUM(f16), [KN_BF16] = SUM(bf16)};
