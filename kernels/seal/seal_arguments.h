/*
 * What host and device agree on for sealed memory: units, chunks, and the states of key streams and
 * tags, which kernels get as arguments.
 */
#ifndef KN_SEAL_ARGUMENTS_H
#define KN_SEAL_ARGUMENTS_H

#include <stdint.h>

enum {
    SEAL_UNIT_BYTES = 64,   /* what a block of key stream covers */
    SEAL_CHUNK_UNITS = 256, /* of a tag: 16 KiB */
    SEAL_CHUNK_BYTES = SEAL_CHUNK_UNITS * SEAL_UNIT_BYTES,
    SEAL_TAG_BYTES = 16,
    SEAL_WARPS = 8, /* of a block; each has a chunk */
    SEAL_POWERS = 7
};

/* A ChaCha state whose counter, word 12, counts units. Three quarters of the first round do not
 * depend on the counter: begun has what they make of columns 1 to 3, a column after the other. */
struct seal_stream {
    uint32_t words[16];
    uint32_t begun[12];
};

/* A number below 2^130, in limbs of 26 bits. */
struct seal_limbs {
    uint32_t at[5];
};

/* The powers of the point r at which a chunk's polynomial is evaluated: r itself, r^4, r^8, r^16,
 * r^32 and r^64, by which lanes are joined, and r^125, by which a lane gets to its next unit. Then
 * the key of the function that makes a tag of a value. */
enum seal_power { SEAL_R, SEAL_R4, SEAL_R8, SEAL_R16, SEAL_R32, SEAL_R64, SEAL_R125 };
struct seal_tagger {
    struct seal_limbs powers[SEAL_POWERS];
    uint32_t words[16];
};

struct seal_chunks_arguments {
    uint64_t in, out;                 /* addresses, at multiples of 16 */
    uint64_t tags_before, tags_after; /* of the tags of what is read, and of what is written */
    uint64_t units;                   /* of all chunks */
    uint64_t first_chunk;             /* the number of the chunk at in */
    uint32_t first_unit;              /* the counter at in */
    uint32_t level;                   /* 0: data; 1: tags of data */
    struct seal_stream from, to;
    struct seal_tagger before, after;
};

#endif
