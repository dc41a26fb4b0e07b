/*
 * Files that must be refused: each with one sentence that names the key or the tensor and the byte.
 */
#include "gguf_scene.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint64_t extents[5] = {32, 2, 1, 1, 1};

/* A file with one tensor of 256 bytes, which the caller describes; without its data. */
static void with_tensor(struct gguf_maker *maker, const char *name, uint32_t dimensions,
                        const uint64_t *extent, uint32_t type, uint64_t offset) {
    maker_begin(maker, 3, 1, 0);
    maker_tensor(maker, name, dimensions, extent, type, offset);
    maker_pad(maker, 32);
}

static void data(struct gguf_maker *maker, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) maker_bytes(maker, "", 1);
}

Test(gguf_hostile, headers) {
    struct gguf_maker maker = {.bytes = NULL};
    maker_end(&maker);
    maker_must_fail(&maker, "the header at byte 0 needs 4 bytes, and the file ends after 0");
    maker_bytes(&maker, "PK\3\4", 4);
    maker_must_fail(&maker, "is not a GGUF file: it begins with the bytes 50 4b 03 04");
    maker_begin(&maker, 3, 0, 0);
    maker.count = 23;
    maker_must_fail(&maker, "the header at byte 16 needs 8 bytes, and the file ends after 7");
    maker_begin(&maker, 1, 0, 0);
    maker_must_fail(&maker, "has version 1 of GGUF at byte 4; 2 and 3 are supported");
    maker_begin(&maker, 0, 0, 0);
    maker_must_fail(&maker, "has version 0 of GGUF at byte 4");
    maker_begin(&maker, 4, 0, 0);
    maker_must_fail(&maker, "has version 4 of GGUF at byte 4");
    maker_begin(&maker, 0x03000000, 0, 0);
    maker_must_fail(&maker, "is big-endian (byte 4)");
    maker_begin(&maker, 3, 100001, 0);
    maker_must_fail(&maker, "states 100001 tensors at byte 8; at most 100000");
    maker_begin(&maker, 3, 0, UINT64_MAX);
    maker_must_fail(&maker, "states 18446744073709551615 keys at byte 16; at most 100000");
    maker_begin(&maker, 3, 1000, 0);
    data(&maker, 100);
    maker_must_fail(&maker,
                    "states 1000 tensors at byte 8 and 0 keys at byte 16, and the file ends "
                    "after 124 bytes");
    maker_begin(&maker, 3, 100000, 100000);
    maker_must_fail(&maker, "states 100000 tensors at byte 8 and 100000 keys at byte 16, and the "
                            "file ends after 24 bytes");
    maker_end(&maker);
}

Test(gguf_hostile, keys) {
    struct gguf_maker maker = {.bytes = NULL};
    maker_begin(&maker, 3, 0, 1);
    maker_u64(&maker, 65536);
    data(&maker, 70000);
    maker_must_fail(&maker, "key 0: the length 65536 at byte 24 exceeds the limit of 65535");
    maker_begin(&maker, 3, 0, 1);
    maker_u64(&maker, 1000);
    data(&maker, 20);
    maker_must_fail(&maker, "key 0 at byte 32 needs 1000 bytes, and the file ends after 20");
    maker_begin(&maker, 3, 0, 1);
    maker_u64(&maker, 0);
    data(&maker, 20);
    maker_must_fail(&maker, "key 0 at byte 24 has no name");
    maker_begin(&maker, 3, 0, 1);
    maker_key(&maker, "a.b", (enum tol_gguf_kind)13);
    data(&maker, 20);
    maker_must_fail(&maker, "key \"a.b\": a value of the unknown kind 13 at byte 35");
    maker_begin(&maker, 3, 0, 1);
    maker_key(&maker, "a\"\n\xff", TOL_GGUF_BOOL);
    maker_bytes(&maker, "\2", 1);
    maker_must_fail(&maker, "key \"a\\x22\\x0a\\xff\": the bool at byte 40 is 2, neither 0 nor 1");
    maker_begin(&maker, 3, 0, 1);
    maker_key(&maker, "a.b", TOL_GGUF_U64);
    data(&maker, 7);
    maker_must_fail(&maker,
                    "key \"a.b\": 1 elements of 8 bytes at byte 39, and the file ends after "
                    "7 bytes");
    maker_begin(&maker, 3, 0, 2);
    maker_key_u32(&maker, "same", 1);
    maker_key_u32(&maker, "same", 1);
    maker_must_fail(&maker, "key \"same\" at byte 44 occurs a second time");
    maker_end(&maker);
}

