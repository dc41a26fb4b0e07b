/*
 * The host's side of embed.
 */
#include "decode/embed.h"

#include "choose/struct_launch.h"
#include "core/check.h"
#include "decode/decode_arguments.h"
#include "place_check.h"
#include "quantised/formats/matrix_check.h"

#include <limits.h>

KN_IMAGES(embed_1_element);

enum { EMBED_THREADS = 128, EMBED_BLOCKS = 64 };

#define EMBED(format)                                                                              \
    {                                                                                              \
        .name = "element", .entry = "embed_" #format, .images = kn_images_embed_1_element,         \
        .compute_capability_min = 75, .threads = EMBED_THREADS                                     \
    }
static const struct kn_variant embeds[KN_WEIGHT_FORMATS] = {
    EMBED(f32), EMBED(f16), EMBED(bf16), EMBED(q8_0), EMBED(q4_k), EMBED(q5_k), EMBED(q6_k)};

tol_status kn_embed(struct kn_kernels *kernels, struct tol_stream *stream,
                    const struct kn_embed *x) {
    tol_status status = TOL_OK;
    TOL_CHECK(kernels != NULL && stream != NULL && x != NULL, TOL_INVALID_ARGUMENT,
              "embed needs kernels, a stream and a problem");
    if (x->rows == 0) return TOL_OK;
    TOL_CHECK(x->table_rows > 0, TOL_INVALID_ARGUMENT, "embed: a table of no rows");
    TOL_CHECK(x->rows <= INT_MAX, TOL_OVER_LIMIT, "embed: %zu rows", x->rows);
    TOL_TRY(kn_matrix_check("the table", x->format, x->table, x->table_rows, x->columns, 0));
    TOL_TRY(
        kn_place_check_rows("out", x->out, x->rows, x->out_stride, x->columns, sizeof(float), 4));
    TOL_TRY(kn_place_check("tokens", x->tokens, x->rows * sizeof(int), sizeof(int)));
    const struct embed_arguments arguments = {.table = x->table.address,
                                              .tokens = x->tokens.address,
                                              .out = x->out.address,
                                              .out_stride = x->out_stride,
                                              .table_rows = (uint32_t)x->table_rows,
                                              .columns = (uint32_t)x->columns};
    const size_t blocks = (x->columns + EMBED_THREADS - 1) / EMBED_THREADS; /* of a row */
    status = kn_struct_launch(
        kernels, stream, &embeds[x->format],
        (struct tol_launch_shape){(unsigned)x->rows,
                                  (unsigned)(blocks < EMBED_BLOCKS ? blocks : EMBED_BLOCKS), 1,
                                  EMBED_THREADS, 1, 1, 0},
        &arguments, sizeof arguments);
out:
    return status;
}
