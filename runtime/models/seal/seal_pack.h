/*
 * Seal pack: a packed object that is opened chunk by chunk. Internal.
 */
#ifndef TOLLENS_SEAL_PACK_H
#define TOLLENS_SEAL_PACK_H

#include "seal_manifest.h"

struct seal_opened {
    struct seal_manifest manifest;
    const struct tol_crypto *crypto;
    uint8_t *key; /* in locked memory */
};

/* Verifies the manifest, and derives the key of the chunks. seal_opened_close afterwards, in any
 * case. */
tol_status seal_opened_begin(const struct tol_seal_key *key, const void *packed,
                             size_t packed_bytes, struct seal_opened *opened);
void seal_opened_close(struct seal_opened *opened);

/* Decrypts a chunk, SEAL_CHUNK_BYTES or what is left. TOL_MISMATCH: it was changed; out is
 * zeros. */
tol_status seal_opened_chunk(const struct seal_opened *opened, uint64_t chunk, void *out);

#endif
