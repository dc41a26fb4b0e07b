/*
 * The host's side of gated.
 */
#include "decode/gated.h"

#include "choose/struct_launch.h"
#include "core/check.h"
#include "decode/decode_arguments.h"
#include "place_check.h"

#include <limits.h>

KN_IMAGES(gated_1_element);

enum { GATED_THREADS = 128, GATED_BLOCKS = 64 };

static const struct kn_variant gated_element = {.name = "element",
                                                .entry = "gated_element",
                                                .images = kn_images_gated_1_element,
                                                .compute_capability_min = 75,
                                                .threads = GATED_THREADS};

tol_status kn_gated(struct kn_kernels *kernels, struct tol_stream *stream,
                    const struct kn_gated *x) {
    tol_status status = TOL_OK;
    TOL_CHECK(kernels != NULL && stream != NULL && x != NULL, TOL_INVALID_ARGUMENT,
              "gated needs kernels, a stream and a problem");
    if (x->rows == 0 || x->columns == 0) return TOL_OK;
    TOL_CHECK(x->rows <= INT_MAX && x->columns <= INT_MAX, TOL_OVER_LIMIT,
              "gated: %zu rows of %zu columns", x->rows, x->columns);
    TOL_TRY(kn_place_check_rows("gate", x->gate, x->rows, x->gate_stride, x->columns, sizeof(float),
                                4));
    TOL_TRY(kn_place_check_rows("y", x->y, x->rows, x->y_stride, x->columns, sizeof(float), 4));
    const struct gated_arguments arguments = {.gate = x->gate.address,
                                              .y = x->y.address,
                                              .gate_stride = x->gate_stride,
                                              .y_stride = x->y_stride,
                                              .columns = (uint32_t)x->columns};
    const size_t blocks = (x->columns + GATED_THREADS - 1) / GATED_THREADS; /* of a row */
    status = kn_struct_launch(
        kernels, stream, &gated_element,
        (struct tol_launch_shape){(unsigned)x->rows,
                                  (unsigned)(blocks < GATED_BLOCKS ? blocks : GATED_BLOCKS), 1,
                                  GATED_THREADS, 1, 1, 0},
        &arguments, sizeof arguments);
out:
    return status;
}
