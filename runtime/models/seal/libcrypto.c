/*
 * Finds OpenSSL's functions, and implements three operations that need several of them.
 */
#include "libcrypto.h"

#include "core/check.h"
#include "core/library.h"

#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ID_HKDF = 1036, CTRL_GET_TAG = 0x10, CTRL_SET_TAG = 0x11 }; /* evp.h, obj_mac.h */

static struct tol_crypto found;
static char reason[300]; /* why there is none; "": there is */

static void libcrypto_find_all(void) {
    const char *named = getenv("TOLLENS_LIBCRYPTO");
    const char *path = named != NULL && named[0] != '\0' ? named : "libcrypto.so.3";
    void *library = tol_library_open(path, reason, sizeof reason);
    if (library == NULL) return;
#define CRYPTO_FN(result, name, parameters)                                                        \
    if (reason[0] == '\0' && !tol_library_find(library, #name, &found.name, sizeof found.name)) {  \
        snprintf(reason, sizeof reason, "%.200s lacks " #name, path);                              \
    }
    reason[0] = '\0';
#include "libcrypto.def"
#undef CRYPTO_FN
}

tol_status tol_crypto_open(const struct tol_crypto **crypto) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    tol_status status = TOL_OK;
    pthread_once(&once, libcrypto_find_all);
    TOL_CHECK(reason[0] == '\0', TOL_UNSUPPORTED,
              "sealing needs OpenSSL 3, whose libcrypto.so.3 cannot be used: %s", reason);
    *crypto = &found;
out:
    return status;
}

/* All parts of the info as one; free it. NULL without memory. In OpenSSL 3.0.13 a second call of
 * EVP_PKEY_CTX_add1_hkdf_info takes the place of the first, and in 3.0.19 it adds to it. */
static uint8_t *libcrypto_join(const struct tol_crypto_part *parts, size_t count, size_t *bytes) {
    size_t all = 0;
    for (size_t i = 0; i < count; i++) all += parts[i].bytes;
    uint8_t *joined = malloc(all + 1);
    *bytes = 0;
    for (size_t i = 0; joined != NULL && i < count; i++) {
        if (parts[i].bytes > 0) memcpy(joined + *bytes, parts[i].data, parts[i].bytes);
        *bytes += parts[i].bytes;
    }
    return joined;
}

tol_status tol_crypto_hkdf(const struct tol_crypto *crypto, struct tol_crypto_part secret,
                           struct tol_crypto_part salt, const struct tol_crypto_part *info,
                           size_t info_count, void *key, size_t key_bytes) {
    tol_status status = TOL_OK;
    size_t made = key_bytes, joined_bytes = 0;
    uint8_t *joined = libcrypto_join(info, info_count, &joined_bytes);
    struct evp_pkey_ctx_st *context = crypto->EVP_PKEY_CTX_new_id(ID_HKDF, NULL);
    bool ok = context != NULL && secret.bytes <= INT_MAX && salt.bytes <= INT_MAX &&
              crypto->EVP_PKEY_derive_init(context) == 1 &&
              crypto->EVP_PKEY_CTX_set_hkdf_md(context, crypto->EVP_sha256()) == 1 &&
              crypto->EVP_PKEY_CTX_set1_hkdf_salt(context, salt.data, (int)salt.bytes) == 1 &&
              crypto->EVP_PKEY_CTX_set1_hkdf_key(context, secret.data, (int)secret.bytes) == 1;
    ok = ok && joined != NULL && joined_bytes <= INT_MAX &&
         crypto->EVP_PKEY_CTX_add1_hkdf_info(context, joined, (int)joined_bytes) == 1;
    ok = ok && crypto->EVP_PKEY_derive(context, key, &made) == 1 && made == key_bytes;
    TOL_CHECK(ok, TOL_UNSUPPORTED, "OpenSSL refuses HKDF-SHA-256 of %zu bytes", key_bytes);
out:
    crypto->EVP_PKEY_CTX_free(context);
    free(joined);
    return status;
}

tol_status tol_crypto_hmac(const struct tol_crypto *crypto, struct tol_crypto_part key,
                           struct tol_crypto_part data, uint8_t mac[TOL_MAC_BYTES]) {
    tol_status status = TOL_OK;
    unsigned bytes = 0;
    TOL_CHECK(key.bytes <= INT_MAX &&
                  crypto->HMAC(crypto->EVP_sha256(), key.data, (int)key.bytes, data.data,
                               data.bytes, mac, &bytes) != NULL &&
                  bytes == TOL_MAC_BYTES,
              TOL_UNSUPPORTED, "OpenSSL refuses HMAC-SHA-256 of %zu bytes", data.bytes);
out:
    return status;
}

/* Everything but the tag. */
static bool run_gcm(const struct tol_crypto *crypto, struct evp_cipher_ctx_st *context,
                    const struct tol_crypto_gcm *gcm, int encrypts) {
    int count = 0;
    if (context == NULL || gcm->bytes > INT_MAX || gcm->aside.bytes > INT_MAX) return false;
    if (crypto->EVP_CipherInit_ex(context, crypto->EVP_aes_256_gcm(), NULL, gcm->key, gcm->nonce,
                                  encrypts) != 1) {
        return false;
    }
    if (gcm->aside.bytes > 0 && crypto->EVP_CipherUpdate(context, NULL, &count, gcm->aside.data,
                                                         (int)gcm->aside.bytes) != 1) {
        return false;
    }
    return gcm->bytes == 0 ||
           (crypto->EVP_CipherUpdate(context, gcm->out, &count, gcm->in, (int)gcm->bytes) == 1 &&
            count == (int)gcm->bytes);
}

tol_status tol_crypto_gcm_close(const struct tol_crypto *crypto, const struct tol_crypto_gcm *gcm,
                                uint8_t tag[TOL_GCM_TAG_BYTES]) {
    tol_status status = TOL_OK;
    uint8_t none[1];
    int count = 0;
    struct evp_cipher_ctx_st *context = crypto->EVP_CIPHER_CTX_new();
    TOL_CHECK(run_gcm(crypto, context, gcm, 1) &&
                  crypto->EVP_CipherFinal_ex(context, none, &count) == 1 &&
                  crypto->EVP_CIPHER_CTX_ctrl(context, CTRL_GET_TAG, TOL_GCM_TAG_BYTES, tag) == 1,
              TOL_UNSUPPORTED, "OpenSSL refuses AES-256-GCM of %zu bytes", gcm->bytes);
out:
    crypto->EVP_CIPHER_CTX_free(context);
    return status;
}

tol_status tol_crypto_gcm_open(const struct tol_crypto *crypto, const struct tol_crypto_gcm *gcm,
                               const uint8_t tag[TOL_GCM_TAG_BYTES]) {
    tol_status status = TOL_OK;
    uint8_t expected[TOL_GCM_TAG_BYTES], none[1];
    int count = 0;
    struct evp_cipher_ctx_st *context = crypto->EVP_CIPHER_CTX_new();
    memcpy(expected, tag, sizeof expected); /* OpenSSL takes no pointer to const */
    TOL_CHECK(run_gcm(crypto, context, gcm, 0) &&
                  crypto->EVP_CIPHER_CTX_ctrl(context, CTRL_SET_TAG, sizeof expected, expected) ==
                      1,
              TOL_UNSUPPORTED, "OpenSSL refuses AES-256-GCM of %zu bytes", gcm->bytes);
    TOL_CHECK(crypto->EVP_CipherFinal_ex(context, none, &count) == 1, TOL_MISMATCH,
              "the tag of %zu bytes differs", gcm->bytes);
out:
    if (status != TOL_OK && gcm->bytes > 0) memset(gcm->out, 0, gcm->bytes);
    crypto->EVP_CIPHER_CTX_free(context);
    return status;
}
