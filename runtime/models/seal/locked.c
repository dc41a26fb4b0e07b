/*
 * Pages that are divided into slots for small pieces; larger pieces have separate pages. Pages of
 * slots stay until the process ends: unused slots contain zeros.
 */
#include "locked.h"

#include "core/check.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

enum { PAGE_BYTES = 4096, SLOT_BYTES = 512, SLOTS = PAGE_BYTES / SLOT_BYTES };

/* An unused slot, and the next. */
struct slot {
    struct slot *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct slot *first;
static size_t locked_bytes;

static size_t whole_pages(size_t bytes) {
    return (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

/* bytes are whole pages. The caller has the lock. */
static tol_status locked_take_pages(size_t bytes, void **memory) {
    tol_status status = TOL_OK;
    struct rlimit limit = {0, 0};
    void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    TOL_CHECK(pages != MAP_FAILED, TOL_OUT_OF_HOST_MEMORY,
              "no host memory for %zu bytes of secrets", bytes);
    if (mlock(pages, bytes) != 0) {
        const int error = errno;
        munmap(pages, bytes);
        getrlimit(RLIMIT_MEMLOCK, &limit);
        TOL_FAIL(TOL_OUT_OF_HOST_MEMORY,
                 "%zu bytes of secrets cannot be locked in memory (%s): %zu are locked, and the "
                 "limit, ulimit -l, is %llu KiB",
                 bytes, strerror(error), locked_bytes, (unsigned long long)limit.rlim_cur >> 10);
    }
    /* Kernels without these still lock. */
    (void)madvise(pages, bytes, MADV_DONTDUMP);
    (void)madvise(pages, bytes, MADV_WIPEONFORK);
    locked_bytes += bytes;
    *memory = pages;
out:
    return status;
}

static tol_status add_slots(void) {
    void *page = NULL;
    const tol_status status = locked_take_pages(PAGE_BYTES, &page);
    for (size_t i = 0; status == TOL_OK && i < SLOTS; i++) {
        struct slot *slot = (struct slot *)((char *)page + i * SLOT_BYTES);
        slot->next = first;
        first = slot;
    }
    return status;
}

tol_status tol_locked_take(size_t bytes, void **memory) {
    tol_status status = TOL_OK;
    pthread_mutex_lock(&lock);
    if (bytes > SLOT_BYTES) {
        status = locked_take_pages(whole_pages(bytes), memory);
    } else {
        if (first == NULL) status = add_slots();
        if (status == TOL_OK) {
            struct slot *slot = first;
            first = slot->next;
            slot->next = NULL;
            *memory = slot;
        }
    }
    pthread_mutex_unlock(&lock);
    return status;
}

void tol_locked_give(void *memory, size_t bytes) {
    if (memory == NULL) return;
    if (bytes > SLOT_BYTES) {
        explicit_bzero(memory, whole_pages(bytes));
        pthread_mutex_lock(&lock);
        munmap(memory, whole_pages(bytes));
        locked_bytes -= whole_pages(bytes);
        pthread_mutex_unlock(&lock);
        return;
    }
    explicit_bzero(memory, SLOT_BYTES);
    pthread_mutex_lock(&lock);
    struct slot *slot = memory;
    slot->next = first;
    first = slot;
    pthread_mutex_unlock(&lock);
}

size_t tol_locked_bytes(void) {
    pthread_mutex_lock(&lock);
    const size_t bytes = locked_bytes;
    pthread_mutex_unlock(&lock);
    return bytes;
}
