/*
 * The list of what was imported.
 */
#include "imported.h"

#include <stdlib.h>
#include <unistd.h>

struct imported {
    uint64_t inode, address, serial;
    unsigned slot; /* of the context */
    int count;
    struct imported *next;
};

static struct imported *all;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Removes entries of destroyed contexts. The caller holds the lock. */
static void imported_clean(void) {
    for (struct imported **link = &all; *link != NULL;) {
        struct imported *item = *link;
        struct soft_allocation found;
        if (soft_space_find(item->address, &found) && found.serial == item->serial) {
            link = &item->next;
        } else {
            *link = item->next;
            free(item);
        }
    }
}

/* Maps an open file, and adds it to the list. The caller holds the lock. */
static CUresult imported_map(const struct soft_context *context,
                             const struct soft_shared_name *name, int file, CUdeviceptr *address) {
    struct soft_shared_note note;
    struct imported *item = calloc(1, sizeof *item);
    struct soft_backing *backing = soft_shared_map(file, SOFT_SHARED_MEMORY, &note);
    if (item == NULL || backing == NULL) {
        free(item);
        soft_backing_release(backing);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    const struct soft_allocation wanted = {.bytes = backing->bytes,
                                           .host = backing->host,
                                           .kind = SOFT_KIND_IMPORTED,
                                           .device = context->device->ordinal,
                                           .slot = context->reach.slot,
                                           .backing = backing};
    /* If the space cannot take it, the backing has been released. */
    const struct soft_allocation *allocation = soft_space_alloc(&wanted, SOFT_GRANULE_BYTES);
    if (allocation == NULL) {
        free(item);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *item = (struct imported){.inode = name->inode,
                              .address = allocation->address,
                              .serial = allocation->serial,
                              .slot = context->reach.slot,
                              .count = 1,
                              .next = all};
    all = item;
    *address = item->address;
    return CUDA_SUCCESS;
}

CUresult soft_imported_open(const struct soft_context *context, const struct soft_shared_name *name,
                            CUdeviceptr *address) {
    bool is_own = false;
    int file = soft_shared_open(name, SOFT_SHARED_MEMORY, &is_own);
    if (file < 0) {
        bool is_name = name->kind == SOFT_SHARED_MEMORY && name->process > 0;
        return is_name ? CUDA_ERROR_MAP_FAILED : CUDA_ERROR_INVALID_VALUE;
    }
    CUresult result = CUDA_ERROR_INVALID_CONTEXT;
    if (!is_own) {
        pthread_mutex_lock(&lock);
        imported_clean();
        struct imported *item = all;
        while (item != NULL && (item->inode != name->inode || item->slot != context->reach.slot)) {
            item = item->next;
        }
        if (item != NULL) {
            item->count++;
            *address = item->address;
            result = CUDA_SUCCESS;
        } else {
            result = imported_map(context, name, file, address);
        }
        pthread_mutex_unlock(&lock);
    }
    close(file);
    return result;
}

bool soft_imported_close(CUdeviceptr address) {
    struct soft_allocation was;
    bool found = false, last = false;
    pthread_mutex_lock(&lock);
    imported_clean();
    for (struct imported **link = &all; *link != NULL && !found;) {
        struct imported *item = *link;
        found = item->address == address;
        last = found && --item->count == 0;
        if (last) {
            *link = item->next;
            free(item);
        } else {
            link = &item->next;
        }
    }
    pthread_mutex_unlock(&lock);
    if (last) soft_space_free(address, 1u << SOFT_KIND_IMPORTED, &was);
    return found;
}
