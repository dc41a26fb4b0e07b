/*
 * The master key, which is in locked memory, and derivations from it.
 */
#include "seal_key.h"

#include "core/check.h"
#include "locked.h"

#include <string.h>

static const char SALT[] = "tollens seal 1";

static tol_status seal_key_take(struct tol_seal_key **key) {
    tol_status status = TOL_OK;
    const struct tol_crypto *crypto = NULL;
    void *memory = NULL;
    TOL_TRY(tol_crypto_open(&crypto));
    TOL_TRY(tol_locked_take(sizeof **key, &memory));
    *key = memory;
    (*key)->crypto = crypto;
out:
    return status;
}

tol_status tol_seal_key_create(const void *secret, size_t bytes, struct tol_seal_key **result) {
    tol_status status = TOL_OK;
    struct tol_seal_key *key = NULL;
    TOL_CHECK(secret != NULL && result != NULL, TOL_INVALID_ARGUMENT,
              "tol_seal_key_create: an argument is NULL");
    TOL_CHECK(bytes >= TOL_SEAL_SECRET_MIN && bytes <= TOL_SEAL_SECRET_MAX, TOL_INVALID_ARGUMENT,
              "a secret has %zu bytes; %d to %d are allowed", bytes, TOL_SEAL_SECRET_MIN,
              TOL_SEAL_SECRET_MAX);
    TOL_TRY(seal_key_take(&key));
    key->bytes = bytes;
    memcpy(key->secret, secret, bytes);
    *result = key;
out:
    return status;
}

tol_status tol_seal_key_draw(struct tol_seal_key **result) {
    tol_status status = TOL_OK;
    struct tol_seal_key *key = NULL;
    TOL_CHECK(result != NULL, TOL_INVALID_ARGUMENT, "tol_seal_key_draw: key is NULL");
    TOL_TRY(seal_key_take(&key));
    key->bytes = TOL_SEAL_SECRET_MIN;
    TOL_CHECK(key->crypto->RAND_priv_bytes(key->secret, (int)key->bytes) == 1, TOL_UNSUPPORTED,
              "OpenSSL has no random bytes");
    *result = key;
    key = NULL;
out:
    tol_seal_key_destroy(key);
    return status;
}

void tol_seal_key_destroy(struct tol_seal_key *key) {
    if (key == NULL) return;
    key->crypto->OPENSSL_cleanse(key->secret, sizeof key->secret);
    tol_locked_give(key, sizeof *key);
}

tol_status seal_key_copy(const struct tol_seal_key *key, struct tol_seal_key **copy) {
    return tol_seal_key_create(key->secret, key->bytes, copy);
}

/* A length before a part, little-endian. */
static void seal_key_frame(uint8_t length[4], size_t bytes) {
    for (int i = 0; i < 4; i++) length[i] = (uint8_t)(bytes >> 8 * i);
}

tol_status seal_key_derive(const struct tol_seal_key *key, const char *purpose,
                           const uint8_t name[SEAL_NAME_BYTES], uint32_t generation, void *derived,
                           size_t bytes) {
    const size_t purpose_bytes = strlen(purpose);
    uint8_t lengths[3][4], number[4];
    seal_key_frame(lengths[0], purpose_bytes);
    seal_key_frame(lengths[1], SEAL_NAME_BYTES);
    seal_key_frame(lengths[2], sizeof number);
    seal_key_frame(number, generation);
    const struct tol_crypto_part info[] = {{lengths[0], 4}, {purpose, purpose_bytes},
                                           {lengths[1], 4}, {name, SEAL_NAME_BYTES},
                                           {lengths[2], 4}, {number, sizeof number}};
    return tol_crypto_hkdf(key->crypto, (struct tol_crypto_part){key->secret, key->bytes},
                           (struct tol_crypto_part){SALT, sizeof SALT - 1}, info,
                           sizeof info / sizeof info[0], derived, bytes);
}

tol_status seal_name_draw(const struct tol_crypto *crypto, uint8_t name[SEAL_NAME_BYTES]) {
    tol_status status = TOL_OK;
    TOL_CHECK(crypto->RAND_bytes(name, SEAL_NAME_BYTES) == 1, TOL_UNSUPPORTED,
              "OpenSSL has no random bytes");
out:
    return status;
}
