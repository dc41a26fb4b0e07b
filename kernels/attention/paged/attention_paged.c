/*
 * The host's side of attention over paged sequences, and the table of its kernels.
 */
#include "attention/paged/attention_paged.h"

#include "attention/forward/attention_operand.h"
#include "attention/forward/attention_tensor_shape.h"
#include "attention/paged/attention_paged_maps.h"
#include "core/check.h"

KN_IMAGES(attention_paged_1_naive);
KN_IMAGES(attention_paged_2_tensor);
KN_IMAGES(attention_paged_3_hopper);
KN_IMAGES(attention_paged_defects);

enum { GRID_YZ_MAX = 65535, LENGTH_MAX = INT32_MAX - 256, NAIVE_ROWS = 4, PIECE = 8 };

/* ---- the table ------------------------------------------------------------------------------- */

/* What a kernel requires besides type and head size: any, aligned rows, and maps of the pool. */
enum { ANY = 0, ALIGNED = 1, MAPS = 2 };

static const char *paged_refuses(const struct kn_variant *row, const void *of) {
    const struct attention_paged_problem *problem = of;
    const char *why = kn_types_refuse(row->types, problem->whole.type);
    if (why != NULL) return why;
    if (row->needs == ANY) return NULL;
    if (row->needs == MAPS) return attention_paged_maps_refuse(problem, row->size);
    if (problem->whole.head_size != row->size) return "heads are of another size";
    return problem->rows.is_aligned && problem->is_aligned
               ? NULL
               : "a row does not begin at a multiple of 16 bytes";
}

/* Name, entry point, image, least compute capability, type, elements of a head, what else the
 * problem must be, threads, bytes of dynamic shared memory, rows of a block (0: a warp each). */
#define TENSOR(ROW, type, TYPE, d)                                                                 \
    ROW(tensor, tensor_##type##_##d, 2_tensor, 80, TYPE, d, ALIGNED, 128,                          \
        ATTENTION_TENSOR_BYTES(d), ATTENTION_TENSOR_ROWS(d))
#define NAIVE(ROW, type, TYPE) ROW(naive, naive_##type, 1_naive, 75, TYPE, ANY, ANY, 32, 0, 0)
#define HOPPER(ROW, type, TYPE, d)                                                                 \
    ROW(wgmma, wgmma_##type##_##d, 3_hopper, 90, TYPE, d, MAPS, (d) == 64 ? 512 : 384,             \
        ATTENTION_HOPPER_BYTES(d), ATTENTION_HOPPER_ROWS(d))
#define PAGED(ROW)                                                                                 \
    HOPPER(ROW, f16, F16, 64)                                                                      \
    HOPPER(ROW, f16, F16, 128)                                                                     \
    HOPPER(ROW, f16, F16, 256)                                                                     \
    HOPPER(ROW, bf16, BF16, 64)                                                                    \
    HOPPER(ROW, bf16, BF16, 128)                                                                   \
    HOPPER(ROW, bf16, BF16, 256)                                                                   \
    TENSOR(ROW, f16, F16, 64)                                                                      \
    TENSOR(ROW, f16, F16, 96)                                                                      \
    TENSOR(ROW, f16, F16, 128)                                                                     \
    TENSOR(ROW, f16, F16, 256)                                                                     \
    TENSOR(ROW, bf16, BF16, 64)                                                                    \
    TENSOR(ROW, bf16, BF16, 96)                                                                    \
    TENSOR(ROW, bf16, BF16, 128)                                                                   \
    TENSOR(ROW, bf16, BF16, 256)                                                                   \
    NAIVE(ROW, f32, F32)                                                                           \
    NAIVE(ROW, f16, F16)                                                                           \
    NAIVE(ROW, bf16, BF16)

#define VARIANT(name_, entry_, image, capability, type, head_size, serves, threads_, bytes, rows)  \
    {.name = #name_,                                                                               \
     .entry = "attention_paged_" #entry_,                                                          \
     .images = kn_images_attention_paged_##image,                                                  \
     .compute_capability_min = capability,                                                         \
     .types = 1 << KN_##type,                                                                      \
     .needs = serves,                                                                              \
     .size = head_size,                                                                            \
     .refuse = paged_refuses,                                                                      \
     .threads = threads_,                                                                          \
     .shared_bytes = bytes,                                                                        \
     .tile = {rows},                                                                               \
     .cluster = (serves) == MAPS ? 1 : 0},
static const struct kn_variant variants[] = {PAGED(VARIANT)};

const struct kn_variants kn_attention_paged_variants = {"attention over paged sequences", variants,
                                                        sizeof variants / sizeof variants[0]};

#define DEFECT(which)                                                                              \
    {                                                                                              \
        .name = #which, .entry = "attention_paged_" #which,                                        \
        .images = kn_images_attention_paged_defects, .compute_capability_min = 90,                 \
        .types = 1 << KN_F16, .needs = MAPS, .size = 64, .refuse = paged_refuses, .threads = 512,  \
        .shared_bytes = ATTENTION_HOPPER_BYTES(64), .tile = {ATTENTION_HOPPER_ROWS(64)},           \
        .cluster = 1                                                                               \
    }
