/*
 * The host's side of argmax, and its oracle.
 */
#include "row/argmax.h"

#include "core/check.h"
#include "row/row_arguments.h"
#include "row/row_variant.h"

#include <math.h>

KN_IMAGES(argmax_1_block);
KN_IMAGES(argmax_2_whole);

enum { WARP = 32, WARP_ROWS = 4, WARP_PIECES = 4, WHOLE_PIECES = 4, WHOLE_THREADS = 512 };

/* clang-format off */
#define WHOLE(type, TYPE, name_, threads_, abreast, pieces)                                        \
    {.name = #name_, .entry = "argmax_whole_" #type, .images = kn_images_argmax_2_whole,           \
     .compute_capability_min = 90, .types = 1 << KN_##TYPE, .needs = KN_ROW_WHOLE, .size = pieces, \
     .refuse = kn_row_refuses, .threads = threads_, .tile = {abreast, 0, 0}},
#define BLOCK(type, TYPE, threads_)                                                                \
    {.name = "block", .entry = "argmax_" #type, .images = kn_images_argmax_1_block,                \
     .compute_capability_min = 75, .types = 1 << KN_##TYPE, .refuse = kn_row_refuses,              \
     .threads = threads_},
static const struct kn_variant variants[] = {
    KN_ROW_EACH(WHOLE, warp, WARP, WARP_ROWS, WARP * WARP_PIECES)
    KN_ROW_EACH(WHOLE, whole, WHOLE_THREADS, 1, 0)
    KN_ROW_EACH(BLOCK, 256)
};
/* clang-format on */
const struct kn_variants kn_argmax_variants = {"argmax", variants,
                                               sizeof variants / sizeof variants[0]};

/* As kn_row_shape, but a block that has a whole row has one thread per four pieces at most. */
static struct tol_launch_shape argmax_shape_of(const struct kn_variant *variant,
                                               const struct kn_row_fit *fit, size_t rows,
                                               const struct tol_device *device) {
    struct tol_launch_shape shape = kn_row_shape(variant, fit, rows, device);
    const size_t threads = (fit->pieces + WHOLE_PIECES - 1) / WHOLE_PIECES;
    if (variant->images == kn_images_argmax_2_whole && threads < shape.block_x) {
        shape.block_x = (unsigned)(threads + WARP - 1) / WARP * WARP;
    }
    return shape;
}

tol_status kn_argmax(struct kn_kernels *kernels, struct tol_stream *stream,
                     const struct kn_argmax *x) {
    tol_status status = TOL_OK;
    const struct kn_variant *variant = NULL;
    const struct tol_kernel *kernel = NULL;
    TOL_TRY(kn_rows_given("argmax", kernels, stream, x));
    TOL_TRY(kn_rows_type(x->type));
    struct kn_rows_place in = {"in", x->rows, x->columns, kn_type_bytes(x->type), false, 0, 0, 0};
    struct kn_rows_place out = {"out", 1, x->rows, sizeof(int), false, 0, 0, 0};
    if (x->rows == 0) return TOL_OK;
    TOL_CHECK(x->columns > 0, TOL_INVALID_ARGUMENT, "in has rows of no elements");
    TOL_TRY(kn_rows_locate(&x->in, &in));
    TOL_TRY(kn_rows_locate(&x->out, &out));
    TOL_CHECK(out.end <= in.begin || in.end <= out.begin, TOL_INVALID_ARGUMENT, "out overlaps in");
    struct kn_row_fit fit = kn_row_fit_of(x->type, &in);
    fit.not_whole = kn_row_whole(&in);
    TOL_TRY(kn_kernels_pick(kernels, &kn_argmax_variants, x->variant, &fit, &variant, &kernel));
    const struct argmax_arguments arguments = {.in = in.begin,
                                               .out = out.begin,
                                               .rows = (long long)x->rows,
                                               .columns = (long long)x->columns,
                                               .in_stride = (long long)in.stride};
    const struct tol_device *device = tol_context_device(kn_kernels_context(kernels));
    status = kn_rows_launch(stream, kernel, argmax_shape_of(variant, &fit, x->rows, device),
                            &arguments, sizeof arguments);
out:
    return status;
}

int kn_argmax_oracle(const float *in, size_t columns) {
    size_t best = 0;
    for (size_t c = 0; c < columns; c++) {
        if (isnan(in[c])) return (int)c;
        if (in[c] > in[best]) best = c;
    }
    return (int)best;
}
