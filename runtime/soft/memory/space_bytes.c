/*
 * The bytes of addresses, and when they may be freed.
 *
 * A kernel caches the last range that it found, for up to one slice of work. So bytes removed from
 * the space meanwhile are retired: they are freed once every active reader has entered after the
 * removal and so cannot have found them.
 */
#include "space_list.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    MAPPED_BYTES_MIN = 64 * 1024 /* from this size on bytes are mapped, below it allocated */
};

static struct {
    pthread_mutex_t lock;
    struct soft_space_reader *readers; /* the latest first */
    struct retired {
        struct soft_allocation *allocation;
        uint64_t since; /* the generation without it */
        struct retired *next;
    } * retired;
} inside = {.lock = PTHREAD_MUTEX_INITIALIZER};

void *soft_bytes_take(uint64_t bytes) {
    if (bytes > SIZE_MAX / 2) return NULL;
    size_t size = (size_t)bytes + SOFT_BYTES_SLACK;
    if (size < MAPPED_BYTES_MIN) {
        void *small = aligned_alloc(256, (size + 255) / 256 * 256);
        if (small != NULL) memset(small, 0, size);
        return small;
    }
    void *mapped = mmap(NULL, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return mapped == MAP_FAILED ? NULL : mapped;
}

void soft_bytes_give(void *bytes, uint64_t count) {
    size_t size = (size_t)count + SOFT_BYTES_SLACK;
    if (bytes == NULL) return;
    if (size < MAPPED_BYTES_MIN) {
        free(bytes);
    } else {
        munmap(bytes, size);
    }
}

struct soft_backing *soft_backing_new(uint64_t bytes) {
    struct soft_backing *backing = calloc(1, sizeof *backing);
    if (backing == NULL) return NULL;
    atomic_init(&backing->references, 1);
    backing->bytes = bytes;
    backing->host = soft_bytes_take(bytes);
    if (soft_space_tracks()) backing->shadow = soft_bytes_take(bytes / 4 + 1);
    if (backing->host == NULL || (soft_space_tracks() && backing->shadow == NULL)) {
        soft_backing_release(backing);
        return NULL;
    }
    return backing;
}

void soft_backing_release(struct soft_backing *backing) {
    if (backing == NULL || atomic_fetch_sub(&backing->references, 1) != 1) return;
    if (backing->is_shared) {
        soft_shared_release(backing);
    } else {
        soft_bytes_give(backing->host, backing->bytes);
    }
    soft_bytes_give(backing->shadow, backing->bytes / 4 + 1);
    free(backing);
}

void soft_space_discard(struct soft_allocation *allocation) {
    if (allocation->backing != NULL) {
        soft_backing_release(allocation->backing);
    } else {
        bool own = allocation->kind != SOFT_KIND_REGISTERED;
        if (own) soft_bytes_give(allocation->host, allocation->bytes);
        soft_bytes_give(allocation->shadow, allocation->bytes / 4 + 1);
    }
    free(allocation);
}

/* Removes from the list of retired bytes those that no reader can have found. */
static struct retired *take_free(void) {
    uint64_t oldest = UINT64_MAX;
    for (const struct soft_space_reader *r = inside.readers; r != NULL; r = r->next) {
        if (r->since < oldest) oldest = r->since;
    }
    struct retired *free_now = NULL, **link = &inside.retired;
    while (*link != NULL) {
        struct retired *item = *link;
        if (item->since <= oldest) {
            *link = item->next;
            item->next = free_now;
            free_now = item;
        } else {
            link = &item->next;
        }
    }
    return free_now;
}

static void free_all(struct retired *item) {
    while (item != NULL) {
        struct retired *next = item->next;
        soft_space_discard(item->allocation);
        free(item);
        item = next;
    }
}

void soft_space_retire(struct soft_allocation *allocation) {
    struct retired *item = malloc(sizeof *item);
    pthread_mutex_lock(&inside.lock);
    bool alone = inside.readers == NULL;
    struct retired *free_now = NULL;
    if (item != NULL) {
        *item = (struct retired){allocation, soft_space_generation(), inside.retired};
        inside.retired = item;
        free_now = take_free();
    }
    pthread_mutex_unlock(&inside.lock);
    free_all(free_now);
    /* Without memory for the list entry the bytes are never freed, unless no reader is active. */
    if (item == NULL && alone) soft_space_discard(allocation);
}

void soft_space_enter(struct soft_space_reader *reader) {
    pthread_mutex_lock(&inside.lock);
    reader->since = soft_space_generation();
    reader->next = inside.readers;
    reader->link = &inside.readers;
    if (reader->next != NULL) reader->next->link = &reader->next;
    inside.readers = reader;
    pthread_mutex_unlock(&inside.lock);
}

void soft_space_leave(struct soft_space_reader *reader) {
    pthread_mutex_lock(&inside.lock);
    *reader->link = reader->next;
    if (reader->next != NULL) reader->next->link = reader->link;
    struct retired *free_now = inside.retired != NULL ? take_free() : NULL;
    pthread_mutex_unlock(&inside.lock);
    free_all(free_now);
}
