/*
 * The set of live handles: an open hash table of pointers.
 */
#include "handle_set.h"
#include "memory/maker.h"

#include "base/deep_assert.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

static struct {
    struct entry {
        uintptr_t key; /* the handle's address, tagged with its kind; 0: empty; 1: removed */
        struct soft_maker maker;
    } * entries;
    size_t room, used, live; /* used: live and removed ones */
} handles;

/* No two pairs have the same key; 0 and 1 are no keys. */
static uintptr_t handle_set_key_of(enum soft_handle_kind kind, const void *handle) {
    return ((uintptr_t)handle << 5) + (uintptr_t)kind + 2;
}

static size_t handle_set_place_of(uintptr_t key) {
    uint64_t mixed = (uint64_t)key * 0x9e3779b97f4a7c15u;
    return (size_t)(mixed >> 20) & (handles.room - 1);
}

static void handle_set_put(uintptr_t key, const struct soft_maker *maker) {
    size_t at = handle_set_place_of(key);
    while (handles.entries[at].key > 1) at = (at + 1) & (handles.room - 1);
    handles.used += handles.entries[at].key == 0;
    handles.entries[at] = (struct entry){key, *maker};
}

/* Grows the table and drops removed handles: its size depends on the live handles, however many
 * come and go. */
static bool handle_set_make_room(void) {
    struct entry *old = handles.entries;
    size_t old_room = handles.room, room = old_room < 256 ? 256 : old_room;
    if (handles.live * 4 >= room) room *= 2;
    struct entry *entries = calloc(room, sizeof *entries);
    if (entries == NULL) return false;
    handles.entries = entries;
    handles.room = room;
    handles.used = 0;
    for (size_t i = 0; i < old_room; i++) {
        if (old[i].key > 1) handle_set_put(old[i].key, &old[i].maker);
    }
    free(old);
    return true;
}

static struct entry *handle_set_find(enum soft_handle_kind kind, const void *handle) {
    uintptr_t key = handle_set_key_of(kind, handle);
    if (handles.room == 0 || handle == NULL) return NULL;
    for (size_t at = handle_set_place_of(key); handles.entries[at].key != 0;
         at = (at + 1) & (handles.room - 1)) {
        if (handles.entries[at].key == key) return &handles.entries[at];
    }
    return NULL;
}

#ifndef NDEBUG

static bool are_counts_valid(void) {
    return handles.live <= handles.used && handles.used <= handles.room / 2;
}

bool soft_handles_are_valid(void) {
    size_t live = 0, used = 0;
    for (size_t i = 0; i < handles.room; i++) {
        const uintptr_t key = handles.entries[i].key;
        used += key != 0;
        if (key <= 1) continue;
        live++;
        if (handle_set_find((enum soft_handle_kind)((key - 2) & 31),
                            (const void *)((key - 2) >> 5)) != &handles.entries[i]) {
            return false;
        }
    }
    return are_counts_valid() && live == handles.live && used == handles.used;
}

#endif

bool soft_handle_add(enum soft_handle_kind kind, const void *handle) {
    if (handles.used * 2 >= handles.room && !handle_set_make_room()) return false;
    assert(handle_set_find(kind, handle) == NULL);
    handle_set_put(handle_set_key_of(kind, handle), &soft_maker);
    handles.live++;
    assert(are_counts_valid());
    SOFT_DEEP_ASSERT(soft_handles_are_valid());
    return true;
}

bool soft_handle_is(enum soft_handle_kind kind, const void *handle) {
    return handle_set_find(kind, handle) != NULL;
}

void soft_handle_remove(enum soft_handle_kind kind, const void *handle) {
    struct entry *entry = handle_set_find(kind, handle);
    if (entry == NULL) return;
    entry->key = 1;
    handles.live--;
    assert(are_counts_valid());
    SOFT_DEEP_ASSERT(soft_handles_are_valid());
}

void soft_handle_each(void (*visit)(enum soft_handle_kind kind, const void *handle,
                                    const struct soft_maker *maker, void *data),
                      void *data) {
    for (size_t i = 0; i < handles.room; i++) {
        uintptr_t key = handles.entries[i].key;
        if (key <= 1) continue;
        visit((enum soft_handle_kind)((key - 2) & 31), (const void *)((key - 2) >> 5),
              &handles.entries[i].maker, data);
    }
}
