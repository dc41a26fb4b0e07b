/*
 * A buffer with a poisoned zone on either side.
 */
#include "guarded.h"

#include "core/check.h"

enum { ZONE_BYTE = 0xa5, UNWRITTEN_BYTE = 0xff };

tol_status kn_guarded_create(struct tol_context *context, size_t bytes, size_t skew,
                             struct kn_guarded *guarded) {
    tol_status status = TOL_OK;
    struct kn_guarded made = {.offset = KN_GUARD_BYTES + skew, .bytes = bytes};
    TOL_CHECK(skew < KN_GUARD_BYTES && bytes <= SIZE_MAX / 2, TOL_OUT_OF_RANGE,
              "%zu bytes at a skew of %zu", bytes, skew);
    TOL_TRY(tol_buffer_create(context, made.offset + bytes + KN_GUARD_BYTES, 1, &made.buffer));
    TOL_TRY(kn_guarded_poison(&made));
    *guarded = made;
    return TOL_OK;
out:
    tol_buffer_destroy(made.buffer);
    return status;
}

void kn_guarded_destroy(struct kn_guarded *guarded) {
    tol_buffer_destroy(guarded->buffer);
    *guarded = (struct kn_guarded){0};
}

tol_status kn_guarded_write(struct kn_guarded *guarded, const void *bytes) {
    return tol_buffer_write_at(guarded->buffer, guarded->offset, bytes, guarded->bytes);
}

tol_status kn_guarded_read(const struct kn_guarded *guarded, void *bytes) {
    return tol_buffer_read_at(guarded->buffer, guarded->offset, bytes, guarded->bytes);
}

tol_status kn_guarded_poison(struct kn_guarded *guarded) {
    tol_status status = TOL_OK;
    const size_t all = tol_buffer_bytes(guarded->buffer);
    TOL_TRY(tol_buffer_fill_at(guarded->buffer, 0, ZONE_BYTE, 1, all));
    status =
        tol_buffer_fill_at(guarded->buffer, guarded->offset, UNWRITTEN_BYTE, 1, guarded->bytes);
out:
    return status;
}

static tol_status check_zone(const struct kn_guarded *guarded, size_t offset, size_t bytes,
                             size_t *changed) {
    unsigned char zone[2 * KN_GUARD_BYTES];
    tol_status status = tol_buffer_read_at(guarded->buffer, offset, zone, bytes);
    for (size_t i = 0; status == TOL_OK && i < bytes; i++) *changed += zone[i] != ZONE_BYTE;
    return status;
}

tol_status kn_guarded_check(const struct kn_guarded *guarded, size_t *changed) {
    tol_status status = TOL_OK;
    const size_t end = guarded->offset + guarded->bytes;
    size_t count = 0;
    TOL_TRY(check_zone(guarded, 0, guarded->offset, &count));
    TOL_TRY(check_zone(guarded, end, tol_buffer_bytes(guarded->buffer) - end, &count));
    *changed = count;
out:
    return status;
}
