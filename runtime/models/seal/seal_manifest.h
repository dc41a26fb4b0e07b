/*
 * Seal manifest: what precedes the chunks of a packed object.
 *
 *     "TOLSEAL1"   length of the fields, 4 bytes
 *     fields       each 4 bytes of length and as many bytes: version, name, label, rows, row_bytes,
 *                  bytes of a chunk, the tags of all chunks
 *     mac          HMAC-SHA-256 of all that precedes it, by a key derived from the name
 *     chunks       encrypted, one after the other
 *
 * All numbers are little-endian. Since each field has its length in front, no two manifests are the
 * same bytes. Internal. Pure; thread-safe.
 */
#ifndef TOLLENS_SEAL_MANIFEST_H
#define TOLLENS_SEAL_MANIFEST_H

#include "seal_key.h"

struct seal_manifest {
    uint8_t name[SEAL_NAME_BYTES];
    char label[TOL_SEAL_LABEL_BYTES];
    struct tol_seal_shape shape;
    const uint8_t *tags; /* in the packed bytes */
    size_t chunks, bytes;
    const uint8_t *data; /* after the mac */
};

/* The bytes of a manifest with its mac; what its chunks and label come to. */
size_t seal_manifest_bytes(const struct seal_manifest *manifest);

/* Writes it to out, with manifest->tags and the mac. */
tol_status seal_manifest_write(const struct tol_seal_key *key, const struct seal_manifest *manifest,
                               uint8_t *out);

/* Verifies and reads one. TOL_INVALID_FILE, TOL_MISMATCH: as tol_seal_read_info. */
tol_status seal_manifest_read(const struct tol_seal_key *key, const void *packed,
                              size_t packed_bytes, struct seal_manifest *manifest);

#endif
