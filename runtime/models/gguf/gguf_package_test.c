/*
 * The reader against the format's own package: fixtures/models/package.json has what the package
 * gguf found in each file there (fixtures/models/describe.py).
 */
#include "test/test_device.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static bool same(struct tol_gguf_text text, const char *expected) {
    return text.count == strlen(expected) && memcmp(text.bytes, expected, text.count) == 0;
}

/* CRC-32 of an array as describe.py computes it. */
static uint32_t checksum(const struct tol_gguf_value *value) {
    uLong total = crc32(0, NULL, 0);
    for (uint64_t i = 0; i < value->count; i++) {
        if (value->element == TOL_GGUF_STRING) {
            struct tol_gguf_text text = tol_gguf_text_at(value, i);
            uint64_t length = text.count;
            total = crc32(total, (const Bytef *)&length, sizeof length);
            if (length > 0) total = crc32(total, (const Bytef *)text.bytes, (uInt)length);
        } else if (value->element == TOL_GGUF_F32) {
            float number = (float)tol_gguf_real_at(value, i);
            total = crc32(total, (const Bytef *)&number, sizeof number);
        } else {
            int32_t number = (int32_t)tol_gguf_signed_at(value, i);
            cr_assert(value->element == TOL_GGUF_I32, "no other arrays are in these files");
            total = crc32(total, (const Bytef *)&number, sizeof number);
        }
    }
    return (uint32_t)total;
}

static void check_value(const struct tol_gguf *gguf, const char *key, json_t *expected) {
    const struct tol_gguf_value *value = tol_gguf_find(gguf, key);
    json_t *single = json_object_get(expected, "value");
    cr_assert_not_null(value, "%s", key);
    cr_assert_str_eq(tol_gguf_kind_name(value->kind),
                     json_string_value(json_object_get(expected, "kind")), "%s", key);
    if (value->kind == TOL_GGUF_ARRAY) {
        cr_assert_str_eq(tol_gguf_kind_name(value->element),
                         json_string_value(json_object_get(expected, "element")), "%s", key);
        cr_assert(value->count == (uint64_t)json_integer_value(json_object_get(expected, "count")));
        cr_assert(checksum(value) ==
                      (uint32_t)json_integer_value(json_object_get(expected, "crc32")),
                  "%s", key);
    } else if (json_is_string(single)) {
        cr_assert(same(tol_gguf_text_at(value, 0), json_string_value(single)), "%s", key);
    } else if (json_is_boolean(single)) {
        cr_assert(tol_gguf_unsigned_at(value, 0) == (uint64_t)json_boolean_value(single));
    } else {
        cr_assert(tol_gguf_real_at(value, 0) == json_number_value(single), "%s", key);
    }
}

static void check_tensor(const struct tol_gguf *gguf, size_t index, json_t *expected) {
    const struct tol_gguf_tensor *tensor = tol_gguf_tensor_at(gguf, index);
    const char *name = json_string_value(json_object_get(expected, "name"));
    json_t *extent = json_object_get(expected, "extent");
    cr_assert(tensor != NULL && same(tensor->name, name), "%s", name);
    cr_assert(tol_gguf_find_tensor(gguf, name) == tensor);
    cr_assert_str_eq(tol_tensor_type_name(tensor->type),
                     json_string_value(json_object_get(expected, "type")));
    cr_assert(tensor->dimensions == json_array_size(extent));
    for (unsigned i = 0; i < tensor->dimensions; i++) {
        cr_assert(tensor->extent[i] == (uint64_t)json_integer_value(json_array_get(extent, i)));
    }
    cr_assert(tensor->bytes == (uint64_t)json_integer_value(json_object_get(expected, "bytes")));
    cr_assert(tensor->offset == (uint64_t)json_integer_value(json_object_get(expected, "offset")));
    unsigned char *bytes = malloc(tensor->bytes);
    cr_assert_not_null(bytes);
    MUST(tol_gguf_read(gguf, tensor, 0, bytes, tensor->bytes));
    cr_assert(crc32(crc32(0, NULL, 0), bytes, (uInt)tensor->bytes) ==
                  (uLong)json_integer_value(json_object_get(expected, "crc32")),
              "%s", name);
    free(bytes);
}

static void check_file(const char *name, json_t *expected) {
    char path[256];
    struct tol_gguf *gguf = NULL;
    struct tol_gguf_description about;
    const char *key;
    json_t *keys = json_object_get(expected, "keys"), *each;
    json_t *tensors = json_object_get(expected, "tensors");
    snprintf(path, sizeof path, "models/%s", name);
    MUST(tol_gguf_open(test_fixture_path(path), &gguf));
    tol_gguf_describe(gguf, &about);
    cr_assert(about.version == json_integer_value(json_object_get(expected, "version")));
    cr_assert(about.alignment == json_integer_value(json_object_get(expected, "alignment")));
    cr_assert(about.keys == json_object_size(keys) && about.keys > 5, "%s", name);
    cr_assert(about.tensors == json_array_size(tensors));
    json_object_foreach(keys, key, each) check_value(gguf, key, each);
    for (size_t i = 0; i < about.tensors; i++) check_tensor(gguf, i, json_array_get(tensors, i));
    tol_gguf_close(gguf);
}

Test(gguf, the_reader_agrees_with_the_format_s_own_package) {
    size_t bytes = 0;
    const char *name;
    json_t *expected;
    char *text = test_fixture("models/package.json", &bytes);
    json_t *all = json_loadb(text, bytes, 0, NULL), *files = json_object_get(all, "files");
    cr_assert(json_object_size(files) == 12);
    json_object_foreach(files, name, expected) check_file(name, expected);
    json_decref(all);
    free(text);
}
