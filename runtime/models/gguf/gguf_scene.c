/*
 * Writes GGUF files for tests.
 */
#include "gguf_scene.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void maker_bytes(struct gguf_maker *maker, const void *bytes, size_t count) {
    if (maker->count + count > maker->room) {
        maker->room = 2 * (maker->count + count);
        maker->bytes = realloc(maker->bytes, maker->room);
        cr_assert_not_null(maker->bytes);
    }
    if (count > 0) memcpy(maker->bytes + maker->count, bytes, count);
    maker->count += count;
}

void maker_u32(struct gguf_maker *maker, uint32_t value) {
    maker_bytes(maker, &value, sizeof value);
}

void maker_u64(struct gguf_maker *maker, uint64_t value) {
    maker_bytes(maker, &value, sizeof value);
}

void maker_string(struct gguf_maker *maker, const char *text) {
    maker_u64(maker, strlen(text));
    maker_bytes(maker, text, strlen(text));
}

void maker_begin(struct gguf_maker *maker, uint32_t version, uint64_t tensors, uint64_t keys) {
    maker_end(maker);
    maker_bytes(maker, "GGUF", 4);
    maker_u32(maker, version);
    maker_u64(maker, tensors);
    maker_u64(maker, keys);
}

void maker_key(struct gguf_maker *maker, const char *key, enum tol_gguf_kind kind) {
    maker_string(maker, key);
    maker_u32(maker, kind);
}

void maker_key_u32(struct gguf_maker *maker, const char *key, uint32_t value) {
    maker_key(maker, key, TOL_GGUF_U32);
    maker_u32(maker, value);
}

void maker_key_string(struct gguf_maker *maker, const char *key, const char *value) {
    maker_key(maker, key, TOL_GGUF_STRING);
    maker_string(maker, value);
}

void maker_key_array(struct gguf_maker *maker, const char *key, uint32_t element, uint64_t count) {
    maker_key(maker, key, TOL_GGUF_ARRAY);
    maker_u32(maker, element);
    maker_u64(maker, count);
}

void maker_tensor(struct gguf_maker *maker, const char *name, uint32_t dimensions,
                  const uint64_t *extent, uint32_t type, uint64_t offset) {
    maker_string(maker, name);
    maker_u32(maker, dimensions);
    for (uint32_t i = 0; i < dimensions; i++) maker_u64(maker, extent[i]);
    maker_u32(maker, type);
    maker_u64(maker, offset);
}

void maker_pad(struct gguf_maker *maker, size_t alignment) {
    while (maker->count % alignment != 0) maker_bytes(maker, "", 1);
}

tol_status maker_open(struct gguf_maker *maker, struct tol_gguf **gguf) {
    if (maker->path[0] == '\0') {
        strcpy(maker->path, "/tmp/tollens-gguf-XXXXXX");
        int descriptor = mkstemp(maker->path);
        cr_assert(descriptor >= 0);
        close(descriptor);
    }
    FILE *file = fopen(maker->path, "wb");
    cr_assert_not_null(file);
    cr_assert(maker->count == 0 || fwrite(maker->bytes, maker->count, 1, file) == 1);
    cr_assert(fclose(file) == 0);
    return tol_gguf_open(maker->path, gguf);
}

void maker_must_fail(struct gguf_maker *maker, const char *text) {
    struct tol_gguf *gguf = NULL;
    MUST_FAIL(maker_open(maker, &gguf), TOL_INVALID_FILE, text);
    cr_assert_null(gguf);
}

void maker_end(struct gguf_maker *maker) {
    if (maker->path[0] != '\0') unlink(maker->path);
    free(maker->bytes);
    memset(maker, 0, sizeof *maker);
}
