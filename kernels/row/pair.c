/*
 * The host's side of swiglu and add, and their oracle.
 */
#include "row/pair.h"

#include "core/check.h"
#include "row/row_arguments.h"
#include "row/row_variant.h"

#include <math.h>

KN_IMAGES(pair_1_pieces);
KN_IMAGES(pair_2_whole);

/* clang-format off */
#define WHOLE(type, TYPE, operation)                                                               \
    {.name = "whole", .entry = #operation "_whole_" #type, .images = kn_images_pair_2_whole,       \
     .compute_capability_min = 80, .types = 1 << KN_##TYPE, .needs = KN_ROW_WHOLE,                 \
     .refuse = kn_row_refuses, .threads = 256},
#define PIECES(type, TYPE, operation)                                                              \
    {.name = "pieces", .entry = #operation "_" #type, .images = kn_images_pair_1_pieces,           \
     .compute_capability_min = 75, .types = 1 << KN_##TYPE, .refuse = kn_row_refuses,              \
     .threads = 256},
static const struct kn_variant swiglu[] = {
    KN_ROW_EACH(WHOLE, swiglu) KN_ROW_EACH(PIECES, swiglu)};
static const struct kn_variant add[] = {KN_ROW_EACH(WHOLE, add) KN_ROW_EACH(PIECES, add)};
/* clang-format on */
const struct kn_variants kn_swiglu_variants = {"swiglu", swiglu, sizeof swiglu / sizeof swiglu[0]};
const struct kn_variants kn_add_variants = {"add", add, sizeof add / sizeof add[0]};

/* Makes one long row of rows without gaps between them. */
static void pair_join_rows(struct kn_rows_place *places[3]) {
    for (int i = 0; i < 3; i++) {
        if (places[i]->stride != places[i]->columns) return;
    }
    for (int i = 0; i < 3; i++) {
        places[i]->columns *= places[i]->rows;
        places[i]->stride = places[i]->columns;
        places[i]->rows = 1;
    }
}

/* As kn_row_whole, of the three matrices of a pair. */
static const char *pair_whole(struct kn_rows_place *places[3]) {
    for (int i = 0; i < 3; i++) {
        const char *why = kn_row_whole(places[i]);
        if (why != NULL) return why;
    }
    return places[0]->rows == 1 ? NULL : "there are gaps between the rows";
}

tol_status kn_pair(struct kn_kernels *kernels, struct tol_stream *stream, const struct kn_pair *x) {
    enum { GRID_X_MAX = 64, GRID_X_ALONE_MAX = 1 << 30, GRID_Y_MAX = 65535 };
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
    struct kn_rows_place *places[3] = {&in, &with, &out};
    pair_join_rows(places);
    struct kn_row_fit fit = kn_row_fit_of(x->type, &in);
    fit.not_whole = pair_whole(places);
    TOL_TRY(kn_kernels_pick(kernels, x->kind == KN_SWIGLU ? &kn_swiglu_variants : &kn_add_variants,
                            NULL, &fit, &variant, &kernel));
    const struct pair_arguments arguments = {.in = in.begin,
                                             .with = with.begin,
                                             .out = out.begin,
                                             .rows = (long long)in.rows,
                                             .columns = (long long)in.columns,
                                             .in_stride = (long long)in.stride,
                                             .with_stride = (long long)with.stride,
                                             .out_stride = (long long)out.stride};
    struct tol_launch_shape shape = tol_launch_linear(fit.pieces, variant->threads);
    const unsigned grid_x_max = in.rows == 1 ? GRID_X_ALONE_MAX : GRID_X_MAX;
    if (shape.grid_x > grid_x_max) shape.grid_x = grid_x_max;
    shape.grid_y = in.rows < GRID_Y_MAX ? (unsigned)in.rows : GRID_Y_MAX;
    status = kn_rows_launch(stream, kernel, shape, &arguments, sizeof arguments);
out:
    return status;
}

double kn_pair_oracle(enum kn_pair_kind kind, double in, double with) {
    return kind == KN_SWIGLU ? in / (1 + exp(-in)) * with : in + with;
}
