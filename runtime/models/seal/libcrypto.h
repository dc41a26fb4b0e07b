/*
 * Libcrypto: OpenSSL's functions, found at run time, so that building and loading need no OpenSSL.
 * Sealing does. Internal. Thread-safe.
 */
#ifndef TOLLENS_LIBCRYPTO_H
#define TOLLENS_LIBCRYPTO_H

#include "status.h"

#include <stddef.h>
#include <stdint.h>

struct evp_md_st;
struct evp_pkey_ctx_st;
struct evp_cipher_st;
struct evp_cipher_ctx_st;
struct engine_st;

struct tol_crypto {
#define CRYPTO_FN(result, name, parameters) result(*name) parameters;
#include "libcrypto.def"
#undef CRYPTO_FN
};

/* Opens $TOLLENS_LIBCRYPTO, or libcrypto.so.3, once. TOL_UNSUPPORTED: there is none, or it lacks a
 * function; the message has the reason. */
tol_status tol_crypto_open(const struct tol_crypto **crypto);

enum {
    TOL_MAC_BYTES = 32,
    TOL_GCM_KEY_BYTES = 32,
    TOL_GCM_NONCE_BYTES = 12,
    TOL_GCM_TAG_BYTES = 16
};

/* A part of what is hashed or derived from. */
struct tol_crypto_part {
    const void *data;
    size_t bytes;
};

/* HKDF-SHA-256, RFC 5869: bytes of key from a secret, a salt and the parts of the info, one after
 * the other. TOL_UNSUPPORTED: OpenSSL refused. */
tol_status tol_crypto_hkdf(const struct tol_crypto *crypto, struct tol_crypto_part secret,
                           struct tol_crypto_part salt, const struct tol_crypto_part *info,
                           size_t info_count, void *key, size_t key_bytes);

/* HMAC-SHA-256, RFC 2104. */
tol_status tol_crypto_hmac(const struct tol_crypto *crypto, struct tol_crypto_part key,
                           struct tol_crypto_part data, uint8_t mac[TOL_MAC_BYTES]);

/* AES-256-GCM. */
struct tol_crypto_gcm {
    const uint8_t *key, *nonce;   /* TOL_GCM_KEY_BYTES, TOL_GCM_NONCE_BYTES */
    struct tol_crypto_part aside; /* what is authenticated besides */
    const void *in;
    void *out; /* in, or apart from it */
    size_t bytes;
};
tol_status tol_crypto_gcm_close(const struct tol_crypto *crypto, const struct tol_crypto_gcm *gcm,
                                uint8_t tag[TOL_GCM_TAG_BYTES]);

/* TOL_MISMATCH: the tag is not that of in, the nonce and aside; out is zeros then. */
tol_status tol_crypto_gcm_open(const struct tol_crypto *crypto, const struct tol_crypto_gcm *gcm,
                               const uint8_t tag[TOL_GCM_TAG_BYTES]);

#endif
