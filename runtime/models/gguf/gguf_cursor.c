/*
 * The block grows by doubling, so a head is read by few calls and copied about once.
 */
#include "gguf_cursor.h"

#include "core/check.h"
#include "tollens/gguf.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_BYTES = 1 << 16 };

typedef unsigned long long number;

uint64_t tol_gguf_remaining(const struct tol_gguf_cursor *cursor) {
    return cursor->file->bytes - cursor->at;
}

static tol_status gguf_cursor_grow(struct tol_gguf_cursor *cursor, uint64_t end) {
    tol_status status = TOL_OK;
    uint64_t room = cursor->room > 0 ? cursor->room : FIRST_BYTES;
    size_t got = 0;
    while (room < end) room *= 2;
    if (room > cursor->file->bytes) room = cursor->file->bytes;
    unsigned char *bytes = realloc(cursor->bytes, room);
    TOL_CHECK(bytes != NULL, TOL_OUT_OF_HOST_MEMORY, "%s: %llu bytes for its head", cursor->path,
              (number)room);
    cursor->bytes = bytes;
    cursor->room = room;
    TOL_TRY(
        tol_file_read(cursor->file, cursor->have, bytes + cursor->have, room - cursor->have, &got));
    cursor->have += got;
out:
    return status;
}

tol_status tol_gguf_need(struct tol_gguf_cursor *cursor, uint64_t count) {
    tol_status status = TOL_OK;
    if (count <= cursor->have - cursor->at) return TOL_OK;
    TOL_CHECK(count <= tol_gguf_remaining(cursor), TOL_INVALID_FILE,
              "%s: %s at byte %llu needs %llu bytes, and the file ends after %llu", cursor->path,
              cursor->what, (number)cursor->at, (number)count, (number)tol_gguf_remaining(cursor));
    TOL_CHECK(cursor->at + count <= TOL_GGUF_HEAD_BYTES_MAX, TOL_INVALID_FILE,
              "%s: %s at byte %llu needs %llu bytes, which is beyond the %d bytes that a file may "
              "have before its tensors' data",
              cursor->path, cursor->what, (number)cursor->at, (number)count,
              TOL_GGUF_HEAD_BYTES_MAX);
    TOL_TRY(gguf_cursor_grow(cursor, cursor->at + count));
    TOL_CHECK(count <= cursor->have - cursor->at, TOL_INVALID_FILE,
              "%s: %s at byte %llu needs %llu bytes, and the file has become shorter", cursor->path,
              cursor->what, (number)cursor->at, (number)count);
out:
    return status;
}

tol_status tol_gguf_take_u32(struct tol_gguf_cursor *cursor, uint32_t *value) {
    tol_status status = tol_gguf_need(cursor, sizeof *value);
    if (status != TOL_OK) return status;
    memcpy(value, cursor->bytes + cursor->at, sizeof *value);
    cursor->at += sizeof *value;
    return TOL_OK;
}

tol_status tol_gguf_take_u64(struct tol_gguf_cursor *cursor, uint64_t *value) {
    tol_status status = tol_gguf_need(cursor, sizeof *value);
    if (status != TOL_OK) return status;
    memcpy(value, cursor->bytes + cursor->at, sizeof *value);
    cursor->at += sizeof *value;
    return TOL_OK;
}

tol_status tol_gguf_take_string(struct tol_gguf_cursor *cursor, uint64_t most, uint64_t *start,
                                uint64_t *count) {
    tol_status status = TOL_OK;
    uint64_t length = 0;
    TOL_TRY(tol_gguf_take_u64(cursor, &length));
    TOL_CHECK(length <= most, TOL_INVALID_FILE,
              "%s: %s: the length %llu at byte %llu exceeds the limit of %llu bytes", cursor->path,
              cursor->what, (number)length, (number)(cursor->at - sizeof length), (number)most);
    TOL_TRY(tol_gguf_need(cursor, length));
    *start = cursor->at;
    *count = length;
    cursor->at += length;
out:
    return status;
}
