/*
 * A table of what the driver allocated, by address or handle: open addressing without gaps.
 */
#include "harness/ledger.h"

#include <pthread.h>
#include <string.h>

enum { ROOM_BITS = 18, ROOM = 1 << ROOM_BITS };

static struct {
    pthread_mutex_t lock;
    tol_interpose_hook after; /* the saboteur's */
    void *user;
    struct hyp_ledger sums;
    struct entry {
        uint64_t key, bytes; /* key 0: none */
    } entries[ROOM];
} ledger = {.lock = PTHREAD_MUTEX_INITIALIZER};

static size_t ledger_place_of(uint64_t key) {
    return (size_t)(key * 0x9e3779b97f4a7c15u >> (64 - ROOM_BITS));
}

/* Where a key is, or would be. */
static size_t ledger_find(uint64_t key) {
    size_t i = ledger_place_of(key);
    while (ledger.entries[i].key != 0 && ledger.entries[i].key != key) i = (i + 1) % ROOM;
    return i;
}

static void ledger_add(uint64_t key, uint64_t bytes) {
    size_t i = ledger_find(key);
    if (key == 0 || ledger.entries[i].key == key ||
        ledger.sums.made - ledger.sums.unmade > ROOM / 2) {
        ledger.sums.foreign++;
        return;
    }
    ledger.entries[i] = (struct entry){key, bytes};
    ledger.sums.bytes += bytes;
    ledger.sums.made++;
}

static void ledger_take(uint64_t key) {
    size_t hole = ledger_find(key);
    if (key == 0 || ledger.entries[hole].key != key) {
        ledger.sums.foreign++;
        return;
    }
    ledger.sums.bytes -= ledger.entries[hole].bytes;
    ledger.sums.unmade++;
    /* Later entries move up, unless that would put them before their place. */
    for (size_t i = (hole + 1) % ROOM; ledger.entries[i].key != 0; i = (i + 1) % ROOM) {
        size_t home = ledger_place_of(ledger.entries[i].key);
        if ((i - home) % ROOM < (i - hole) % ROOM) continue;
        ledger.entries[hole] = ledger.entries[i];
        hole = i;
    }
    ledger.entries[hole] = (struct entry){0, 0};
}

#define ARGUMENT(call, position, type) (*(type *)(call)->arguments[position])

static void write_down(const struct tol_interpose_call *call) {
    switch (call->index) {
    case TOL_DRIVER_INDEX_cuMemAlloc_v2:
        ledger_add(*ARGUMENT(call, 0, CUdeviceptr *), ARGUMENT(call, 1, size_t));
        break;
    case TOL_DRIVER_INDEX_cuMemFree_v2:
        ledger_take(ARGUMENT(call, 0, CUdeviceptr));
        break;
    case TOL_DRIVER_INDEX_cuMemCreate:
        ledger_add(*ARGUMENT(call, 0, CUmemGenericAllocationHandle *), ARGUMENT(call, 1, size_t));
        break;
    case TOL_DRIVER_INDEX_cuMemRelease:
        ledger_take(ARGUMENT(call, 0, CUmemGenericAllocationHandle));
        break;
    default:
        break;
    }
}

static void after(struct tol_interpose_call *call, void *user) {
    (void)user;
    if (call->forward && call->result == CUDA_SUCCESS) {
        pthread_mutex_lock(&ledger.lock);
        write_down(call);
        pthread_mutex_unlock(&ledger.lock);
    }
    if (ledger.after != NULL) ledger.after(call, ledger.user);
}

void hyp_ledger_open(struct tol_interpose_options *options) {
    ledger.after = options->after;
    ledger.user = options->user;
    ledger.sums = (struct hyp_ledger){0};
    memset(ledger.entries, 0, sizeof ledger.entries);
    options->after = after;
}

struct hyp_ledger hyp_ledger_read(void) {
    pthread_mutex_lock(&ledger.lock);
    struct hyp_ledger sums = ledger.sums;
    pthread_mutex_unlock(&ledger.lock);
    return sums;
}

uint64_t hyp_ledger_calls(void) {
    static const enum tol_driver_index makers[] = {TOL_DRIVER_INDEX_cuMemAlloc_v2,
                                                   TOL_DRIVER_INDEX_cuMemAllocFromPoolAsync,
                                                   TOL_DRIVER_INDEX_cuMemCreate};
    uint64_t calls = 0;
    for (size_t i = 0; i < sizeof makers / sizeof makers[0]; i++) {
        calls += tol_interpose_count(makers[i]);
    }
    return calls;
}
