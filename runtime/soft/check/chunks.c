/*
 * Chunks by size, in numbered tables.
 */
#include "chunks.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST_BYTES = 64, ROOM_MIN = 64 };

struct soft_page {
    uint64_t number;
    struct soft_page *next; /* in its place of the table */
    _Alignas(16) uint8_t record[];
};

static unsigned chunks_size_of(size_t bytes) {
    unsigned size = 0;
    while (size + 1 < SOFT_CHUNK_SIZES && (size_t)LEAST_BYTES << size < bytes) size++;
    return size;
}

void *soft_chunk_take(struct soft_chunks *chunks, size_t bytes) {
    unsigned size = chunks_size_of(bytes);
    size_t whole = (size_t)LEAST_BYTES << size;
    if (whole < bytes) return NULL;
    void *chunk = chunks->free[size];
    if (chunk == NULL) return soft_arena_alloc(&chunks->arena, whole);
    memcpy(&chunks->free[size], chunk, sizeof(void *));
    memset(chunk, 0, whole);
    return chunk;
}

void soft_chunk_give(struct soft_chunks *chunks, void *chunk, size_t bytes) {
    if (chunk == NULL) return;
    void **first = &chunks->free[chunks_size_of(bytes)];
    memcpy(chunk, first, sizeof(void *));
    *first = chunk;
}

void soft_chunks_clear(struct soft_chunks *chunks) {
    soft_arena_clear(&chunks->arena);
    memset((void *)chunks->free, 0, sizeof chunks->free);
}

static size_t chunks_place_of(const struct soft_pages *pages, uint64_t number) {
    return (size_t)(number * 0x9e3779b97f4a7c15u >> 20) & (pages->room - 1);
}

static bool chunks_grow(struct soft_pages *pages) {
    struct soft_pages more = *pages;
    more.room = pages->room > 0 ? 2 * pages->room : ROOM_MIN;
    more.table = calloc(more.room, sizeof *more.table);
    if (more.table == NULL) return false;
    for (size_t i = 0; i < pages->room; i++) {
        for (struct soft_page *page = pages->table[i], *next = NULL; page != NULL; page = next) {
            size_t place = chunks_place_of(&more, page->number);
            next = page->next;
            page->next = more.table[place];
            more.table[place] = page;
        }
    }
    free((void *)pages->table);
    pages->table = more.table;
    pages->room = more.room;
    return true;
}

void *soft_pages_find(const struct soft_pages *pages, uint64_t number) {
    if (pages->room == 0) return NULL;
    struct soft_page *page = pages->table[chunks_place_of(pages, number)];
    while (page != NULL && page->number != number) page = page->next;
    return page != NULL ? page->record : NULL;
}

void *soft_pages_at(struct soft_pages *pages, uint64_t number) {
    void *record = soft_pages_find(pages, number);
    if (record != NULL) return record;
    if (pages->count == pages->room && !chunks_grow(pages)) return NULL;
    struct soft_page **place = &pages->table[chunks_place_of(pages, number)];
    struct soft_page *page = soft_chunk_take(pages->chunks, sizeof *page + pages->record_bytes);
    if (page == NULL) return NULL;
    page->number = number;
    page->next = *place;
    *place = page;
    pages->count++;
    return page->record;
}

void soft_pages_each(struct soft_pages *pages, void (*visit)(uint64_t number, void *record, void *),
                     void *data) {
    for (size_t i = 0; i < pages->room; i++) {
        for (struct soft_page *page = pages->table[i]; page != NULL; page = page->next) {
            visit(page->number, page->record, data);
        }
    }
}

void soft_pages_end(struct soft_pages *pages) {
    free((void *)pages->table);
    pages->table = NULL;
    pages->room = pages->count = 0;
}
