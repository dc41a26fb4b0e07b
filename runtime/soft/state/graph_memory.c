/*
 * Addresses for allocation nodes; their bytes come from a pool of the device for graphs.
 */
#include "graph_memory.h"

#include "device_memory.h"
#include "memory_pool.h"

#include <stdlib.h>

static struct soft_graph_memory *all;

struct soft_graph_memory *soft_graph_memory_new(struct soft_device *device, uint64_t bytes,
                                                uint32_t readers, uint32_t writers) {
    struct soft_graph_memory *memory = calloc(1, sizeof *memory);
    if (memory == NULL) return NULL;
    memory->references = 1;
    memory->device = device;
    memory->bytes = bytes;
    memory->readers = readers;
    memory->writers = writers;
    memory->address = soft_space_reserve(0, bytes, SOFT_GRANULE_BYTES);
    if (memory->address == 0) {
        free(memory);
        return NULL;
    }
    memory->next = all;
    memory->link = &all;
    if (all != NULL) all->link = &memory->next;
    all = memory;
    return memory;
}

void soft_graph_memory_release(struct soft_graph_memory *memory) {
    if (memory == NULL || --memory->references > 0) return;
    /* Memory that is still allocated keeps its addresses. */
    soft_space_unreserve(memory->address, memory->bytes);
    *memory->link = memory->next;
    if (memory->next != NULL) memory->next->link = memory->link;
    free(memory);
}

struct soft_graph_memory *soft_graph_memory_at(uint64_t address) {
    struct soft_graph_memory *memory = all;
    while (memory != NULL && memory->address != address) memory = memory->next;
    return memory;
}

bool soft_graph_memory_holds(uint64_t address, uint64_t bytes) {
    for (const struct soft_graph_memory *m = all; m != NULL; m = m->next) {
        bool inside =
            address >= m->address && bytes <= m->bytes && address - m->address <= m->bytes - bytes;
        if (inside) return true;
    }
    return false;
}

bool soft_graph_memory_begin(uint64_t address) {
    pthread_mutex_lock(&soft_lock);
    struct soft_graph_memory *found = soft_graph_memory_at(address);
    struct soft_graph_memory memory = found != NULL ? *found : (struct soft_graph_memory){0};
    pthread_mutex_unlock(&soft_lock);
    if (found == NULL) return false;
    const struct soft_allocation wanted = {.address = memory.address,
                                           .bytes = memory.bytes,
                                           .kind = SOFT_KIND_POOL,
                                           .device = memory.device->ordinal,
                                           .slot = SOFT_SLOT_NONE,
                                           .readers = memory.readers,
                                           .writers = memory.writers,
                                           .source = memory.device->graph_pool};
    return soft_pool_alloc_at(memory.device->graph_pool, &wanted) == CUDA_SUCCESS;
}

void soft_graph_memory_freed(uint64_t address) {
    pthread_mutex_lock(&soft_lock);
    struct soft_graph_memory *memory = soft_graph_memory_at(address);
    if (memory != NULL) memory->out = false;
    pthread_mutex_unlock(&soft_lock);
}
