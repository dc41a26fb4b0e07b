/*
 * What the reader finds in good files that are made here. gguf_hostile_test.c has the bad ones.
 */
#include "gguf_scene.h"

#include <string.h>
#include <unistd.h>

static bool same(struct tol_gguf_text text, const char *expected) {
    return text.count == strlen(expected) && memcmp(text.bytes, expected, text.count) == 0;
}

/* A file with a value of each kind, two arrays and two tensors. */
static void make_one_of_each(struct gguf_maker *maker, uint32_t version) {
    const uint64_t matrix[2] = {64, 3}, row[1] = {5};
    const uint8_t byte = 200;
    const int16_t negative = -2;
    const double real = 0.1;
    const float single = 1.5f;
    maker_begin(maker, version, 2, 9);
    maker_key_string(maker, "general.architecture", "llama");
    maker_key_u32(maker, "u32", 4000000000u);
    maker_key(maker, "u8", TOL_GGUF_U8);
    maker_bytes(maker, &byte, 1);
    maker_key(maker, "i16", TOL_GGUF_I16);
    maker_bytes(maker, &negative, 2);
    maker_key(maker, "bool", TOL_GGUF_BOOL);
    maker_bytes(maker, "\1", 1);
    maker_key(maker, "f64", TOL_GGUF_F64);
    maker_bytes(maker, &real, sizeof real);
    maker_key(maker, "u64", TOL_GGUF_U64);
    maker_u64(maker, UINT64_MAX);
    maker_key_array(maker, "tokens", TOL_GGUF_STRING, 3);
    maker_string(maker, "a");
    maker_string(maker, "");
    maker_string(maker, "\xff"
                        "c");
    maker_key_array(maker, "scores", TOL_GGUF_F32, 2);
    maker_bytes(maker, &single, sizeof single);
    maker_bytes(maker, &single, sizeof single);
    maker_tensor(maker, "w", 2, matrix, TOL_TENSOR_Q8_0, 32);
    maker_tensor(maker, "b", 1, row, TOL_TENSOR_F32, 0);
    maker_pad(maker, 32);
    for (unsigned char i = 0; i < 32 + 204; i++) maker_bytes(maker, &i, 1);
}

Test(gguf, an_absent_file_is_refused_by_name) {
    struct tol_gguf *gguf = NULL;
    MUST_FAIL(tol_gguf_open("/nonexistent/model.gguf", &gguf), TOL_UNREADABLE, "model.gguf");
    MUST_FAIL(tol_gguf_open("/tmp", &gguf), TOL_UNREADABLE, "not a regular file");
    MUST_FAIL(tol_gguf_open(NULL, &gguf), TOL_INVALID_ARGUMENT, "NULL");
    cr_assert_null(gguf);
    tol_gguf_close(NULL);
}

Test(gguf, a_file_is_described_in_both_versions) {
    for (uint32_t version = 2; version <= 3; version++) {
        struct gguf_maker maker = {.bytes = NULL};
        struct tol_gguf *gguf = NULL;
        struct tol_gguf_description about;
        make_one_of_each(&maker, version);
        MUST(maker_open(&maker, &gguf));
        tol_gguf_describe(gguf, &about);
        cr_assert(about.version == version && about.alignment == 32);
        cr_assert(about.keys == 9 && about.tensors == 2 && about.tensor_bytes == 204 + 20);
        cr_assert(about.file_bytes == maker.count && about.data_offset == maker.count - 236);
        cr_assert_null(tol_gguf_value_at(gguf, 9));
        cr_assert_null(tol_gguf_tensor_at(gguf, 2));
        tol_gguf_close(gguf);
        maker_end(&maker);
    }
}

Test(gguf, values_are_found_and_converted_where_they_fit) {
    struct gguf_maker maker = {.bytes = NULL};
    struct tol_gguf *gguf = NULL;
    struct tol_gguf_text text;
    uint64_t natural = 7;
    int64_t integer = 7;
    double real = 7;
    bool flag = false;
    make_one_of_each(&maker, 3);
    MUST(maker_open(&maker, &gguf));
    MUST(tol_gguf_get_text(gguf, "general.architecture", &text));
    cr_assert(same(text, "llama"));
    MUST_FAIL(tol_gguf_get_unsigned(gguf, "u3", &natural), TOL_NOT_FOUND, "\"u3\"");
    MUST_FAIL(tol_gguf_get_unsigned(gguf, "i16", &natural), TOL_INVALID_FILE,
              "key \"i16\" at byte 103 is of kind i16, not an unsigned integer");
    MUST_FAIL(tol_gguf_get_signed(gguf, "u64", &integer), TOL_INVALID_FILE, "u64");
    MUST_FAIL(tol_gguf_get_real(gguf, "tokens", &real), TOL_INVALID_FILE,
              "is an array of string, not a number");
    MUST_FAIL(tol_gguf_get_bool(gguf, "u8", &flag), TOL_INVALID_FILE, "not a bool");
    MUST_FAIL(tol_gguf_get_text(gguf, "u8", &text), TOL_INVALID_FILE, "not a string");
    MUST_FAIL(tol_gguf_get_text(gguf, NULL, &text), TOL_INVALID_ARGUMENT, "NULL");
    cr_assert(natural == 7 && integer == 7 && real == 7 && !flag);
    MUST(tol_gguf_get_unsigned(gguf, "u32", &natural));
    cr_assert(natural == 4000000000u);
    MUST(tol_gguf_get_unsigned(gguf, "u64", &natural));
    cr_assert(natural == UINT64_MAX);
    MUST(tol_gguf_get_unsigned(gguf, "u8", &natural));
    cr_assert(natural == 200);
    MUST(tol_gguf_get_signed(gguf, "i16", &integer));
    cr_assert(integer == -2);
    MUST(tol_gguf_get_real(gguf, "i16", &real));
    cr_assert(real == -2);
    MUST(tol_gguf_get_real(gguf, "f64", &real));
    cr_assert(real == 0.1);
    MUST(tol_gguf_get_bool(gguf, "bool", &flag));
    cr_assert(flag);
    tol_gguf_close(gguf);
    maker_end(&maker);
}

