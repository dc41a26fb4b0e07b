/*
 * The way of every product: check, choose, launch.
 */
#include "quantised/product/product.h"

#include "core/check.h"
#include "quantised/product/product_check.h"
#include "quantised/product/product_launch.h"
#include "quantised/product/product_table.h"

#include <assert.h>

tol_status kn_product(struct kn_kernels *kernels, struct tol_stream *stream,
                      const struct kn_product *p) {
    tol_status status = TOL_OK;
    const struct kn_variant *row = NULL;
    const struct tol_kernel *kernel = NULL;
    TOL_TRY(kn_product_check(p));
    TOL_TRY(kn_kernels_choose(kernels, kn_product_rows(p->way, p->format),
                              (struct kn_wish){p->variant, p->variants}, NULL, p, &row, &kernel));
    assert(row != NULL && kernel != NULL);
    status = kn_product_launch(kernels, stream, row, kernel, p);
out:
    return status;
}
