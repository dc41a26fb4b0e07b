/*
 * Open addressing, at most half full. The hash is SipHash-1-3 keyed by the address of the slots,
 * which a file's author does not know: otherwise texts that are chosen to collide would make
 * loading quadratic.
 * Source: Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012.
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

static uint64_t text_map_turned(uint64_t word, unsigned bits) {
    return word << bits | word >> (64 - bits);
}

static void text_map_mix(uint64_t v[4]) {
    v[0] += v[1];
    v[2] += v[3];
    v[1] = text_map_turned(v[1], 13) ^ v[0];
    v[3] = text_map_turned(v[3], 16) ^ v[2];
    v[0] = text_map_turned(v[0], 32);
    v[2] += v[1];
    v[0] += v[3];
    v[1] = text_map_turned(v[1], 17) ^ v[2];
    v[3] = text_map_turned(v[3], 21) ^ v[0];
    v[2] = text_map_turned(v[2], 32);
}

static void text_map_take(uint64_t v[4], uint64_t word) {
    v[3] ^= word;
    text_map_mix(v);
    v[0] ^= word;
}

static uint64_t text_map_hash_of(struct tol_gguf_text text, uint64_t key, uint64_t other_key) {
    uint64_t v[4] = {key ^ 0x736f6d6570736575u, other_key ^ 0x646f72616e646f6du,
                     key ^ 0x6c7967656e657261u, other_key ^ 0x7465646279746573u};
    uint64_t word = 0;
    size_t at = 0;
    for (; text.count - at >= sizeof word; at += sizeof word) {
        memcpy(&word, text.bytes + at, sizeof word);
        text_map_take(v, word);
    }
    word = 0;
    if (at < text.count) memcpy(&word, text.bytes + at, text.count - at);
    text_map_take(v, word | (uint64_t)text.count << 56);
    v[2] ^= 0xff;
    for (int i = 0; i < 3; i++) text_map_mix(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

static bool text_map_same(struct tol_gguf_text a, struct tol_gguf_text b) {
    return a.count == b.count && (a.count == 0 || memcmp(a.bytes, b.bytes, a.count) == 0);
}

/* The slot of a pair, or the free one where it belongs. */
static struct tol_text_slot *text_map_slot_of(const struct tol_text_map *map,
                                              struct tol_gguf_text first,
                                              struct tol_gguf_text second, uint32_t *hash) {
    uint64_t found = text_map_hash_of(first, (uint64_t)(uintptr_t)map->slots, 0);
    if (second.count > 0) found = text_map_hash_of(second, found, first.count);
    *hash = (uint32_t)(found >> 32);
    size_t at = (size_t)found & map->mask;
    for (;; at = (at + 1) & map->mask) {
        struct tol_text_slot *slot = &map->slots[at];
        if (!slot->is_used) return slot;
        if (slot->hash == *hash && text_map_same(slot->first, first) &&
            text_map_same(slot->second, second)) {
            return slot;
        }
    }
}

void tol_text_map_set(struct tol_text_map *map, struct tol_gguf_text first,
                      struct tol_gguf_text second, int32_t number, bool replaces) {
    uint32_t hash = 0;
    struct tol_text_slot *slot = text_map_slot_of(map, first, second, &hash);
    if (slot->is_used && !replaces) return;
    *slot = (struct tol_text_slot){first, second, hash, number, true};
}

int32_t tol_text_map_get(const struct tol_text_map *map, struct tol_gguf_text first,
                         struct tol_gguf_text second) {
    uint32_t hash = 0;
    const struct tol_text_slot *slot = text_map_slot_of(map, first, second, &hash);
    return slot->is_used ? slot->number : -1;
}
