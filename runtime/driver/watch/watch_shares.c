/*
 * Memory that a call shares with another process or maps at another address: by an IPC handle, by
 * the handle of a physical allocation, or by a second mapping. Keeps which allocation is mapped
 * where.
 */
#include "watch_state.h"

#include <stdlib.h>

#define ARGUMENT(type, place) (*(type const *)call->arguments[place])

enum { BUCKETS = 4096 };

struct map {
    CUmemGenericAllocationHandle handle;
    CUdeviceptr address;
    uint64_t bytes, offset; /* in the allocation */
    struct map *same_handle, *same_address;
};

struct watch_maps {
    struct map *by_handle[BUCKETS], *by_address[BUCKETS];
};

static size_t watch_shares_bucket_of(uint64_t key) {
    return (size_t)(key * 0x9e3779b97f4a7c15u >> 52);
}

/* ---- what a call shares ---------------------------------------------------------------------- */

static void watch_shares_share(struct watch_visit *visit, CUdeviceptr address, uint64_t bytes) {
    watch_visit_use(visit, &(struct watch_use){WATCH_SHARED, address, bytes, bytes, 0});
}

/* What is mapped of an allocation already, within a part of it. */
static void share_mapped(struct watch_visit *visit, CUmemGenericAllocationHandle handle,
                         uint64_t offset, uint64_t bytes) {
    if (visit->watch->maps == NULL) return;
    const struct map *map = visit->watch->maps->by_handle[watch_shares_bucket_of(handle)];
    for (; map != NULL; map = map->same_handle) {
        const uint64_t begin = offset > map->offset ? offset : map->offset;
        const uint64_t end =
            bytes > UINT64_MAX - offset || offset + bytes > map->offset + map->bytes
                ? map->offset + map->bytes
                : offset + bytes;
        if (map->handle != handle || begin >= end) continue;
        watch_shares_share(visit, map->address + (begin - map->offset), end - begin);
    }
}

/* What is mapped around an address, by its begin; NULL: nothing that is known. */
static const struct map *map_around(const struct watch_maps *maps, CUdeviceptr address) {
    for (size_t b = 0; maps != NULL && b < BUCKETS; b++) {
        for (const struct map *map = maps->by_address[b]; map != NULL; map = map->same_address) {
            if (address - map->address < map->bytes) return map;
        }
    }
    return NULL;
}

/* The whole allocation around an address, which a handle shares. A driver may not report the range
 * of memory that is mapped without access, so the known mappings are searched first. */
static void share_around(struct watch_visit *visit, CUdeviceptr address) {
    CUdeviceptr base = address;
    size_t bytes = 1;
    const struct map *map = map_around(visit->watch->maps, address);
    if (map != NULL) {
        share_mapped(visit, map->handle, 0, UINT64_MAX);
        return;
    }
    if (visit->driver->cuMemGetAddressRange_v2 == NULL ||
        visit->driver->cuMemGetAddressRange_v2(&base, &bytes, address) != CUDA_SUCCESS) {
        base = address;
        bytes = 1;
    }
    watch_shares_share(visit, base, bytes);
}

void watch_share_visit(struct watch_visit *visit, const struct tol_interpose_call *call) {
    switch (call->index) {
    case TOL_DRIVER_INDEX_cuIpcGetMemHandle:
        share_around(visit, ARGUMENT(CUdeviceptr, 1));
        break;
    case TOL_DRIVER_INDEX_cuMemRetainAllocationHandle:
        share_around(visit, (CUdeviceptr)(uintptr_t)ARGUMENT(void *, 1));
        break;
    case TOL_DRIVER_INDEX_cuMemExportToShareableHandle:
        share_mapped(visit, ARGUMENT(CUmemGenericAllocationHandle, 1), 0, UINT64_MAX);
        break;
    case TOL_DRIVER_INDEX_cuMemMap:
        share_mapped(visit, ARGUMENT(CUmemGenericAllocationHandle, 3), ARGUMENT(size_t, 2),
                     ARGUMENT(size_t, 1));
        break;
    default:
        break;
    }
}

/* ---- what is mapped where -------------------------------------------------------------------- */

static void watch_shares_add(struct tol_watch *watch, const struct tol_interpose_call *call) {
    struct map *map = calloc(1, sizeof *map);
    if (watch->maps == NULL) watch->maps = calloc(1, sizeof *watch->maps);
    if (map == NULL || watch->maps == NULL) {
        free(map);
        return;
    }
    map->handle = ARGUMENT(CUmemGenericAllocationHandle, 3);
    map->address = ARGUMENT(CUdeviceptr, 0);
    map->bytes = ARGUMENT(size_t, 1);
    map->offset = ARGUMENT(size_t, 2);
    struct map **by_handle = &watch->maps->by_handle[watch_shares_bucket_of(map->handle)],
               **by_address = &watch->maps->by_address[watch_shares_bucket_of(map->address)];
    map->same_handle = *by_handle;
    map->same_address = *by_address;
    *by_handle = *by_address = map;
}

/* Takes out what is mapped at an address, and returns its bytes; 0: nothing is known there. */
static uint64_t watch_shares_take(struct watch_maps *maps, CUdeviceptr address) {
    struct map **at = &maps->by_address[watch_shares_bucket_of(address)];
    while (*at != NULL && (*at)->address != address) at = &(*at)->same_address;
    struct map *map = *at;
    if (map == NULL) return 0;
    *at = map->same_address;
    at = &maps->by_handle[watch_shares_bucket_of(map->handle)];
    while (*at != map) at = &(*at)->same_handle;
    *at = map->same_handle;
    const uint64_t bytes = map->bytes;
    free(map);
    return bytes;
}

void watch_share_note(struct tol_watch *watch, const struct tol_interpose_call *call) {
    const bool is_map = call->index == TOL_DRIVER_INDEX_cuMemMap;
    if (!is_map && call->index != TOL_DRIVER_INDEX_cuMemUnmap) return;
    watch_lock_write(&watch->lock);
    if (is_map) {
        watch_shares_add(watch, call);
    } else if (watch->maps != NULL) {
        const CUdeviceptr begin = ARGUMENT(CUdeviceptr, 0), end = begin + ARGUMENT(size_t, 1);
        uint64_t bytes = 1;
        for (CUdeviceptr at = begin; at < end && bytes > 0; at += bytes) {
            bytes = watch_shares_take(watch->maps, at);
        }
    }
    watch_lock_write_end(&watch->lock);
}

void watch_shares_free(struct tol_watch *watch) {
    for (size_t b = 0; watch->maps != NULL && b < BUCKETS; b++) {
        while (watch->maps->by_address[b] != NULL) {
            struct map *map = watch->maps->by_address[b];
            watch->maps->by_address[b] = map->same_address;
            free(map);
        }
    }
    free(watch->maps);
}