Test(gguf, arrays_are_read_element_by_element) {
    struct gguf_maker maker = {.bytes = NULL};
    struct tol_gguf *gguf = NULL;
    const struct tol_gguf_value *array = NULL;
    make_one_of_each(&maker, 3);
    MUST(maker_open(&maker, &gguf));
    MUST_FAIL(tol_gguf_get_array(gguf, "tokens", TOL_GGUF_F32, &array), TOL_INVALID_FILE,
              "is an array of string, not an array of f32");
    MUST_FAIL(tol_gguf_get_array(gguf, "u8", TOL_GGUF_U8, &array), TOL_INVALID_FILE,
              "is of kind u8, not an array of u8");
    MUST(tol_gguf_get_array(gguf, "tokens", TOL_GGUF_STRING, &array));
    cr_assert(array->count == 3);
    cr_assert(same(tol_gguf_text_at(array, 0), "a") && same(tol_gguf_text_at(array, 1), ""));
    cr_assert(same(tol_gguf_text_at(array, 2), "\xff"
                                               "c"));
    cr_assert(tol_gguf_text_at(array, 3).count == 0 && tol_gguf_unsigned_at(array, 0) == 0);
    MUST(tol_gguf_get_array(gguf, "scores", TOL_GGUF_F32, &array));
    cr_assert(array->count == 2 && tol_gguf_real_at(array, 1) == 1.5);
    cr_assert(tol_gguf_real_at(array, 2) == 0 && tol_gguf_text_at(array, 0).count == 0);
    tol_gguf_close(gguf);
    maker_end(&maker);
}

Test(gguf, a_tensor_is_found_and_its_bytes_are_read) {
    struct gguf_maker maker = {.bytes = NULL};
    struct tol_gguf *gguf = NULL;
    unsigned char bytes[204];
    make_one_of_each(&maker, 3);
    MUST(maker_open(&maker, &gguf));
    const struct tol_gguf_tensor *tensor = tol_gguf_find_tensor(gguf, "w");
    cr_assert(tensor == tol_gguf_tensor_at(gguf, 0));
    cr_assert_null(tol_gguf_find_tensor(gguf, "W"));
    cr_assert(tensor->type == TOL_TENSOR_Q8_0 && tensor->dimensions == 2);
    cr_assert(tensor->extent[0] == 64 && tensor->extent[1] == 3 && tensor->extent[2] == 1);
    cr_assert(tensor->elements == 192 && tensor->bytes == 204);
    MUST(tol_gguf_read(gguf, tensor, 0, bytes, sizeof bytes));
    cr_assert(bytes[0] == 32 && bytes[203] == 235);
    MUST(tol_gguf_read(gguf, tensor, 200, bytes, 4));
    cr_assert(bytes[0] == 232);
    MUST_FAIL(tol_gguf_read(gguf, tensor, 200, bytes, 5), TOL_OUT_OF_RANGE,
              "5 bytes from byte 200 on of tensor \"w\", which has 204");
    MUST_FAIL(tol_gguf_read(gguf, tensor, UINT64_MAX, bytes, 5), TOL_OUT_OF_RANGE, "\"w\"");
    MUST_FAIL(tol_gguf_read(gguf, tensor, 0, NULL, 5), TOL_INVALID_ARGUMENT, "NULL");
    tol_gguf_close(gguf);
    maker_end(&maker);
}

Test(gguf, a_file_that_shrinks_is_a_status) {
    struct gguf_maker maker = {.bytes = NULL};
    struct tol_gguf *gguf = NULL;
    unsigned char bytes[204];
    make_one_of_each(&maker, 3);
    MUST(maker_open(&maker, &gguf));
    cr_assert(truncate(maker.path, (off_t)maker.count - 10) == 0);
    const struct tol_gguf_tensor *tensor = tol_gguf_find_tensor(gguf, "w");
    MUST(tol_gguf_read(gguf, tensor, 0, bytes, 194));
    MUST_FAIL(tol_gguf_read(gguf, tensor, 0, bytes, 204), TOL_INVALID_FILE,
              "tensor \"w\": the file ends at byte");
    /* What was read when it was opened is still there. */
    struct tol_gguf_text text;
    MUST(tol_gguf_get_text(gguf, "general.architecture", &text));
    cr_assert(same(text, "llama"));
    tol_gguf_close(gguf);
    maker_end(&maker);
}

Test(gguf, kinds_and_types_have_names_and_sizes) {
    cr_assert_str_eq(tol_gguf_kind_name(TOL_GGUF_STRING), "string");
    cr_assert_null(tol_gguf_kind_name(13));
    cr_assert_str_eq(tol_tensor_type_name(TOL_TENSOR_Q4_K), "Q4_K");
    cr_assert_null(tol_tensor_type_name(4)); /* removed from ggml */
    cr_assert(tol_tensor_block_elements(TOL_TENSOR_Q6_K) == 256);
    cr_assert(tol_tensor_block_bytes(TOL_TENSOR_Q6_K) == 210);
    cr_assert(tol_tensor_block_elements(5) == 0 && tol_tensor_block_bytes(5) == 0);
}
