/*
 * Reads the head of a GGUF file: header, keys, descriptions of tensors. Each count, length and
 * product is checked before it is used.
 *
 * Until all is read, a place in the head is an offset, since the block that holds the head moves as
 * it grows. Such an offset is kept as an address by place(), and resolve() makes addresses of them.
 */
#include "gguf_cursor.h"
#include "gguf_state.h"

#include "core/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "numbers are read as they lie in the file, which is little-endian"
#endif

enum {
    MAGIC = 0x46554747,               /* "GGUF" */
    MIN_KEY_BYTES = 8 + 4 + 1,        /* a key's length, its kind, the smallest value */
    MIN_TENSOR_BYTES = 8 + 4 + 4 + 8, /* a name's length, dimensions, type, offset */
    DEFAULT_ALIGNMENT = 32,
    GROUP = 4096 /* strings of an array that are counted before more room is made */
};

typedef unsigned long long number;

#define CURSOR_CHECK(condition, ...) TOL_CHECK(condition, TOL_INVALID_FILE, __VA_ARGS__)

/* An offset in the head, kept as an address until resolve(). */
static const void *gguf_read_place(uint64_t offset) {
    return (const void *)(uintptr_t)offset;
}

static const void *gguf_read_place_in(const struct tol_gguf *gguf, const void *offset) {
    return gguf->head + (uintptr_t)offset;
}

/* ---- values ---- */

static const char *quote_at(const struct tol_gguf_cursor *cursor, uint64_t start, uint64_t count,
                            char to[TOL_GGUF_QUOTED_BYTES]) {
    struct tol_gguf_text text = {(const char *)cursor->bytes + start, count};
    return tol_gguf_quote(text, to);
}

static tol_status check_bools(struct tol_gguf_cursor *cursor, uint64_t count) {
    tol_status status = TOL_OK;
    for (uint64_t i = 0; i < count; i++) {
        CURSOR_CHECK(cursor->bytes[cursor->at + i] <= 1,
                     "%s: %s: the bool at byte %llu is %u, neither 0 nor 1", cursor->path,
                     cursor->what, (number)(cursor->at + i), cursor->bytes[cursor->at + i]);
    }
out:
    return status;
}

/* Numbers of one kind, side by side. */
static tol_status take_numbers(struct tol_gguf_cursor *cursor, struct tol_gguf_value *value) {
    tol_status status = TOL_OK;
    unsigned bytes = tol_gguf_kind_bytes(value->element);
    CURSOR_CHECK(value->count <= tol_gguf_remaining(cursor) / bytes,
                 "%s: %s: %llu elements of %u bytes at byte %llu, and the file ends after %llu "
                 "bytes",
                 cursor->path, cursor->what, (number)value->count, bytes, (number)cursor->at,
                 (number)tol_gguf_remaining(cursor));
    TOL_TRY(tol_gguf_need(cursor, value->count * bytes));
    if (value->element == TOL_GGUF_BOOL) TOL_TRY(check_bools(cursor, value->count));
    value->bytes = gguf_read_place(cursor->at);
    cursor->at += value->count * bytes;
out:
    return status;
}

/* Strings of an array, and where each begins: an array of offsets of their lengths. */
static tol_status take_strings(struct tol_gguf_cursor *cursor, struct tol_gguf_value *value) {
    tol_status status = TOL_OK;
    uint64_t *starts = NULL, room = 0, start = 0, length = 0;
    CURSOR_CHECK(value->count <= tol_gguf_remaining(cursor) / sizeof(uint64_t),
                 "%s: %s: %llu strings at byte %llu, and the file ends after %llu bytes",
                 cursor->path, cursor->what, (number)value->count, (number)cursor->at,
                 (number)tol_gguf_remaining(cursor));
    for (uint64_t i = 0; i < value->count; i++) {
        if (i == room) {
            room = room < GROUP ? GROUP : 2 * room;
            if (room > value->count) room = value->count;
            uint64_t *more = realloc(starts, room * sizeof *starts);
            TOL_CHECK(more != NULL, TOL_OUT_OF_HOST_MEMORY, "%s: %s: %llu strings", cursor->path,
                      cursor->what, (number)room);
            starts = more;
        }
        starts[i] = cursor->at;
        TOL_TRY(tol_gguf_take_string(cursor, TOL_GGUF_STRING_BYTES_MAX, &start, &length));
    }
    value->starts = starts;
    starts = NULL;
out:
    free(starts);
    return status;
}

static tol_status take_string_value(struct tol_gguf_cursor *cursor, struct tol_gguf_value *value) {
    uint64_t start = 0, length = 0, at = cursor->at;
    value->bytes = gguf_read_place(at); /* the length, then the bytes */
    return tol_gguf_take_string(cursor, TOL_GGUF_STRING_BYTES_MAX, &start, &length);
}

