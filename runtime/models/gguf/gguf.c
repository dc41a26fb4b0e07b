/*
 * Opening, looking up, reading. A file's contents are checked when it is opened (gguf_read.c,
 * gguf_check.c), so nothing here can meet a bad offset.
 */
#include "gguf_state.h"

#include "core/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long number;

tol_status tol_gguf_open_part(const char *path, struct tol_gguf **gguf) {
    tol_status status = TOL_OK;
    struct tol_gguf *made = NULL;
    made = calloc(1, sizeof *made);
    TOL_CHECK(made != NULL, TOL_OUT_OF_HOST_MEMORY, "%s", path);
    made->file.descriptor = -1;
    size_t length = strlen(path), room = sizeof made->path - 1;
    strcpy(made->path, path + (length > room ? length - room : 0));
    TOL_TRY(tol_file_open(path, &made->file));
    TOL_TRY(tol_gguf_read_head(made));
    TOL_TRY(tol_gguf_check_names(made));
    TOL_TRY(tol_gguf_check_overlaps(made));
    *gguf = made;
    made = NULL;
out:
    tol_gguf_close(made);
    return status;
}

tol_status tol_gguf_open(const char *path, struct tol_gguf **gguf) {
    tol_status status = TOL_OK;
    struct tol_gguf *made = NULL;
    TOL_CHECK(path != NULL && gguf != NULL, TOL_INVALID_ARGUMENT, "opening a GGUF file: NULL");
    TOL_TRY(tol_gguf_open_part(path, &made));
    TOL_TRY(tol_gguf_open_parts(path, &made));
    *gguf = made;
    made = NULL;
out:
    tol_gguf_close(made);
    return status;
}

void tol_gguf_close(struct tol_gguf *gguf) {
    if (gguf == NULL) return;
    for (size_t i = 0; i < gguf->part_count; i++) tol_gguf_close(gguf->parts[i]);
    free(gguf->parts);
    for (size_t i = 0; gguf->values != NULL && i < gguf->about.keys; i++) {
        free((void *)(uintptr_t)gguf->values[i].starts);
    }
    tol_file_close(&gguf->file);
    free(gguf->values_by_key);
    free(gguf->tensors_by_name);
    free(gguf->values);
    free(gguf->tensors);
    free(gguf->head);
    free(gguf);
}

void tol_gguf_describe(const struct tol_gguf *gguf, struct tol_gguf_description *description) {
    *description = gguf->about;
}

/* ---- keys ---- */

const struct tol_gguf_value *tol_gguf_value_at(const struct tol_gguf *gguf, size_t index) {
    return index < gguf->about.keys ? &gguf->values[index] : NULL;
}

