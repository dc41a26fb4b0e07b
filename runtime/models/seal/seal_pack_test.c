/*
 * Packed objects: what is packed comes out again; every changed byte, every cut, a chunk in
 * another's place and another key are refused; files are complete.
 */
#include "seal.h"

#include "inputs.h"
#include "seal/hex.h"
#include "seal_key.h"
#include "seal_rows.h"
#include "test/test_device.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { CHUNK = 16384 };

static struct tol_seal_key *key;
static char *plain, *opened;
static void *packed;
static size_t packed_bytes;

static void begin(void) {
    uint8_t secret[32];
    for (size_t i = 0; i < sizeof secret; i++) secret[i] = (uint8_t)(3 * i + 1);
    if (tol_seal_key_create(secret, sizeof secret, &key) == TOL_UNSUPPORTED) {
        cr_skip_test("there is no libcrypto.so.3");
    }
    cr_assert(key != NULL, "%s", tol_message());
}

static void end(void) {
    tol_seal_key_destroy(key);
    free(plain), free(opened), free(packed);
}

TestSuite(seal_pack, .init = begin, .fini = end);

static void pack(struct tol_seal_shape shape, const char *label) {
    const size_t bytes = shape.rows * shape.row_bytes;
    uint64_t random = bytes;
    free(plain), free(opened), free(packed);
    plain = malloc(bytes), opened = malloc(bytes);
    cr_assert(plain != NULL && opened != NULL);
    for (size_t i = 0; i < bytes; i++) plain[i] = (char)kn_random(&random);
    MUST(tol_seal_pack(key, shape, label, plain, &packed, &packed_bytes));
}

static void must_round(size_t rows, size_t row_bytes, const char *label) {
    struct tol_seal_info info;
    const size_t bytes = rows * row_bytes;
    pack((struct tol_seal_shape){rows, row_bytes}, label);
    MUST(tol_seal_read_info(key, packed, packed_bytes, &info));
    cr_assert(info.shape.rows == rows && info.shape.row_bytes == row_bytes);
    cr_assert_str_eq(info.label, label != NULL ? label : "");
    cr_assert_eq(info.chunks, (rows * ((row_bytes + 63) / 64 * 64) + CHUNK - 1) / CHUNK);
    MUST(tol_seal_unpack(key, packed, packed_bytes, opened, bytes));
    cr_assert_arr_eq(opened, plain, bytes, "%zu rows of %zu bytes", rows, row_bytes);
}

