/*
 * The arena: blocks that double in size, carved from the front.
 */
#include "arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* A block from so many bytes on is mapped, in pages of that size where the system has them: large
 * modules fill tens of megabytes, and a fault for each 4 KiB of them took a quarter of the load. */
enum { ALIGNMENT = 16, FIRST_BLOCK_BYTES = 64 * 1024, MAPPED_BYTES = 2 << 20 };

struct soft_arena_block {
    struct soft_arena_block *older;
    size_t bytes;
    void *mapped; /* where the mapping begins; NULL: the block is of calloc's */
    size_t mapped_bytes;
    _Alignas(ALIGNMENT) char data[];
};

/* Zeroed, like calloc's. The block begins where a large page does. */
static struct soft_arena_block *map_block(size_t bytes) {
    size_t whole = (bytes + MAPPED_BYTES - 1) / MAPPED_BYTES * MAPPED_BYTES + MAPPED_BYTES;
    char *mapped = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) return NULL;
    size_t skipped = (MAPPED_BYTES - (uintptr_t)mapped % MAPPED_BYTES) % MAPPED_BYTES;
    struct soft_arena_block *block = (struct soft_arena_block *)(void *)(mapped + skipped);
    madvise(block, whole - MAPPED_BYTES, MADV_HUGEPAGE); /* a wish: small pages do as well */
    block->mapped = mapped;
    block->mapped_bytes = whole;
    return block;
}

static int add_block(struct soft_arena *arena, size_t bytes) {
    size_t size = arena->blocks != NULL ? arena->blocks->bytes * 2 : FIRST_BLOCK_BYTES;
    while (size < bytes) {
        if (size > SIZE_MAX / 4) return 0;
        size *= 2;
    }
    struct soft_arena_block *block = sizeof *block + size >= MAPPED_BYTES
                                         ? map_block(sizeof *block + size)
                                         : calloc(1, sizeof *block + size);
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

static void free_blocks(struct soft_arena_block *blocks) {
    while (blocks != NULL) {
        struct soft_arena_block *older = blocks->older;
        if (blocks->mapped != NULL) {
            munmap(blocks->mapped, blocks->mapped_bytes);
        } else {
            free(blocks);
        }
        blocks = older;
    }
}

void soft_arena_reuse(struct soft_arena *arena) {
    struct soft_arena_block *newest = arena->blocks;
    if (newest == NULL) return;
    free_blocks(newest->older);
    newest->older = NULL;
    memset(newest->data, 0, (size_t)(arena->next - newest->data));
    arena->next = newest->data;
}

void soft_arena_clear(struct soft_arena *arena) {
    free_blocks(arena->blocks);
    arena->blocks = NULL;
    arena->next = arena->end = NULL;
}
