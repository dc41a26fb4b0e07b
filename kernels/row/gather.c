/*
 * The host's side of gather.
 */
#include "row/gather.h"

#include "core/check.h"
#include "row/row_arguments.h"
#include "row/row_variant.h"

KN_IMAGES(gather_1_pieces);

/* clang-format off */
#define PIECES(type, TYPE, threads_)                                                               \
    {.name = "pieces", .entry = "gather_" #type, .images = kn_images_gather_1_pieces,              \
     .compute_capability_min = 75, .types = 1 << KN_##TYPE, .refuse = kn_row_refuses,              \
     .threads = threads_},
static const struct kn_variant variants[] = { KN_ROW_EACH(PIECES, 128) };
/* clang-format on */
const struct kn_variants kn_gather_variants = {"gather", variants,
                                               sizeof variants / sizeof variants[0]};

tol_status kn_gather(struct kn_kernels *kernels, struct tol_stream *stream,
                     const struct kn_gather *x) {
    tol_status status = TOL_OK;
    const struct kn_variant *variant = NULL;
    const struct tol_kernel *kernel = NULL;
    TOL_TRY(kn_rows_given("gather", kernels, stream, x));
    TOL_TRY(kn_rows_type(x->type));
    const size_t element = kn_type_bytes(x->type);
    struct kn_rows_place table = {"table", x->table_rows, x->columns, element, false, 0, 0, 0};
    struct kn_rows_place out = {"out", x->rows, x->columns, element, false, 0, 0, 0};
    struct kn_rows_place indices = {"indices", 1, x->rows, sizeof(int), false, 0, 0, 0};
    TOL_TRY(kn_rows_locate(&x->out, &out));
    if (x->rows == 0 || x->columns == 0) return TOL_OK;
    TOL_CHECK(x->table_rows > 0, TOL_INVALID_ARGUMENT, "a table of no rows");
    TOL_TRY(kn_rows_locate(&x->table, &table));
    TOL_TRY(kn_rows_locate(&x->indices, &indices));
    TOL_CHECK(out.end <= table.begin || table.end <= out.begin, TOL_INVALID_ARGUMENT,
              "out overlaps table");
    TOL_TRY(kn_rows_apart(&out, &indices));
    const struct kn_row_fit fit = kn_row_fit_of(x->type, &out);
    TOL_TRY(kn_kernels_pick(kernels, &kn_gather_variants, NULL, &fit, &variant, &kernel));
    const struct gather_arguments arguments = {.table = table.begin,
                                               .indices = indices.begin,
                                               .out = out.begin,
                                               .rows = (long long)x->rows,
                                               .columns = (long long)x->columns,
                                               .table_rows = (long long)x->table_rows,
                                               .table_stride = (long long)table.stride,
                                               .out_stride = (long long)out.stride};
    const struct tol_device *device = tol_context_device(kn_kernels_context(kernels));
    status = kn_rows_launch(stream, kernel, kn_row_shape(variant, &fit, x->rows, device),
                            &arguments, sizeof arguments);
out:
    return status;
}