Test(seal_pack, what_is_packed_comes_out_again) {
    must_round(1, 1, NULL);
    must_round(1, CHUNK, "blk.0.attn_q.weight");
    must_round(1, 3 * CHUNK + 5, "");
    must_round(37, 144, "rows");
    must_round(5, 144 * 29, "rows of more than a unit");
    must_round(3, 64, NULL);
    must_round(700, 65, "63 bytes: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
}

/* What is sealed of rows, piece by piece at any offsets, and back: gaps are zeros, whatever was in
 * the buffer. */
Test(seal_pack, gaps_after_rows_are_zeros) {
    enum { ROWS = 7, ROW = 144, ALL = ROWS * 192 };
    const struct tol_seal_shape shape = {ROWS, ROW};
    char rows[ROWS * ROW], sealed[ALL], back[ROWS * ROW];
    cr_assert_eq(seal_rows_bytes(shape), ALL);
    for (size_t i = 0; i < sizeof rows; i++) rows[i] = (char)(i % 100 + 1);
    for (size_t piece = 1; piece < 500; piece += 37) {
        memset(sealed, 0xff, sizeof sealed);
        memset(back, 0, sizeof back);
        for (size_t at = 0; at < ALL; at += piece) {
            const size_t bytes = piece < ALL - at ? piece : ALL - at;
            seal_rows_take(shape, rows, at, sealed + at, bytes);
            seal_rows_put(shape, sealed + at, at, bytes, back);
        }
        for (size_t i = 0; i < ALL; i++) {
            const char expected = i % 192 < ROW ? rows[i / 192 * ROW + i % 192] : 0;
            cr_assert_eq(sealed[i], expected, "byte %zu, in pieces of %zu", i, piece);
        }
        cr_assert_arr_eq(back, rows, sizeof rows);
    }
}

/* Nothing of it is plain: no run of eight bytes is in it. The size says that nothing is left
 * out. */
Test(seal_pack, nothing_of_it_is_plain) {
    pack((struct tol_seal_shape){1, 4096}, "label");
    cr_assert_gt(packed_bytes, 4096 + 32);
    for (size_t i = 0; i + 8 <= 4096; i++) {
        cr_assert(memmem(packed, packed_bytes, plain + i, 8) == NULL, "byte %zu is plain", i);
    }
}

/* Two objects of the same bytes share nothing: each has its own name, and so its own keys. */
Test(seal_pack, the_same_bytes_are_never_encrypted_alike) {
    void *again = NULL;
    size_t again_bytes = 0;
    pack((struct tol_seal_shape){1, 4096}, NULL);
    MUST(tol_seal_pack(key, (struct tol_seal_shape){1, 4096}, NULL, plain, &again, &again_bytes));
    cr_assert_eq(again_bytes, packed_bytes);
    size_t same = 0;
    for (size_t i = packed_bytes - 4096; i < packed_bytes; i++) {
        same += ((char *)packed)[i] == ((char *)again)[i];
    }
    cr_assert_lt(same, 64, "%zu of 4096 bytes are the same; 16 are expected", same);
    free(again);
}

/* Nor are two chunks of one object: a nonce that is used twice betrays what GCM protects. */
Test(seal_pack, the_same_chunks_are_never_encrypted_alike) {
    pack((struct tol_seal_shape){1, 3 * CHUNK}, NULL);
    memset(plain, 7, 3 * CHUNK);
    free(packed);
    MUST(tol_seal_pack(key, (struct tol_seal_shape){1, 3 * CHUNK}, NULL, plain, &packed,
                       &packed_bytes));
    const char *data = (const char *)packed + packed_bytes - (size_t)3 * CHUNK;
    for (size_t i = 0; i + 8 <= CHUNK; i += 8) {
        cr_assert(memcmp(data + i, data + CHUNK + i, 8) != 0, "byte %zu", i);
        cr_assert(memcmp(data + i, data + 2 * CHUNK + i, 8) != 0, "byte %zu", i);
    }
}

Test(seal_pack, every_changed_byte_is_refused) {
    pack((struct tol_seal_shape){3, 100}, "abc");
    for (size_t i = 0; i < packed_bytes; i++) {
        ((char *)packed)[i] ^= (char)(1 << i % 8);
        memset(opened, 1, 300);
        const tol_status status = tol_seal_unpack(key, packed, packed_bytes, opened, 300);
        cr_assert(status == TOL_MISMATCH || status == TOL_INVALID_FILE, "byte %zu: %s", i,
                  tol_status_name(status));
        cr_assert(memcmp(opened, plain, 300) != 0, "byte %zu", i);
        ((char *)packed)[i] ^= (char)(1 << i % 8);
    }
    MUST(tol_seal_unpack(key, packed, packed_bytes, opened, 300));
}

/* A copy of exactly this size, so that a sanitizer detects reads past it. */
Test(seal_pack, every_cut_is_refused) {
    pack((struct tol_seal_shape){3, 100}, "abc");
    for (size_t bytes = 0; bytes < packed_bytes; bytes++) {
        char *cut = malloc(bytes + (bytes == 0));
        cr_assert(cut != NULL);
        memcpy(cut, packed, bytes);
        const tol_status status = tol_seal_unpack(key, cut, bytes, opened, 300);
        cr_assert_eq(status, TOL_INVALID_FILE, "%zu bytes: %s", bytes, tol_status_name(status));
        free(cut);
    }
}

/* Lengths of fields are not believed: each is set to numbers that lead elsewhere. */
Test(seal_pack, lengths_that_make_no_sense_are_refused) {
    static const uint32_t lengths[] = {0, 1, 3, 5, 15, 17, 64, 1000, 0x7fffffff, 0xffffffff};
    pack((struct tol_seal_shape){3, 100}, "abc");
    for (size_t at = 8; at < 100; at++) {
        for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
            char *other = malloc(packed_bytes);
            cr_assert(other != NULL);
            memcpy(other, packed, packed_bytes);
            memcpy(other + at, &lengths[i], sizeof lengths[i]);
            const bool is_same = memcmp(other, packed, packed_bytes) == 0;
            const tol_status status = tol_seal_unpack(key, other, packed_bytes, opened, 300);
            cr_assert(is_same || status == TOL_INVALID_FILE || status == TOL_MISMATCH,
                      "%u at %zu: %s", lengths[i], at, tol_status_name(status));
            free(other);
        }
    }
}

