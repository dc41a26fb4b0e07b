/*
 * Arena: memory that is freed all at once.
 *
 * All parts of a module, from its tokens to its decoded instructions, are in the module's arena and
 * are freed with it. So the reader never frees, and an error path has nothing to undo. Not thread-
 * safe.
 */
#ifndef SOFT_ARENA_H
#define SOFT_ARENA_H

#include <stddef.h>

struct soft_arena {
    struct soft_arena_block *blocks;
    char *next, *end; /* the free part of the newest block */
};

/* Zeroed memory, aligned for any type; NULL when the host is out of memory. */
void *soft_arena_alloc(struct soft_arena *arena, size_t bytes);

/* The same, not zeroed: for memory that is filled at once. */
void *soft_arena_raw(struct soft_arena *arena, size_t bytes);

/* A copy of length bytes of text, NUL-terminated; NULL when the host is out of memory. */
char *soft_arena_text(struct soft_arena *arena, const char *text, size_t length);

/* Frees everything. The arena is then empty, and usable. */
void soft_arena_clear(struct soft_arena *arena);

/* Discards the contents and keeps the newest block, the largest, for the next use. */
void soft_arena_reuse(struct soft_arena *arena);

/* An array of count elements of a type. The product is checked. */
#define SOFT_ARENA_ARRAY(arena, type, count) ((type *)soft_arena_array(arena, count, sizeof(type)))
void *soft_arena_array(struct soft_arena *arena, size_t count, size_t element_bytes);

#endif
