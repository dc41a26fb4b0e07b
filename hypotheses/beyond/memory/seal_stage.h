/*
 * Seal stage: drawn weights, sealed on the device of an attack, in a context whose calls go through
 * the search for plain bytes (plain_search.h) and the hooks of the saboteur.
 */
#ifndef HYP_SEAL_STAGE_H
#define HYP_SEAL_STAGE_H

#include "memory_faults.h"

#include "seal.h"

enum { STAGE_CHUNK = 16384 };

struct seal_stage {
    struct tol_seal_key *key;
    struct tol_sealer *sealer;
    struct tol_sealed *sealed;
    struct tol_seal_shape shape; /* rows of blocks of Q4_K */
    size_t plain_bytes;
    char *plain;
    struct tol_stream *stream;
    struct tol_buffer *x, *y;
    float *sums; /* of the first product */
    bool has_sums;
};

/* A context, a key, and weights of a drawn shape, not yet sealed. false: a violation was recorded,
 * or there is no OpenSSL, and the attack is not tested. End it in either case. */
bool seal_stage_begin(struct hyp_attack *attack, struct seal_stage *stage);
void seal_stage_end(struct seal_stage *stage);

/* Seals the weights, with 20, 12 or 8 rounds, from the host or from a packed object, as drawn. */
bool seal_stage_seal(struct hyp_attack *attack, struct seal_stage *stage);

/* A product, whose bits must be those of the first. */
bool seal_stage_multiply(struct hyp_attack *attack, struct seal_stage *stage);

/* Reads and writes sealed bytes, from an offset on, without the library's knowledge. */
bool seal_stage_peek(struct hyp_attack *attack, struct seal_stage *stage, size_t offset,
                     void *bytes, size_t count);
bool seal_stage_poke(struct hyp_attack *attack, struct seal_stage *stage, size_t offset,
                     const void *bytes, size_t count);

/* What was read must be the plain bytes. */
bool seal_stage_read(struct hyp_attack *attack, struct seal_stage *stage);

#endif
