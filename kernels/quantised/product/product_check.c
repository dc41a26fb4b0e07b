/*
 * The operands of a product.
 */
#include "quantised/product/product_check.h"

#include "core/check.h"
#include "place_check.h"
#include "quantised/formats/matrix_check.h"

#include <assert.h>
#include <limits.h>

enum { LINEAR_COLUMNS_MAX = (1 << 18) - 1, QUANT_ALIGNMENT = 2, FLOAT_BYTES = sizeof(float) };

static tol_status check_matrices(const struct kn_product *p) {
    tol_status status = TOL_OK;
    /* A kernel of kn_quant_product that needs more than 2 bytes refuses the problem itself. */
    const size_t alignment = kn_product_is_linear(p) ? 0 : QUANT_ALIGNMENT;
    TOL_TRY(kn_matrix_check("the matrix", p->format, p->weights, p->rows, p->k, alignment));
    if (p->gate.address != 0) {
        TOL_TRY(kn_matrix_check("the gate", p->format, p->gate, p->rows, p->k, alignment));
    }
out:
    return status;
}

static tol_status check_limits(const struct kn_product *p) {
    tol_status status = TOL_OK;
    const size_t most = kn_product_is_linear(p) ? LINEAR_COLUMNS_MAX : INT_MAX;
    TOL_CHECK(p->columns <= most && p->rows <= INT_MAX && p->k <= INT_MAX, TOL_OVER_LIMIT,
              "%s: %zu rows, %zu columns and k of %zu; there may be %zu columns, and the others "
              "must be below 2^31",
              p->operation, p->rows, p->columns, p->k, most);
out:
    return status;
}

/* All places have been checked. */
static tol_status check_overlaps(const struct kn_product *p) {
    tol_status status = TOL_OK;
    const size_t matrix = p->rows * kn_weight_row_bytes(p->format, p->k);
    const size_t gate = p->gate.address != 0 ? matrix : 0, workspace = p->workspace_bytes;
    const size_t x = kn_product_x_bytes(p), y = kn_product_y_bytes(p);
    TOL_CHECK(!kn_place_overlap(p->y, y, p->x, x) &&
                  !kn_place_overlap(p->y, y, p->weights, matrix) &&
                  !kn_place_overlap(p->y, y, p->gate, gate) &&
                  !kn_place_overlap(p->y, y, p->workspace, workspace) &&
                  !kn_place_overlap(p->workspace, workspace, p->x, x) &&
                  !kn_place_overlap(p->workspace, workspace, p->weights, matrix) &&
                  !kn_place_overlap(p->workspace, workspace, p->gate, gate),
              TOL_INVALID_ARGUMENT, "%s: y or the workspace overlaps what is read, or each other",
              p->operation);
out:
    return status;
}

tol_status kn_product_check(const struct kn_product *p) {
    tol_status status = TOL_OK;
    assert(p->rows > 0 && p->columns > 0);
    TOL_TRY(check_limits(p));
    TOL_TRY(
        kn_place_check_rows("y", p->y, p->columns, p->y_stride, p->rows, FLOAT_BYTES, FLOAT_BYTES));
    if (p->k == 0 && !kn_product_is_linear(p)) return TOL_OK;
    TOL_TRY(check_matrices(p));
    if (!p->is_rounded) {
        TOL_TRY(kn_place_check_rows("x", p->x, p->columns, p->x_stride, p->k, FLOAT_BYTES,
                                    kn_product_is_linear(p) ? 16 : FLOAT_BYTES));
    }
    if (p->bias.address != 0) {
        TOL_TRY(kn_place_check("bias", p->bias, p->rows * FLOAT_BYTES, FLOAT_BYTES));
    }
    if (p->workspace_bytes > 0) {
        TOL_TRY(kn_place_check("the workspace", p->workspace, p->workspace_bytes, 16));
    }
    status = check_overlaps(p);
    assert(status != TOL_OK || (p->k > 0 && p->x_stride >= p->k) || p->is_rounded);
out:
    return status;
}
