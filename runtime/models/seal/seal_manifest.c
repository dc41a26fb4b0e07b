/*
 * Fields with their lengths. Nothing of a manifest is used before its MAC was verified, except the
 * lengths and the name, which the MAC depends on.
 */
#include "seal_manifest.h"

#include "core/check.h"
#include "seal_rows.h"

#include <string.h>

static const char MAGIC[] = "TOLSEAL1";
enum {
    MAGIC_BYTES = 8,
    LENGTH_BYTES = 4,
    HEAD_BYTES = MAGIC_BYTES + LENGTH_BYTES,
    VERSION = 1,
    FIELDS = 7 /* version, name, label, rows, row_bytes, bytes of a chunk, tags */
};
static const char MAC_PURPOSE[] = "hmac manifest";

/* ---- writing ---- */

static uint8_t *seal_manifest_put_number(uint8_t *out, uint64_t number, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) *out++ = (uint8_t)(number >> 8 * i);
    return out;
}

static uint8_t *put_field(uint8_t *out, const void *data, size_t bytes) {
    out = seal_manifest_put_number(out, bytes, LENGTH_BYTES);
    memcpy(out, data, bytes);
    return out + bytes;
}

static uint8_t *put_number_field(uint8_t *out, uint64_t number, size_t bytes) {
    return seal_manifest_put_number(seal_manifest_put_number(out, bytes, LENGTH_BYTES), number,
                                    bytes);
}

static size_t fields_bytes(const struct seal_manifest *m) {
    return FIELDS * LENGTH_BYTES + 4 + SEAL_NAME_BYTES + strlen(m->label) + 8 + 8 + 4 +
           m->chunks * TOL_GCM_TAG_BYTES;
}

size_t seal_manifest_bytes(const struct seal_manifest *manifest) {
    return HEAD_BYTES + fields_bytes(manifest) + TOL_MAC_BYTES;
}

static tol_status make_mac(const struct tol_seal_key *key, const uint8_t name[SEAL_NAME_BYTES],
                           const uint8_t *data, size_t bytes, uint8_t mac[TOL_MAC_BYTES]) {
    uint8_t derived[TOL_MAC_BYTES];
    tol_status status = seal_key_derive(key, MAC_PURPOSE, name, 0, derived, sizeof derived);
    if (status == TOL_OK) {
        status = tol_crypto_hmac(key->crypto, (struct tol_crypto_part){derived, sizeof derived},
                                 (struct tol_crypto_part){data, bytes}, mac);
    }
    key->crypto->OPENSSL_cleanse(derived, sizeof derived);
    return status;
}

tol_status seal_manifest_write(const struct tol_seal_key *key, const struct seal_manifest *m,
                               uint8_t *out) {
    uint8_t *at = out;
    memcpy(at, MAGIC, MAGIC_BYTES);
    at = seal_manifest_put_number(at + MAGIC_BYTES, fields_bytes(m), LENGTH_BYTES);
    at = put_number_field(at, VERSION, 4);
    at = put_field(at, m->name, SEAL_NAME_BYTES);
    at = put_field(at, m->label, strlen(m->label));
    at = put_number_field(at, m->shape.rows, 8);
    at = put_number_field(at, m->shape.row_bytes, 8);
    at = put_number_field(at, SEAL_CHUNK_BYTES, 4);
    at = put_field(at, m->tags, m->chunks * TOL_GCM_TAG_BYTES);
    return make_mac(key, m->name, out, (size_t)(at - out), at);
}

/* ---- reading ---- */

static uint64_t number_at(const uint8_t *p, size_t bytes) {
    uint64_t number = 0;
    for (size_t i = bytes; i > 0; i--) number = number << 8 | p[i - 1];
    return number;
}

struct field {
    const uint8_t *data;
    size_t bytes;
};

/* The fields of a text, which must have all of them and nothing more. */
static bool cut_fields(const uint8_t *at, size_t left, struct field fields[FIELDS]) {
    for (int i = 0; i < FIELDS; i++) {
        if (left < LENGTH_BYTES) return false;
        const size_t bytes = (size_t)number_at(at, LENGTH_BYTES);
        left -= LENGTH_BYTES, at += LENGTH_BYTES;
        if (bytes > left) return false;
        fields[i] = (struct field){at, bytes};
        left -= bytes, at += bytes;
    }
    return left == 0 && fields[0].bytes == 4 && fields[1].bytes == SEAL_NAME_BYTES &&
           fields[2].bytes < TOL_SEAL_LABEL_BYTES && fields[3].bytes == 8 && fields[4].bytes == 8 &&
           fields[5].bytes == 4;
}

tol_status seal_manifest_read(const struct tol_seal_key *key, const void *packed,
                              size_t packed_bytes, struct seal_manifest *manifest) {
    tol_status status = TOL_OK;
    const uint8_t *in = packed;
    struct field fields[FIELDS];
    uint8_t mac[TOL_MAC_BYTES];
    struct seal_manifest m;
    memset(&m, 0, sizeof m);
    TOL_CHECK(packed_bytes >= HEAD_BYTES + TOL_MAC_BYTES && memcmp(in, MAGIC, MAGIC_BYTES) == 0,
              TOL_INVALID_FILE, "%zu bytes are not a packed object: they do not begin with %s",
              packed_bytes, MAGIC);
    const size_t bytes = (size_t)number_at(in + MAGIC_BYTES, LENGTH_BYTES);
    TOL_CHECK(bytes <= packed_bytes - HEAD_BYTES - TOL_MAC_BYTES &&
                  cut_fields(in + HEAD_BYTES, bytes, fields),
              TOL_INVALID_FILE,
              "the manifest of a packed object of %zu bytes is truncated, or its lengths are "
              "inconsistent",
              packed_bytes);
    memcpy(m.name, fields[1].data, SEAL_NAME_BYTES);
    TOL_TRY(make_mac(key, m.name, in, HEAD_BYTES + bytes, mac));
    TOL_CHECK(key->crypto->CRYPTO_memcmp(mac, in + HEAD_BYTES + bytes, sizeof mac) == 0,
              TOL_MISMATCH,
              "the manifest of a packed object was changed, or it was packed with another key");
    /* What is read from here on is what was written. */
    TOL_CHECK(number_at(fields[0].data, 4) == VERSION &&
                  number_at(fields[5].data, 4) == SEAL_CHUNK_BYTES,
              TOL_INVALID_FILE,
              "a packed object of version %llu with chunks of %llu bytes is not "
              "supported",
              (unsigned long long)number_at(fields[0].data, 4),
              (unsigned long long)number_at(fields[5].data, 4));
    memcpy(m.label, fields[2].data, fields[2].bytes);
    m.shape.rows = (size_t)number_at(fields[3].data, 8);
    m.shape.row_bytes = (size_t)number_at(fields[4].data, 8);
    TOL_TRY(seal_rows_check(m.shape));
    m.bytes = seal_rows_bytes(m.shape);
    m.chunks = (m.bytes + SEAL_CHUNK_BYTES - 1) / SEAL_CHUNK_BYTES;
    m.tags = fields[6].data;
    m.data = in + HEAD_BYTES + bytes + TOL_MAC_BYTES;
    TOL_CHECK(fields[6].bytes == m.chunks * TOL_GCM_TAG_BYTES &&
                  packed_bytes - HEAD_BYTES - bytes - TOL_MAC_BYTES == m.bytes,
              TOL_INVALID_FILE,
              "a packed object of %zu rows of %zu bytes is truncated: it has %zu bytes",
              m.shape.rows, m.shape.row_bytes, packed_bytes);
    *manifest = m;
out:
    return status;
}
