/*
 * The arena: blocks that double in size, carved from the front.
 *
 * Freed blocks are kept for the next arena, up to some megabytes: a large module fills tens of
 * them, and page faults for new memory took a large part of a load.
 */
#include "arena.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Blocks of at least this size are mapped, in pages of this size if the system has them. */
enum { ALIGNMENT = 16, FIRST_BLOCK_BYTES = 64 * 1024, MAPPED_BYTES = 2 << 20 };

/* Under a sanitizer, freed blocks must be inaccessible. */
#if defined(__SANITIZE_ADDRESS__)
enum { KEPT_BYTES = 0 };
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer)
enum { KEPT_BYTES = 0 };
#else
enum { KEPT_BYTES = 64 << 20 };
#endif
#else
enum { KEPT_BYTES = 64 << 20 };
#endif

struct soft_arena_block {
    struct soft_arena_block *older;
    size_t bytes;
    void *mapped; /* the begin of the mapping; NULL: the block is from malloc */
    size_t mapped_bytes;
    _Alignas(ALIGNMENT) char data[];
};

static struct {
    pthread_mutex_t lock;
    struct soft_arena_block *blocks;
    size_t bytes;
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The smallest block kept that is large enough; NULL if none is. */
static struct soft_arena_block *arena_take_kept(size_t bytes) {
    struct soft_arena_block **best = NULL;
    pthread_mutex_lock(&kept.lock);
    for (struct soft_arena_block **link = &kept.blocks; *link != NULL; link = &(*link)->older) {
        if ((*link)->bytes >= bytes && (best == NULL || (*link)->bytes < (*best)->bytes)) {
            best = link;
        }
    }
    struct soft_arena_block *block = best != NULL ? *best : NULL;
    if (block != NULL) {
        *best = block->older;
        kept.bytes -= block->bytes;
    }
    pthread_mutex_unlock(&kept.lock);
    return block;
}

static bool arena_keep(struct soft_arena_block *block) {
    pthread_mutex_lock(&kept.lock);
    bool fits = block->bytes <= KEPT_BYTES - kept.bytes;
    if (fits) {
        block->older = kept.blocks;
        kept.blocks = block;
        kept.bytes += block->bytes;
    }
    pthread_mutex_unlock(&kept.lock);
    return fits;
}

/* The block begins where a large page does. */
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

static struct soft_arena_block *arena_make_block(size_t bytes) {
    struct soft_arena_block *block = NULL;
    if (sizeof *block + bytes >= MAPPED_BYTES) {
        block = map_block(sizeof *block + bytes);
    } else {
        block = malloc(sizeof *block + bytes);
        if (block != NULL) block->mapped = NULL;
    }
    if (block != NULL) block->bytes = bytes;
    return block;
}

static int arena_add_block(struct soft_arena *arena, size_t bytes) {
    size_t size = arena->blocks != NULL ? arena->blocks->bytes * 2 : FIRST_BLOCK_BYTES;
    while (size < bytes) {
        if (size > SIZE_MAX / 4) return 0;
        size *= 2;
    }
    struct soft_arena_block *block = arena_take_kept(bytes);
    if (block == NULL) block = arena_make_block(size);
    if (block == NULL) return 0;
    block->older = arena->blocks;
    arena->blocks = block;
    arena->next = block->data;
    arena->end = block->data + block->bytes;
    return 1;
}

void *soft_arena_raw(struct soft_arena *arena, size_t bytes) {
    if (bytes > SIZE_MAX / 4) return NULL;
    bytes = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if ((size_t)(arena->end - arena->next) < bytes && !arena_add_block(arena, bytes)) return NULL;
    void *result = arena->next;
    arena->next += bytes;
    return result;
}

void *soft_arena_alloc(struct soft_arena *arena, size_t bytes) {
    void *result = soft_arena_raw(arena, bytes);
    if (result != NULL) memset(result, 0, bytes);
    return result;
}

void *soft_arena_array(struct soft_arena *arena, size_t count, size_t element_bytes) {
    if (element_bytes != 0 && count > SIZE_MAX / element_bytes) return NULL;
    return soft_arena_alloc(arena, count * element_bytes);
}

char *soft_arena_text(struct soft_arena *arena, const char *text, size_t length) {
    char *copy = length < SIZE_MAX ? soft_arena_raw(arena, length + 1) : NULL;
    if (copy == NULL) return NULL;
    memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

static void arena_give_back(struct soft_arena_block *blocks) {
    while (blocks != NULL) {
        struct soft_arena_block *older = blocks->older;
        if (!arena_keep(blocks)) {
            if (blocks->mapped != NULL) {
                munmap(blocks->mapped, blocks->mapped_bytes);
            } else {
                free(blocks);
            }
        }
        blocks = older;
    }
}

void soft_arena_reuse(struct soft_arena *arena) {
    struct soft_arena_block *newest = arena->blocks;
    if (newest == NULL) return;
    arena_give_back(newest->older);
    newest->older = NULL;
    arena->next = newest->data;
}

void soft_arena_clear(struct soft_arena *arena) {
    arena_give_back(arena->blocks);
    arena->blocks = NULL;
    arena->next = arena->end = NULL;
}
