/*
 * The host's side of attention over packed sequences, and the table of its kernels.
 */
#include "attention/packed/attention_packed.h"

#include "attention/forward/attention_maps.h"
#include "attention/forward/attention_tensor_shape.h"
#include "attention/packed/attention_packed_arguments.h"
#include "core/check.h"

KN_IMAGES(attention_packed_1_naive);
KN_IMAGES(attention_packed_2_tensor);
KN_IMAGES(attention_packed_3_hopper);
KN_IMAGES(attention_packed_defects);

enum { GRID_YZ_MAX = 65535, NAIVE_ROWS = 4 };

/* ---- the table ------------------------------------------------------------------------------- */

/* What a kernel requires besides type and head size: any, aligned rows, and maps of the rows of all
 * sequences. */
enum { ANY = 0, ALIGNED = 1, MAPS = 2 };

static const char *packed_refuses(const struct kn_variant *row, const void *of) {
    const struct attention_problem *problem = of;
    const char *why = kn_types_refuse(row->types, problem->attention->type);
    if (why != NULL) return why;
    if (row->size == ANY) return NULL;
    if (row->needs == MAPS) return attention_maps_refuse(problem, row->size);
    if (problem->attention->head_size != row->size) return "heads are of another size";
    return problem->is_aligned ? NULL : "a row does not begin at a multiple of 16 bytes";
}

/* Name, entry point, image, least compute capability, type, elements of a head, what else the
 * problem must be, threads, bytes of dynamic shared memory, rows of a block (0: a warp each). */
#define TENSOR(ROW, type, TYPE, d)                                                                 \
    ROW(tensor, tensor_##type##_##d, 2_tensor, 80, TYPE, d, ALIGNED, 128,                          \
        ATTENTION_TENSOR_BYTES(d), ATTENTION_TENSOR_ROWS(d))
#define HOPPER(ROW, entry, image, TYPE, d)                                                         \
    ROW(wgmma, entry, image, 90, TYPE, d, MAPS, (d) == 64 ? 512 : 384, ATTENTION_HOPPER_BYTES(d),  \
        ATTENTION_HOPPER_ROWS(d))
#define PACKED(ROW)                                                                                \
    HOPPER(ROW, wgmma_f16_64, 3_hopper, F16, 64)                                                   \
    HOPPER(ROW, wgmma_f16_128, 3_hopper, F16, 128)                                                 \
    HOPPER(ROW, wgmma_f16_256, 3_hopper, F16, 256)                                                 \
    HOPPER(ROW, wgmma_bf16_64, 3_hopper, BF16, 64)                                                 \
    HOPPER(ROW, wgmma_bf16_128, 3_hopper, BF16, 128)                                               \
    HOPPER(ROW, wgmma_bf16_256, 3_hopper, BF16, 256)                                               \
    TENSOR(ROW, f16, F16, 64)                                                                      \
    TENSOR(ROW, f16, F16, 96)                                                                      \
    TENSOR(ROW, f16, F16, 128)                                                                     \
    TENSOR(ROW, f16, F16, 256)                                                                     \
    TENSOR(ROW, bf16, BF16, 64)                                                                    \
    TENSOR(ROW, bf16, BF16, 96)                                                                    \
    TENSOR(ROW, bf16, BF16, 128)                                                                   \
    TENSOR(ROW, bf16, BF16, 256)                                                                   \
    ROW(naive, naive_f32, 1_naive, 75, F32, ANY, ANY, 32, 0, 0)                                    \
    ROW(naive, naive_f16, 1_naive, 75, F16, ANY, ANY, 32, 0, 0)                                    \
    ROW(naive, naive_bf16, 1_naive, 75, BF16, ANY, ANY, 32, 0, 0)

#define VARIANT(name_, entry_, image, capability, type, head_size, serves, threads_, bytes, rows)  \
    {.name = #name_,                                                                               \
     .entry = "attention_packed_" #entry_,                                                         \
     .images = kn_images_attention_packed_##image,                                                 \
     .compute_capability_min = capability,                                                         \
     .types = 1 << KN_##type,                                                                      \
     .needs = serves,                                                                              \
     .size = head_size,                                                                            \
     .refuse = packed_refuses,                                                                     \
     .threads = threads_,                                                                          \
     .shared_bytes = bytes,                                                                        \
     .tile = {rows},                                                                               \
     .cluster = (serves) == MAPS ? 1 : 0},
static const struct kn_variant variants[] = {PACKED(VARIANT)};

const struct kn_variants kn_attention_packed_variants = {
    "attention over packed sequences", variants, sizeof variants / sizeof variants[0]};

#define DEFECT(which)                                                                              \
    {                                                                                              \
        .name = #which, .entry = "attention_packed_" #which,                                       \
        .images = kn_images_attention_packed_defects, .compute_capability_min = 90,                \
        .types = 1 << KN_F16, .needs = MAPS, .size = 64, .refuse = packed_refuses, .threads = 512, \
        .shared_bytes = ATTENTION_HOPPER_BYTES(64), .tile = {ATTENTION_HOPPER_ROWS(64)},           \
        .cluster = 1                                                                               \
    }
static const struct kn_variant defects[] = {DEFECT(next_key_seen), DEFECT(next_values_kept),
                                            DEFECT(next_rows_written), DEFECT(next_lse_written)};
const struct kn_variants kn_attention_packed_defects = {
    "defects of attention over packed sequences", defects, sizeof defects / sizeof defects[0]};

