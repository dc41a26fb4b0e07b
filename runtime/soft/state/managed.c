/*
 * Managed memory: a list of allocations, each with the advice for its pages.
 */
#include "managed.h"

#include "base/options.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE_BYTES = 65536, CPU_BIT = SOFT_DEVICES_MAX };

struct managed_page {
    bool read_mostly;
    uint16_t accessed_by; /* one bit per device, and one for the host */
    CUmemLocation preferred, prefetched;
};

struct managed {
    uint64_t address, bytes;
    struct managed *next;
    struct managed_page pages[];
};

static struct managed *all;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static const CUmemLocation nowhere = {.type = CU_MEM_LOCATION_TYPE_INVALID,
                                      .id = CU_DEVICE_INVALID};

/* Pages without advice; NULL without memory. */
static struct managed *new_pages(uint64_t bytes) {
    const uint64_t pages = bytes / PAGE_BYTES + 2; /* it may begin and end inside pages */
    if (pages > SIZE_MAX / 2 / sizeof(struct managed_page)) return NULL;
    struct managed *managed =
        calloc(1, sizeof *managed + (size_t)pages * sizeof(struct managed_page));
    for (uint64_t i = 0; managed != NULL && i < pages; i++) {
        managed->pages[i].preferred = managed->pages[i].prefetched = nowhere;
    }
    return managed;
}

/* Removes the entries of a freed range. The caller holds the lock. */
static void managed_forget(CUdeviceptr address, uint64_t bytes) {
    for (struct managed **link = &all; *link != NULL;) {
        struct managed *m = *link;
        if (m->address < address + bytes && address < m->address + m->bytes) {
            *link = m->next;
            free(m);
        } else {
            link = &m->next;
        }
    }
}

static void managed_enlist(struct managed *managed, CUdeviceptr address, uint64_t bytes) {
    managed_forget(address, bytes);
    managed->address = address;
    managed->bytes = bytes;
    managed->next = all;
    all = managed;
}