static tol_status take_array(struct tol_gguf_cursor *cursor, struct tol_gguf_value *value) {
    tol_status status = TOL_OK;
    uint32_t kind = 0;
    TOL_TRY(tol_gguf_take_u32(cursor, &kind));
    CURSOR_CHECK(kind != TOL_GGUF_ARRAY, "%s: %s: an array of arrays at byte %llu is not supported",
                 cursor->path, cursor->what, (number)(cursor->at - sizeof kind));
    CURSOR_CHECK(tol_gguf_kind_name(kind) != NULL,
                 "%s: %s: elements of the unknown kind %u at byte %llu", cursor->path, cursor->what,
                 kind, (number)(cursor->at - sizeof kind));
    value->element = (enum tol_gguf_kind)kind;
    TOL_TRY(tol_gguf_take_u64(cursor, &value->count));
    TOL_TRY(kind == TOL_GGUF_STRING ? take_strings(cursor, value) : take_numbers(cursor, value));
out:
    return status;
}

static tol_status gguf_read_take_value(struct tol_gguf_cursor *cursor, size_t index,
                                       struct tol_gguf_value *value) {
    tol_status status = TOL_OK;
    char quoted[TOL_GGUF_QUOTED_BYTES];
    uint64_t start = 0, length = 0;
    uint32_t kind = 0;
    snprintf(cursor->what, sizeof cursor->what, "key %zu", index);
    value->offset = cursor->at;
    TOL_TRY(tol_gguf_take_string(cursor, TOL_GGUF_KEY_BYTES_MAX, &start, &length));
    CURSOR_CHECK(length > 0, "%s: %s at byte %llu has no name", cursor->path, cursor->what,
                 (number)value->offset);
    value->key = (struct tol_gguf_text){gguf_read_place(start), length};
    snprintf(cursor->what, sizeof cursor->what, "key %s", quote_at(cursor, start, length, quoted));
    TOL_TRY(tol_gguf_take_u32(cursor, &kind));
    CURSOR_CHECK(tol_gguf_kind_name(kind) != NULL,
                 "%s: %s: a value of the unknown kind %u at byte %llu", cursor->path, cursor->what,
                 kind, (number)(cursor->at - sizeof kind));
    value->kind = value->element = (enum tol_gguf_kind)kind;
    value->count = 1;
    if (kind == TOL_GGUF_ARRAY)
        TOL_TRY(take_array(cursor, value));
    else if (kind == TOL_GGUF_STRING)
        TOL_TRY(take_string_value(cursor, value));
    else
        TOL_TRY(take_numbers(cursor, value));
out:
    return status;
}

/* ---- tensors ---- */

/* The bytes of a tensor of these extents, or a refusal. */
static tol_status gguf_read_measure(struct tol_gguf_cursor *cursor, struct tol_gguf_tensor *tensor,
                                    uint64_t at) {
    tol_status status = TOL_OK;
    unsigned block = tol_tensor_block_elements(tensor->type);
    unsigned bytes = tol_tensor_block_bytes(tensor->type);
    tensor->elements = 1;
    for (unsigned i = 0; i < TOL_GGUF_DIMENSIONS_MAX; i++) {
        CURSOR_CHECK(tensor->extent[i] > 0, "%s: %s: dimension %u at byte %llu is 0", cursor->path,
                     cursor->what, i, (number)(at + 8 * i));
        CURSOR_CHECK(tensor->extent[i] <= INT64_MAX / tensor->elements,
                     "%s: %s: dimension %u at byte %llu is %llu, and the product overflows",
                     cursor->path, cursor->what, i, (number)(at + 8 * i),
                     (number)tensor->extent[i]);
        tensor->elements *= tensor->extent[i];
    }
    CURSOR_CHECK(tensor->extent[0] % block == 0,
                 "%s: %s: dimension 0 at byte %llu is %llu, not a multiple of the %u elements of a "
                 "block of %s",
                 cursor->path, cursor->what, (number)at, (number)tensor->extent[0], block,
                 tol_tensor_type_name(tensor->type));
    CURSOR_CHECK(tensor->elements / block <= INT64_MAX / bytes,
                 "%s: %s: %llu elements of %s at byte %llu are more bytes than a file can have",
                 cursor->path, cursor->what, (number)tensor->elements,
                 tol_tensor_type_name(tensor->type), (number)at);
    tensor->bytes = tensor->elements / block * bytes;
out:
    return status;
}

