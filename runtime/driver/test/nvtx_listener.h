/*
 * What the tests' listener records of a range.
 */
#ifndef TOLLENS_NVTX_LISTENER_H
#define TOLLENS_NVTX_LISTENER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NVTX_LISTENER_RANGES = 1024, NVTX_LISTENER_HEAPS = 64, NVTX_LISTENER_REGIONS = 1024 };

/* A reported heap or region. is_whole: everything that came with it was as it must be, and the
 * region is inside its heap. */
struct nvtx_listener_heap {
    uint64_t begin, bytes;
    bool is_whole, is_live;
};

struct nvtx_listener_region {
    uint64_t begin, bytes;
    bool is_whole, is_live;
};

/* All of them so far, in order. */
const struct nvtx_listener_heap *nvtx_listener_heaps(size_t *count);
const struct nvtx_listener_region *nvtx_listener_regions(size_t *count);

struct nvtx_listener_range {
    char domain[16], name[64];
    uint64_t bytes;
    size_t depth; /* how many ranges of its thread were open */
    bool has_ended;
};

/* All ranges so far, in the order of their beginnings, and how many of this thread are open. */
const struct nvtx_listener_range *nvtx_listener_ranges(size_t *range_count, size_t *open_count);

#endif
