/*
 * Graph memory: the memory of allocation nodes.
 *
 * Its address is known when the node is created, and is the same at every launch. It has bytes from
 * the time a launch reaches the node until something frees them.
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

/* Reserves addresses; NULL: there are none, or there is no memory. The caller holds soft_lock, as
 * for all below. */
struct soft_graph_memory *soft_graph_memory_new(struct soft_device *device, uint64_t bytes,
                                                uint32_t readers, uint32_t writers);
void soft_graph_memory_release(struct soft_graph_memory *memory);

/* What begins at an address, or lies around a range; NULL. */
struct soft_graph_memory *soft_graph_memory_at(uint64_t address);
bool soft_graph_memory_holds(uint64_t address, uint64_t bytes);

/* Notes that what begins at an address is freed, if it is a graph's. The caller does not hold
 * soft_lock. */
void soft_graph_memory_freed(uint64_t address);

/* Gives it its bytes, when a launch comes to it. false: the device has no memory left. The caller
 * does not hold soft_lock. */
bool soft_graph_memory_begin(uint64_t address);

#endif
