/*
 * Copies bytes into and out of the space, and updates the shadow: writes, reads, copies and fills.
 */
#include "space_list.h"

#include <string.h>

void soft_shadow_mark(uint8_t *shadow, uint64_t offset, uint64_t bytes) {
    if (shadow == NULL || bytes == 0) return;
    uint64_t first = offset / 4, last = (offset + bytes - 1) / 4;
    uint8_t head = (uint8_t)(0xfu << (offset % 4) & 0xf);
    uint8_t tail = (uint8_t)(0xfu >> (3 - (offset + bytes - 1) % 4));
    if (first == last) {
        soft_shadow_set(&shadow[first], head & tail);
        return;
    }
    soft_shadow_set(&shadow[first], head);
    memset(shadow + first + 1, 0xf, (size_t)(last - first - 1));
    soft_shadow_set(&shadow[last], tail);
}

/* The part of a range in one allocation. */
struct stretch {
    uint8_t *host, *shadow;
    uint64_t offset, bytes;
};

/* The part of [address, address + bytes) in the allocation around address; bytes 0: none. */
static struct stretch stretch_at(uint64_t address, uint64_t bytes, enum soft_access_kind kind) {
    const struct soft_allocation *found = soft_space_around(address, 1);
    if (found == NULL || !soft_space_allows(found, kind)) return (struct stretch){0};
    uint64_t offset = address - found->address;
    uint64_t left = found->bytes - offset;
    return (struct stretch){.host = found->host + offset,
                            .shadow = found->shadow,
                            .offset = offset,
                            .bytes = bytes < left ? bytes : left};
}

static bool space_copy_is_live(uint64_t address, uint64_t bytes, enum soft_access_kind kind) {
    while (bytes > 0) {
        struct stretch part = stretch_at(address, bytes, kind);
        if (part.bytes == 0) return false;
        address += part.bytes;
        bytes -= part.bytes;
    }
    return true;
}

bool soft_space_is_live(uint64_t address, uint64_t bytes, enum soft_access_kind kind) {
    pthread_rwlock_rdlock(&soft_space.lock);
    bool live = space_copy_is_live(address, bytes, kind);
    pthread_rwlock_unlock(&soft_space.lock);
    return live;
}

bool soft_space_write(uint64_t address, const void *source, uint64_t bytes) {
    pthread_rwlock_rdlock(&soft_space.lock);
    bool live = space_copy_is_live(address, bytes, SOFT_ACCESS_WRITE);
    const uint8_t *from = source;
    while (live && bytes > 0) {
        struct stretch part = stretch_at(address, bytes, SOFT_ACCESS_WRITE);
        memcpy(part.host, from, (size_t)part.bytes);
        soft_shadow_mark(part.shadow, part.offset, part.bytes);
        address += part.bytes;
        from += part.bytes;
        bytes -= part.bytes;
    }
    pthread_rwlock_unlock(&soft_space.lock);
    return live;
}

bool soft_space_read(uint64_t address, void *destination, uint64_t bytes) {
    pthread_rwlock_rdlock(&soft_space.lock);
    bool live = space_copy_is_live(address, bytes, SOFT_ACCESS_READ);
    uint8_t *to = destination;
    while (live && bytes > 0) {
        struct stretch part = stretch_at(address, bytes, SOFT_ACCESS_READ);
        memcpy(to, part.host, (size_t)part.bytes);
        address += part.bytes;
        to += part.bytes;
        bytes -= part.bytes;
    }
    pthread_rwlock_unlock(&soft_space.lock);
    return live;
}

/* Copies bytes with their shadow: copies of unwritten bytes remain unwritten. */
static void copy_stretch(const struct stretch *to, const struct stretch *from, uint64_t bytes) {
    memmove(to->host, from->host, (size_t)bytes);
    if (to->shadow == NULL) return;
    if (from->shadow == NULL) {
        soft_shadow_mark(to->shadow, to->offset, bytes);
        return;
    }
    for (uint64_t i = 0; i < bytes; i++) {
        uint64_t a = from->offset + i, b = to->offset + i;
        if (a % 4 == 0 && b % 4 == 0 && bytes - i >= 4) {
            uint64_t words = (bytes - i) / 4;
            memmove(to->shadow + b / 4, from->shadow + a / 4, (size_t)words);
            i += words * 4 - 1;
            continue;
        }
        uint8_t bit = (uint8_t)(1u << (b % 4));
        bool written = from->shadow[a / 4] >> (a % 4) & 1;
        to->shadow[b / 4] = (uint8_t)(written ? to->shadow[b / 4] | bit : to->shadow[b / 4] & ~bit);
    }
}

bool soft_space_copy(uint64_t destination, uint64_t source, uint64_t bytes) {
    pthread_rwlock_rdlock(&soft_space.lock);
    bool live = space_copy_is_live(destination, bytes, SOFT_ACCESS_WRITE) &&
                space_copy_is_live(source, bytes, SOFT_ACCESS_READ);
    while (live && bytes > 0) {
        struct stretch to = stretch_at(destination, bytes, SOFT_ACCESS_WRITE);
        struct stretch from = stretch_at(source, bytes, SOFT_ACCESS_READ);
        uint64_t part = to.bytes < from.bytes ? to.bytes : from.bytes;
        copy_stretch(&to, &from, part);
        destination += part;
        source += part;
        bytes -= part;
    }
    pthread_rwlock_unlock(&soft_space.lock);
    return live;
}

/* Repeats the pattern from an offset on, doubling the filled part each time. */
static void space_copy_repeat(uint8_t *to, size_t bytes, const uint8_t *pattern,
                              unsigned pattern_bytes, unsigned offset) {
    size_t done = bytes < pattern_bytes ? bytes : pattern_bytes;
    for (size_t i = 0; i < done; i++) to[i] = pattern[(offset + i) % pattern_bytes];
    while (done < bytes) {
        /* In pieces that a cache holds. */
        size_t most = done < 16384 ? done : 16384 - 16384 % pattern_bytes;
        size_t part = bytes - done < most ? bytes - done : most;
        memcpy(to + done, to, part);
        done += part;
    }
}

bool soft_space_fill(uint64_t address, const void *pattern, unsigned pattern_bytes,
                     uint64_t count) {
    uint64_t bytes = count * pattern_bytes;
    const uint8_t *byte = pattern;
    uint64_t at = 0;
    pthread_rwlock_rdlock(&soft_space.lock);
    bool live = space_copy_is_live(address, bytes, SOFT_ACCESS_WRITE);
    while (live && at < bytes) {
        struct stretch part = stretch_at(address + at, bytes - at, SOFT_ACCESS_WRITE);
        if (pattern_bytes == 1) {
            memset(part.host, byte[0], (size_t)part.bytes);
        } else {
            space_copy_repeat(part.host, (size_t)part.bytes, byte, pattern_bytes,
                              (unsigned)(at % pattern_bytes));
        }
        soft_shadow_mark(part.shadow, part.offset, part.bytes);
        at += part.bytes;
    }
    pthread_rwlock_unlock(&soft_space.lock);
    return live;
}
