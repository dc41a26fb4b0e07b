/*
 * The host's side of swiglu and add, and their oracle.
 */
#include "row/pair.h"

#include "core/check.h"
#include "row/row_arguments.h"
#include "row/row_variant.h"

#include <math.h>

KN_IMAGES(pair_1_pieces);

/* clang-format off */
#define PIECES(type, TYPE, operation)                                                              \
    {.name = "pieces", .entry = #operation "_" #type, .images = kn_images_pair_1_pieces,           \
     .compute_capability_min = 75, .types = 1 << KN_##TYPE, .refuse = kn_row_refuses,              \
     .threads = 256},
static const struct kn_variant swiglu[] = { KN_ROW_EACH(PIECES, swiglu) };
static const struct kn_variant add[] = { KN_ROW_EACH(PIECES, add) };
/* clang-format on */
const struct kn_variants kn_swiglu_variants = {"swiglu", swiglu, sizeof swiglu / sizeof swiglu[0]};
const struct kn_variants kn_add_variants = {"add", add, sizeof add / sizeof add[0]};

tol_status kn_pair(struct kn_kernels *kernels, struct tol_stream *stream, const struct kn_pair *x) {
    enum { GRID_X_MAX = 64, GRID_Y_MAX = 65535 };
    tol_status status = TOL_OK;
    const struct kn_variant *variant = NULL;
    const struct tol_kernel *kernel = NULL;
    TOL_TRY(kn_rows_given("pair", kernels, stream, x));
    TOL_TRY(kn_rows_type(x->type));
    TOL_CHECK((unsigned)x->kind <= KN_ADD, TOL_INVALID_ARGUMENT, "kind of pair %d does not exist",
              (int)x->kind);
    const size_t element = kn_type_bytes(x->type);
    struct kn_rows_place in = {"in", x->rows, x->columns, element, false, 0, 0, 0};
    struct kn_rows_place with = {"with", x->rows, x->columns, element, false, 0, 0, 0};
    struct kn_rows_place out = {"out", x->rows, x->columns, element, false, 0, 0, 0};
    TOL_TRY(kn_rows_locate(&x->in, &in));
    TOL_TRY(kn_rows_locate(&x->with, &with));
    TOL_TRY(kn_rows_locate(&x->out, &out));
    TOL_TRY(kn_rows_apart(&out, &in));
    TOL_TRY(kn_rows_apart(&out, &with));
    if (x->rows == 0 || x->columns == 0) return TOL_OK;
    const struct kn_row_fit fit = kn_row_fit_of(x->type, &in);
    TOL_TRY(kn_kernels_pick(kernels, x->kind == KN_SWIGLU ? &kn_swiglu_variants : &kn_add_variants,
                            NULL, &fit, &variant, &kernel));
    const struct pair_arguments arguments = {.in = in.begin,
                                             .with = with.begin,
                                             .out = out.begin,
                                             .rows = (long long)x->rows,
                                             .columns = (long long)x->columns,
                                             .in_stride = (long long)in.stride,
                                             .with_stride = (long long)with.stride,
                                             .out_stride = (long long)out.stride};
    struct tol_launch_shape shape = tol_launch_linear(fit.pieces, variant->threads);
    if (shape.grid_x > GRID_X_MAX) shape.grid_x = GRID_X_MAX;
    shape.grid_y = x->rows < GRID_Y_MAX ? (unsigned)x->rows : GRID_Y_MAX;
    status = kn_rows_launch(stream, kernel, shape, &arguments, sizeof arguments);
out:
    return status;
}

double kn_pair_oracle(enum kn_pair_kind kind, double in, double with) {
    return kind == KN_SWIGLU ? in / (1 + exp(-in)) * with : in + with;
}