Test(gguf_hostile, strings_and_arrays) {
    struct gguf_maker maker = {.bytes = NULL};
    maker_begin(&maker, 3, 0, 1);
    maker_key(&maker, "s", TOL_GGUF_STRING);
    maker_u64(&maker, (16u << 20) + 1);
    maker_must_fail(&maker,
                    "key \"s\": the length 16777217 at byte 37 exceeds the limit of 16777216");
    maker_begin(&maker, 3, 0, 1);
    maker_key(&maker, "s", TOL_GGUF_STRING);
    maker_u64(&maker, UINT64_MAX);
    maker_must_fail(&maker, "key \"s\": the length 18446744073709551615 at byte 37");
    maker_begin(&maker, 3, 0, 1);
    maker_key_array(&maker, "a", TOL_GGUF_ARRAY, 1);
    data(&maker, 64);
    maker_must_fail(&maker, "key \"a\": an array of arrays at byte 37 is not supported");
    maker_begin(&maker, 3, 0, 1);
    maker_key_array(&maker, "a", 99, 1);
    data(&maker, 64);
    maker_must_fail(&maker, "key \"a\": elements of the unknown kind 99 at byte 37");
    /* The product overflows to what would fit. */
    maker_begin(&maker, 3, 0, 1);
    maker_key_array(&maker, "a", TOL_GGUF_U64, (1ull << 61) + 1);
    data(&maker, 64);
    maker_must_fail(&maker,
                    "key \"a\": 2305843009213693953 elements of 8 bytes at byte 49, and the "
                    "file ends after 64 bytes");
    maker_begin(&maker, 3, 0, 1);
    maker_key_array(&maker, "a", TOL_GGUF_STRING, 9);
    data(&maker, 64);
    maker_must_fail(&maker, "key \"a\": 9 strings at byte 49, and the file ends after 64 bytes");
    maker_begin(&maker, 3, 0, 1);
    maker_key_array(&maker, "a", TOL_GGUF_STRING, 2);
    maker_string(&maker, "one");
    maker_u64(&maker, 4);
    maker_bytes(&maker, "two", 3);
    maker_must_fail(&maker, "key \"a\" at byte 68 needs 4 bytes, and the file ends after 3");
    maker_begin(&maker, 3, 0, 1);
    maker_key_array(&maker, "a", TOL_GGUF_BOOL, 3);
    maker_bytes(&maker, "\1\0\3", 3);
    maker_must_fail(&maker, "key \"a\": the bool at byte 51 is 3");
    maker_end(&maker);
}

Test(gguf_hostile, alignments) {
    static const uint32_t wrong[] = {0, 1, 4, 24, 33, 1u << 21, UINT32_MAX};
    struct gguf_maker maker = {.bytes = NULL};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char expected[128];
        maker_begin(&maker, 3, 0, 1);
        maker_key_u32(&maker, "general.alignment", wrong[i]);
        snprintf(expected, sizeof expected,
                 "key \"general.alignment\" at byte 24 is %u; it must be", wrong[i]);
        maker_must_fail(&maker, expected);
    }
    maker_begin(&maker, 3, 0, 1);
    maker_key_string(&maker, "general.alignment", "32");
    maker_must_fail(&maker, "key \"general.alignment\" at byte 24 is a string, not a u32");
    maker_end(&maker);
}