const struct tol_gguf_value *tol_gguf_find(const struct tol_gguf *gguf, const char *key) {
    struct tol_gguf_text wanted = {key, strlen(key)};
    size_t low = 0, high = gguf->about.keys;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct tol_gguf_value *value = &gguf->values[gguf->values_by_key[middle]];
        int order = tol_gguf_compare(wanted, value->key);
        if (order == 0) return value;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

static tol_status find_value(const struct tol_gguf *gguf, const char *key, const void *result,
                             const struct tol_gguf_value **value) {
    tol_status status = TOL_OK;
    TOL_CHECK(gguf != NULL && key != NULL && result != NULL, TOL_INVALID_ARGUMENT,
              "looking up a key: NULL");
    *value = tol_gguf_find(gguf, key);
    TOL_CHECK(*value != NULL, TOL_NOT_FOUND, "%s does not have the key \"%s\"", gguf->path, key);
out:
    return status;
}

static tol_status gguf_refuse(const struct tol_gguf *gguf, const struct tol_gguf_value *value,
                              const char *wanted) {
    tol_status status = TOL_OK;
    char quoted[TOL_GGUF_QUOTED_BYTES];
    bool is_array = value->kind == TOL_GGUF_ARRAY;
    TOL_FAIL(TOL_INVALID_FILE, "%s: key %s at byte %llu is %s%s, not %s", gguf->path,
             tol_gguf_quote(value->key, quoted), (number)value->offset,
             is_array ? "an array of " : "of kind ", tol_gguf_kind_name(value->element), wanted);
out:
    return status;
}

static bool is_integer(enum tol_gguf_kind kind) {
    return kind != TOL_GGUF_F32 && kind != TOL_GGUF_F64 && kind != TOL_GGUF_BOOL &&
           kind != TOL_GGUF_STRING && kind != TOL_GGUF_ARRAY;
}

tol_status tol_gguf_get_unsigned(const struct tol_gguf *gguf, const char *key, uint64_t *value) {
    const struct tol_gguf_value *found = NULL;
    tol_status status = find_value(gguf, key, value, &found);
    if (status != TOL_OK) return status;
    bool is_unsigned = found->kind == TOL_GGUF_U64 || tol_gguf_signed_at(found, 0) >= 0;
    if (!is_integer(found->kind) || !is_unsigned)
        return gguf_refuse(gguf, found, "an unsigned integer");
    *value = tol_gguf_unsigned_at(found, 0);
    return TOL_OK;
}

tol_status tol_gguf_get_signed(const struct tol_gguf *gguf, const char *key, int64_t *value) {
    const struct tol_gguf_value *found = NULL;
    tol_status status = find_value(gguf, key, value, &found);
    if (status != TOL_OK) return status;
    bool fits = found->kind != TOL_GGUF_U64 || tol_gguf_unsigned_at(found, 0) <= INT64_MAX;
    if (!is_integer(found->kind) || !fits) return gguf_refuse(gguf, found, "a signed integer");
    *value = tol_gguf_signed_at(found, 0);
    return TOL_OK;
}

tol_status tol_gguf_get_real(const struct tol_gguf *gguf, const char *key, double *value) {
    const struct tol_gguf_value *found = NULL;
    tol_status status = find_value(gguf, key, value, &found);
    if (status != TOL_OK) return status;
    bool fits =
        is_integer(found->kind) || found->kind == TOL_GGUF_F32 || found->kind == TOL_GGUF_F64;
    if (!fits) return gguf_refuse(gguf, found, "a number");
    *value = tol_gguf_real_at(found, 0);
    return TOL_OK;
}

tol_status tol_gguf_get_bool(const struct tol_gguf *gguf, const char *key, bool *value) {
    const struct tol_gguf_value *found = NULL;
    tol_status status = find_value(gguf, key, value, &found);
    if (status != TOL_OK) return status;
    if (found->kind != TOL_GGUF_BOOL) return gguf_refuse(gguf, found, "a bool");
    *value = found->bytes[0] != 0;
    return TOL_OK;
}

tol_status tol_gguf_get_text(const struct tol_gguf *gguf, const char *key,
                             struct tol_gguf_text *value) {
    const struct tol_gguf_value *found = NULL;
    tol_status status = find_value(gguf, key, value, &found);
    if (status != TOL_OK) return status;
    if (found->kind != TOL_GGUF_STRING) return gguf_refuse(gguf, found, "a string");
    *value = tol_gguf_text_at(found, 0);
    return TOL_OK;
}

tol_status tol_gguf_get_array(const struct tol_gguf *gguf, const char *key,
                              enum tol_gguf_kind element, const struct tol_gguf_value **value) {
    const struct tol_gguf_value *found = NULL;
    char wanted[64];
    tol_status status = find_value(gguf, key, value, &found);
    if (status != TOL_OK) return status;
    if (found->kind != TOL_GGUF_ARRAY || found->element != element) {
        const char *name = tol_gguf_kind_name(element);
        snprintf(wanted, sizeof wanted, "an array of %s", name != NULL ? name : "?");
        return gguf_refuse(gguf, found, wanted);
    }
    *value = found;
    return TOL_OK;
}

/* ---- elements ---- */

/* The element's bytes, in the low part of a word. */
static uint64_t word_at(const struct tol_gguf_value *value, uint64_t index, unsigned *bytes) {
    uint64_t word = 0;
    *bytes = tol_gguf_kind_bytes(value->element);
    if (*bytes > 0 && index < value->count) {
        memcpy(&word, value->bytes + index * *bytes, *bytes);
    }
    return word;
}

static bool gguf_is_signed(enum tol_gguf_kind kind) {
    return kind == TOL_GGUF_I8 || kind == TOL_GGUF_I16 || kind == TOL_GGUF_I32 ||
           kind == TOL_GGUF_I64;
}

uint64_t tol_gguf_unsigned_at(const struct tol_gguf_value *value, uint64_t index) {
    return (uint64_t)tol_gguf_signed_at(value, index);
}

int64_t tol_gguf_signed_at(const struct tol_gguf_value *value, uint64_t index) {
    unsigned bytes = 0;
    uint64_t word = word_at(value, index, &bytes);
    if (!is_integer(value->element) && value->element != TOL_GGUF_BOOL) return 0;
    if (gguf_is_signed(value->element) && bytes < sizeof word) {
        uint64_t sign = 1ull << (8 * bytes - 1);
        word = (word ^ sign) - sign;
    }
    return (int64_t)word;
}

double tol_gguf_real_at(const struct tol_gguf_value *value, uint64_t index) {
    unsigned bytes = 0;
    uint64_t word = word_at(value, index, &bytes);
    float single = 0;
    double real = 0;
    if (value->element == TOL_GGUF_F32) {
        memcpy(&single, &word, sizeof single);
        return (double)single;
    }
    if (value->element == TOL_GGUF_F64) {
        memcpy(&real, &word, sizeof real);
        return real;
    }
    if (value->element == TOL_GGUF_U64) return (double)word;
    return (double)tol_gguf_signed_at(value, index);
}

struct tol_gguf_text tol_gguf_text_at(const struct tol_gguf_value *value, uint64_t index) {
    struct tol_gguf_text text = {"", 0};
    uint64_t length = 0;
    if (value->element != TOL_GGUF_STRING || index >= value->count) return text;
    /* The bytes of an array of strings are the whole head, of which starts has offsets. */
    const unsigned char *at =
        value->starts != NULL ? value->bytes + value->starts[index] : value->bytes;
    memcpy(&length, at, sizeof length);
    text.bytes = (const char *)at + sizeof length;
    text.count = (size_t)length;
    return text;
}

/* ---- tensors ---- */

const struct tol_gguf_tensor *tol_gguf_tensor_at(const struct tol_gguf *gguf, size_t index) {
    return index < gguf->about.tensors ? &gguf->tensors[index] : NULL;
}

const struct tol_gguf_tensor *tol_gguf_find_tensor(const struct tol_gguf *gguf, const char *name) {
    struct tol_gguf_text wanted = {name, strlen(name)};
    size_t low = 0, high = gguf->about.tensors;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct tol_gguf_tensor *tensor = &gguf->tensors[gguf->tensors_by_name[middle]];
        int order = tol_gguf_compare(wanted, tensor->name);
        if (order == 0) return tensor;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

tol_status tol_gguf_read(const struct tol_gguf *gguf, const struct tol_gguf_tensor *tensor,
                         uint64_t from, void *to, size_t bytes) {
    tol_status status = TOL_OK;
    char quoted[TOL_GGUF_QUOTED_BYTES];
    size_t got = 0;
    TOL_CHECK(gguf != NULL && tensor != NULL && (to != NULL || bytes == 0), TOL_INVALID_ARGUMENT,
              "reading a tensor: NULL");
    TOL_CHECK(from <= tensor->bytes && bytes <= tensor->bytes - from, TOL_OUT_OF_RANGE,
              "%s: %zu bytes from byte %llu on of tensor %s, which has %llu", gguf->path, bytes,
              (number)from, tol_gguf_quote(tensor->name, quoted), (number)tensor->bytes);
    const struct tol_gguf *part = tol_gguf_part(gguf, tensor);
    TOL_TRY(tol_file_read(&part->file, tensor->offset + from, to, bytes, &got));
    TOL_CHECK(got == bytes, TOL_INVALID_FILE,
              "%s: tensor %s: the file ends at byte %llu; it had %llu bytes when it was opened",
              part->path, tol_gguf_quote(tensor->name, quoted),
              (number)(tensor->offset + from + got), (number)part->file.bytes);
out:
    return status;
}
