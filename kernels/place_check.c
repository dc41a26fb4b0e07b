/*
 * Whether a place is given, aligned and large enough.
 */
#include "place_check.h"

#include "core/check.h"

tol_status kn_place_check(const char *name, struct kn_place place, size_t bytes, size_t alignment) {
    tol_status status = TOL_OK;
    TOL_CHECK(place.address != 0 && place.address % alignment == 0, TOL_INVALID_ARGUMENT,
              "%s at %#llx is NULL or not aligned to %zu bytes", name,
              (unsigned long long)place.address, alignment);
    TOL_CHECK(bytes <= place.bytes, TOL_OUT_OF_RANGE, "%s needs %zu bytes, and there are %zu", name,
              bytes, place.bytes);
out:
    return status;
}

tol_status kn_place_check_rows(const char *name, struct kn_place place, size_t count, size_t stride,
                               size_t length, size_t element_bytes, size_t alignment) {
    tol_status status = TOL_OK;
    const size_t room = place.bytes / element_bytes;
    TOL_TRY(kn_place_check(name, place, 0, alignment));
    TOL_CHECK(stride >= length && stride * element_bytes % alignment == 0, TOL_INVALID_ARGUMENT,
              "rows of %s have %zu elements and are %zu apart", name, length, stride);
    TOL_CHECK(length <= room && (count <= 1 || (room - length) / (count - 1) >= stride),
              TOL_OUT_OF_RANGE, "%zu rows of %s of %zu elements, %zu apart, do not fit %zu bytes",
              count, name, length, stride, place.bytes);
out:
    return status;
}