static tol_status gguf_read_check_type(const struct tol_gguf_cursor *cursor, uint32_t type) {
    tol_status status = TOL_OK;
    const char *instead = "", *removed = tol_gguf_removed_name(type, &instead);
    const number at = cursor->at - sizeof type;
    CURSOR_CHECK(removed == NULL,
                 "%s: %s has the type %s (%u) at byte %llu, which ggml has removed; use %s instead",
                 cursor->path, cursor->what, removed, type, at, instead);
    CURSOR_CHECK(tol_tensor_type_name(type) != NULL, "%s: %s has the unknown type %u at byte %llu",
                 cursor->path, cursor->what, type, at);
out:
    return status;
}

static tol_status take_tensor(struct tol_gguf_cursor *cursor, size_t index,
                              struct tol_gguf_tensor *tensor) {
    tol_status status = TOL_OK;
    char quoted[TOL_GGUF_QUOTED_BYTES];
    uint64_t start = 0, length = 0, extents = 0, begin = cursor->at;
    uint32_t type = 0, dimensions = 0;
    snprintf(cursor->what, sizeof cursor->what, "tensor %zu", index);
    TOL_TRY(tol_gguf_take_string(cursor, TOL_GGUF_NAME_BYTES_MAX, &start, &length));
    CURSOR_CHECK(length > 0, "%s: %s at byte %llu has no name", cursor->path, cursor->what,
                 (number)begin);
    tensor->name = (struct tol_gguf_text){gguf_read_place(start), length};
    snprintf(cursor->what, sizeof cursor->what, "tensor %s",
             quote_at(cursor, start, length, quoted));
    TOL_TRY(tol_gguf_take_u32(cursor, &dimensions));
    CURSOR_CHECK(dimensions <= TOL_GGUF_DIMENSIONS_MAX,
                 "%s: %s has %u dimensions at byte %llu; at most %d are supported", cursor->path,
                 cursor->what, dimensions, (number)(cursor->at - sizeof dimensions),
                 TOL_GGUF_DIMENSIONS_MAX);
    tensor->dimensions = dimensions;
    extents = cursor->at;
    for (unsigned i = 0; i < TOL_GGUF_DIMENSIONS_MAX; i++) {
        tensor->extent[i] = 1;
        if (i < dimensions) TOL_TRY(tol_gguf_take_u64(cursor, &tensor->extent[i]));
    }
    TOL_TRY(tol_gguf_take_u32(cursor, &type));
    TOL_TRY(gguf_read_check_type(cursor, type));
    tensor->type = (enum tol_tensor_type)type;
    TOL_TRY(gguf_read_measure(cursor, tensor, extents));
    TOL_TRY(tol_gguf_take_u64(cursor, &tensor->offset)); /* place_tensors() makes it the file's */
out:
    return status;
}

/* ---- the whole ---- */

static tol_status take_header(struct tol_gguf_cursor *cursor, struct tol_gguf_description *about) {
    tol_status status = TOL_OK;
    uint32_t magic = 0, version = 0;
    uint64_t tensors = 0, keys = 0;
    strcpy(cursor->what, "the header");
    TOL_TRY(tol_gguf_take_u32(cursor, &magic));
    CURSOR_CHECK(magic == MAGIC,
                 "%s is not a GGUF file: it begins with the bytes %02x %02x %02x %02x",
                 cursor->path, magic & 255, magic >> 8 & 255, magic >> 16 & 255, magic >> 24);
    TOL_TRY(tol_gguf_take_u32(cursor, &version));
    CURSOR_CHECK(version == 0 || (version & 0xffff) != 0,
                 "%s is big-endian (byte 4); only little-endian files are supported", cursor->path);
    CURSOR_CHECK(version == 2 || version == 3,
                 "%s has version %u of GGUF at byte 4; 2 and 3 are supported", cursor->path,
                 version);
    TOL_TRY(tol_gguf_take_u64(cursor, &tensors));
    CURSOR_CHECK(tensors <= TOL_GGUF_TENSORS_MAX,
                 "%s states %llu tensors at byte 8; at most %d are supported", cursor->path,
                 (number)tensors, TOL_GGUF_TENSORS_MAX);
    TOL_TRY(tol_gguf_take_u64(cursor, &keys));
    CURSOR_CHECK(keys <= TOL_GGUF_KEYS_MAX,
                 "%s states %llu keys at byte 16; at most %d are supported", cursor->path,
                 (number)keys, TOL_GGUF_KEYS_MAX);
    CURSOR_CHECK(keys * MIN_KEY_BYTES + tensors * MIN_TENSOR_BYTES <= tol_gguf_remaining(cursor),
                 "%s states %llu tensors at byte 8 and %llu keys at byte 16, and the file ends "
                 "after %llu bytes",
                 cursor->path, (number)tensors, (number)keys, (number)cursor->file->bytes);
    *about = (struct tol_gguf_description){
        .version = version, .alignment = DEFAULT_ALIGNMENT, .file_bytes = cursor->file->bytes};
    about->keys = keys;
    about->tensors = tensors;
out:
    return status;
}

