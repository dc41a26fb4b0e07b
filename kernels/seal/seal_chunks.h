/*
 * Seal chunks: encrypts device memory, decrypts it, changes its key, and makes tags of it, in one
 * pass over it.
 *
 * Memory is in units of 64 bytes, the blocks of ChaCha, and in chunks of 16 KiB, each with a tag of
 * 16 bytes (tagger.h); the last chunk may be shorter. A unit's counter is its position: a chunk has
 * a number, and 256 counters. Between the read of a word, its tag, its decryption, its encryption
 * and its new tag there is no memory: all is in registers. Tags are those of encrypted bytes.
 *
 * The call queues one kernel and waits for nothing. The streams and taggers are copied into the
 * kernel's arguments before it returns. Thread-safe.
 */
#ifndef KN_SEAL_CHUNKS_H
#define KN_SEAL_CHUNKS_H

#include "choose/kernel_set.h"
#include "place.h"
#include "seal/seal_arguments.h"

enum kn_seal_how {
    KN_SEAL_TAGS,  /* writes tags_before of what is at in, and nothing else */
    KN_SEAL_CLOSE, /* encrypts in to out, and writes tags_after */
    KN_SEAL_OPEN,  /* writes tags_before, and decrypts in to out */
    KN_SEAL_TURN,  /* writes tags_before, decrypts, encrypts to out, and writes tags_after */
    KN_SEAL_HOWS
};

struct kn_seal_chunks {
    enum kn_seal_how how;
    unsigned rounds;                         /* 20, 12 or 8; not looked at for KN_SEAL_TAGS */
    size_t bytes;                            /* a multiple of 64 */
    uint64_t first_chunk;                    /* the number of the chunk at in */
    uint32_t level;                          /* what tags are of: 0 data, 1 tags */
    struct kn_place in, out;                 /* at multiples of 16; the same, or apart */
    struct kn_place tags_before, tags_after; /* so too; 16 bytes for each chunk */
    const struct seal_stream *from, *to;     /* of the decryption, of the encryption */
    const struct seal_tagger *before, *after;
};

/*
 * Does nothing for zero bytes. TOL_INVALID_ARGUMENT: an argument is NULL or misaligned, bytes are
 * no whole units, places overlap without being equal, or there are no such rounds.
 * TOL_OUT_OF_RANGE: a place is too small, or the counter would exceed 32 bits: 256 GiB.
 */
TOL_API tol_status kn_seal_chunks(struct kn_kernels *kernels, struct tol_stream *stream,
                                  const struct kn_seal_chunks *problem);

/* The chunks of a number of bytes, and the bytes of their tags. */
TOL_API size_t kn_seal_chunk_count(size_t bytes);
TOL_API size_t kn_seal_tag_bytes(size_t bytes);

#endif