/* ---- checks ---------------------------------------------------------------------------------- */

/* The rows of all sequences as one problem: for its checks, addresses and strides. */
static struct kn_attention whole_of(const struct kn_attention_packed *p) {
    struct kn_attention whole = p->attention;
    whole.batch = 1, whole.q_length = p->q_rows, whole.kv_length = p->kv_rows;
    whole.q.batch_stride = whole.k.batch_stride = 0;
    whole.v.batch_stride = whole.out.batch_stride = 0;
    whole.workspace = NULL, whole.variant = NULL, whole.variants = NULL;
    return whole;
}

/* `written` is out or lse, from begin to end. */
static tol_status check_apart(const char *written, CUdeviceptr begin, CUdeviceptr end,
                              const char *name, const struct tol_buffer *begins, size_t bytes) {
    tol_status status = TOL_OK;
    const CUdeviceptr at = tol_buffer_address(begins);
    TOL_CHECK(end <= at || at + bytes <= begin, TOL_INVALID_ARGUMENT, "%s overlaps %s", written,
              name);
out:
    return status;
}

static tol_status check_begins(const struct kn_attention_packed *p,
                               const struct attention_arguments *x) {
    tol_status status = TOL_OK;
    const struct tol_buffer *const both[] = {p->q_begins, p->kv_begins};
    static const char *const names[] = {"q_begins", "kv_begins"};
    const size_t bytes = (p->attention.batch + 1) * sizeof(int32_t);
    const size_t rows = p->attention.heads * p->q_rows;
    for (int i = 0; i < 2; i++) {
        TOL_CHECK(both[i] != NULL, TOL_INVALID_ARGUMENT, "%s is missing", names[i]);
        TOL_CHECK(bytes <= tol_buffer_bytes(both[i]), TOL_OUT_OF_RANGE,
                  "%s is %zu numbers, and its buffer has %zu bytes", names[i],
                  p->attention.batch + 1, tol_buffer_bytes(both[i]));
        const struct tol_buffer *out = p->attention.out.buffer;
        TOL_TRY(check_apart("out", tol_buffer_address(out),
                            tol_buffer_address(out) + tol_buffer_bytes(out), names[i], both[i],
                            bytes));
        if (x->lse == 0) continue;
        TOL_TRY(
            check_apart("lse", x->lse, x->lse + rows * sizeof(float), names[i], both[i], bytes));
    }
out:
    return status;
}

static tol_status check(const struct kn_attention_packed *p, const struct kn_attention *whole,
                        struct attention_problem *problem) {
    tol_status status = TOL_OK;
    const struct kn_attention *x = &p->attention;
    TOL_TRY(attention_check(whole, problem));
    TOL_CHECK(x->batch <= GRID_YZ_MAX, TOL_OVER_LIMIT, "%zu sequences", x->batch);
    TOL_CHECK(x->q_length <= p->q_rows && x->kv_length <= p->kv_rows, TOL_OUT_OF_RANGE,
              "a sequence of %zu rows and %zu keys, of %zu and %zu in all", x->q_length,
              x->kv_length, p->q_rows, p->kv_rows);
    if (x->batch > 0 && x->heads > 0 && p->q_rows > 0) {
        TOL_TRY(check_begins(p, &problem->arguments));
    }
out:
    return status;
}

/* ---- the call -------------------------------------------------------------------------------- */

tol_status kn_attention_packed(struct kn_kernels *kernels, struct tol_stream *stream,
                               const struct kn_attention_packed *p) {
    tol_status status = TOL_OK;
    const struct kn_variant *variant = NULL;
    const struct tol_kernel *kernel = NULL;
    struct attention_problem problem = {0};
    TOL_CHECK(kernels != NULL && stream != NULL && p != NULL, TOL_INVALID_ARGUMENT,
              "attention over packed sequences needs a set of kernels, a stream and a problem");
    const struct kn_attention *x = &p->attention, whole = whole_of(p);
    TOL_TRY(check(p, &whole, &problem));
    if (x->batch == 0 || x->heads == 0 || x->q_length == 0) return TOL_OK;
    problem.has_maps = kn_tensor_map_has(kn_kernels_context(kernels));
    TOL_TRY(kn_kernels_pick(kernels,
                            p->variants != NULL ? p->variants : &kn_attention_packed_variants,
                            p->variant, &problem, &variant, &kernel));
    struct attention_packed_arguments arguments = {.x = problem.arguments,
                                                   .q_begins = tol_buffer_address(p->q_begins),
                                                   .kv_begins = tol_buffer_address(p->kv_begins),
                                                   .q_rows = (int)p->q_rows,
                                                   .kv_rows = (int)p->kv_rows};
    arguments.x.batch = (int)x->batch, arguments.x.q_length = (int)x->q_length;
    arguments.x.kv_length = (int)x->kv_length;
    const size_t rows = variant->tile[0] != 0 ? variant->tile[0] : NAIVE_ROWS;
    const struct tol_launch_shape shape = {.grid_x = (unsigned)((x->q_length + rows - 1) / rows),
                                           .grid_y = (unsigned)x->heads,
                                           .grid_z = (unsigned)x->batch,
                                           .block_x = variant->threads,
                                           .block_y = variant->tile[0] != 0 ? 1 : NAIVE_ROWS,
                                           .block_z = 1,
                                           .shared_bytes = variant->shared_bytes};
    status = attention_maps_launch(kernels, stream, variant, kernel, shape, &problem, false,
                                   &arguments, sizeof arguments);
out:
    return status;
}
