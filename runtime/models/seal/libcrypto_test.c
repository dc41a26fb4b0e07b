/*
 * OpenSSL's functions: the vectors of RFC 5869, RFC 4231 and of the GCM specification; our ChaCha
 * and Poly1305 beside OpenSSL's; and what happens without OpenSSL.
 */
#include "libcrypto.h"

#include "core/library.h"
#include "inputs.h"
#include "seal.h"
#include "seal/chacha.h"
#include "seal/hex.h"
#include "seal/tagger.h"
#include "test/test_device.h"

#include <stdlib.h>
#include <string.h>

/* Where OpenSSL's headers are, the compiler compares our prototypes with theirs. */
#if __has_include(<openssl/evp.h>)
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/kdf.h>
#include <openssl/rand.h>
#define CRYPTO_FN(result, name, parameters)                                                        \
    _Static_assert(__builtin_types_compatible_p(__typeof__(&name), result(*) parameters),          \
                   "not " #name "'s prototype");
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#include "libcrypto.def"
#pragma GCC diagnostic pop
#undef CRYPTO_FN
#endif

static const struct tol_crypto *crypto;

static void begin(void) {
    if (tol_crypto_open(&crypto) != TOL_OK) cr_skip_test("there is no libcrypto.so.3");
}

TestSuite(libcrypto, .init = begin);

static void must_derive(const char *secret, const char *salt, const char *info,
                        const char *expected) {
    uint8_t s[80], t[80], i[80], wanted[82], made[82];
    const size_t bytes = kn_hex(expected, wanted, sizeof wanted);
    const struct tol_crypto_part part = {i, kn_hex(info, i, sizeof i)};
    MUST(tol_crypto_hkdf(crypto, (struct tol_crypto_part){s, kn_hex(secret, s, sizeof s)},
                         (struct tol_crypto_part){t, kn_hex(salt, t, sizeof t)}, &part, 1, made,
                         bytes));
    cr_assert_arr_eq(made, wanted, bytes);
}

/* Every part of the info decides, wherever it is cut: some versions of OpenSSL forget all but the
 * last one that they are given. */
Test(libcrypto, all_parts_of_an_info_count) {
    const uint8_t secret[32] = {1}, info[12] = "abcdefghijk";
    uint8_t whole[32], parts[32], other[32];
    const struct tol_crypto_part one = {info, 12}, three[] = {{info, 3}, {info + 3, 1},
                                                              {info + 4, 8}},
                                 changed[] = {{"ABC", 3}, {info + 3, 1}, {info + 4, 8}};
    const struct tol_crypto_part from = {secret, 32}, salt = {"salt", 4};
    MUST(tol_crypto_hkdf(crypto, from, salt, &one, 1, whole, 32));
    MUST(tol_crypto_hkdf(crypto, from, salt, three, 3, parts, 32));
    MUST(tol_crypto_hkdf(crypto, from, salt, changed, 3, other, 32));
    cr_assert_arr_eq(whole, parts, 32);
    cr_assert(memcmp(whole, other, 32) != 0);
}

/* Appendix A.1 to A.3: usual, long, and without salt and info. */
Test(libcrypto, keys_are_derived_as_in_rfc_5869) {
    must_derive("0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b", "000102030405060708090a0b0c",
                "f0f1f2f3f4f5f6f7f8f9",
                "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b88718"
                "5865");
    must_derive(
        "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20212223242526272829"
        "2a2b2c2d2e2f303132333435363738393a3b3c3d3e3f404142434445464748494a4b4c4d4e4f",
        "606162636465666768696a6b6c6d6e6f707172737475767778797a7b7c7d7e7f80818283848586878889"
        "8a8b8c8d8e8f909192939495969798999a9b9c9d9e9fa0a1a2a3a4a5a6a7a8a9aaabacadaeaf",
        "b0b1b2b3b4b5b6b7b8b9babbbcbdbebfc0c1c2c3c4c5c6c7c8c9cacbcccdcecfd0d1d2d3d4d5d6d7d8d9"
        "dadbdcdddedfe0e1e2e3e4e5e6e7e8e9eaebecedeeeff0f1f2f3f4f5f6f7f8f9fafbfcfdfeff",
        "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c59045a99cac78272"
        "71cb41c65e590e09da3275600c2f09b8367793a9aca3db71cc30c58179ec3e87c14c01d5c1f3434f"
        "1d87");
    must_derive("0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b", "", "",
                "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a"
                "96c8");
}

static void must_mac(const void *key, size_t key_bytes, const void *data, size_t bytes,
                     const char *expected) {
    uint8_t wanted[32], made[32];
    cr_assert_eq(kn_hex(expected, wanted, sizeof wanted), sizeof wanted);
    MUST(tol_crypto_hmac(crypto, (struct tol_crypto_part){key, key_bytes},
                         (struct tol_crypto_part){data, bytes}, made));
    cr_assert_arr_eq(made, wanted, sizeof made);
}

/* Cases 1 to 4, 6 and 7. */
Test(libcrypto, macs_are_those_of_rfc_4231) {
    static const char text[] =
        "This is a test using a larger than block-size key and a larger than "
        "block-size data. The key needs to be hashed before being used by "
        "the HMAC algorithm.";
    static const char first[] = "Test Using Larger Than Block-Size Key - Hash Key First";
    uint8_t key[131], data[50];
    memset(key, 0x0b, sizeof key);
    must_mac(key, 20, "Hi There", 8,
             "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    must_mac("Jefe", 4, "what do ya want for nothing?", 28,
             "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    memset(key, 0xaa, sizeof key);
    memset(data, 0xdd, sizeof data);
    must_mac(key, 20, data, 50, "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
    must_mac(key, 131, first, sizeof first - 1,
             "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
    must_mac(key, 131, text, sizeof text - 1,
             "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2");
    for (size_t i = 0; i < 25; i++) key[i] = (uint8_t)(i + 1);
    memset(data, 0xcd, sizeof data);
    must_mac(key, 25, data, 50, "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b");
}

static void must_close(const char *key, const char *nonce, const char *plain, const char *aside,
                       const char *closed, const char *tag) {
    uint8_t k[32], n[12], p[64], a[32], wanted[64], wanted_tag[16], made[64], made_tag[16];
    cr_assert(kn_hex(key, k, sizeof k) == 32 && kn_hex(nonce, n, sizeof n) == 12);
    const size_t bytes = kn_hex(plain, p, sizeof p);
    kn_hex(closed, wanted, sizeof wanted);
    kn_hex(tag, wanted_tag, sizeof wanted_tag);
    struct tol_crypto_gcm gcm = {.key = k,
                                 .nonce = n,
                                 .aside = {a, kn_hex(aside, a, sizeof a)},
                                 .in = p,
                                 .out = made,
                                 .bytes = bytes};
    MUST(tol_crypto_gcm_close(crypto, &gcm, made_tag));
    cr_assert(memcmp(made, wanted, bytes) == 0 && memcmp(made_tag, wanted_tag, 16) == 0);
    gcm.in = made;
    MUST(tol_crypto_gcm_open(crypto, &gcm, made_tag));
    cr_assert(memcmp(made, p, bytes) == 0);
    memcpy(made, wanted, bytes);
    made_tag[15] ^= 1;
    MUST_FAIL(tol_crypto_gcm_open(crypto, &gcm, made_tag), TOL_MISMATCH, "the tag of");
    for (size_t i = 0; i < bytes; i++) cr_assert_eq(made[i], 0, "byte %zu of what is wrong", i);
    memcpy(made, wanted, bytes);
    made_tag[15] ^= 1;
    if (gcm.aside.bytes > 0) {
        a[0] ^= 0x80;
        MUST_FAIL(tol_crypto_gcm_open(crypto, &gcm, made_tag), TOL_MISMATCH, "the tag of");
    }
}

/* Cases 13, 14 and 16 of McGrew and Viega's specification, which NIST adopted. */
Test(libcrypto, chunks_are_encrypted_as_gcm_says) {
#define ZEROS "0000000000000000000000000000000000000000000000000000000000000000"
    must_close(ZEROS, "000000000000000000000000", "", "", "", "530f8afbc74536b9a963b4f1c4cb738b");
    must_close(ZEROS, "000000000000000000000000", "00000000000000000000000000000000", "",
               "cea7403d4d606b6e074ec5d3baf39d18", "d0d1c8a799996bf0265b98b5d48ab919");
    must_close("feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308",
               "cafebabefacedbaddecaf888",
               "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
               "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39",
               "feedfacedeadbeeffeedfacedeadbeefabaddad2",
               "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa"
               "8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662",
               "76fc6ece0f4e1768cddf8853bb2d551b");
}

/* Functions that only this test calls. */
static bool find(const char *name, void *function, size_t bytes) {
    char reason[200];
    void *library = tol_library_open("libcrypto.so.3", reason, sizeof reason);
    return library != NULL && tol_library_find(library, name, function, bytes);
}

Test(libcrypto, our_chacha_is_openssls) {
    enum { LONG = 5000 };
    const struct evp_cipher_st *(*chacha)(void) = NULL;
    uint64_t random = 1;
    uint8_t key[32], nonce[16], data[LONG], ours[LONG], theirs[LONG];
    int count = 0;
    cr_assert(find("EVP_chacha20", &chacha, sizeof chacha));
    for (int trial = 0; trial < 20; trial++) {
        struct seal_stream stream;
        for (size_t i = 0; i < sizeof key; i++) key[i] = (uint8_t)kn_random(&random);
        for (size_t i = 0; i < sizeof nonce; i++) nonce[i] = (uint8_t)kn_random(&random);
        for (size_t i = 0; i < LONG; i++) data[i] = (uint8_t)kn_random(&random);
        nonce[3] &= 0x7f; /* the counter does not overflow */
        const size_t bytes = (size_t)(kn_random(&random) % LONG);
        struct evp_cipher_ctx_st *context = crypto->EVP_CIPHER_CTX_new();
        cr_assert(crypto->EVP_CipherInit_ex(context, chacha(), NULL, key, nonce, 1) == 1);
        cr_assert(crypto->EVP_CipherUpdate(context, theirs, &count, data, (int)bytes) == 1);
        crypto->EVP_CIPHER_CTX_free(context);
        kn_chacha_begin(key, nonce + 4, &stream);
        kn_chacha_add(&stream, 20,
                      (uint32_t)nonce[0] | (uint32_t)nonce[1] << 8 | (uint32_t)nonce[2] << 16 |
                          (uint32_t)nonce[3] << 24,
                      data, ours, bytes);
        cr_assert(memcmp(ours, theirs, bytes) == 0, "trial %d of %zu bytes", trial, bytes);
    }
}

/* Poly1305 with nothing to add at the end, which our values are, at points and words of all ones as
 * well, where carries are longest. */
Test(libcrypto, our_values_are_openssls_poly1305) {
    enum { LONG = 16 * 300 };
    unsigned char *(*mac)(void *, const char *, const char *, const char *, const void *,
                          const void *, size_t, const unsigned char *, size_t, unsigned char *,
                          size_t, size_t *) = NULL;
    uint64_t random = 2;
    uint8_t key[32], data[LONG], ours[16], theirs[16];
    size_t count = 0;
    cr_assert(find("EVP_Q_mac", &mac, sizeof mac));
    for (int trial = 0; trial < 60; trial++) {
        struct seal_tagger tagger;
        const size_t bytes = 16 * (1 + (size_t)(kn_random(&random) % (LONG / 16)));
        memset(key, 0, sizeof key);
        for (size_t i = 0; i < 16; i++) key[i] = trial % 3 ? (uint8_t)kn_random(&random) : 0xff;
        for (size_t i = 0; i < LONG; i++) data[i] = trial % 2 ? (uint8_t)kn_random(&random) : 0xff;
        cr_assert(mac(NULL, "POLY1305", NULL, NULL, NULL, key, 32, data, bytes, theirs,
                      sizeof theirs, &count) != NULL);
        kn_tagger_begin(key, key, &tagger);
        kn_tagger_value(&tagger, data, bytes, ours);
        cr_assert_arr_eq(ours, theirs, 16, "trial %d of %zu bytes", trial, bytes);
    }
}

/* Without OpenSSL nothing crashes, and the sentence says what is missing. */
Test(without_libcrypto, sealing_says_what_is_missing) {
    struct tol_seal_key *key = NULL;
    setenv("TOLLENS_LIBCRYPTO", "/nowhere/libcrypto.so.3", 1);
    MUST_FAIL(tol_seal_key_draw(&key), TOL_UNSUPPORTED, "needs OpenSSL 3");
    MUST_FAIL(tol_seal_key_draw(&key), TOL_UNSUPPORTED, "/nowhere/libcrypto.so.3");
}

/* Any other library lacks its functions, and is not called. */
Test(without_libcrypto, a_library_that_is_another_is_not_used) {
    struct tol_seal_key *key = NULL;
    setenv("TOLLENS_LIBCRYPTO", "libm.so.6", 1);
    MUST_FAIL(tol_seal_key_draw(&key), TOL_UNSUPPORTED, "lacks EVP_sha256");
}
