/*
 * The host's side of attention over numbers of 8 bits, and the table of its kernels.
 */
#include "attention/e4m3/attention_e4m3.h"

#include "attention/forward/attention_maps.h"
#include "attention/forward/attention_operand.h"
#include "attention/e4m3/attention_e4m3_arguments.h"
#include "core/check.h"

KN_IMAGES(attention_e4m3_1_naive);
KN_IMAGES(attention_e4m3_2_hopper);
KN_IMAGES(attention_e4m3_defects);

enum { ANY = 0, NAIVE_ROWS = 4 };

/* ---- the table ------------------------------------------------------------------------------- */

static const char *e4m3_refuses(const struct kn_variant *row, const void *of) {
    const struct attention_problem *problem = of;
    if ((row->types & 1U << problem->attention->type) == 0) return "out has another type";
    if (row->size == ANY) return NULL;
    if (problem->attention->head_size % 16 != 0) return "a head is no multiple of 16 bytes";
    return attention_maps_refuse(problem, row->size);
}

/* As E4M3_ROOM of attention_e4m3_hopper.cuh: beside what step 7 needs two tiles of values. */
#define ATTENTION_E4M3_BYTES(d)                                                                    \
    (ATTENTION_HOPPER_BYTES(d) + 2 * ((d) == 256 ? 2 * 64 : 128) * 128 + 1024)

/* Name, entry point, image, least compute capability, type of out, elements of a head, threads,
 * bytes of dynamic shared memory, rows of a block (0: a warp each). */
#define NAIVE(ROW, type, TYPE) ROW(naive, naive_##type, 1_naive, 75, TYPE, ANY, 32, 0, 0)
#define HOPPER(ROW, type, TYPE, d)                                                                 \
    ROW(wgmma, wgmma_##type##_##d, 2_hopper, 90, TYPE, d, (d) == 64 ? 512 : 384,                   \
        ATTENTION_E4M3_BYTES(d), ATTENTION_HOPPER_ROWS(d))
#define E4M3(ROW)                                                                                  \
    HOPPER(ROW, f16, F16, 64)                                                                      \
    HOPPER(ROW, f16, F16, 128)                                                                     \
    HOPPER(ROW, f16, F16, 256)                                                                     \
    HOPPER(ROW, bf16, BF16, 64)                                                                    \
    HOPPER(ROW, bf16, BF16, 128)                                                                   \
    HOPPER(ROW, bf16, BF16, 256)                                                                   \
    NAIVE(ROW, f16, F16)                                                                           \
    NAIVE(ROW, bf16, BF16)

#define VARIANT(name_, entry_, image, capability, type, head_size, threads_, bytes, rows)          \
    {.name = #name_,                                                                               \
     .entry = "attention_e4m3_" #entry_,                                                           \
     .images = kn_images_attention_e4m3_##image,                                                   \
     .compute_capability_min = capability,                                                         \
     .types = 1 << KN_##type,                                                                      \
     .size = head_size,                                                                            \
     .refuse = e4m3_refuses,                                                                       \
     .threads = threads_,                                                                          \
     .shared_bytes = bytes,                                                                        \
     .tile = {rows},                                                                               \
     .cluster = (rows) != 0 ? 1 : 0},
static const struct kn_variant variants[] = {E4M3(VARIANT)};

const struct kn_variants kn_attention_e4m3_variants = {"attention over e4m3", variants,
                                                       sizeof variants / sizeof variants[0]};

#define DEFECT(which)                                                                              \
    {                                                                                              \
        .name = #which, .entry = "attention_e4m3_" #which,                                         \
        .images = kn_images_attention_e4m3_defects, .compute_capability_min = 90,                  \
        .types = 1 << KN_F16, .size = 64, .refuse = e4m3_refuses, .threads = 512,                  \
        .shared_bytes = ATTENTION_E4M3_BYTES(64), .tile = {ATTENTION_HOPPER_ROWS(64)},             \
        .cluster = 1                                                                               \
    }