CUresult soft_managed_alloc(struct soft_context *context, uint64_t bytes, unsigned flags,
                            CUdeviceptr *address) {
    struct managed *managed = new_pages(bytes);
    if (managed == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    const struct soft_allocation wanted = {.bytes = bytes,
                                           .kind = SOFT_KIND_MANAGED,
                                           .device = context->device->ordinal,
                                           .slot = context->reach.slot,
                                           .flags = flags};
    const struct soft_allocation *allocation = soft_space_alloc(&wanted, SOFT_GRANULE_BYTES);
    if (allocation == NULL) {
        free(managed);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *address = allocation->address;
    pthread_mutex_lock(&lock);
    managed_enlist(managed, *address, bytes);
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

void soft_managed_forget(CUdeviceptr address) {
    pthread_mutex_lock(&lock);
    managed_forget(address, 1);
    pthread_mutex_unlock(&lock);
}

static bool managed_contains(uint64_t begin, uint64_t all_bytes, CUdeviceptr address,
                             uint64_t bytes) {
    return address >= begin && address - begin < all_bytes &&
           bytes <= all_bytes - (address - begin);
}

/* Finds the allocation that contains a range; NULL: there is none. A module's variables are created
 * and freed without notification; their pages are created at the first query. The caller holds the
 * lock. */
static struct managed *managed_find(CUdeviceptr address, uint64_t bytes) {
    struct soft_allocation live;
    struct managed *m = all;
    if (bytes == 0 || !soft_space_find(address, &live) || live.kind != SOFT_KIND_MANAGED ||
        !managed_contains(live.address, live.bytes, address, bytes)) {
        return NULL;
    }
    while (m != NULL && (m->address != live.address || m->bytes != live.bytes)) m = m->next;
    if (m != NULL) return m;
    m = new_pages(live.bytes);
    if (m != NULL) managed_enlist(m, live.address, live.bytes);
    return m;
}

bool soft_managed_place(int device, CUmemLocation *location) {
    const bool is_host = device == CU_DEVICE_CPU;
    *location = (CUmemLocation){is_host ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE,
                                is_host ? 0 : device};
    return soft_managed_is_place(location);
}

bool soft_managed_is_place(const CUmemLocation *location) {
    switch (location->type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
        return location->id >= 0 && location->id < soft_options()->devices;
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
        return true;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
        return location->id == 0; /* the host is one node to this device */
    default:
        return false;
    }
}

/* The pages of an allocation that a range touches. */
static struct managed_page *pages_of(struct managed *m, CUdeviceptr address, uint64_t bytes,
                                     uint64_t *count) {
    const uint64_t first = address / PAGE_BYTES, last = (address + bytes - 1) / PAGE_BYTES;
    *count = last - first + 1;
    return &m->pages[first - m->address / PAGE_BYTES];
}

static void managed_advise(struct managed_page *page, CUmem_advise advice,
                           const CUmemLocation *location) {
    const bool is_device = location->type == CU_MEM_LOCATION_TYPE_DEVICE;
    const uint16_t bit = (uint16_t)(1u << (is_device ? (unsigned)location->id : CPU_BIT));
    switch (advice) {
    case CU_MEM_ADVISE_SET_READ_MOSTLY:
    case CU_MEM_ADVISE_UNSET_READ_MOSTLY:
        page->read_mostly = advice == CU_MEM_ADVISE_SET_READ_MOSTLY;
        break;
    case CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
        page->preferred = *location;
        break;
    case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION:
        page->preferred = nowhere;
        break;
    case CU_MEM_ADVISE_SET_ACCESSED_BY:
        page->accessed_by |= bit;
        break;
    default:
        page->accessed_by &= (uint16_t)~bit;
        break;
    }
}

CUresult soft_managed_advise(CUdeviceptr address, uint64_t bytes, CUmem_advise advice,
                             const CUmemLocation *location) {
    uint64_t count = 0;
    pthread_mutex_lock(&lock);
    struct managed *m = managed_find(address, bytes);
    struct managed_page *pages = m != NULL ? pages_of(m, address, bytes, &count) : NULL;
    for (uint64_t i = 0; i < count; i++) managed_advise(&pages[i], advice, location);
    pthread_mutex_unlock(&lock);
    return m != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult soft_managed_prefetch(CUdeviceptr address, uint64_t bytes, const CUmemLocation *location) {
    uint64_t count = 0;
    pthread_mutex_lock(&lock);
    struct managed *m = managed_find(address, bytes);
    struct managed_page *pages = m != NULL ? pages_of(m, address, bytes, &count) : NULL;
    for (uint64_t i = 0; i < count; i++) pages[i].prefetched = *location;
    pthread_mutex_unlock(&lock);
    return m != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- answers --------------------------------------------------------------------------------- */

/* The common value of all pages; differing locations count as none. */
static struct managed_page managed_common(const struct managed_page *pages, uint64_t count) {
    struct managed_page same = pages[0];
    for (uint64_t i = 1; i < count; i++) {
        const struct managed_page *page = &pages[i];
        same.read_mostly = same.read_mostly && page->read_mostly;
        same.accessed_by &= page->accessed_by;
        if (memcmp(&same.preferred, &page->preferred, sizeof nowhere) != 0)
            same.preferred = nowhere;
        if (memcmp(&same.prefetched, &page->prefetched, sizeof nowhere) != 0) {
            same.prefetched = nowhere;
        }
    }
    return same;
}

/* A place as a device's number. */
static int managed_number_of(const CUmemLocation *location) {
    switch (location->type) {
    case CU_MEM_LOCATION_TYPE_INVALID:
        return CU_DEVICE_INVALID;
    case CU_MEM_LOCATION_TYPE_DEVICE:
        return location->id;
    default:
        return CU_DEVICE_CPU;
    }
}

static void list_accessors(const struct managed_page *same, int *list, size_t room) {
    size_t used = 0;
    for (int i = 0; i <= CPU_BIT && used < room; i++) {
        if ((same->accessed_by >> i & 1) != 0) list[used++] = i == CPU_BIT ? CU_DEVICE_CPU : i;
    }
    while (used < room) list[used++] = CU_DEVICE_INVALID;
}

CUresult soft_managed_ask(CUdeviceptr address, uint64_t bytes, CUmem_range_attribute attribute,
                          void *answer, size_t bytes_of) {
    struct managed_page same = {.read_mostly = false};
    uint64_t count = 0;
    int value = 0;
    pthread_mutex_lock(&lock);
    struct managed *m = managed_find(address, bytes);
    if (m != NULL) {
        const struct managed_page *pages = pages_of(m, address, bytes, &count);
        same = managed_common(pages, count);
    }
    pthread_mutex_unlock(&lock);
    if (m == NULL) return CUDA_ERROR_INVALID_VALUE;
    if (attribute == CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY) {
        if (bytes_of == 0 || bytes_of % sizeof value != 0) return CUDA_ERROR_INVALID_VALUE;
        list_accessors(&same, answer, bytes_of / sizeof value);
        return CUDA_SUCCESS;
    }
    if (bytes_of != sizeof value) return CUDA_ERROR_INVALID_VALUE;
    switch (attribute) {
    case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY:
        value = same.read_mostly;
        break;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION:
        value = managed_number_of(&same.preferred);
        break;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION:
        value = managed_number_of(&same.prefetched);
        break;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE:
        value = same.preferred.type;
        break;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID:
        value = same.preferred.id;
        break;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE:
        value = same.prefetched.type;
        break;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID:
        value = same.prefetched.id;
        break;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    memcpy(answer, &value, sizeof value);
    return CUDA_SUCCESS;
}
