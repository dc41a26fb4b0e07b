/*
 * AES-256-GCM per chunk. A key belongs to one object, so the chunk's number is its nonce; the
 * authenticated data identifies the object and the number of its chunks.
 */
#include "seal_pack.h"

#include "core/check.h"
#include "locked.h"
#include "seal_rows.h"

#include <stdlib.h>
#include <string.h>

static const char PURPOSE[] = "aes-256-gcm chunks";
enum { ASIDE_BYTES = SEAL_NAME_BYTES + 16 };

static void seal_pack_put_number(uint8_t *out, uint64_t number) {
    for (int i = 0; i < 8; i++) out[i] = (uint8_t)(number >> 8 * i);
}

static size_t seal_pack_chunk_bytes(const struct seal_manifest *m, uint64_t chunk) {
    const size_t left = m->bytes - (size_t)chunk * SEAL_CHUNK_BYTES;
    return left < SEAL_CHUNK_BYTES ? left : SEAL_CHUNK_BYTES;
}

/* The nonce of a chunk, and what goes into its tag besides. */
static void seal_pack_frame(const struct seal_manifest *m, uint64_t chunk,
                            uint8_t nonce[TOL_GCM_NONCE_BYTES], uint8_t aside[ASIDE_BYTES]) {
    memset(nonce, 0, TOL_GCM_NONCE_BYTES);
    seal_pack_put_number(nonce, chunk);
    memcpy(aside, m->name, SEAL_NAME_BYTES);
    seal_pack_put_number(aside + SEAL_NAME_BYTES, chunk);
    seal_pack_put_number(aside + SEAL_NAME_BYTES + 8, m->chunks);
}

static tol_status take_key(const struct tol_seal_key *key, const uint8_t name[SEAL_NAME_BYTES],
                           uint8_t **derived) {
    tol_status status = TOL_OK;
    void *memory = NULL;
    TOL_TRY(tol_locked_take(TOL_GCM_KEY_BYTES, &memory));
    *derived = memory;
    status = seal_key_derive(key, PURPOSE, name, 0, memory, TOL_GCM_KEY_BYTES);
out:
    return status;
}

/* ---- opening ---- */

tol_status seal_opened_begin(const struct tol_seal_key *key, const void *packed,
                             size_t packed_bytes, struct seal_opened *opened) {
    tol_status status = TOL_OK;
    memset(opened, 0, sizeof *opened);
    opened->crypto = key->crypto;
    TOL_TRY(seal_manifest_read(key, packed, packed_bytes, &opened->manifest));
    status = take_key(key, opened->manifest.name, &opened->key);
out:
    return status;
}

void seal_opened_close(struct seal_opened *opened) {
    tol_locked_give(opened->key, TOL_GCM_KEY_BYTES);
    opened->key = NULL;
}

tol_status seal_opened_chunk(const struct seal_opened *opened, uint64_t chunk, void *out) {
    uint8_t nonce[TOL_GCM_NONCE_BYTES], aside[ASIDE_BYTES];
    const struct seal_manifest *m = &opened->manifest;
    const size_t bytes = seal_pack_chunk_bytes(m, chunk);
    seal_pack_frame(m, chunk, nonce, aside);
    const tol_status status = tol_crypto_gcm_open(
        opened->crypto,
        &(struct tol_crypto_gcm){.key = opened->key,
                                 .nonce = nonce,
                                 .aside = {aside, sizeof aside},
                                 .in = m->data + (size_t)chunk * SEAL_CHUNK_BYTES,
                                 .out = out,
                                 .bytes = bytes},
        m->tags + (size_t)chunk * TOL_GCM_TAG_BYTES);
    if (status != TOL_MISMATCH) return status;
    return tol_fail(__FILE__, __LINE__, TOL_MISMATCH,
                    "chunk %llu of %zu of the packed object \"%s\", %zu bytes from %llu on, was "
                    "changed, or belongs to another object",
                    (unsigned long long)chunk, m->chunks, m->label, bytes,
                    (unsigned long long)chunk * SEAL_CHUNK_BYTES);
}

/* ---- what users call ---- */

/* Encrypts all chunks after the manifest's place, and keeps their tags. plain_chunk is locked. */
static tol_status close_chunks(const struct tol_seal_key *key, const struct seal_manifest *m,
                               const void *plain, uint8_t *derived, uint8_t *plain_chunk,
                               uint8_t *data, uint8_t *tags) {
    tol_status status = TOL_OK;
    uint8_t nonce[TOL_GCM_NONCE_BYTES], aside[ASIDE_BYTES];
    for (uint64_t chunk = 0; chunk < m->chunks; chunk++) {
        const size_t offset = (size_t)chunk * SEAL_CHUNK_BYTES,
                     bytes = seal_pack_chunk_bytes(m, chunk);
        seal_rows_take(m->shape, plain, offset, plain_chunk, bytes);
        seal_pack_frame(m, chunk, nonce, aside);
        TOL_TRY(tol_crypto_gcm_close(key->crypto,
                                     &(struct tol_crypto_gcm){.key = derived,
                                                              .nonce = nonce,
                                                              .aside = {aside, sizeof aside},
                                                              .in = plain_chunk,
                                                              .out = data + offset,
                                                              .bytes = bytes},
                                     tags + (size_t)chunk * TOL_GCM_TAG_BYTES));
    }
out:
    return status;
}

