/*
 * libnvtx-listener.so: a tool for the tests, loaded as Nsight is, that records the ranges of the
 * process. It uses only NVTX's protocol, and nothing of the runtime.
 *
 * NVTX_LISTENER=decline: it wants nothing; incomplete: it offers no function that ends a range;
 * marks: it wants heaps and regions as well.
 */
#include "nvtx_listener.h"
#include "core/nvtx_abi.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct nvtx_listener_range ranges[NVTX_LISTENER_RANGES];
static size_t count;
static _Thread_local size_t open_ranges[64], depth;

static void *create(const char *name) {
    static char kept[64];
    snprintf(kept, sizeof kept, "%s", name);
    return kept;
}

static int push(void *domain, const struct tol_nvtx_attributes *attributes) {
    pthread_mutex_lock(&lock);
    if (count < NVTX_LISTENER_RANGES) {
        struct nvtx_listener_range *range = &ranges[count];
        const bool is_whole = attributes->version == TOL_NVTX_ATTRIBUTES_VERSION &&
                              attributes->bytes == sizeof *attributes &&
                              attributes->message_type == TOL_NVTX_MESSAGE_ASCII;
        snprintf(range->domain, sizeof range->domain, "%s", (const char *)domain);
        snprintf(range->name, sizeof range->name, "%s", is_whole ? attributes->message : "?");
        range->bytes =
            attributes->payload_type == TOL_NVTX_PAYLOAD_UINT64 ? attributes->payload : 0;
        range->depth = depth;
        open_ranges[depth] = count++;
    }
    pthread_mutex_unlock(&lock);
    return (int)depth++;
}

static int pop(void *domain) {
    (void)domain;
    if (depth == 0) return -2; /* as NVTX says of a range that was not begun */
    pthread_mutex_lock(&lock);
    ranges[open_ranges[--depth]].has_ended = true;
    pthread_mutex_unlock(&lock);
    return (int)depth;
}

__attribute__((visibility("default"))) const struct nvtx_listener_range *
nvtx_listener_ranges(size_t *range_count, size_t *open_count) {
    *range_count = count;
    *open_count = depth;
    return ranges;
}

/* ---- memory ---- */

static struct nvtx_listener_heap heaps[NVTX_LISTENER_HEAPS];
static struct nvtx_listener_region regions[NVTX_LISTENER_REGIONS];
static size_t heap_count, region_count;

static void *register_heap(void *own_domain, const struct tol_nvtx_heap *heap) {
    const struct tol_nvtx_range *range = heap->specific;
    (void)own_domain;
    pthread_mutex_lock(&lock);
    struct nvtx_listener_heap *kept = &heaps[heap_count % NVTX_LISTENER_HEAPS];
    *kept = (struct nvtx_listener_heap){
        (uintptr_t)range->address, range->bytes,
        heap->compatible == TOL_NVTX_MEMORY_COMPATIBLE && heap->bytes == sizeof *heap &&
            heap->usage == TOL_NVTX_SUB_ALLOCATOR && heap->type == TOL_NVTX_VIRTUAL_ADDRESS &&
            heap->specific_bytes == sizeof *range,
        true};
    heap_count++;
    pthread_mutex_unlock(&lock);
    return kept;
}

static void unregister_heap(void *own_domain, void *heap) {
    (void)own_domain;
    pthread_mutex_lock(&lock);
    ((struct nvtx_listener_heap *)heap)->is_live = false;
    pthread_mutex_unlock(&lock);
}

static void register_regions(void *own_domain, const struct tol_nvtx_regions *batch) {
    const struct tol_nvtx_range *range = batch->elements;
    const struct nvtx_listener_heap *heap = batch->heap;
    const uint64_t at = (uintptr_t)range->address;
    (void)own_domain;
    pthread_mutex_lock(&lock);
    if (region_count < NVTX_LISTENER_REGIONS) {
        regions[region_count++] = (struct nvtx_listener_region){
            at, range->bytes,
            batch->compatible == TOL_NVTX_MEMORY_COMPATIBLE && batch->bytes == sizeof *batch &&
                batch->count == 1 && batch->element_bytes == sizeof *range && heap->is_live &&
                at >= heap->begin && at + range->bytes <= heap->begin + heap->bytes,
            true};
    }
    pthread_mutex_unlock(&lock);
}