static const struct kn_variant defects[] = {DEFECT(next_page),         DEFECT(old_page),
                                            DEFECT(position_too_many), DEFECT(values_kept),
                                            DEFECT(early_values),      DEFECT(lost_consumer)};
const struct kn_variants kn_attention_paged_defects = {"defects of attention over paged sequences",
                                                       defects, sizeof defects / sizeof defects[0]};

/* ---- checks ---------------------------------------------------------------------------------- */

static tol_status check_part(const struct kn_attention_paged *p, const char *name,
                             const struct kn_paged_part *part, struct attention_strides *strides,
                             long long *at, long long *piece) {
    enum { STRIDE_MAX = 1 << 30 };
    tol_status status = TOL_OK;
    const size_t element = kn_type_bytes(p->attention.type), size = p->attention.head_size;
    TOL_CHECK(part->at % element == 0 && part->at <= UINT32_MAX && part->head_stride < STRIDE_MAX &&
                  part->row_stride < STRIDE_MAX && part->piece_stride < STRIDE_MAX,
              TOL_INVALID_ARGUMENT,
              "%s at byte %zu of a page, heads, rows and pieces %zu, %zu and %zu elements apart",
              name, part->at, part->head_stride, part->row_stride, part->piece_stride);
    *strides =
        (struct attention_strides){0, (long long)part->head_stride, (long long)part->row_stride};
    if (part->head_stride == 0 && part->row_stride == 0) {
        strides->row = (long long)size;
        strides->head = (long long)(p->page_positions * size);
    }
    *at = (long long)part->at;
    *piece = part->piece_stride != 0 ? (long long)part->piece_stride : PIECE;
out:
    return status;
}

static bool is_aligned(const struct kn_attention_paged *p, const struct attention_strides *strides,
                       long long at, long long piece) {
    const long long element = (long long)kn_type_bytes(p->attention.type);
    return at % 16 == 0 && strides->row * element % 16 == 0 && strides->head * element % 16 == 0 &&
           piece * element % 16 == 0;
}

static tol_status check_places(const struct kn_attention_paged *p,
                               const struct attention_paged_problem *problem) {
    tol_status status = TOL_OK;
    const struct kn_attention *x = &p->attention;
    const size_t numbers = x->batch * sizeof(int32_t);
    struct attention_operand out = {.name = "out", .heads = x->heads, .rows = p->q_rows};
    TOL_TRY(attention_operand_locate(&problem->whole, &problem->whole.out, &out));
    const struct kn_place written[2] = {
        {out.begin, out.end - out.begin},
        {problem->rows.arguments.lse,
         problem->rows.arguments.lse != 0 ? x->heads * p->q_rows * sizeof(float) : 0}};
    TOL_TRY(attention_operand_check_place("q_begins", p->q_begins, numbers + sizeof(int32_t), 4,
                                          written));
    TOL_TRY(attention_operand_check_place("positions", p->positions, numbers, 4, written));
    TOL_TRY(attention_operand_check_place("slots", p->slots, numbers, 4, written));
    TOL_TRY(attention_operand_check_place("tables", p->tables, p->pages_max * sizeof(uint64_t), 8,
                                          written));
    if (p->pool.address != 0) {
        TOL_TRY(attention_operand_check_place("pool", p->pool, p->pool.bytes, 1, written));
    }
out:
    return status;
}

static int shift_of(size_t page_positions) {
    int shift = 0;
    while ((size_t)1 << shift < page_positions) shift++;
    return shift;
}

/* The rows of all sequences as one problem without keys: for its checks, addresses and strides. */
static tol_status check_rows(const struct kn_attention_paged *p,
                             struct attention_paged_problem *problem) {
    tol_status status = TOL_OK;
    const struct kn_attention *x = &p->attention;
    struct kn_attention *whole = &problem->whole;
    *whole = *x;
    whole->batch = 1, whole->q_length = p->q_rows, whole->kv_length = 0;
    whole->q.batch_stride = whole->out.batch_stride = 0;
    whole->workspace = NULL, whole->variant = NULL, whole->variants = NULL;
    TOL_TRY(attention_check(whole, &problem->rows));
    TOL_CHECK(x->batch <= GRID_YZ_MAX && x->kv_length < LENGTH_MAX, TOL_OVER_LIMIT,
              "%zu sequences, and %zu positions of the longest", x->batch, x->kv_length);
    TOL_CHECK(x->q_length <= p->q_rows, TOL_OUT_OF_RANGE, "a sequence of %zu rows, of %zu in all",
              x->q_length, p->q_rows);
    TOL_CHECK(p->page_positions >= KN_PAGE_POSITIONS_MIN &&
                  p->page_positions <= KN_PAGE_POSITIONS_MAX &&
                  (p->page_positions & (p->page_positions - 1)) == 0,
              TOL_INVALID_ARGUMENT, "a page of %zu positions, no power of two from %d to %d",
              p->page_positions, KN_PAGE_POSITIONS_MIN, KN_PAGE_POSITIONS_MAX);
    TOL_CHECK(p->pages_max <= INT32_MAX && x->kv_length <= p->pages_max * p->page_positions,
              TOL_OUT_OF_RANGE, "a sequence of %zu positions, and %zu pages of %zu", x->kv_length,
              p->pages_max, p->page_positions);
    whole->kv_length = x->kv_length; /* what variants may refuse */
out:
    return status;
}