tol_status tol_seal_pack(const struct tol_seal_key *key, struct tol_seal_shape shape,
                         const char *label, const void *plain, void **packed,
                         size_t *packed_bytes) {
    tol_status status = TOL_OK;
    struct seal_manifest m;
    uint8_t *out = NULL, *tags = NULL, *derived = NULL;
    void *plain_chunk = NULL;
    memset(&m, 0, sizeof m);
    TOL_CHECK(key != NULL && plain != NULL && packed != NULL && packed_bytes != NULL,
              TOL_INVALID_ARGUMENT, "tol_seal_pack: an argument is NULL");
    TOL_CHECK(label == NULL || strlen(label) < sizeof m.label, TOL_INVALID_ARGUMENT,
              "a label of %zu bytes is too long; %d are allowed", label != NULL ? strlen(label) : 0,
              TOL_SEAL_LABEL_BYTES - 1);
    TOL_TRY(seal_rows_check(shape));
    m.shape = shape;
    m.bytes = seal_rows_bytes(shape);
    m.chunks = (m.bytes + SEAL_CHUNK_BYTES - 1) / SEAL_CHUNK_BYTES;
    if (label != NULL) memcpy(m.label, label, strlen(label));
    TOL_TRY(seal_name_draw(key->crypto, m.name));
    tags = malloc(m.chunks * TOL_GCM_TAG_BYTES);
    out = malloc(seal_manifest_bytes(&m) + m.bytes);
    TOL_CHECK(tags != NULL && out != NULL, TOL_OUT_OF_HOST_MEMORY,
              "no host memory for a packed object of %zu bytes", m.bytes);
    TOL_TRY(take_key(key, m.name, &derived));
    TOL_TRY(tol_locked_take(SEAL_CHUNK_BYTES, &plain_chunk));
    m.tags = tags;
    TOL_TRY(
        close_chunks(key, &m, plain, derived, plain_chunk, out + seal_manifest_bytes(&m), tags));
    TOL_TRY(seal_manifest_write(key, &m, out));
    *packed = out;
    *packed_bytes = seal_manifest_bytes(&m) + m.bytes;
    out = NULL;
out:
    tol_locked_give(plain_chunk, SEAL_CHUNK_BYTES);
    tol_locked_give(derived, TOL_GCM_KEY_BYTES);
    free(tags);
    free(out);
    return status;
}

tol_status tol_seal_read_info(const struct tol_seal_key *key, const void *packed,
                              size_t packed_bytes, struct tol_seal_info *info) {
    tol_status status = TOL_OK;
    struct seal_manifest m;
    TOL_CHECK(key != NULL && packed != NULL && info != NULL, TOL_INVALID_ARGUMENT,
              "tol_seal_read_info: an argument is NULL");
    TOL_TRY(seal_manifest_read(key, packed, packed_bytes, &m));
    info->shape = m.shape;
    info->chunks = m.chunks;
    memcpy(info->label, m.label, sizeof info->label);
out:
    return status;
}

tol_status tol_seal_unpack(const struct tol_seal_key *key, const void *packed, size_t packed_bytes,
                           void *plain, size_t plain_bytes) {
    tol_status status = TOL_OK;
    struct seal_opened opened = {.key = NULL};
    void *plain_chunk = NULL;
    TOL_CHECK(key != NULL && packed != NULL && plain != NULL, TOL_INVALID_ARGUMENT,
              "tol_seal_unpack: an argument is NULL");
    TOL_TRY(seal_opened_begin(key, packed, packed_bytes, &opened));
    const struct seal_manifest *m = &opened.manifest;
    TOL_CHECK(plain_bytes == m->shape.rows * m->shape.row_bytes, TOL_SIZE_MISMATCH,
              "%zu rows of %zu bytes are packed, but the memory for them has %zu bytes",
              m->shape.rows, m->shape.row_bytes, plain_bytes);
    TOL_TRY(tol_locked_take(SEAL_CHUNK_BYTES, &plain_chunk));
    for (uint64_t chunk = 0; chunk < m->chunks && status == TOL_OK; chunk++) {
        status = seal_opened_chunk(&opened, chunk, plain_chunk);
        if (status == TOL_OK) {
            seal_rows_put(m->shape, plain_chunk, (size_t)chunk * SEAL_CHUNK_BYTES,
                          seal_pack_chunk_bytes(m, chunk), plain);
        }
    }
    if (status != TOL_OK) memset(plain, 0, plain_bytes);
out:
    tol_locked_give(plain_chunk, SEAL_CHUNK_BYTES);
    seal_opened_close(&opened);
    return status;
}