static const struct kn_variant defects[] = {DEFECT(neighbours_scale), DEFECT(early_bytes),
                                            DEFECT(old_halves)};
const struct kn_variants kn_attention_e4m3_defects = {"defects of attention over e4m3", defects,
                                                      sizeof defects / sizeof defects[0]};

/* ---- checks ---------------------------------------------------------------------------------- */

static tol_status check_scales(const char *name, struct kn_place scales, size_t count,
                               const struct kn_place written[2]) {
    if (scales.address == 0) return TOL_OK; /* all are 1 */
    return attention_operand_check_place(name, scales, count * sizeof(float), sizeof(float),
                                         written);
}

static tol_status check(const struct kn_attention_e4m3 *p, const struct kn_attention *x,
                        struct attention_problem *problem) {
    tol_status status = TOL_OK;
    struct attention_operand out = {.name = "out", .heads = x->heads, .rows = x->q_length};
    TOL_CHECK(x->type == KN_F16 || x->type == KN_BF16, TOL_INVALID_ARGUMENT,
              "out of type %d, which is neither f16 nor bf16", (int)x->type);
    TOL_TRY(attention_check_elements(x, 1, problem));
    TOL_TRY(attention_operand_locate(x, &x->out, &out));
    const size_t rows = x->batch * x->heads * x->q_length;
    const struct kn_place written[2] = {{out.begin, out.end - out.begin},
                                        {problem->arguments.lse, rows * sizeof(float)}};
    const struct kn_place none[2] = {written[0], {0, 0}}, *all = x->lse != NULL ? written : none;
    TOL_TRY(check_scales("q_scales", p->q_scales, x->batch * x->heads, all));
    TOL_TRY(check_scales("k_scales", p->k_scales, x->batch * x->kv_heads, all));
    TOL_TRY(check_scales("v_scales", p->v_scales, x->batch * x->kv_heads, all));
out:
    return status;
}

/* ---- the call -------------------------------------------------------------------------------- */

tol_status kn_attention_e4m3(struct kn_kernels *kernels, struct tol_stream *stream,
                             const struct kn_attention_e4m3 *p) {
    tol_status status = TOL_OK;
    const struct kn_variant *variant = NULL;
    const struct tol_kernel *kernel = NULL;
    struct attention_problem problem = {0};
    TOL_CHECK(kernels != NULL && stream != NULL && p != NULL, TOL_INVALID_ARGUMENT,
              "attention over e4m3 needs a set of kernels, a stream and a problem");
    struct kn_attention x = p->attention;
    x.workspace = NULL, x.variant = NULL, x.variants = NULL;
    TOL_TRY(check(p, &x, &problem));
    if (x.batch == 0 || x.heads == 0 || x.q_length == 0) return TOL_OK;
    problem.has_maps = kn_tensor_map_has(kn_kernels_context(kernels));
    TOL_TRY(kn_kernels_pick(kernels,
                            p->variants != NULL ? p->variants : &kn_attention_e4m3_variants,
                            p->variant, &problem, &variant, &kernel));
    struct attention_e4m3_arguments arguments = {.x = problem.arguments,
                                                 .q_scales = p->q_scales.address,
                                                 .k_scales = p->k_scales.address,
                                                 .v_scales = p->v_scales.address};
    const size_t rows = variant->tile[0] != 0 ? variant->tile[0] : NAIVE_ROWS;
    const struct tol_launch_shape shape = {.grid_x = (unsigned)((x.q_length + rows - 1) / rows),
                                           .grid_y = (unsigned)x.heads,
                                           .grid_z = (unsigned)x.batch,
                                           .block_x = variant->threads,
                                           .block_y = variant->tile[0] != 0 ? 1 : NAIVE_ROWS,
                                           .block_z = 1,
                                           .shared_bytes = variant->shared_bytes};
    status = attention_maps_launch(kernels, stream, variant, kernel, shape, &problem, true,
                                   &arguments, sizeof arguments);
out:
    return status;
}
