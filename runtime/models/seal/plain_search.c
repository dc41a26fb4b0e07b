/*
 * A table of the pieces of plaintext by a hash of their bytes, and a list of allocations.
 */
#include "plain_search.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 16, PLACES = 4096 };

static struct {
    pthread_mutex_t lock;
    const struct tol_driver_table *driver;
    const char *plain;
    size_t slots;    /* a power of two */
    uint32_t *table; /* 1 + the number of a piece; 0: none */
    size_t copied;
    size_t count;
    struct tol_place places[PLACES];
} search = {.lock = PTHREAD_MUTEX_INITIALIZER};

static size_t plain_search_slot_of(const char *piece) {
    uint64_t a, b;
    memcpy(&a, piece, sizeof a);
    memcpy(&b, piece + sizeof a, sizeof b);
    a = (a ^ b * 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u;
    return (size_t)(a >> 20) & (search.slots - 1);
}

void plain_search_begin(const void *plain, size_t bytes) {
    plain_search_end();
    pthread_mutex_lock(&search.lock);
    search.slots = 64;
    while (search.slots < bytes / PIECE * 4) search.slots *= 2;
    search.table = calloc(search.slots, sizeof *search.table);
    search.plain = plain;
    search.copied = 0;
    for (size_t i = 0; search.table != NULL && i < bytes / PIECE; i++) {
        size_t slot = plain_search_slot_of(search.plain + i * PIECE);
        while (search.table[slot] != 0) slot = (slot + 1) & (search.slots - 1);
        search.table[slot] = (uint32_t)i + 1;
    }
    pthread_mutex_unlock(&search.lock);
}

void plain_search_end(void) {
    pthread_mutex_lock(&search.lock);
    free(search.table);
    search.table = NULL;
    search.plain = NULL;
    pthread_mutex_unlock(&search.lock);
}

/* The pieces among some bytes. The caller has the lock. */
static size_t plain_search_find(const char *bytes, size_t count) {
    size_t found = 0;
    for (size_t at = 0; search.table != NULL && at + PIECE <= count; at += 4) {
        for (size_t slot = plain_search_slot_of(bytes + at); search.table[slot] != 0;
             slot = (slot + 1) & (search.slots - 1)) {
            const char *piece = search.plain + (size_t)(search.table[slot] - 1) * PIECE;
            if (memcmp(piece, bytes + at, PIECE) == 0) {
                found++;
                break;
            }
        }
    }
    return found;
}

static void plain_search_note(CUdeviceptr address, size_t bytes) {
    if (search.count < PLACES) {
        search.places[search.count++] = (struct tol_place){address, bytes};
    } else {
        search.copied++; /* what is not noted is not searched, so it must not pass */
    }
}

static void plain_search_forget(CUdeviceptr address) {
    for (size_t i = 0; i < search.count; i++) {
        if (search.places[i].address == address) search.places[i] = search.places[--search.count];
    }
}

#define ARGUMENT(call, position, type) (*(type *)(call)->arguments[position])

void plain_search_before(struct tol_interpose_call *call, void *user) {
    (void)user;
    pthread_mutex_lock(&search.lock);
    search.driver = call->driver;
    if (call->index == TOL_DRIVER_INDEX_cuMemcpyHtoD_v2 ||
        call->index == TOL_DRIVER_INDEX_cuMemcpyHtoDAsync_v2) {
        search.copied +=
            plain_search_find(ARGUMENT(call, 1, const char *), ARGUMENT(call, 2, size_t));
    } else if (call->index == TOL_DRIVER_INDEX_cuMemFree_v2) {
        plain_search_forget(ARGUMENT(call, 0, CUdeviceptr));
    }
    pthread_mutex_unlock(&search.lock);
}

void plain_search_after(struct tol_interpose_call *call, void *user) {
    (void)user;
    if (call->index != TOL_DRIVER_INDEX_cuMemAlloc_v2 || call->result != CUDA_SUCCESS) return;
    pthread_mutex_lock(&search.lock);
    plain_search_note(*ARGUMENT(call, 0, CUdeviceptr *), ARGUMENT(call, 1, size_t));
    pthread_mutex_unlock(&search.lock);
}

size_t plain_search_copied(void) {
    pthread_mutex_lock(&search.lock);
    const size_t copied = search.copied;
    pthread_mutex_unlock(&search.lock);
    return copied;
}

bool plain_search_device(size_t *pieces, size_t *bytes) {
    bool ok = search.driver != NULL;
    *pieces = *bytes = 0;
    pthread_mutex_lock(&search.lock);
    for (size_t i = 0; ok && i < search.count; i++) {
        const struct tol_place place = search.places[i];
        char *read = malloc(place.bytes);
        ok = read != NULL &&
             search.driver->cuMemcpyDtoH_v2(read, place.address, place.bytes) == CUDA_SUCCESS;
        if (ok) *pieces += plain_search_find(read, place.bytes);
        *bytes += place.bytes;
        free(read);
    }
    pthread_mutex_unlock(&search.lock);
    return ok;
}
