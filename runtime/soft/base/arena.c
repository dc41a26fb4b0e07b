/*
 * The arena: blocks that double in size, carved from the front.
 */
#include "arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 16, FIRST_BLOCK_BYTES = 64 * 1024 };

struct soft_arena_block {
    struct soft_arena_block *older;
    size_t bytes;
    _Alignas(ALIGNMENT) char data[];
};

static int add_block(struct soft_arena *arena, size_t bytes) {
    size_t size = arena->blocks != NULL ? arena->blocks->bytes * 2 : FIRST_BLOCK_BYTES;
    while (size < bytes) {
        if (size > SIZE_MAX / 4) return 0;
        size *= 2;
    }
    struct soft_arena_block *block = calloc(1, sizeof *block + size);
    if (block == NULL) return 0;
    block->older = arena->blocks;
    block->bytes = size;
    arena->blocks = block;
    arena->next = block->data;
    arena->end = block->data + size;
    return 1;
}

void *soft_arena_alloc(struct soft_arena *arena, size_t bytes) {
    if (bytes > SIZE_MAX / 4) return NULL;
    bytes = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if ((size_t)(arena->end - arena->next) < bytes && !add_block(arena, bytes)) return NULL;
    void *result = arena->next;
    arena->next += bytes;
    return result;
}

void *soft_arena_array(struct soft_arena *arena, size_t count, size_t element_bytes) {
    if (element_bytes != 0 && count > SIZE_MAX / element_bytes) return NULL;
    return soft_arena_alloc(arena, count * element_bytes);
}

char *soft_arena_text(struct soft_arena *arena, const char *text, size_t length) {
    char *copy = length < SIZE_MAX ? soft_arena_alloc(arena, length + 1) : NULL;
    if (copy != NULL) memcpy(copy, text, length);
    return copy;
}

void soft_arena_clear(struct soft_arena *arena) {
    while (arena->blocks != NULL) {
        struct soft_arena_block *older = arena->blocks->older;
        free(arena->blocks);
        arena->blocks = older;
    }
    arena->next = arena->end = NULL;
}