static void unregister_regions(void *own_domain, const struct tol_nvtx_references *batch) {
    const uint64_t at = (uintptr_t)batch->elements[0];
    (void)own_domain;
    pthread_mutex_lock(&lock);
    size_t i = region_count;
    while (i > 0 && !(regions[i - 1].begin == at && regions[i - 1].is_live)) i--;
    if (i > 0) regions[i - 1].is_live = false;
    if (i > 0 && batch->type != TOL_NVTX_BY_POINTER) regions[i - 1].is_whole = false;
    pthread_mutex_unlock(&lock);
}

__attribute__((visibility("default"))) const struct nvtx_listener_heap *
nvtx_listener_heaps(size_t *count_of) {
    *count_of = heap_count;
    return heaps;
}

__attribute__((visibility("default"))) const struct nvtx_listener_region *
nvtx_listener_regions(size_t *count_of) {
    *count_of = region_count;
    return regions;
}

__attribute__((visibility("default"))) int
InitializeInjectionNvtxExtension(struct tol_nvtx_extension *extension);
int InitializeInjectionNvtxExtension(struct tol_nvtx_extension *extension) {
    const char *how = getenv("NVTX_LISTENER");
    intptr_t *slots = extension->segments[0].slots;
    if (how == NULL || strcmp(how, "marks") != 0) return 0;
    if (extension->version != TOL_NVTX_VERSION || extension->bytes != sizeof *extension ||
        extension->module != TOL_NVTX_MODULE_MEMORY || extension->segment_count != 1 ||
        extension->compatible != TOL_NVTX_MEMORY_COMPATIBLE ||
        extension->segments[0].slot_count != TOL_NVTX_MEMORY_SLOTS) {
        return 0;
    }
    slots[TOL_NVTX_HEAP_REGISTER] = (intptr_t)register_heap;
    slots[TOL_NVTX_HEAP_UNREGISTER] = (intptr_t)unregister_heap;
    slots[TOL_NVTX_REGIONS_REGISTER] = (intptr_t)register_regions;
    slots[TOL_NVTX_REGIONS_UNREGISTER] = (intptr_t)unregister_regions;
    return 1;
}

__attribute__((visibility("default"))) int
InitializeInjectionNvtx2(tol_nvtx_get_export *get_export);
int InitializeInjectionNvtx2(tol_nvtx_get_export *get_export) {
    const char *how = getenv("NVTX_LISTENER");
    const struct tol_nvtx_callbacks *callbacks = get_export(TOL_NVTX_EXPORT_CALLBACKS);
    const struct tol_nvtx_version *version = get_export(TOL_NVTX_EXPORT_VERSION);
    tol_nvtx_function **table = NULL;
    unsigned size = 0;
    if (callbacks == NULL || callbacks->struct_bytes < sizeof *callbacks || version == NULL ||
        version->version != TOL_NVTX_VERSION || get_export(99) != NULL) {
        return 0;
    }
    version->set_tool_version(TOL_NVTX_VERSION);
    /* A tool may ask for all groups, and write to each slot that has an address. */
    for (unsigned module = 0; module <= TOL_NVTX_MODULES; module++) {
        const int is_there = callbacks->get_table(module, &table, &size);
        if (is_there != (module >= 1 && module < TOL_NVTX_MODULES)) return 0;
        if (is_there && (table[0] != NULL || table[1] == NULL || table[size] != NULL)) return 0;
    }
    if (!callbacks->get_table(TOL_NVTX_MODULE_CORE2, &table, &size)) return 0;
    if (size != TOL_NVTX_CORE2_SIZE) return 0;
    *table[TOL_NVTX_DOMAIN_CREATE] = (tol_nvtx_function)create;
    *table[TOL_NVTX_DOMAIN_RANGE_PUSH] = (tol_nvtx_function)push;
    if (how == NULL || strcmp(how, "incomplete") != 0) {
        *table[TOL_NVTX_DOMAIN_RANGE_POP] = (tol_nvtx_function)pop;
    }
    return how == NULL || strcmp(how, "decline") != 0;
}
