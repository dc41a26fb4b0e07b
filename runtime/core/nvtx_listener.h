/*
 * What the tests' listener keeps of a range.
 */
#ifndef TOLLENS_NVTX_LISTENER_H
#define TOLLENS_NVTX_LISTENER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NVTX_LISTENER_RANGES = 1024 };

struct nvtx_listener_range {
    char domain[16], name[64];
    uint64_t bytes;
    size_t depth; /* how many ranges of its thread were open */
    bool has_ended;
};

/* All ranges so far, in the order of their beginnings, and how many of this thread are open. */
const struct nvtx_listener_range *nvtx_listener_ranges(size_t *range_count, size_t *open_count);

#endif
