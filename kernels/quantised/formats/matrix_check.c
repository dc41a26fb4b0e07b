/*
 * Whether a matrix of weights is one that kernels can read.
 */
#include "quantised/formats/matrix_check.h"

#include "core/check.h"
#include "place_check.h"

#include <limits.h>

tol_status kn_matrix_check(const char *name, enum kn_weight_format format, struct kn_place place,
                           size_t rows, size_t k, size_t alignment) {
    tol_status status = TOL_OK;
    TOL_CHECK((unsigned)format < KN_WEIGHT_FORMATS, TOL_INVALID_ARGUMENT,
              "there is no format %d of weights", (int)format);
    TOL_CHECK(k > 0 && k % kn_weight_grain(format) == 0, TOL_INVALID_ARGUMENT,
              "rows of %s have %zu elements, no multiple of %zu", name, k, kn_weight_grain(format));
    TOL_CHECK(rows <= INT_MAX && k <= INT_MAX, TOL_OVER_LIMIT,
              "%s has %zu rows of %zu elements; each must be below 2^31", name, rows, k);
    TOL_TRY(kn_place_check(name, place, rows * kn_weight_row_bytes(format, k),
                           alignment > 0 ? alignment : kn_weight_alignment(format)));
out:
    return status;
}
