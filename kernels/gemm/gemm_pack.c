/*
 * What is copied, where to, and whether that pays.
 */
#include "gemm_pack.h"

#include "core/check.h"
#include "gemm_pack_arguments.h"
#include "operand.h"

KN_IMAGES(gemm_11_pack);

enum { ELEMENT = 2, PIECE = 8, THREADS = 256, BLOCKS_MAX = 4096 };

static const struct kn_variant packing = {.name = "pack",
                                          .entry = "gemm_pack_16",
                                          .images = kn_images_gemm_11_pack,
                                          .compute_capability_min = 75,
                                          .threads = THREADS};

/* A stored matrix and its copy, which lies behind `at` elements of the workspace. */
struct copy {
    bool is_needed;
    size_t rows, columns, leading, matrices, at;
};

static struct copy copy_of(bool is_aligned, int rows, int columns, long long stride, int batch) {
    const size_t wide = (size_t)columns + PIECE - 1;
    return (struct copy){.is_needed = !is_aligned,
                         .rows = (size_t)rows,
                         .columns = (size_t)columns,
                         .leading = wide - wide % PIECE,
                         .matrices = stride != 0 ? (size_t)batch : 1};
}

/* false: the size overflows. */
static bool plan(const struct gemm_problem *problem, struct copy *a, struct copy *b,
                 size_t *elements) {
    const struct gemm_arguments *x = &problem->arguments;
    size_t end = 0;
    *a = x->transpose_a ? copy_of(problem->a_is_aligned, x->k, x->m, x->batch_a, x->batch)
                        : copy_of(problem->a_is_aligned, x->m, x->k, x->batch_a, x->batch);
    *b = x->transpose_b ? copy_of(problem->b_is_aligned, x->n, x->k, x->batch_b, x->batch)
                        : copy_of(problem->b_is_aligned, x->k, x->n, x->batch_b, x->batch);
    struct copy *const both[] = {a, b};
    for (int i = 0; i < 2; i++) {
        struct copy *copy = both[i];
        if (!copy->is_needed) continue;
        copy->at = end;
        /* Dimensions are below 2^31, so the first product does not overflow. */
        if (!kn_add_product(&end, copy->rows * copy->leading, copy->matrices)) return false;
    }
    *elements = end;
    return end <= SIZE_MAX / ELEMENT;
}

size_t gemm_pack_bytes(const struct gemm_problem *problem) {
    struct copy a, b;
    size_t elements = 0;
    return plan(problem, &a, &b, &elements) ? elements * ELEMENT : SIZE_MAX;
}

/* Measured on an H200. */
bool gemm_pack_wins(const struct gemm_problem *problem) {
    const double gathered = 65e12, hopper = 600e12, copied = 3e12, launches = 5e-6;
    const struct gemm_arguments *x = &problem->arguments;
    const double all = 2.0 * x->m * x->n * x->k * x->batch;
    const double bytes = 2 * (double)gemm_pack_bytes(problem);
    return all / hopper + bytes / copied + launches < all / gathered;
}

static tol_status queue(struct kn_kernels *kernels, struct tol_stream *stream,
                        const struct copy *copy, CUdeviceptr workspace, CUdeviceptr *address,
                        long long *leading, long long *stride) {
    tol_status status = TOL_OK;
    const struct tol_kernel *kernel = NULL;
    if (!copy->is_needed) return TOL_OK;
    const size_t pieces = copy->rows * copy->leading / PIECE;
    const size_t blocks = (pieces + THREADS - 1) / THREADS;
    const struct tol_launch_shape shape = {
        .grid_x = (unsigned)(blocks < BLOCKS_MAX ? blocks : BLOCKS_MAX),
        .grid_y = (unsigned)copy->matrices,
        .grid_z = 1,
        .block_x = THREADS,
        .block_y = 1,
        .block_z = 1};
    struct gemm_pack_arguments packed = {.from = *address,
                                         .to = workspace + copy->at * ELEMENT,
                                         .from_leading = *leading,
                                         .from_stride = *stride,
                                         .to_leading = (long long)copy->leading,
                                         .to_stride = (long long)(copy->rows * copy->leading),
                                         .rows = (int)copy->rows,
                                         .columns = (int)copy->columns};
    const unsigned bytes = sizeof packed;
    void *value = &packed;
    TOL_TRY(kn_kernels_find(kernels, &packing, &kernel));
    TOL_TRY(tol_launch(stream, kernel, shape, (struct tol_arguments){1, &value, &bytes}));
    *address = packed.to, *leading = packed.to_leading;
    if (*stride != 0) *stride = packed.to_stride;
out:
    return status;
}

tol_status gemm_pack(struct kn_kernels *kernels, struct tol_stream *stream,
                     const struct gemm_problem *problem, struct gemm_arguments *x) {
    tol_status status = TOL_OK;
    struct copy a, b;
    size_t elements = 0;
    CUdeviceptr workspace = 0;
    if (problem->gemm->workspace != NULL) workspace = tol_buffer_address(problem->gemm->workspace);
    TOL_CHECK(plan(problem, &a, &b, &elements), TOL_OVER_LIMIT, "copies of a and b overflow");
    TOL_TRY(queue(kernels, stream, &a, workspace, &x->a, &x->lda, &x->batch_a));
    status = queue(kernels, stream, &b, workspace, &x->b, &x->ldb, &x->batch_b);
out:
    return status;
}
