/*
 * The table of blocks: linear probing; later entries move up into a removed place, so there are no
 * tombstones.
 */
#include "torch_block.h"

#include <pthread.h>
#include <stdlib.h>

enum { PARTS = 64, FIRST_ROOM = 256 };

struct part {
    pthread_mutex_t lock;
    struct torch_block *blocks;
    size_t room, count; /* room is a power of two */
} __attribute__((aligned(64)));

static struct part parts[PARTS];

__attribute__((constructor)) static void open_parts(void) {
    for (size_t i = 0; i < PARTS; i++) pthread_mutex_init(&parts[i].lock, NULL);
}

/* Blocks begin at multiples of 256. */
static uint64_t torch_block_hash_of(CUdeviceptr address) {
    return (address >> 8) * 0x9e3779b97f4a7c15u;
}

static struct part *torch_block_part_of(CUdeviceptr address) {
    return &parts[torch_block_hash_of(address) >> 58];
}

static size_t torch_block_home_of(const struct part *part, CUdeviceptr address) {
    return (size_t)(torch_block_hash_of(address) >> 16) & (part->room - 1);
}

/* The place of an address, or the free one where it would be. */
static struct torch_block *torch_block_place_of(const struct part *part, CUdeviceptr address) {
    size_t at = torch_block_home_of(part, address);
    while (part->blocks[at].address != 0 && part->blocks[at].address != address) {
        at = (at + 1) & (part->room - 1);
    }
    return &part->blocks[at];
}

static bool torch_block_grow(struct part *part) {
    struct part wider = {.room = part->room > 0 ? 2 * part->room : FIRST_ROOM};
    wider.blocks = calloc(wider.room, sizeof *wider.blocks);
    if (wider.blocks == NULL) return false;
    for (size_t i = 0; i < part->room; i++) {
        if (part->blocks[i].address == 0) continue;
        *torch_block_place_of(&wider, part->blocks[i].address) = part->blocks[i];
    }
    free(part->blocks);
    part->blocks = wider.blocks;
    part->room = wider.room;
    return true;
}

bool torch_blocks_add(const struct torch_block *block) {
    struct part *part = torch_block_part_of(block->address);
    pthread_mutex_lock(&part->lock);
    const bool has_room = 2 * (part->count + 1) <= part->room || torch_block_grow(part);
    if (has_room) {
        *torch_block_place_of(part, block->address) = *block;
        part->count++;
    }
    pthread_mutex_unlock(&part->lock);
    return has_room;
}

/* Takes a place out: each later block moves up unless it would go before its home. */
static void close_gap(struct part *part, size_t gap) {
    const size_t mask = part->room - 1;
    for (size_t at = (gap + 1) & mask; part->blocks[at].address != 0; at = (at + 1) & mask) {
        const size_t home = torch_block_home_of(part, part->blocks[at].address);
        if (((at - home) & mask) < ((at - gap) & mask)) continue;
        part->blocks[gap] = part->blocks[at];
        gap = at;
    }
    part->blocks[gap] = (struct torch_block){0};
}

bool torch_blocks_remove(CUdeviceptr address, struct torch_block *block) {
    struct part *part = torch_block_part_of(address);
    bool found = false;
    pthread_mutex_lock(&part->lock);
    if (part->room > 0 && address != 0) {
        struct torch_block *place = torch_block_place_of(part, address);
        found = place->address == address;
        if (found) {
            *block = *place;
            close_gap(part, (size_t)(place - part->blocks));
            part->count--;
        }
    }
    pthread_mutex_unlock(&part->lock);
    return found;
}

static bool note_use(struct torch_block *block, struct tol_stream *stream) {
    struct torch_uses *uses = block->uses;
    for (size_t i = 0; uses != NULL && i < uses->count; i++) {
        if (uses->streams[i] == stream) return true;
    }
    if (uses == NULL || uses->count == uses->room) {
        const size_t room = uses != NULL ? 2 * uses->room : 4;
        uses = realloc(uses, sizeof *uses + room * sizeof(struct tol_stream *));
        if (uses == NULL) return false;
        if (block->uses == NULL) uses->count = 0;
        uses->room = room;
        block->uses = uses;
    }
    uses->streams[uses->count++] = stream;
    return true;
}

bool torch_blocks_record(CUdeviceptr address, void *stream,
                         struct tol_stream *(*find)(struct torch_device *, CUstream)) {
    struct part *part = torch_block_part_of(address);
    bool noted = false;
    pthread_mutex_lock(&part->lock);
    if (part->room > 0 && address != 0) {
        struct torch_block *place = torch_block_place_of(part, address);
        if (place->address == address) {
            struct tol_stream *user = find(place->device, stream);
            noted = user != NULL && (user == place->stream || note_use(place, user));
        }
    }
    pthread_mutex_unlock(&part->lock);
    return noted;
}

bool torch_blocks_find(CUdeviceptr address, struct torch_block *block) {
    bool found = false;
    for (size_t i = 0; i < PARTS && !found; i++) {
        struct part *part = &parts[i];
        pthread_mutex_lock(&part->lock);
        for (size_t k = 0; k < part->room && !found; k++) {
            const struct torch_block *other = &part->blocks[k];
            found = other->address != 0 && address - other->address < other->bytes;
            if (found) *block = *other;
        }
        pthread_mutex_unlock(&part->lock);
    }
    return found;
}
