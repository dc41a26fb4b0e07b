/*
 * Graph memory: the memory of allocation nodes.
 *
 * Its address is known when the node is created, and is the same at every launch. It has bytes from
 * the time a launch reaches the node until they are freed.
 */
#ifndef SOFT_GRAPH_MEMORY_H
#define SOFT_GRAPH_MEMORY_H

#include "driver_state.h"

struct soft_graph_memory {
    unsigned references; /* nodes, in whatever copy */
    struct soft_device *device;
    uint64_t address, bytes;
    uint32_t readers, writers;
    bool out; /* launched and not yet freed by the program, in the order of its calls */
    struct soft_graph_memory *next, **link; /* in the list of all */
};

/* Reserves addresses; NULL: out of addresses or memory. The caller holds soft_lock, as for all
 * below. */
struct soft_graph_memory *soft_graph_memory_new(struct soft_device *device, uint64_t bytes,
                                                uint32_t readers, uint32_t writers);
void soft_graph_memory_release(struct soft_graph_memory *memory);

/* The graph memory at an address, or around a range; NULL. */
struct soft_graph_memory *soft_graph_memory_at(uint64_t address);
bool soft_graph_memory_holds(uint64_t address, uint64_t bytes);

/* Records that the memory at an address is freed, if it is a graph's. The caller does not hold
 * soft_lock. */
void soft_graph_memory_freed(uint64_t address);

/* Allocates its bytes, when a launch reaches it. false: the device is out of memory. The caller
 * does not hold soft_lock. */
bool soft_graph_memory_begin(uint64_t address);

#endif
