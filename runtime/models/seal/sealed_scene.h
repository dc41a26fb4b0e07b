/*
 * Sealed scene: weights of Q4_K on a device, and what tests do to them. For tests.
 */
#ifndef TOLLENS_SEALED_SCENE_H
#define TOLLENS_SEALED_SCENE_H

#include "seal.h"

enum { SCENE_CHUNK = 16384, SCENE_ROWS = 41, SCENE_BLOCKS = 7, SCENE_PITCH = 1024 };
enum {
    SCENE_ROW_BYTES = SCENE_BLOCKS * 144,
    SCENE_PLAIN_BYTES = SCENE_ROWS * SCENE_ROW_BYTES,
    SCENE_BYTES = SCENE_ROWS * SCENE_PITCH,
    SCENE_K = SCENE_BLOCKS * 256
};

/* One at a time, since tests are processes. */
extern struct sealed_scene {
    struct tol_context *context;
    struct tol_seal_key *key;
    struct tol_sealer *sealer;
    struct tol_sealed *sealed;
    char *plain;
    bool refuses_reads; /* of the device's memory */
} scene;

extern const struct tol_seal_options scene_usual;

/* A context, a sealer and plain weights; and these sealed. The test is skipped without OpenSSL. */
void scene_begin(void);
void scene_begin_sealed(void);
void scene_end(void);

/* No plain piece may be in device memory, nor have been copied to it. */
void scene_search(const char *when);

/* What is sealed must be the plain weights. */
void scene_read_plain(void);

/* The sealed bytes, to look at and to change. */
void scene_peek(size_t offset, void *bytes, size_t count);
void scene_poke(size_t offset, const void *bytes, size_t count);

/* A product of the sealed weights by drawn x. */
struct scene_product {
    struct tol_stream *stream;
    struct tol_buffer *x, *y;
    float in[SCENE_K], out[SCENE_ROWS];
};
void scene_product_begin(struct scene_product *p);
void scene_product_run(struct scene_product *p);
void scene_product_end(struct scene_product *p);

/* It must be that of the plain weights, within what rounding x to bytes may do:
 * seal_product_test.c has the exact bound. */
void scene_product_check(const struct scene_product *p);

#endif