Test(seal_pack, a_chunk_in_anothers_place_is_refused_with_its_number) {
    char chunk[CHUNK];
    pack((struct tol_seal_shape){1, 4 * CHUNK}, "q");
    char *data = (char *)packed + packed_bytes - (size_t)4 * CHUNK;
    memcpy(chunk, data + CHUNK, CHUNK);
    memcpy(data + CHUNK, data + 2 * CHUNK, CHUNK);
    memcpy(data + 2 * CHUNK, chunk, CHUNK);
    MUST_FAIL(tol_seal_unpack(key, packed, packed_bytes, opened, 4 * CHUNK), TOL_MISMATCH,
              "chunk 1 of 4 of the packed object \"q\"");
    for (size_t i = 0; i < 4 * CHUNK; i++) cr_assert_eq(opened[i], 0, "byte %zu is left", i);
}

Test(seal_pack, another_key_opens_nothing) {
    struct tol_seal_key *other = NULL;
    MUST(tol_seal_key_draw(&other));
    pack((struct tol_seal_shape){1, 100}, NULL);
    MUST_FAIL(tol_seal_unpack(other, packed, packed_bytes, opened, 100), TOL_MISMATCH,
              "another key");
    tol_seal_key_destroy(other);
}

/* Keys of different purposes, names and generations are different, and the same again. */
Test(seal_pack, each_purpose_name_and_generation_has_its_key) {
    static const char *const purposes[] = {"a", "b", "ab"};
    uint8_t keys[12][32], names[2][SEAL_NAME_BYTES] = {{1}, {2}};
    for (unsigned i = 0; i < 12; i++) {
        MUST(seal_key_derive(key, purposes[i % 3], names[i / 3 % 2], i / 6, keys[i], 32));
        for (unsigned j = 0; j < i; j++) cr_assert_arr_neq(keys[i], keys[j], 32);
    }
    uint8_t again[32];
    MUST(seal_key_derive(key, "b", names[0], 0, again, 32));
    cr_assert_arr_eq(again, keys[1], 32);
}

Test(seal_pack, files_are_complete) {
    char path[] = "/tmp/tollens-seal-XXXXXX";
    void *read = NULL;
    size_t bytes = 0;
    const int file = mkstemp(path);
    cr_assert(file >= 0);
    close(file);
    pack((struct tol_seal_shape){10, 1000}, "file");
    MUST(tol_seal_write_file(path, packed, packed_bytes));
    MUST(tol_seal_read_file(path, &read, &bytes));
    cr_assert(bytes == packed_bytes && memcmp(read, packed, bytes) == 0);
    MUST(tol_seal_unpack(key, read, bytes, opened, 10000));
    cr_assert_arr_eq(opened, plain, 10000);
    free(read);
    unlink(path);
    MUST_FAIL(tol_seal_read_file(path, &read, &bytes), TOL_UNREADABLE, path);
    MUST_FAIL(tol_seal_read_file("/tmp", &read, &bytes), TOL_UNREADABLE, "no file");
    MUST_FAIL(tol_seal_write_file("/nowhere/x", packed, packed_bytes), TOL_UNREADABLE,
              "/nowhere/x");
    MUST_FAIL(tol_seal_write_file(NULL, packed, packed_bytes), TOL_INVALID_ARGUMENT, "is NULL");
    MUST_FAIL(tol_seal_write_file(path, NULL, packed_bytes), TOL_INVALID_ARGUMENT, "is NULL");
}