Test(gguf_hostile, tensors) {
    static const uint64_t zero[2] = {32, 0}, huge[3] = {1ull << 32, 1ull << 31, 1};
    static const uint64_t many[4] = {1ull << 60, 1, 1, 1};
    struct gguf_maker maker = {.bytes = NULL};
    with_tensor(&maker, "w", 5, extents, TOL_TENSOR_F32, 0);
    maker_must_fail(&maker, "tensor \"w\" has 5 dimensions at byte 33; at most 4");
    with_tensor(&maker, "w", 2, zero, TOL_TENSOR_F32, 0);
    maker_must_fail(&maker, "tensor \"w\": dimension 1 at byte 45 is 0");
    with_tensor(&maker, "w", 3, huge, TOL_TENSOR_F32, 0);
    maker_must_fail(&maker, "tensor \"w\": dimension 1 at byte 45 is 2147483648, and the product "
                            "overflows");
    with_tensor(&maker, "w", 1, many, TOL_TENSOR_F64, 0);
    maker_must_fail(&maker,
                    "tensor \"w\": 1152921504606846976 elements of F64 at byte 37 are more");
    with_tensor(&maker, "w", 2, extents, 43, 0);
    maker_must_fail(&maker, "tensor \"w\" has the unknown type 43 at byte 53");
    with_tensor(&maker, "w", 2, extents, 4, 0);
    maker_must_fail(&maker,
                    "tensor \"w\" has the type Q4_2 (4) at byte 53, which ggml has removed");
    with_tensor(&maker, "w", 2, extents, 31, 0);
    maker_must_fail(&maker,
                    "has the type Q4_0_4_4 (31) at byte 53, which ggml has removed; use Q4_0");
    with_tensor(&maker, "w", 2, extents, 38, 0);
    maker_must_fail(&maker, "has the type IQ4_NL_8_8 (38) at byte 53, which ggml has removed; use "
                            "IQ4_NL instead");
    with_tensor(&maker, "w", 2, extents, TOL_TENSOR_Q4_K, 0);
    maker_must_fail(&maker, "tensor \"w\": dimension 0 at byte 37 is 32, not a multiple of the 256 "
                            "elements of a block of Q4_K");
    with_tensor(&maker, "", 1, extents, TOL_TENSOR_F32, 0);
    maker_must_fail(&maker, "tensor 0 at byte 24 has no name");
    with_tensor(&maker, "a name of 65 bytes, which is one more than the format permits .....", 1,
                extents, TOL_TENSOR_F32, 0);
    maker_must_fail(&maker, "tensor 0: the length 67 at byte 24 exceeds the limit of 64");
    maker_end(&maker);
}

Test(gguf_hostile, places) {
    struct gguf_maker maker = {.bytes = NULL};
    with_tensor(&maker, "w", 2, extents, TOL_TENSOR_F32, 0);
    maker_must_fail(&maker, "the tensors' data begins at byte 96, and the file ends after 96");
    data(&maker, 255);
    maker_must_fail(&maker, "tensor \"w\": 256 bytes at byte 0 of the data, which begins at byte "
                            "96, and the file ends after 351 bytes");
    with_tensor(&maker, "w", 2, extents, TOL_TENSOR_F32, 8);
    data(&maker, 512);
    maker_must_fail(&maker, "tensor \"w\": its data at byte 8 of the data is not aligned to 32");
    with_tensor(&maker, "w", 2, extents, TOL_TENSOR_F32, UINT64_MAX - 31);
    data(&maker, 512);
    maker_must_fail(&maker, "tensor \"w\": 256 bytes at byte 18446744073709551584 of the data");
    maker_begin(&maker, 3, 2, 0);
    maker_tensor(&maker, "w", 2, extents, TOL_TENSOR_F32, 224);
    maker_tensor(&maker, "x", 2, extents, TOL_TENSOR_F32, 0);
    maker_pad(&maker, 32);
    data(&maker, 512);
    maker_must_fail(&maker, "tensor \"w\" begins at byte 352, and tensor \"x\" before it ends at "
                            "byte 384");
    maker_begin(&maker, 3, 2, 0);
    maker_tensor(&maker, "w", 2, extents, TOL_TENSOR_F32, 0);
    maker_tensor(&maker, "w", 2, extents, TOL_TENSOR_F32, 256);
    maker_pad(&maker, 32);
    data(&maker, 512);
    maker_must_fail(&maker, "tensor \"w\" at byte 65 occurs a second time");
    maker_end(&maker);
}