static tol_status check(const struct kn_attention_paged *p,
                        struct attention_paged_problem *problem) {
    tol_status status = TOL_OK;
    const struct kn_attention *x = &p->attention;
    struct attention_arguments *rows = &problem->rows.arguments;
    problem->paged = p;
    TOL_TRY(check_rows(p, problem));
    struct attention_paged_arguments *a = &problem->arguments;
    TOL_TRY(check_part(p, "k", &p->k, &rows->k_strides, &a->k_at, &a->k_piece));
    TOL_TRY(check_part(p, "v", &p->v, &rows->v_strides, &a->v_at, &a->v_piece));
    problem->is_aligned = is_aligned(p, &rows->k_strides, a->k_at, a->k_piece) &&
                          is_aligned(p, &rows->v_strides, a->v_at, a->v_piece);
    if (x->batch == 0 || x->heads == 0 || p->q_rows == 0) goto out;
    TOL_TRY(check_places(p, problem));
    rows->kv_length = (int)x->kv_length;
    rows->window = x->window != 0 && x->window < x->kv_length ? (int)x->window : rows->kv_length;
    a->x = *rows;
    a->x.batch = (int)x->batch, a->x.q_length = (int)x->q_length;
    a->q_begins = p->q_begins.address, a->positions = p->positions.address;
    a->slots = p->slots.address, a->tables = p->tables.address;
    a->pages_max = (long long)p->pages_max;
    a->pool = p->pool.address, a->units = attention_paged_units(problem);
    a->q_rows = (int)p->q_rows, a->page_shift = shift_of(p->page_positions);
out:
    return status;
}

/* ---- the call -------------------------------------------------------------------------------- */

static tol_status launch(struct kn_kernels *kernels, struct tol_stream *stream,
                         const struct kn_variant *variant, const struct tol_kernel *kernel,
                         struct tol_launch_shape shape, struct attention_paged_problem *problem) {
    tol_status status = TOL_OK;
    struct attention_maps maps;
    void *values[] = {&maps.q, &maps.k, &maps.v, &maps.out, &problem->arguments};
    const unsigned bytes[] = {sizeof maps.q, sizeof maps.k, sizeof maps.v, sizeof maps.out,
                              sizeof problem->arguments};
    const unsigned skipped = variant->cluster != 0 ? 0 : 4; /* the maps */
    if (skipped == 0) {
        TOL_TRY(attention_paged_maps_make(kn_kernels_context(kernels), problem, &maps));
    }
    status = tol_launch(stream, kernel, shape,
                        (struct tol_arguments){5 - skipped, values + skipped, bytes + skipped});
out:
    return status;
}

tol_status kn_attention_paged(struct kn_kernels *kernels, struct tol_stream *stream,
                              const struct kn_attention_paged *p) {
    tol_status status = TOL_OK;
    const struct kn_variant *variant = NULL;
    const struct tol_kernel *kernel = NULL;
    struct attention_paged_problem problem = {.paged = p};
    TOL_CHECK(kernels != NULL && stream != NULL && p != NULL, TOL_INVALID_ARGUMENT,
              "attention over paged sequences needs a set of kernels, a stream and a problem");
    const struct kn_attention *x = &p->attention;
    TOL_TRY(check(p, &problem));
    if (x->batch == 0 || x->heads == 0 || x->q_length == 0) return TOL_OK;
    problem.rows.has_maps = kn_tensor_map_has(kn_kernels_context(kernels));
    TOL_TRY(kn_kernels_pick(kernels,
                            p->variants != NULL ? p->variants : &kn_attention_paged_variants,
                            p->variant, &problem, &variant, &kernel));
    const size_t rows = variant->tile[0] != 0 ? variant->tile[0] : NAIVE_ROWS;
    const struct tol_launch_shape shape = {.grid_x = (unsigned)((x->q_length + rows - 1) / rows),
                                           .grid_y = (unsigned)x->heads,
                                           .grid_z = (unsigned)x->batch,
                                           .block_x = variant->threads,
                                           .block_y = variant->tile[0] != 0 ? 1 : NAIVE_ROWS,
                                           .block_z = 1,
                                           .shared_bytes = variant->shared_bytes};
    status = launch(kernels, stream, variant, kernel, shape, &problem);
out:
    return status;
}
