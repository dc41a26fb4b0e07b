/*
 * Chunks: memory of many sizes, freed one by one for reuse or all at once. Not thread-safe.
 */
#ifndef SOFT_CHUNKS_H
#define SOFT_CHUNKS_H

#include "base/arena.h"

#include <stdint.h>

enum { SOFT_CHUNK_SIZES = 24 }; /* 64 bytes, each class twice the previous one */

struct soft_chunks {
    struct soft_arena arena;
    void *free[SOFT_CHUNK_SIZES]; /* of each size; each begins with the next one */
};

/* Zeroed bytes; NULL when the host is out of memory. */
void *soft_chunk_take(struct soft_chunks *chunks, size_t bytes);

/* Returns a chunk that was taken with this number of bytes; NULL does nothing. */
void soft_chunk_give(struct soft_chunks *chunks, void *chunk, size_t bytes);

/* Gives everything back. */
void soft_chunks_clear(struct soft_chunks *chunks);

/* A table of records of one size, by number; a record is created, zeroed, at its first use. */
struct soft_pages {
    struct soft_chunks *chunks;
    size_t record_bytes;
    struct soft_page **table;
    size_t room, count;
};

/* The record of a number; NULL when the host is out of memory. */
void *soft_pages_at(struct soft_pages *pages, uint64_t number);

/* The same, but NULL where it has not been used. */
void *soft_pages_find(const struct soft_pages *pages, uint64_t number);

/* Calls visit for each record that has been used, in no order. */
void soft_pages_each(struct soft_pages *pages, void (*visit)(uint64_t number, void *record, void *),
                     void *data);

/* Frees the table; the records are the chunks'. */
void soft_pages_end(struct soft_pages *pages);

#endif
