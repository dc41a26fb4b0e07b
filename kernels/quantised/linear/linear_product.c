/*
 * What linear asks of a product.
 */
#include "quantised/linear/linear_product.h"

#include "core/check.h"
#include "quantised/formats/rounded.h"

#include <assert.h>

static size_t linear_workspace_bytes(const struct kn_linear *x) {
    if (x->workspace.address == 0) return 0;
    return x->is_rounded ? kn_rounded_bytes(x->columns, x->k)
                         : kn_linear_workspace(x->columns, x->k);
}

tol_status kn_linear_product(const struct kn_linear *x, struct kn_product *product) {
    tol_status status = TOL_OK;
    assert(x->rows > 0 && x->columns > 0);
    TOL_CHECK((unsigned)x->format < KN_WEIGHT_FORMATS, TOL_INVALID_ARGUMENT,
              "there is no format %d of weights", (int)x->format);
    TOL_CHECK(!x->is_rounded || x->workspace.address != 0, TOL_INVALID_ARGUMENT,
              "linear: a rounded x without a workspace");
    TOL_CHECK(x->gate.address == 0 || (x->bias.address == 0 && !x->adds), TOL_INVALID_ARGUMENT,
              "linear: a gate with a bias or a sum");
    *product =
        (struct kn_product){.operation = "linear",
                            .way = x->gate.address != 0 ? KN_PRODUCT_GATED : KN_PRODUCT_LINEAR,
                            .format = x->format,
                            .rows = x->rows,
                            .columns = x->columns,
                            .k = x->k,
                            .weights = x->weights,
                            .gate = x->gate,
                            .bias = x->bias,
                            .x = x->x,
                            .y = x->y,
                            .x_stride = x->x_stride,
                            .y_stride = x->y_stride,
                            .workspace = x->workspace,
                            .workspace_bytes = linear_workspace_bytes(x),
                            .rounded = x->rounded,
                            .tickets = x->tickets,
                            .adds = x->adds,
                            .is_rounded = x->is_rounded,
                            .variant = x->variant};
out:
    return status;
}
