/*
 * Seal key: the master key, and what is derived from it by HKDF-SHA-256. Internal.
 */
#ifndef TOLLENS_SEAL_KEY_H
#define TOLLENS_SEAL_KEY_H

#include "libcrypto.h"
#include "seal.h"

struct tol_seal_key {
    const struct tol_crypto *crypto;
    size_t bytes;
    uint8_t secret[TOL_SEAL_SECRET_MAX];
};

enum { SEAL_NAME_BYTES = 16 };

/* Derives a key for a purpose, of the object of a name in a generation. Each of the three is framed
 * by its length, so no two of them share a derivation. */
tol_status seal_key_derive(const struct tol_seal_key *key, const char *purpose,
                           const uint8_t name[SEAL_NAME_BYTES], uint32_t generation, void *derived,
                           size_t bytes);

/* Draws a name. */
tol_status seal_name_draw(const struct tol_crypto *crypto, uint8_t name[SEAL_NAME_BYTES]);

/* A copy in locked memory. */
tol_status seal_key_copy(const struct tol_seal_key *key, struct tol_seal_key **copy);

#endif