/* A sparse file costs no disk; what it states must not cost memory. */
Test(gguf_hostile, a_head_above_the_limit_is_refused_before_it_is_read) {
    struct gguf_maker maker = {.bytes = NULL};
    struct tol_gguf *gguf = NULL;
    maker_begin(&maker, 3, 0, 1);
    maker_key_array(&maker, "a", TOL_GGUF_U8, 1ull << 40);
    maker_must_fail(&maker, "1099511627776 elements of 1 bytes at byte 49");
    if (truncate(maker.path, (off_t)(2ull << 40)) == 0) {
        MUST_FAIL(tol_gguf_open(maker.path, &gguf), TOL_INVALID_FILE,
                  "key \"a\" at byte 49 needs 1099511627776 bytes, which is beyond the 268435456");
    }
    maker_end(&maker);
}

/* ---- every byte ---- */

static void make_good(struct gguf_maker *maker) {
    maker_begin(maker, 3, 2, 4);
    maker_key_string(maker, "general.architecture", "llama");
    maker_key_u32(maker, "general.alignment", 64);
    maker_key_array(maker, "tokens", TOL_GGUF_STRING, 2);
    maker_string(maker, "a");
    maker_string(maker, "bc");
    maker_key_array(maker, "types", TOL_GGUF_BOOL, 2);
    maker_bytes(maker, "\1\0", 2);
    maker_tensor(maker, "w", 2, extents, TOL_TENSOR_Q8_0, 0);
    maker_tensor(maker, "b", 1, extents, TOL_TENSOR_F32, 128);
    maker_pad(maker, 64);
    data(maker, 256);
}

Test(gguf_hostile, a_file_that_ends_anywhere_is_refused) {
    struct gguf_maker maker = {.bytes = NULL};
    struct tol_gguf *gguf = NULL;
    make_good(&maker);
    MUST(maker_open(&maker, &gguf));
    tol_gguf_close(gguf);
    for (size_t end = maker.count; end-- > 0;) {
        maker.count = end;
        maker_must_fail(&maker, maker.path);
    }
    maker_end(&maker);
}

/* Changed in any byte, it is refused with a sentence, or what it states lies inside it. */
Test(gguf_hostile, a_file_that_is_damaged_anywhere_is_refused_or_makes_sense) {
    static const unsigned char damage[] = {0x01, 0x10, 0x80, 0xff};
    struct gguf_maker maker = {.bytes = NULL};
    size_t refused = 0, accepted = 0;
    make_good(&maker);
    for (size_t i = 0; i + 256 < maker.count; i++) {
        for (size_t j = 0; j < sizeof damage; j++) {
            struct tol_gguf *gguf = NULL;
            unsigned char bytes[256];
            maker.bytes[i] ^= damage[j];
            tol_status status = maker_open(&maker, &gguf);
            maker.bytes[i] ^= damage[j];
            if (status != TOL_OK) {
                cr_assert(status == TOL_INVALID_FILE && strstr(tol_message(), maker.path) != NULL);
                refused++;
                continue;
            }
            const struct tol_gguf_tensor *tensor = tol_gguf_tensor_at(gguf, 1);
            cr_assert(tensor->bytes <= sizeof bytes);
            MUST(tol_gguf_read(gguf, tensor, 0, bytes, tensor->bytes));
            accepted++;
            tol_gguf_close(gguf);
        }
    }
    cr_assert(refused > 500 && accepted > 100, "%zu refused, %zu accepted", refused, accepted);
    maker_end(&maker);
}

Test(gguf_hostile, a_pipe_is_no_file) {
    char path[] = "/tmp/tollens-pipe-XXXXXX";
    struct tol_gguf *gguf = NULL;
    cr_assert(mkdtemp(path) != NULL);
    cr_assert(rmdir(path) == 0 && mkfifo(path, 0600) == 0);
    MUST_FAIL(tol_gguf_open(path, &gguf), TOL_UNREADABLE, "is not a regular file");
    unlink(path);
}
