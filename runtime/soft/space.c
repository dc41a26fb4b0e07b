/*
 * The space: a sorted array of what lives, a short memory of what was freed, and one reserved
 * range.
 */
#include "space.h"

#include "options.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    RANGE_SHIFT_MAX = 44, /* 16 TiB of addresses; less where the system gives less */
    RANGE_SHIFT_MIN = 36,
    GAP_MIN = 4096,
    MAPPED_BYTES_MIN = 64 * 1024, /* from here on bytes are mapped, below allocated */
    SLACK_BYTES = 64,             /* what vector code may read behind the end of host bytes */
    GRAVES = 1024
};

static struct {
    pthread_rwlock_t lock;
    pthread_once_t once;
    uint64_t begin, end; /* of the reserved range, windows left out */
    uint64_t cursor;
    struct soft_windows windows;
    struct soft_allocation **live; /* by address */
    size_t count, room;
    struct soft_allocation graves[GRAVES]; /* the latest that were freed; a ring */
    size_t buried;
    uint64_t serial;
    _Atomic uint64_t generation;
} space = {.lock = PTHREAD_RWLOCK_INITIALIZER, .once = PTHREAD_ONCE_INIT};

static void reserve(void) {
    for (int shift = RANGE_SHIFT_MAX; shift >= RANGE_SHIFT_MIN; shift--) {
        void *range = mmap(NULL, (size_t)1 << shift, PROT_NONE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (range == MAP_FAILED) continue;
        uint64_t window = 1ull << SOFT_WINDOW_SHIFT;
        uint64_t begin = ((uint64_t)(uintptr_t)range + window - 1) / window * window;
        space.windows = (struct soft_windows){
            .shared = begin, .local = begin + window, .parameter = begin + 2 * window};
        space.begin = space.cursor = begin + 3 * window;
        space.end = (uint64_t)(uintptr_t)range + (1ull << shift);
        return;
    }
}

bool soft_space_open(void) {
    pthread_once(&space.once, reserve);
    return space.end != 0;
}

const struct soft_windows *soft_space_windows(void) {
    return &space.windows;
}

bool soft_space_tracks(void) {
    return soft_options()->check_init;
}

uint64_t soft_space_generation(void) {
    return atomic_load_explicit(&space.generation, memory_order_acquire);
}

static void *take_bytes(uint64_t bytes) {
    if (bytes > SIZE_MAX / 2) return NULL;
    size_t size = (size_t)bytes + SLACK_BYTES;
    if (size < MAPPED_BYTES_MIN) {
        void *small = aligned_alloc(256, (size + 255) / 256 * 256);
        if (small != NULL) memset(small, 0, size);
        return small;
    }
    void *mapped = mmap(NULL, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return mapped == MAP_FAILED ? NULL : mapped;
}

static void give_bytes(void *bytes, uint64_t count) {
    size_t size = (size_t)count + SLACK_BYTES;
    if (bytes == NULL) return;
    if (size < MAPPED_BYTES_MIN) {
        free(bytes);
    } else {
        munmap(bytes, size);
    }
}

/* The first live allocation that ends behind an address. The caller holds the lock. */
static size_t find_index(uint64_t address) {
    size_t low = 0, high = space.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (space.live[middle]->address + space.live[middle]->bytes <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static uint64_t align_up(uint64_t value, uint64_t alignment) {
    return (value + alignment - 1) & ~(alignment - 1);
}

/* Finds addresses: behind the newest allocation while the range lasts, then in the first hole. */
static uint64_t find_addresses(uint64_t bytes, uint64_t alignment) {
    uint64_t gap = bytes > GAP_MIN ? bytes : GAP_MIN;
    uint64_t address = align_up(space.cursor, alignment);
    if (address < space.end && bytes <= space.end - address && gap <= space.end - address - bytes) {
        space.cursor = address + bytes + gap;
        return address;
    }
    uint64_t hole = space.begin;
    for (size_t i = find_index(space.begin); i <= space.count; i++) {
        bool last = i == space.count || space.live[i]->address >= space.end;
        uint64_t limit = last ? space.end : space.live[i]->address;
        address = align_up(hole, alignment);
        if (address < limit && bytes + GAP_MIN <= limit - address) return address;
        if (last) return 0;
        hole = space.live[i]->address + space.live[i]->bytes + GAP_MIN;
    }
    return 0;
}

static bool insert(struct soft_allocation *allocation) {
    if (space.count == space.room) {
        size_t room = space.room * 2 + 256;
        struct soft_allocation **more = realloc((void *)space.live, room * sizeof *more);
        if (more == NULL) return false;
        space.live = more;
        space.room = room;
    }
    size_t index = find_index(allocation->address);
    memmove((void *)(space.live + index + 1), (void *)(space.live + index),
            (space.count - index) * sizeof space.live[0]);
    space.live[index] = allocation;
    space.count++;
    atomic_fetch_add(&space.generation, 1);
    return true;
}

static void release(struct soft_allocation *allocation) {
    give_bytes(allocation->host, allocation->bytes);
    give_bytes(allocation->shadow, allocation->bytes / 4 + 1);
    free(allocation);
}

struct soft_allocation *soft_space_alloc(uint64_t bytes, uint64_t alignment, enum soft_kind kind,
                                         int device, const char *name) {
    struct soft_allocation *allocation = calloc(1, sizeof *allocation);
    if (allocation == NULL) return NULL;
    allocation->bytes = bytes;
    allocation->kind = kind;
    allocation->device = device;
    snprintf(allocation->name, sizeof allocation->name, "%s", name != NULL ? name : "");
    allocation->host = take_bytes(bytes);
    if (soft_space_tracks()) allocation->shadow = take_bytes(bytes / 4 + 1);
    bool ok = allocation->host != NULL && (allocation->shadow != NULL || !soft_space_tracks());
    if (ok) {
        pthread_rwlock_wrlock(&space.lock);
        allocation->serial = ++space.serial;
        allocation->address = kind == SOFT_KIND_PINNED ? (uint64_t)(uintptr_t)allocation->host
                                                       : find_addresses(bytes, alignment);
        ok = allocation->address != 0 && insert(allocation);
        pthread_rwlock_unlock(&space.lock);
    }
    if (!ok) {
        release(allocation);
        return NULL;
    }
    return allocation;
}

bool soft_space_free(uint64_t address, enum soft_kind kind, uint64_t *bytes, int *device) {
    struct soft_allocation *allocation = NULL;
    pthread_rwlock_wrlock(&space.lock);
    size_t index = find_index(address);
    if (index < space.count && space.live[index]->address == address &&
        space.live[index]->kind == kind) {
        allocation = space.live[index];
        memmove((void *)(space.live + index), (void *)(space.live + index + 1),
                (space.count - index - 1) * sizeof space.live[0]);
        space.count--;
        struct soft_allocation *grave = &space.graves[space.buried++ % GRAVES];
        *grave = *allocation;
        grave->freed = true;
        atomic_fetch_add(&space.generation, 1);
    }
    pthread_rwlock_unlock(&space.lock);
    if (allocation == NULL) return false;
    if (bytes != NULL) *bytes = allocation->bytes;
    if (device != NULL) *device = allocation->device;
    release(allocation);
    return true;
}

uint64_t soft_space_free_all(enum soft_kind kind, int device) {
    uint64_t sum = 0, bytes = 0, address = 0;
    do {
        address = 0;
        pthread_rwlock_rdlock(&space.lock);
        for (size_t i = 0; i < space.count && address == 0; i++) {
            if (space.live[i]->kind == kind && space.live[i]->device == device) {
                address = space.live[i]->address;
            }
        }
        pthread_rwlock_unlock(&space.lock);
        if (address != 0 && soft_space_free(address, kind, &bytes, NULL)) sum += bytes;
    } while (address != 0);
    return sum;
}

/* The live allocation around a range. The caller holds the lock. */
static struct soft_allocation *around(uint64_t address, uint64_t bytes) {
    size_t index = find_index(address);
    if (index == space.count) return NULL;
    struct soft_allocation *found = space.live[index];
    bool inside = address >= found->address && bytes <= found->bytes &&
                  address - found->address <= found->bytes - bytes;
    return inside ? found : NULL;
}

bool soft_space_view(uint64_t address, uint64_t bytes, struct soft_view *view) {
    pthread_rwlock_rdlock(&space.lock);
    const struct soft_allocation *found = around(address, bytes);
    if (found != NULL) {
        *view = (struct soft_view){.low = found->address,
                                   .high = found->address + found->bytes,
                                   .host = found->host,
                                   .shadow = found->shadow};
    }
    pthread_rwlock_unlock(&space.lock);
    return found != NULL;
}

bool soft_space_find(uint64_t address, struct soft_allocation *allocation) {
    pthread_rwlock_rdlock(&space.lock);
    const struct soft_allocation *found = around(address, 1);
    if (found != NULL) *allocation = *found;
    pthread_rwlock_unlock(&space.lock);
    return found != NULL;
}

size_t soft_space_count(enum soft_kind kind, int device) {
    size_t count = 0;
    pthread_rwlock_rdlock(&space.lock);
    for (size_t i = 0; i < space.count; i++) {
        count += space.live[i]->kind == kind && (device < 0 || space.live[i]->device == device);
    }
    pthread_rwlock_unlock(&space.lock);
    return count;
}

/* How far an address is from an allocation; 0 inside it. */
static uint64_t distance(const struct soft_allocation *allocation, uint64_t address) {
    if (address < allocation->address) return allocation->address - address;
    uint64_t end = allocation->address + allocation->bytes;
    return address < end ? 0 : address - end + 1;
}

void soft_space_describe(uint64_t address, char *text, size_t bytes) {
    const struct soft_allocation *nearest = NULL;
    pthread_rwlock_rdlock(&space.lock);
    size_t index = find_index(address);
    for (size_t i = index > 0 ? index - 1 : 0; i < space.count && i <= index; i++) {
        if (nearest == NULL || distance(space.live[i], address) < distance(nearest, address)) {
            nearest = space.live[i];
        }
    }
    /* A freed allocation around the address says more than a living one beside it. */
    size_t graves = space.buried < GRAVES ? space.buried : GRAVES;
    for (size_t i = 0; i < graves; i++) {
        const struct soft_allocation *grave = &space.graves[(space.buried - 1 - i) % GRAVES];
        if (distance(grave, address) == 0) {
            nearest = grave;
            break;
        }
    }
    if (address < 4096) {
        snprintf(text, bytes, "a null pointer");
    } else if (nearest == NULL) {
        snprintf(text, bytes, "nothing is allocated");
    } else {
        uint64_t end = nearest->address + nearest->bytes;
        const char *named = nearest->name[0] != '\0' ? " of variable " : "";
        if (nearest->freed) {
            snprintf(text, bytes,
                     "%llu bytes into allocation %llu%s%s of %llu bytes at 0x%llx, which was freed",
                     (unsigned long long)(address - nearest->address),
                     (unsigned long long)nearest->serial, named, nearest->name,
                     (unsigned long long)nearest->bytes, (unsigned long long)nearest->address);
        } else {
            bool before = address < nearest->address, inside = !before && address < end;
            uint64_t off = before   ? nearest->address - address
                           : inside ? address - nearest->address
                                    : address - end;
            snprintf(text, bytes, "%llu bytes %s allocation %llu%s%s of %llu bytes at 0x%llx",
                     (unsigned long long)off,
                     before   ? "before"
                     : inside ? "into"
                              : "behind the end of",
                     (unsigned long long)nearest->serial, named, nearest->name,
                     (unsigned long long)nearest->bytes, (unsigned long long)nearest->address);
        }
    }
    pthread_rwlock_unlock(&space.lock);
}

void soft_shadow_mark(uint8_t *shadow, uint64_t offset, uint64_t bytes) {
    if (shadow == NULL || bytes == 0) return;
    uint64_t first = offset / 4, last = (offset + bytes - 1) / 4;
    uint8_t head = (uint8_t)(0xfu << (offset % 4) & 0xf);
    uint8_t tail = (uint8_t)(0xfu >> (3 - (offset + bytes - 1) % 4));
    if (first == last) {
        shadow[first] |= head & tail;
        return;
    }
    shadow[first] |= head;
    memset(shadow + first + 1, 0xf, (size_t)(last - first - 1));
    shadow[last] |= tail;
}

/* One stretch of a range that lies in one allocation. */
struct stretch {
    uint8_t *host, *shadow;
    uint64_t offset, bytes;
};

/* The part of [address, address + bytes) in the allocation around address; bytes 0: none is. */
static struct stretch stretch_at(uint64_t address, uint64_t bytes) {
    const struct soft_allocation *found = around(address, 1);
    if (found == NULL) return (struct stretch){0};
    uint64_t offset = address - found->address;
    uint64_t left = found->bytes - offset;
    return (struct stretch){.host = found->host + offset,
                            .shadow = found->shadow,
                            .offset = offset,
                            .bytes = bytes < left ? bytes : left};
}

static bool is_live(uint64_t address, uint64_t bytes) {
    while (bytes > 0) {
        struct stretch part = stretch_at(address, bytes);
        if (part.bytes == 0) return false;
        address += part.bytes;
        bytes -= part.bytes;
    }
    return true;
}

bool soft_space_is_live(uint64_t address, uint64_t bytes) {
    pthread_rwlock_rdlock(&space.lock);
    bool live = is_live(address, bytes);
    pthread_rwlock_unlock(&space.lock);
    return live;
}

bool soft_space_write(uint64_t address, const void *source, uint64_t bytes) {
    pthread_rwlock_rdlock(&space.lock);
    bool live = is_live(address, bytes);
    const uint8_t *from = source;
    while (live && bytes > 0) {
        struct stretch part = stretch_at(address, bytes);
        memcpy(part.host, from, (size_t)part.bytes);
        soft_shadow_mark(part.shadow, part.offset, part.bytes);
        address += part.bytes;
        from += part.bytes;
        bytes -= part.bytes;
    }
    pthread_rwlock_unlock(&space.lock);
    return live;
}

bool soft_space_read(uint64_t address, void *destination, uint64_t bytes) {
    pthread_rwlock_rdlock(&space.lock);
    bool live = is_live(address, bytes);
    uint8_t *to = destination;
    while (live && bytes > 0) {
        struct stretch part = stretch_at(address, bytes);
        memcpy(to, part.host, (size_t)part.bytes);
        address += part.bytes;
        to += part.bytes;
        bytes -= part.bytes;
    }
    pthread_rwlock_unlock(&space.lock);
    return live;
}

/* Bytes copied with what the shadow knows of them: copying what was never written does not make it
 * written. */
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
    pthread_rwlock_rdlock(&space.lock);
    bool live = is_live(destination, bytes) && is_live(source, bytes);
    while (live && bytes > 0) {
        struct stretch to = stretch_at(destination, bytes), from = stretch_at(source, bytes);
        uint64_t part = to.bytes < from.bytes ? to.bytes : from.bytes;
        copy_stretch(&to, &from, part);
        destination += part;
        source += part;
        bytes -= part;
    }
    pthread_rwlock_unlock(&space.lock);
    return live;
}

bool soft_space_fill(uint64_t address, const void *pattern, unsigned pattern_bytes,
                     uint64_t count) {
    uint64_t bytes = count * pattern_bytes;
    const uint8_t *byte = pattern;
    uint64_t at = 0;
    pthread_rwlock_rdlock(&space.lock);
    bool live = is_live(address, bytes);
    while (live && at < bytes) {
        struct stretch part = stretch_at(address + at, bytes - at);
        if (pattern_bytes == 1) {
            memset(part.host, byte[0], (size_t)part.bytes);
        } else {
            for (uint64_t i = 0; i < part.bytes; i++) part.host[i] = byte[(at + i) % pattern_bytes];
        }
        soft_shadow_mark(part.shadow, part.offset, part.bytes);
        at += part.bytes;
    }
    pthread_rwlock_unlock(&space.lock);
    return live;
}
