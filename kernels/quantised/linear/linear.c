/*
 * The products of a decoder, as a struct kn_product.
 */
#include "quantised/linear/linear.h"

#include "core/check.h"
#include "quantised/linear/linear_product.h"
#include "quantised/product/product.h"

tol_status kn_linear(struct kn_kernels *kernels, struct tol_stream *stream,
                     const struct kn_linear *x) {
    tol_status status = TOL_OK;
    struct kn_product product;
    TOL_CHECK(kernels != NULL && stream != NULL && x != NULL, TOL_INVALID_ARGUMENT,
              "linear needs kernels, a stream and a problem");
    if (x->rows == 0 || x->columns == 0) return TOL_OK;
    TOL_TRY(kn_linear_product(x, &product));
    status = kn_product(kernels, stream, &product);
out:
    return status;
}
