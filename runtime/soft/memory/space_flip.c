/*
 * Flips a bit of device memory, as a memory error would.
 */
#include "space_list.h"

static bool may_flip(const struct soft_allocation *allocation, int device) {
    bool of_device = allocation->kind == SOFT_KIND_DEVICE || allocation->kind == SOFT_KIND_POOL ||
                     allocation->kind == SOFT_KIND_MAPPED || allocation->kind == SOFT_KIND_ARRAY;
    return of_device && allocation->device == device;
}

/* The live allocation of a device with this position in the order of creation; NULL. The caller
 * holds the lock. */
static const struct soft_allocation *space_flip_find(int device, uint64_t earlier) {
    const struct soft_allocation *found = NULL;
    uint64_t behind = 0;
    /* Repeatedly finds the next younger allocation: there are few, and faults are rare. */
    for (uint64_t i = 0; i <= earlier; i++) {
        const struct soft_allocation *next = NULL;
        for (size_t k = 0; k < soft_space.count; k++) {
            const struct soft_allocation *a = soft_space.live[k];
            if (!may_flip(a, device) || a->serial <= behind) continue;
            if (next == NULL || a->serial < next->serial) next = a;
        }
        if (next == NULL) return NULL;
        behind = next->serial;
        found = next;
    }
    return found;
}

bool soft_space_flip(struct soft_flip *flip) {
    uint64_t count = 0;
    pthread_rwlock_rdlock(&soft_space.lock);
    for (size_t k = 0; k < soft_space.count; k++) {
        count += may_flip(soft_space.live[k], flip->device);
    }
    if (flip->draws && count > 0) flip->allocation = flip->allocation % count + 1;
    const struct soft_allocation *found =
        flip->allocation <= count ? space_flip_find(flip->device, flip->allocation - 1) : NULL;
    if (found != NULL) {
        flip->bytes = found->bytes;
        if (flip->draws_byte) flip->byte %= found->bytes;
    }
    bool ok = found != NULL && flip->byte < found->bytes;
    /* Kernels may be at the byte. */
    if (ok)
        __atomic_fetch_xor(found->host + flip->byte, (uint8_t)(1u << flip->bit), __ATOMIC_RELAXED);
    pthread_rwlock_unlock(&soft_space.lock);
    return ok;
}
