/*
 * Sealed state: what a sealer and what it sealed consist of. Internal.
 */
#ifndef TOLLENS_SEALED_STATE_H
#define TOLLENS_SEALED_STATE_H

#include "seal_key.h"

#include "choose/kernel_set.h"
#include "place.h"
#include "seal/seal_arguments.h"
#include "seal/seal_chunks.h"

#include <pthread.h>

/* How long a pass over sealed memory may take. */
enum { SEALED_PATIENCE_MS = 60000 };

struct tol_sealer {
    struct tol_context *context;
    struct tol_seal_key *key;
    struct kn_kernels *kernels;
    struct tol_stream *stream;
};

/* What is derived for one object in one generation. In locked memory. */
struct sealed_secret {
    struct seal_stream stream;
    struct seal_tagger tagger;
};

struct tol_sealed {
    struct tol_sealer *sealer;
    pthread_mutex_t lock; /* guards the generation and all later fields */
    struct tol_seal_shape shape;
    char label[TOL_SEAL_LABEL_BYTES];
    uint8_t name[SEAL_NAME_BYTES];
    unsigned rounds;
    bool verify_each_use;
    /* Tags fill whole units with zeros, so that tags of tags can be made: the tops. */
    size_t bytes, chunks, tags_bytes, tops;
    struct tol_buffer *data, *tags_buffer, *tops_buffer;
    uint32_t generation;
    struct sealed_secret *secret;
    uint8_t *expected, *expected_tops; /* the tags of the sealing, and the tops of these */
    bool is_changed;                   /* the latest verification found a change */
};

/* Derives the secret of an object and a generation, in locked memory. sealed_secret_give wipes it.
 * NULL is a no-op. */
tol_status sealed_secret_take(const struct tol_sealer *sealer, const uint8_t name[SEAL_NAME_BYTES],
                              uint32_t generation, struct sealed_secret **secret);
void sealed_secret_give(struct sealed_secret *secret);

/* An object of a shape, with memory, a name and a secret, whose bytes are undefined. */
tol_status sealed_create(struct tol_sealer *sealer, struct tol_seal_shape shape, const char *label,
                         const struct tol_seal_options *options, struct tol_sealed **sealed);

/* Makes expected_tops of expected. */
void sealed_expect(struct tol_sealed *sealed);

/* Verifies. The caller has the lock. */
tol_status sealed_verify(struct tol_sealed *sealed);

/* Compares tags of the device with those of the sealing; notes and reports a change. The caller
 * has the lock. */
tol_status sealed_compare(struct tol_sealed *sealed, const uint8_t *tags);

/* A pass over all bytes, in place, with the tags before in tags_buffer and those after in
 * tags_after; waits for it. The fields that depend on the object are filled in. */
tol_status sealed_pass(struct tol_sealed *sealed, struct kn_seal_chunks *pass);

/* Writes zeros over plain bytes. Waits. */
tol_status sealed_wipe(struct tol_context *context, struct tol_place place, size_t bytes);

#endif