/* What were offsets in the head become addresses. */
static void gguf_read_resolve(struct tol_gguf *gguf) {
    for (size_t i = 0; i < gguf->about.keys; i++) {
        struct tol_gguf_value *value = &gguf->values[i];
        value->key.bytes = gguf_read_place_in(gguf, value->key.bytes);
        value->bytes = gguf_read_place_in(gguf, value->bytes);
    }
    for (size_t i = 0; i < gguf->about.tensors; i++) {
        gguf->tensors[i].name.bytes = gguf_read_place_in(gguf, gguf->tensors[i].name.bytes);
    }
}

static tol_status gguf_read_read_alignment(struct tol_gguf *gguf) {
    tol_status status = TOL_OK;
    static const char key[] = "general.alignment";
    for (size_t i = 0; i < gguf->about.keys; i++) {
        const struct tol_gguf_value *value = &gguf->values[i];
        if (tol_gguf_compare(value->key, (struct tol_gguf_text){key, sizeof key - 1}) != 0)
            continue;
        CURSOR_CHECK(value->kind == TOL_GGUF_U32, "%s: key \"%s\" at byte %llu is a %s, not a u32",
                     gguf->path, key, (number)value->offset, tol_gguf_kind_name(value->kind));
        uint64_t alignment = tol_gguf_unsigned_at(value, 0);
        CURSOR_CHECK(alignment >= 8 && alignment <= TOL_GGUF_ALIGNMENT_MAX &&
                         (alignment & (alignment - 1)) == 0,
                     "%s: key \"%s\" at byte %llu is %llu; it must be a power of two from 8 to %d",
                     gguf->path, key, (number)value->offset, (number)alignment,
                     TOL_GGUF_ALIGNMENT_MAX);
        gguf->about.alignment = (unsigned)alignment;
    }
out:
    return status;
}

/* Makes each tensor's offset the file's, and checks that its data is in the file. */
static tol_status place_tensors(struct tol_gguf *gguf, uint64_t end) {
    tol_status status = TOL_OK;
    char quoted[TOL_GGUF_QUOTED_BYTES];
    struct tol_gguf_description *about = &gguf->about;
    about->data_offset = (end + about->alignment - 1) / about->alignment * about->alignment;
    CURSOR_CHECK(about->tensors == 0 || about->data_offset < about->file_bytes,
                 "%s: the tensors' data begins at byte %llu, and the file ends after %llu bytes",
                 gguf->path, (number)about->data_offset, (number)about->file_bytes);
    for (size_t i = 0; i < about->tensors; i++) {
        struct tol_gguf_tensor *tensor = &gguf->tensors[i];
        uint64_t room = about->file_bytes - about->data_offset;
        const char *name = tol_gguf_quote(tensor->name, quoted);
        CURSOR_CHECK(tensor->offset % about->alignment == 0,
                     "%s: tensor %s: its data at byte %llu of the data is not aligned to %u bytes",
                     gguf->path, name, (number)tensor->offset, about->alignment);
        CURSOR_CHECK(tensor->offset <= room && tensor->bytes <= room - tensor->offset,
                     "%s: tensor %s: %llu bytes at byte %llu of the data, which begins at byte "
                     "%llu, and the file ends after %llu bytes",
                     gguf->path, name, (number)tensor->bytes, (number)tensor->offset,
                     (number)about->data_offset, (number)about->file_bytes);
        tensor->offset += about->data_offset;
        about->tensor_bytes += tensor->bytes;
    }
out:
    return status;
}

tol_status tol_gguf_read_head(struct tol_gguf *gguf) {
    tol_status status = TOL_OK;
    struct tol_gguf_cursor cursor = {.file = &gguf->file, .path = gguf->path};
    struct tol_gguf_description about;
    TOL_TRY(take_header(&cursor, &about));
    gguf->values = calloc(about.keys + 1, sizeof *gguf->values);
    gguf->tensors = calloc(about.tensors + 1, sizeof *gguf->tensors);
    TOL_CHECK(gguf->values != NULL && gguf->tensors != NULL, TOL_OUT_OF_HOST_MEMORY,
              "%s: %zu keys and %zu tensors", gguf->path, about.keys, about.tensors);
    gguf->about = about;
    for (size_t i = 0; i < about.keys; i++)
        TOL_TRY(gguf_read_take_value(&cursor, i, &gguf->values[i]));
    for (size_t i = 0; i < about.tensors; i++) TOL_TRY(take_tensor(&cursor, i, &gguf->tensors[i]));
    gguf->head = cursor.bytes;
    cursor.bytes = NULL;
    gguf_read_resolve(gguf);
    TOL_TRY(gguf_read_read_alignment(gguf));
    TOL_TRY(place_tensors(gguf, cursor.at));
out:
    free(cursor.bytes);
    return status;
}
