/*
 * What is copied, and where to.
 */
#include "gemm_pack.h"

#include "core/check.h"
#include "gemm_pack_arguments.h"
#include "operand.h"

KN_IMAGES(gemm_11_pack);

enum { PIECE_BYTES = 16, THREADS = 256, BLOCKS_MAX = 4096, TURN = 32, PARTS = 3 };

#define PACKING(which)                                                                             \
    {                                                                                              \
        .name = "pack", .entry = "gemm_pack_" #which, .images = kn_images_gemm_11_pack,            \
        .compute_capability_min = 75, .threads = THREADS                                           \
    }
static const struct kn_variant packing_16 = PACKING(16), packing_32 = PACKING(32),
                               turning_32 = PACKING(turned_32), splitting = PACKING(parts);

/* A copy of a stored matrix, or of its transpose, from element `at` of the workspace on. */
struct gemm_copy {
    bool is_needed, is_turned;
    size_t rows, columns, leading, matrices, parts, at;
};

static size_t gemm_pack_element_of(const struct gemm_problem *problem) {
    const enum kn_gemm_precision precision = problem->gemm->precision;
    return kn_type_bytes(precision == KN_GEMM_F32_TENSOR ? KN_BF16 : kn_gemm_input_type(precision));
}

static struct gemm_copy gemm_pack_copy_of(bool is_needed, int rows, int columns, long long stride,
                                          int batch, size_t piece) {
    const size_t wide = (size_t)columns + piece - 1;
    return (struct gemm_copy){.is_needed = is_needed,
                              .rows = (size_t)rows,
                              .columns = (size_t)columns,
                              .leading = wide - wide % piece,
                              .matrices = stride != 0 ? (size_t)batch : 1};
}

int gemm_pack_parts(const struct kn_gemm *gemm) {
    return gemm->precision == KN_GEMM_F32_TENSOR ? PARTS : 1;
}

bool gemm_pack_turns_b(const struct kn_gemm *gemm) {
    return gemm->precision == KN_GEMM_TF32 && gemm->transpose_a && !gemm->transpose_b;
}

/* false: the size overflows. */
static bool copies_plan(const struct gemm_problem *problem, struct gemm_copy *a,
                        struct gemm_copy *b, size_t *elements) {
    const struct gemm_arguments *x = &problem->arguments;
    size_t end = 0;
    const size_t piece = PIECE_BYTES / gemm_pack_element_of(problem);
    const size_t parts = (size_t)gemm_pack_parts(problem->gemm);
    const bool turns_b = gemm_pack_turns_b(problem->gemm),
               a_is_needed = parts > 1 || !problem->a_is_aligned,
               b_is_needed = parts > 1 || turns_b || !problem->b_is_aligned;
    *a = x->transpose_a ? gemm_pack_copy_of(a_is_needed, x->k, x->m, x->batch_a, x->batch, piece)
                        : gemm_pack_copy_of(a_is_needed, x->m, x->k, x->batch_a, x->batch, piece);
    *b = x->transpose_b || turns_b
             ? gemm_pack_copy_of(b_is_needed, x->n, x->k, x->batch_b, x->batch, piece)
             : gemm_pack_copy_of(b_is_needed, x->k, x->n, x->batch_b, x->batch, piece);
    b->is_turned = turns_b;
    struct gemm_copy *const both[] = {a, b};
    for (int i = 0; i < 2; i++) {
        struct gemm_copy *copy = both[i];
        copy->parts = parts;
        if (!copy->is_needed) continue;
        copy->at = end;
        /* Dimensions and batches are below 2^31, so the inner products do not overflow. */
        if (!kn_add_product(&end, copy->rows * copy->leading, copy->matrices * parts)) return false;
    }
    *elements = end;
    return end <= SIZE_MAX / gemm_pack_element_of(problem);
}

size_t gemm_pack_bytes(const struct gemm_problem *problem) {
    struct gemm_copy a, b;
    size_t elements = 0;
    return copies_plan(problem, &a, &b, &elements) ? elements * gemm_pack_element_of(problem)
                                                   : SIZE_MAX;
}

static tol_status copy_queue(struct kn_kernels *kernels, struct tol_stream *stream,
                             const struct gemm_copy *copy, size_t element, CUdeviceptr workspace,
                             CUdeviceptr *address, long long *leading, long long *stride) {
    tol_status status = TOL_OK;
    const struct tol_kernel *kernel = NULL;
    const struct kn_variant *packing = copy->parts > 1   ? &splitting
                                       : copy->is_turned ? &turning_32
                                       : element == 2    ? &packing_16
                                                         : &packing_32;
    if (!copy->is_needed) return TOL_OK;
    const size_t pieces = copy->rows * (copy->leading / (PIECE_BYTES / element));
    const size_t turns = ((copy->rows + TURN - 1) / TURN) * ((copy->columns + TURN - 1) / TURN);
    const size_t blocks = copy->is_turned ? turns : (pieces + THREADS - 1) / THREADS;
    const struct tol_launch_shape shape = {
        .grid_x = (unsigned)(blocks < BLOCKS_MAX ? blocks : BLOCKS_MAX),
        .grid_y = (unsigned)copy->matrices,
        .grid_z = 1,
        .block_x = THREADS,
        .block_y = 1,
        .block_z = 1};
    struct gemm_pack_arguments packed = {.from = *address,
                                         .to = workspace + copy->at * element,
                                         .from_leading = *leading,
                                         .from_stride = *stride,
                                         .to_leading = (long long)copy->leading,
                                         .to_stride = (long long)(copy->rows * copy->leading),
                                         .rows = (int)copy->rows,
                                         .columns = (int)copy->columns};
    const unsigned bytes = sizeof packed;
    void *value = &packed;
    TOL_TRY(kn_kernels_find(kernels, packing, &kernel));
    TOL_TRY(tol_launch(stream, kernel, shape, (struct tol_arguments){1, &value, &bytes}));
    *address = packed.to, *leading = packed.to_leading;
    if (*stride != 0 || copy->parts > 1) *stride = packed.to_stride;
out:
    return status;
}

tol_status gemm_pack(struct kn_kernels *kernels, struct tol_stream *stream,
                     const struct gemm_problem *problem, struct gemm_arguments *x) {
    tol_status status = TOL_OK;
    struct gemm_copy a, b;
    size_t elements = 0;
    CUdeviceptr workspace = 0;
    if (problem->gemm->workspace != NULL) workspace = tol_buffer_address(problem->gemm->workspace);
    TOL_CHECK(copies_plan(problem, &a, &b, &elements), TOL_OVER_LIMIT,
              "copies of a and b overflow");
    TOL_TRY(copy_queue(kernels, stream, &a, gemm_pack_element_of(problem), workspace, &x->a,
                       &x->lda, &x->batch_a));
    TOL_TRY(copy_queue(kernels, stream, &b, gemm_pack_element_of(problem), workspace, &x->b,
                       &x->ldb, &x->batch_b));
    if (b.is_turned) x->transpose_b = true;
out:
    return status;
}
