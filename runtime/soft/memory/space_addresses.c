/*
 * Chooses addresses in the reserved range: after the newest allocation while the range lasts, then
 * in the first hole. Only mappings can use reserved addresses.
 */
#include "space_list.h"

#include <stdlib.h>
#include <string.h>

enum { GAP_MIN = 4096 };

static struct {
    struct range {
        uint64_t begin, end;
    } * items; /* by address */
    size_t count, room;
} reserved;

static uint64_t space_addresses_align_up(uint64_t value, uint64_t alignment) {
    return (value + alignment - 1) & ~(alignment - 1);
}

/* The first reservation that ends after an address. */
static size_t reservation_behind(uint64_t address) {
    size_t low = 0, high = reserved.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (reserved.items[middle].end <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

bool soft_space_next_reservation(uint64_t address, uint64_t *begin, uint64_t *end) {
    size_t i = reservation_behind(address);
    if (i == reserved.count) return false;
    *begin = reserved.items[i].begin;
    *end = reserved.items[i].end;
    return true;
}

/* The bounds of the first allocation or reservation at or after an address. */
static bool next_thing(uint64_t address, uint64_t *begin, uint64_t *end) {
    bool found = soft_space_next_reservation(address, begin, end);
    size_t index = soft_space_index(address);
    if (index < soft_space.count && soft_space.live[index]->address < soft_space.end) {
        const struct soft_allocation *a = soft_space.live[index];
        if (!found || a->address < *begin) {
            *begin = a->address;
            *end = a->address + a->bytes;
        }
        found = true;
    }
    return found;
}

uint64_t soft_space_addresses(uint64_t bytes, uint64_t alignment) {
    uint64_t gap = bytes > GAP_MIN ? bytes : GAP_MIN, end = soft_space.end;
    uint64_t begin = 0, behind = 0,
             address = space_addresses_align_up(soft_space.cursor, alignment);
    while (address < end && bytes <= end - address && gap <= end - address - bytes) {
        /* The program may have reserved addresses that the cursor reaches. */
        bool blocked = next_thing(address, &begin, &behind) && begin < address + bytes + GAP_MIN;
        soft_space.cursor = blocked ? behind + GAP_MIN : address + bytes + gap;
        if (!blocked) return address;
        address = space_addresses_align_up(soft_space.cursor, alignment);
    }
    uint64_t hole = soft_space.begin;
    while (next_thing(hole, &begin, &behind)) {
        address = space_addresses_align_up(hole, alignment);
        if (address < begin && bytes <= begin - address && GAP_MIN <= begin - address - bytes) {
            return address;
        }
        hole = behind + GAP_MIN;
    }
    address = space_addresses_align_up(hole, alignment);
    return address < end && bytes <= end - address ? address : 0;
}

static bool space_addresses_is_free(uint64_t address, uint64_t bytes) {
    uint64_t begin = 0, end = 0;
    if (address < soft_space.begin || address >= soft_space.end ||
        bytes > soft_space.end - address) {
        return false;
    }
    return !next_thing(address, &begin, &end) || begin >= address + bytes;
}

uint64_t soft_space_reserve(uint64_t wanted, uint64_t bytes, uint64_t alignment) {
    uint64_t address = 0;
    pthread_rwlock_wrlock(&soft_space.lock);
    if (reserved.count == reserved.room) {
        size_t room = reserved.room * 2 + 16;
        struct range *more = realloc(reserved.items, room * sizeof *more);
        if (more != NULL) {
            reserved.items = more;
            reserved.room = room;
        }
    }
    if (reserved.count < reserved.room) {
        if (wanted != 0 && wanted % alignment == 0 && space_addresses_is_free(wanted, bytes)) {
            address = wanted;
        } else {
            address = soft_space_addresses(bytes, alignment);
        }
    }
    if (address != 0) {
        size_t i = reservation_behind(address);
        memmove(reserved.items + i + 1, reserved.items + i,
                (reserved.count - i) * sizeof reserved.items[0]);
        reserved.items[i] = (struct range){address, address + bytes};
        reserved.count++;
    }
    pthread_rwlock_unlock(&soft_space.lock);
    return address;
}

bool soft_space_unreserve(uint64_t address, uint64_t bytes) {
    pthread_rwlock_wrlock(&soft_space.lock);
    size_t i = reservation_behind(address);
    bool ok = i < reserved.count && reserved.items[i].begin == address &&
              reserved.items[i].end - address == bytes;
    if (ok) {
        memmove(reserved.items + i, reserved.items + i + 1,
                (reserved.count - i - 1) * sizeof reserved.items[0]);
        reserved.count--;
    }
    pthread_rwlock_unlock(&soft_space.lock);
    return ok;
}

bool soft_space_reservation(uint64_t address, uint64_t *begin, uint64_t *bytes) {
    uint64_t end = 0;
    pthread_rwlock_rdlock(&soft_space.lock);
    bool inside = soft_space_next_reservation(address, begin, &end) && *begin <= address;
    if (inside) *bytes = end - *begin;
    pthread_rwlock_unlock(&soft_space.lock);
    return inside;
}

bool soft_space_reservation_behind(uint64_t address, uint64_t *begin, uint64_t *bytes) {
    uint64_t end = 0;
    pthread_rwlock_rdlock(&soft_space.lock);
    bool found = soft_space_next_reservation(address, begin, &end);
    pthread_rwlock_unlock(&soft_space.lock);
    if (found) *bytes = end - *begin;
    return found;
}
