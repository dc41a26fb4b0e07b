/*
 * The tool's functions of the memory extension, and which heap an address is in.
 */
#include "nvtx_marks.h"

#include "library.h"
#include "nvtx_abi.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

bool tol_marks_listen;

struct heap {
    uint64_t begin, bytes;
    void *handle; /* the tool's */
    struct heap *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the heaps */
static struct heap *heaps;

static intptr_t slots[TOL_NVTX_MEMORY_SLOTS];
static tol_nvtx_heap_register *register_heap;
static tol_nvtx_heap_unregister *unregister_heap;
static tol_nvtx_regions_register *register_regions;
static tol_nvtx_regions_unregister *unregister_regions;

/* For a slot that the tool has filled. 1 is NVTX's own sign for what the tool does not want. */
static bool nvtx_marks_take(unsigned slot, void *function, size_t bytes) {
    if (slots[slot] == 0 || slots[slot] == 1) return false;
    memcpy(function, &slots[slot], bytes);
    return true;
}

static void nvtx_marks_open_tool(void) {
    char reason[256];
    const char *path = getenv(TOL_NVTX_PATH);
    tol_nvtx_extension_entry *entry = NULL;
    if (path == NULL || path[0] == '\0') return;
    void *library = tol_library_open(path, reason, sizeof reason);
    if (library == NULL ||
        !tol_library_find(library, TOL_NVTX_EXTENSION_ENTRY, &entry, sizeof entry)) {
        return;
    }
    struct tol_nvtx_segment segment = {1, TOL_NVTX_MEMORY_SLOTS, slots};
    struct tol_nvtx_extension extension = {.version = TOL_NVTX_VERSION,
                                           .bytes = sizeof extension,
                                           .module = TOL_NVTX_MODULE_MEMORY,
                                           .compatible = TOL_NVTX_MEMORY_COMPATIBLE,
                                           .segment_count = 1,
                                           .segments = &segment};
    if (entry(&extension) == 0) return;
    tol_marks_listen =
        nvtx_marks_take(TOL_NVTX_HEAP_REGISTER, &register_heap, sizeof register_heap) &&
        nvtx_marks_take(TOL_NVTX_HEAP_UNREGISTER, &unregister_heap, sizeof unregister_heap) &&
        nvtx_marks_take(TOL_NVTX_REGIONS_REGISTER, &register_regions, sizeof register_regions) &&
        nvtx_marks_take(TOL_NVTX_REGIONS_UNREGISTER, &unregister_regions,
                        sizeof unregister_regions);
}

void tol_marks_open(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, nvtx_marks_open_tool);
}

/* An integer as the pointer that NVTX has in its place. */
static const void *pointer_to(uint64_t address) {
    return (const void *)(uintptr_t)address;
}

void tol_marks_heap(uint64_t address, uint64_t bytes) {
    struct heap *heap = calloc(1, sizeof *heap);
    if (heap == NULL) return;
    const struct tol_nvtx_range range = {(size_t)bytes, pointer_to(address)};
    const struct tol_nvtx_heap description = {.compatible = TOL_NVTX_MEMORY_COMPATIBLE,
                                              .bytes = sizeof description,
                                              .usage = TOL_NVTX_SUB_ALLOCATOR,
                                              .type = TOL_NVTX_VIRTUAL_ADDRESS,
                                              .specific_bytes = sizeof range,
                                              .specific = &range,
                                              .message_type = TOL_NVTX_MESSAGE_ASCII,
                                              .message = "tollens pool"};
    heap->begin = address;
    heap->bytes = bytes;
    pthread_mutex_lock(&lock);
    heap->handle = register_heap(NULL, &description);
    heap->next = heaps;
    heaps = heap;
    pthread_mutex_unlock(&lock);
}

/* The link to the heap that has an address. The caller holds the lock. */
static struct heap **nvtx_marks_find(uint64_t address) {
    struct heap **link = &heaps;
    while (*link != NULL && address - (*link)->begin >= (*link)->bytes) link = &(*link)->next;
    return link;
}

void tol_marks_heap_end(uint64_t address) {
    pthread_mutex_lock(&lock);
    struct heap **link = nvtx_marks_find(address), *heap = *link;
    if (heap != NULL) {
        *link = heap->next;
        unregister_heap(NULL, heap->handle);
    }
    pthread_mutex_unlock(&lock);
    free(heap);
}

void tol_marks_region(uint64_t address, uint64_t bytes) {
    pthread_mutex_lock(&lock);
    const struct heap *heap = *nvtx_marks_find(address);
    if (heap != NULL) {
        const struct tol_nvtx_range range = {(size_t)bytes, pointer_to(address)};
        const struct tol_nvtx_regions regions = {.compatible = TOL_NVTX_MEMORY_COMPATIBLE,
                                                 .bytes = sizeof regions,
                                                 .type = TOL_NVTX_VIRTUAL_ADDRESS,
                                                 .heap = heap->handle,
                                                 .count = 1,
                                                 .element_bytes = sizeof range,
                                                 .elements = &range};
        register_regions(NULL, &regions);
    }
    pthread_mutex_unlock(&lock);
}

void tol_marks_region_end(uint64_t address) {
    pthread_mutex_lock(&lock);
    if (*nvtx_marks_find(address) != NULL) {
        const void *reference = pointer_to(address);
        const struct tol_nvtx_references references = {.compatible = TOL_NVTX_MEMORY_COMPATIBLE,
                                                       .bytes = sizeof references,
                                                       .type = TOL_NVTX_BY_POINTER,
                                                       .count = 1,
                                                       .element_bytes = sizeof reference,
                                                       .elements = &reference};
        unregister_regions(NULL, &references);
    }
    pthread_mutex_unlock(&lock);
}
