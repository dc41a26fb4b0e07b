/*
 * Open addressing, half full at most; FNV-1a, with the place of the cut in it.
 */
#include "text_map.h"

#include "core/check.h"

#include <stdlib.h>
#include <string.h>

struct tol_text_slot {
    struct tol_gguf_text first, second;
    uint32_t hash;
    int32_t number;
    bool is_used;
};

tol_status tol_text_map_create(struct tol_text_map *map, size_t count) {
    tol_status status = TOL_OK;
    size_t slots = 16;
    while (slots < 2 * count) slots *= 2;
    map->slots = calloc(slots, sizeof *map->slots);
    map->mask = slots - 1;
    TOL_CHECK(map->slots != NULL, TOL_OUT_OF_HOST_MEMORY, "a map of %zu texts", count);
out:
    return status;
}

void tol_text_map_destroy(struct tol_text_map *map) {
    free(map->slots);
    map->slots = NULL;
}

static uint32_t hash_on(uint32_t hash, struct tol_gguf_text text) {
    for (size_t i = 0; i < text.count; i++)
        hash = (hash ^ (unsigned char)text.bytes[i]) * 16777619u;
    return hash;
}

static bool same(struct tol_gguf_text a, struct tol_gguf_text b) {
    return a.count == b.count && (a.count == 0 || memcmp(a.bytes, b.bytes, a.count) == 0);
}

/* The slot of a pair, or the free one where it belongs. */
static struct tol_text_slot *slot_of(const struct tol_text_map *map, struct tol_gguf_text first,
                                     struct tol_gguf_text second, uint32_t *hash) {
    *hash = hash_on((hash_on(2166136261u, first) ^ (uint32_t)first.count) * 16777619u, second);
    size_t at = (*hash ^ *hash >> 15) & map->mask;
    for (;; at = (at + 1) & map->mask) {
        struct tol_text_slot *slot = &map->slots[at];
        if (!slot->is_used) return slot;
        if (slot->hash == *hash && same(slot->first, first) && same(slot->second, second)) {
            return slot;
        }
    }
}

void tol_text_map_set(struct tol_text_map *map, struct tol_gguf_text first,
                      struct tol_gguf_text second, int32_t number, bool replaces) {
    uint32_t hash = 0;
    struct tol_text_slot *slot = slot_of(map, first, second, &hash);
    if (slot->is_used && !replaces) return;
    *slot = (struct tol_text_slot){first, second, hash, number, true};
}

int32_t tol_text_map_get(const struct tol_text_map *map, struct tol_gguf_text first,
                         struct tol_gguf_text second) {
    uint32_t hash = 0;
    const struct tol_text_slot *slot = slot_of(map, first, second, &hash);
    return slot->is_used ? slot->number : -1;
}
