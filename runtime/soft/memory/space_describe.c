/*
 * Describes an address that a kernel must not access.
 */
#include "space_list.h"

#include <stdio.h>

/* The distance of an address from an allocation; 0 inside it. */
static uint64_t space_describe_distance(const struct soft_allocation *allocation,
                                        uint64_t address) {
    if (address < allocation->address) return allocation->address - address;
    uint64_t end = allocation->address + allocation->bytes;
    return address < end ? 0 : address - end + 1;
}

/* The live allocation nearest to an address; a freed one around the address takes precedence. */
static const struct soft_allocation *find_nearest(uint64_t address) {
    const struct soft_allocation *nearest = NULL;
    size_t index = soft_space_index(address);
    for (size_t i = index > 0 ? index - 1 : 0; i < soft_space.count && i <= index; i++) {
        const struct soft_allocation *live = soft_space.live[i];
        if (nearest == NULL ||
            space_describe_distance(live, address) < space_describe_distance(nearest, address))
            nearest = live;
    }
    if (nearest != NULL && space_describe_distance(nearest, address) == 0) return nearest;
    size_t graves = soft_space.buried < SOFT_GRAVES ? soft_space.buried : SOFT_GRAVES;
    for (size_t i = 0; i < graves; i++) {
        const struct soft_allocation *grave =
            &soft_space.graves[(soft_space.buried - 1 - i) % SOFT_GRAVES];
        if (space_describe_distance(grave, address) == 0) return grave;
    }
    return nearest;
}

/* Why a live allocation must not be used. */
static const char *why_not(const struct soft_allocation *allocation, const struct soft_reach *reach,
                           enum soft_access_kind kind) {
    if (allocation->freed || soft_space_may(allocation, reach, kind)) return "";
    if (allocation->kind == SOFT_KIND_MAPPED) {
        return soft_space_may(allocation, reach, SOFT_ACCESS_READ)
                   ? ", which is mapped read-only"
                   : ", which this device cannot access";
    }
    if (allocation->kind == SOFT_KIND_ARRAY) {
        return ", a CUDA array, which only textures and surfaces use";
    }
    return ", which belongs to a device that this context has no peer access to";
}

static void describe_nearest(const struct soft_allocation *nearest, uint64_t address,
                             const char *reason, char *text, size_t bytes) {
    uint64_t end = nearest->address + nearest->bytes, off = address - nearest->address;
    const char *where = "into";
    if (address < nearest->address) {
        off = nearest->address - address;
        where = "before";
    } else if (address >= end) {
        off = address - end;
        where = "past the end of";
    }
    const char *what = nearest->kind == SOFT_KIND_MAPPED ? "mapping" : "allocation";
    snprintf(text, bytes, "%llu bytes %s %s %llu%s%s of %llu bytes at 0x%llx%s%s",
             (unsigned long long)off, where, what, (unsigned long long)nearest->serial,
             nearest->name[0] != '\0' ? " of variable " : "", nearest->name,
             (unsigned long long)nearest->bytes, (unsigned long long)nearest->address,
             nearest->freed ? ", which was " : "",
             !nearest->freed                     ? reason
             : nearest->kind == SOFT_KIND_MAPPED ? "unmapped"
                                                 : "freed");
}

void soft_space_describe(uint64_t address, const struct soft_reach *reach,
                         enum soft_access_kind kind, char *text, size_t bytes) {
    uint64_t begin = 0, end = 0;
    pthread_rwlock_rdlock(&soft_space.lock);
    const struct soft_allocation *nearest = find_nearest(address);
    bool inside = nearest != NULL && space_describe_distance(nearest, address) == 0;
    bool reserved =
        !inside && soft_space_next_reservation(address, &begin, &end) && begin <= address;
    if (address < 4096) {
        snprintf(text, bytes, "a null pointer");
    } else if (reserved) {
        snprintf(text, bytes,
                 "%llu bytes into the reserved address range at 0x%llx, where nothing is mapped",
                 (unsigned long long)(address - begin), (unsigned long long)begin);
    } else if (nearest == NULL) {
        snprintf(text, bytes, "there are no allocations");
    } else {
        describe_nearest(nearest, address, inside ? why_not(nearest, reach, kind) : "", text,
                         bytes);
    }
    pthread_rwlock_unlock(&soft_space.lock);
}
