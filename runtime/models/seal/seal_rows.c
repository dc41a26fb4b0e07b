/*
 * Offsets in rows with and without gaps.
 */
#include "seal_rows.h"

#include "core/check.h"

#include <string.h>

tol_status seal_rows_check(struct tol_seal_shape shape) {
    tol_status status = TOL_OK;
    const uint64_t most = ((uint64_t)1 << 32) * SEAL_UNIT_BYTES;
    TOL_CHECK(shape.rows > 0 && shape.row_bytes > 0 && shape.row_bytes <= most &&
                  shape.rows <= most / seal_row_pitch(shape),
              TOL_OUT_OF_RANGE,
              "%zu rows of %zu bytes cannot be sealed: there must be some, and at "
              "most 256 GiB",
              shape.rows, shape.row_bytes);
out:
    return status;
}

size_t seal_row_pitch(struct tol_seal_shape shape) {
    return (shape.row_bytes + SEAL_UNIT_BYTES - 1) / SEAL_UNIT_BYTES * SEAL_UNIT_BYTES;
}

size_t seal_rows_bytes(struct tol_seal_shape shape) {
    return shape.rows * seal_row_pitch(shape);
}

/* How much from offset on is of one row, or of one gap; where it is in plain rows. */
static size_t run_at(struct tol_seal_shape shape, size_t offset, size_t left, size_t *plain,
                     bool *is_gap) {
    const size_t pitch = seal_row_pitch(shape), in_row = offset % pitch;
    *is_gap = in_row >= shape.row_bytes;
    *plain = offset / pitch * shape.row_bytes + in_row;
    const size_t run = (*is_gap ? pitch : shape.row_bytes) - in_row;
    return run < left ? run : left;
}

void seal_rows_take(struct tol_seal_shape shape, const void *plain, size_t offset, void *out,
                    size_t bytes) {
    size_t at = 0;
    bool is_gap = false;
    for (size_t done = 0, run; done < bytes; done += run) {
        run = run_at(shape, offset + done, bytes - done, &at, &is_gap);
        if (is_gap) {
            memset((char *)out + done, 0, run);
        } else {
            memcpy((char *)out + done, (const char *)plain + at, run);
        }
    }
}

void seal_rows_put(struct tol_seal_shape shape, const void *in, size_t offset, size_t bytes,
                   void *plain) {
    size_t at = 0;
    bool is_gap = false;
    for (size_t done = 0, run; done < bytes; done += run) {
        run = run_at(shape, offset + done, bytes - done, &at, &is_gap);
        if (!is_gap) memcpy((char *)plain + at, (const char *)in + done, run);
    }
}