/* A disk that takes a part: the file is not there, and neither is what had another name. */
Test(seal_pack, a_file_that_may_not_grow_is_an_error_and_leaves_nothing, .timeout = 120) {
    char folder[] = "/tmp/tollens-seal-XXXXXX", path[64];
    const struct rlimit small = {4096, 4096};
    cr_assert(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/sealed", folder);
    pack((struct tol_seal_shape){10, 1000}, "file");
    cr_assert(signal(SIGXFSZ, SIG_IGN) != SIG_ERR && setrlimit(RLIMIT_FSIZE, &small) == 0);
    MUST_FAIL(tol_seal_write_file(path, packed, packed_bytes), TOL_UNREADABLE, "sealed");
    cr_assert(rmdir(folder) == 0, "something is in %s", folder);
}

/* What was sealed once must be opened later: HKDF of SHA-256 over the salt "tollens seal 1" and the
 * purpose, the name and the generation, each after its length in four bytes (RFC 5869). */
Test(seal_pack, derived_keys_are_those_of_the_format) {
    uint8_t name[SEAL_NAME_BYTES], made[32], wanted[32];
    for (size_t i = 0; i < sizeof name; i++) name[i] = (uint8_t)i;
    MUST(seal_key_derive(key, "a purpose", name, 7, made, sizeof made));
    cr_assert_eq(kn_hex("21e4e7187db3bf208c682263926416e3de3b7cf6936b3d3a692719bd6c4e5915", wanted,
                        sizeof wanted),
                 sizeof wanted);
    cr_assert_arr_eq(made, wanted, sizeof made);
}

Test(seal_pack, what_makes_no_sense_is_refused) {
    struct tol_seal_key *none = NULL;
    struct tol_seal_info info;
    char text[200];
    memset(text, 'a', sizeof text);
    text[64] = '\0';
    pack((struct tol_seal_shape){1, 100}, NULL);
    MUST_FAIL(tol_seal_key_create(text, 31, &none), TOL_INVALID_ARGUMENT, "31 bytes");
    MUST_FAIL(tol_seal_key_create(text, 1025, &none), TOL_INVALID_ARGUMENT, "1025 bytes");
    MUST_FAIL(tol_seal_key_create(NULL, 32, &none), TOL_INVALID_ARGUMENT, "is NULL");
    void *out = NULL;
    size_t bytes = 0;
#define PACK(rows, row_bytes, label)                                                               \
    tol_seal_pack(key, (struct tol_seal_shape){rows, row_bytes}, label, plain, &out, &bytes)
    MUST_FAIL(PACK(0, 100, NULL), TOL_OUT_OF_RANGE, "0 rows");
    MUST_FAIL(PACK(1, 0, NULL), TOL_OUT_OF_RANGE, "of 0 bytes");
    MUST_FAIL(PACK(1, ((size_t)1 << 38) + 1, NULL), TOL_OUT_OF_RANGE, "256 GiB");
    MUST_FAIL(PACK(SIZE_MAX, SIZE_MAX, NULL), TOL_OUT_OF_RANGE, "256 GiB");
    MUST_FAIL(PACK(1, 100, text), TOL_INVALID_ARGUMENT, "64 bytes is too long");
    MUST_FAIL(tol_seal_unpack(key, packed, packed_bytes, opened, 99), TOL_SIZE_MISMATCH,
              "99 bytes");
    MUST_FAIL(tol_seal_read_info(key, text, sizeof text, &info), TOL_INVALID_FILE, "TOLSEAL1");
    MUST_FAIL(tol_seal_read_info(NULL, packed, packed_bytes, &info), TOL_INVALID_ARGUMENT, "NULL");
    tol_seal_key_destroy(NULL);
}
