/*
 * The maker: writes GGUF files for tests, byte by byte, so that a test can write what no other
 * program would.
 *
 * Bytes are appended in the order of the file. The file is in memory until maker_open writes it to
 * a temporary one.
 */
#ifndef TOLLENS_GGUF_SCENE_H
#define TOLLENS_GGUF_SCENE_H

#include "test/test_device.h"

struct gguf_maker {
    unsigned char *bytes;
    size_t count, room;
    char path[64]; /* where it was written */
};

/* The header: "GGUF", version, how many tensors and keys there are to be. */
void maker_begin(struct gguf_maker *maker, uint32_t version, uint64_t tensors, uint64_t keys);

void maker_bytes(struct gguf_maker *maker, const void *bytes, size_t count);
void maker_u32(struct gguf_maker *maker, uint32_t value);
void maker_u64(struct gguf_maker *maker, uint64_t value);
void maker_string(struct gguf_maker *maker, const char *text); /* its length, then its bytes */

/* A key and its kind; the value's bytes are to follow. Or all of it. */
void maker_key(struct gguf_maker *maker, const char *key, enum tol_gguf_kind kind);
void maker_key_u32(struct gguf_maker *maker, const char *key, uint32_t value);
void maker_key_string(struct gguf_maker *maker, const char *key, const char *value);
void maker_key_array(struct gguf_maker *maker, const char *key, uint32_t element, uint64_t count);

/* A tensor's description. */
void maker_tensor(struct gguf_maker *maker, const char *name, uint32_t dimensions,
                  const uint64_t *extent, uint32_t type, uint64_t offset);

/* Zeros up to a multiple of alignment. */
void maker_pad(struct gguf_maker *maker, size_t alignment);

/* Writes the file, anew each time, and opens it. */
tol_status maker_open(struct gguf_maker *maker, struct tol_gguf **gguf);

/* Opening it must fail with TOL_INVALID_FILE and this in the message. */
void maker_must_fail(struct gguf_maker *maker, const char *text);

/* Removes the file and frees the bytes. */
void maker_end(struct gguf_maker *maker);

#endif
