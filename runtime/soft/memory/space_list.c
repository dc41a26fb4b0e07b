/*
 * The space: a sorted array of live allocations, a short list of freed ones, and one reserved
 * range.
 */
#include "space_list.h"

#include "maker.h"
#include "base/options.h"
#include "base/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    RANGE_SHIFT_MAX = 44, /* 16 TiB of addresses; less if the system allows less */
    RANGE_SHIFT_MIN = 35  /* what valgrind gives */
};

struct soft_space soft_space = {.lock = PTHREAD_RWLOCK_INITIALIZER};
static struct soft_windows windows;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void space_list_reserve(void) {
    for (int shift = RANGE_SHIFT_MAX; shift >= RANGE_SHIFT_MIN; shift--) {
        void *range = mmap(NULL, (size_t)1 << shift, PROT_NONE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (range == MAP_FAILED) continue;
        uint64_t window = 1ull << SOFT_WINDOW_SHIFT;
        uint64_t begin = ((uint64_t)(uintptr_t)range + window - 1) / window * window;
        windows = (struct soft_windows){
            .shared = begin,
            .local = begin + window,
            .parameter = begin + 2 * window,
            .code = begin + 3 * window,
        };
        soft_space.begin = soft_space.cursor = begin + 4 * window;
        soft_space.end = (uint64_t)(uintptr_t)range + (1ull << shift);
        return;
    }
    soft_log_print("32 GiB of addresses cannot be reserved for the device's memory; ulimit -v, or "
                   "a limit of the job, may forbid it\n");
}

bool soft_space_open(void) {
    pthread_once(&once, space_list_reserve);
    return soft_space.end != 0;
}

const struct soft_windows *soft_space_windows(void) {
    return &windows;
}

bool soft_space_tracks(void) {
    return soft_options()->check_init;
}

uint64_t soft_space_generation(void) {
    return atomic_load_explicit(&soft_space.generation, memory_order_acquire);
}

void soft_space_changed(void) {
    atomic_fetch_add(&soft_space.generation, 1);
}

size_t soft_space_index(uint64_t address) {
    size_t low = 0, high = soft_space.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (soft_space.live[middle]->address + soft_space.live[middle]->bytes <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool space_list_meets(uint64_t address, uint64_t bytes) {
    size_t index = soft_space_index(address);
    return index < soft_space.count && soft_space.live[index]->address < address + bytes;
}

static bool space_list_insert(struct soft_allocation *allocation) {
    if (soft_space.count == soft_space.room) {
        size_t room = soft_space.room * 2 + 256;
        struct soft_allocation **more = realloc((void *)soft_space.live, room * sizeof *more);
        if (more == NULL) return false;
        soft_space.live = more;
        soft_space.room = room;
    }
    size_t index = soft_space_index(allocation->address);
    memmove((void *)(soft_space.live + index + 1), (void *)(soft_space.live + index),
            (soft_space.count - index) * sizeof soft_space.live[0]);
    soft_space.live[index] = allocation;
    soft_space.count++;
    atomic_fetch_add(&soft_space.generation, 1);
    return true;
}

static bool space_list_is_of_host(const struct soft_allocation *allocation) {
    return allocation->kind == SOFT_KIND_PINNED || allocation->kind == SOFT_KIND_MANAGED ||
           allocation->kind == SOFT_KIND_REGISTERED;
}

struct soft_allocation *soft_space_alloc(const struct soft_allocation *wanted, uint64_t alignment) {
    struct soft_allocation *allocation = malloc(sizeof *allocation);
    if (allocation == NULL) return NULL;
    *allocation = *wanted;
    bool ok = true, of_host = space_list_is_of_host(allocation);
    if (allocation->backing == NULL) {
        /* The host may write its memory at any time: such writes are not tracked. */
        bool tracks = soft_space_tracks() && !of_host;
        if (allocation->host == NULL) allocation->host = soft_bytes_take(allocation->bytes);
        if (tracks) allocation->shadow = soft_bytes_take(allocation->bytes / 4 + 1);
        ok = allocation->host != NULL && (allocation->shadow != NULL || !tracks);
    }
    if (ok) {
        pthread_rwlock_wrlock(&soft_space.lock);
        allocation->serial = ++soft_space.serial;
        allocation->maker = soft_maker;
        if (of_host) {
            allocation->address = (uint64_t)(uintptr_t)allocation->host;
        } else if (allocation->address == 0) {
            allocation->address = soft_space_addresses(allocation->bytes, alignment);
        }
        ok = allocation->address != 0 &&
             !space_list_meets(allocation->address, allocation->bytes) &&
             space_list_insert(allocation);
        pthread_rwlock_unlock(&soft_space.lock);
    }
    if (!ok) {
        soft_space_discard(allocation);
        return NULL;
    }
    soft_made = (struct soft_made){allocation->address, allocation->bytes};
    return allocation;
}

/* Removes the allocation at an index. The caller holds the lock. */
static void space_list_take_out(size_t index, struct soft_allocation *was) {
    struct soft_allocation *allocation = soft_space.live[index];
    memmove((void *)(soft_space.live + index), (void *)(soft_space.live + index + 1),
            (soft_space.count - index - 1) * sizeof soft_space.live[0]);
    soft_space.count--;
    struct soft_allocation *grave = &soft_space.graves[soft_space.buried++ % SOFT_GRAVES];
    *grave = *allocation;
    grave->freed = true;
    if (was != NULL) *was = *allocation;
    atomic_fetch_add(&soft_space.generation, 1);
    soft_space_retire(allocation);
}

/* Whether the allocation at an index begins at an address and is of one of these kinds. */
static bool space_list_is_at(size_t index, uint64_t address, unsigned kinds) {
    return index < soft_space.count && soft_space.live[index]->address == address &&
           (kinds >> soft_space.live[index]->kind & 1) != 0;
}

bool soft_space_claim(uint64_t address, unsigned kinds, struct soft_allocation *found) {
    pthread_rwlock_wrlock(&soft_space.lock);
    size_t index = soft_space_index(address);
    bool ok = space_list_is_at(index, address, kinds) && !soft_space.live[index]->claimed;
    if (ok) {
        soft_space.live[index]->claimed = true;
        *found = *soft_space.live[index];
    }
    pthread_rwlock_unlock(&soft_space.lock);
    return ok;
}

bool soft_space_free(uint64_t address, unsigned kinds, struct soft_allocation *was) {
    pthread_rwlock_wrlock(&soft_space.lock);
    size_t index = soft_space_index(address);
    bool found = space_list_is_at(index, address, kinds);
    if (found) soft_made = (struct soft_made){address, soft_space.live[index]->bytes};
    if (found) space_list_take_out(index, was);
    pthread_rwlock_unlock(&soft_space.lock);
    return found;
}

bool soft_space_free_owned(unsigned slot, unsigned kinds, struct soft_allocation *was) {
    bool found = false;
    pthread_rwlock_wrlock(&soft_space.lock);
    for (size_t i = soft_space.count; i > 0 && !found; i--) {
        const struct soft_allocation *allocation = soft_space.live[i - 1];
        found = allocation->slot == slot && (kinds >> allocation->kind & 1) != 0;
        if (found) space_list_take_out(i - 1, was);
    }
    pthread_rwlock_unlock(&soft_space.lock);
    return found;
}

bool soft_space_allow(uint64_t address, uint32_t readers, uint32_t writers) {
    pthread_rwlock_wrlock(&soft_space.lock);
    struct soft_allocation *found = soft_space_around(address, 1);
    bool ok = found != NULL && found->address == address && found->kind == SOFT_KIND_MAPPED;
    if (ok) {
        found->readers = readers;
        found->writers = writers;
        atomic_fetch_add(&soft_space.generation, 1);
    }
    pthread_rwlock_unlock(&soft_space.lock);
    return ok;
}

void soft_space_allow_pool(const void *pool, uint32_t readers, uint32_t writers) {
    pthread_rwlock_wrlock(&soft_space.lock);
    for (size_t i = 0; i < soft_space.count; i++) {
        struct soft_allocation *allocation = soft_space.live[i];
        if (allocation->kind != SOFT_KIND_POOL || allocation->source != pool) continue;
        allocation->readers = readers;
        allocation->writers = writers;
    }
    atomic_fetch_add(&soft_space.generation, 1);
    pthread_rwlock_unlock(&soft_space.lock);
}

struct soft_allocation *soft_space_around(uint64_t address, uint64_t bytes) {
    size_t index = soft_space_index(address);
    if (index == soft_space.count) return NULL;
    struct soft_allocation *found = soft_space.live[index];
    bool inside = address >= found->address && bytes <= found->bytes &&
                  address - found->address <= found->bytes - bytes;
    return inside ? found : NULL;
}

static bool is_shared_by_mask(const struct soft_allocation *allocation) {
    return allocation->kind == SOFT_KIND_MAPPED || allocation->kind == SOFT_KIND_POOL;
}

bool soft_space_allows(const struct soft_allocation *allocation, enum soft_access_kind kind) {
    if (!is_shared_by_mask(allocation)) return true;
    return (kind == SOFT_ACCESS_WRITE ? allocation->writers : allocation->readers) != 0;
}

/* Whether the context and the device may use it, with any instruction. */
static bool space_list_is_within(const struct soft_allocation *allocation,
                                 const struct soft_reach *reach, enum soft_access_kind kind) {
    if (is_shared_by_mask(allocation)) {
        uint32_t devices = kind == SOFT_ACCESS_WRITE ? allocation->writers : allocation->readers;
        return (devices >> reach->device & 1) != 0;
    }
    /* Under unified addressing every context may use all host memory. */
    return space_list_is_of_host(allocation) ||
           (atomic_load(&reach->contexts) >> allocation->slot & 1) != 0;
}

bool soft_space_may(const struct soft_allocation *allocation, const struct soft_reach *reach,
                    enum soft_access_kind kind) {
    return allocation->kind != SOFT_KIND_ARRAY && space_list_is_within(allocation, reach, kind);
}

static bool find_view(uint64_t address, uint64_t bytes, const struct soft_reach *reach,
                      enum soft_access_kind kind, bool is_texel, struct soft_view *view) {
    pthread_rwlock_rdlock(&soft_space.lock);
    const struct soft_allocation *found = soft_space_around(address, bytes);
    bool ok = found != NULL && (is_texel ? space_list_is_within(found, reach, kind)
                                         : soft_space_may(found, reach, kind));
    if (ok) {
        *view = (struct soft_view){.low = found->address,
                                   .high = found->address + found->bytes,
                                   .host = found->host,
                                   .shadow = found->shadow,
                                   .constant = found->constant};
    }
    pthread_rwlock_unlock(&soft_space.lock);
    return ok;
}

bool soft_space_view(uint64_t address, uint64_t bytes, const struct soft_reach *reach,
                     enum soft_access_kind kind, struct soft_view *view) {
    return find_view(address, bytes, reach, kind, false, view);
}

bool soft_space_view_texel(uint64_t address, uint64_t bytes, const struct soft_reach *reach,
                           enum soft_access_kind kind, struct soft_view *view) {
    return find_view(address, bytes, reach, kind, true, view);
}

bool soft_space_find(uint64_t address, struct soft_allocation *allocation) {
    pthread_rwlock_rdlock(&soft_space.lock);
    const struct soft_allocation *found = soft_space_around(address, 1);
    if (found != NULL) *allocation = *found;
    pthread_rwlock_unlock(&soft_space.lock);
    return found != NULL;
}

bool soft_space_next(uint64_t serial, struct soft_allocation *allocation) {
    const struct soft_allocation *next = NULL;
    pthread_rwlock_rdlock(&soft_space.lock);
    for (size_t i = 0; i < soft_space.count; i++) {
        const struct soft_allocation *a = soft_space.live[i];
        if (a->serial > serial && (next == NULL || a->serial < next->serial)) next = a;
    }
    if (next != NULL) *allocation = *next;
    pthread_rwlock_unlock(&soft_space.lock);
    return next != NULL;
}

bool soft_space_holds(uint64_t address, uint64_t bytes) {
    return address < soft_space.end && address + bytes > windows.shared;
}

bool soft_space_is_taken(uint64_t address, uint64_t bytes) {
    pthread_rwlock_rdlock(&soft_space.lock);
    bool taken = space_list_meets(address, bytes);
    pthread_rwlock_unlock(&soft_space.lock);
    return taken;
}
