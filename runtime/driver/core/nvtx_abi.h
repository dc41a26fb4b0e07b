/*
 * The part of NVTX 3 that this runtime and a tool share: how a tool that is loaded into the process
 * gets the addresses to write its functions to, and the arguments of those functions.
 *
 * Only facts; nvtx_test.c compares them with the toolkit's headers if these are present.
 * Source: NVTX 3, nvtxTypes.h and nvToolsExt.h; for the memory extension nvtxExtTypes.h and
 * nvToolsExtMem.h.
 */
#ifndef TOLLENS_NVTX_ABI_H
#define TOLLENS_NVTX_ABI_H

#include <stddef.h>
#include <stdint.h>

/* The environment variable that names a tool's library, and the function that it exports. */
#define TOL_NVTX_PATH "NVTX_INJECTION64_PATH"
#define TOL_NVTX_ENTRY "InitializeInjectionNvtx2"

enum {
    TOL_NVTX_VERSION = 3,
    TOL_NVTX_EXPORT_CALLBACKS = 1, /* what a tool may ask for */
    TOL_NVTX_EXPORT_VERSION = 3,

    TOL_NVTX_MODULE_CORE = 1, /* groups of functions, and how many each has with the unused 0 */
    TOL_NVTX_MODULE_CUDA = 2,
    TOL_NVTX_MODULE_OPENCL = 3,
    TOL_NVTX_MODULE_CUDART = 4,
    TOL_NVTX_MODULE_CORE2 = 5,
    TOL_NVTX_MODULE_SYNC = 6,
    TOL_NVTX_MODULES = 7,
    TOL_NVTX_CORE_SIZE = 16,
    TOL_NVTX_CUDA_SIZE = 9,
    TOL_NVTX_OPENCL_SIZE = 15,
    TOL_NVTX_CUDART_SIZE = 7,
    TOL_NVTX_CORE2_SIZE = 16,
    TOL_NVTX_SYNC_SIZE = 7,

    TOL_NVTX_DOMAIN_RANGE_PUSH = 4, /* functions of CORE2 */
    TOL_NVTX_DOMAIN_RANGE_POP = 5,
    TOL_NVTX_DOMAIN_CREATE = 12,

    TOL_NVTX_ATTRIBUTES_VERSION = 3,
    TOL_NVTX_PAYLOAD_UINT64 = 1,
    TOL_NVTX_MESSAGE_ASCII = 1
};

typedef void (*tol_nvtx_function)(void);

/* What getting TOL_NVTX_EXPORT_CALLBACKS gives. *table has the addresses of pointers to functions,
 * by number; the function of TOL_NVTX_EXPORT_VERSION is not used. */
struct tol_nvtx_callbacks {
    size_t struct_bytes;
    int (*get_table)(unsigned module, tol_nvtx_function ***table, unsigned *size);
};

struct tol_nvtx_version {
    size_t struct_bytes;
    uint32_t version, reserved;
    void (*set_tool_version)(uint32_t version);
};

/* What a tool's entry is called with; it returns 0 if it wants nothing. */
typedef const void *tol_nvtx_get_export(uint32_t number);
typedef int tol_nvtx_entry(tol_nvtx_get_export *get_export);

/* A range's name and number. */
struct tol_nvtx_attributes {
    uint16_t version, bytes;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, reserved;
    uint64_t payload;
    int32_t message_type;
    const char *message;
};

/* ---- the extension for memory: a tool that offers it exports this function, gets the slots to
 * write its functions to, and returns 0 if it wants nothing ---- */

#define TOL_NVTX_EXTENSION_ENTRY "InitializeInjectionNvtxExtension"

enum {
    TOL_NVTX_MODULE_MEMORY = 1,
    TOL_NVTX_MEMORY_COMPATIBLE = 0x0102, /* the version of the structures below */
    TOL_NVTX_MEMORY_SLOTS = 63,

    TOL_NVTX_HEAP_REGISTER = 0, /* slots */
    TOL_NVTX_HEAP_UNREGISTER = 1,
    TOL_NVTX_REGIONS_REGISTER = 3,
    TOL_NVTX_REGIONS_UNREGISTER = 5,

    TOL_NVTX_SUB_ALLOCATOR = 1, /* what a heap is */
    TOL_NVTX_VIRTUAL_ADDRESS = 1,
    TOL_NVTX_BY_POINTER = 1
};

struct tol_nvtx_segment {
    size_t number, slot_count;
    intptr_t *slots;
};

struct tol_nvtx_extension {
    uint16_t version, bytes, module, compatible;
    size_t segment_count;
    struct tol_nvtx_segment *segments;
    intptr_t (*get_export)(uint32_t number);
    const void *more;
};

typedef int tol_nvtx_extension_entry(struct tol_nvtx_extension *extension);

struct tol_nvtx_range {
    size_t bytes;
    const void *address;
};

struct tol_nvtx_heap {
    uint16_t compatible, bytes;
    uint32_t reserved, usage, type;
    size_t specific_bytes;
    const void *specific; /* a struct tol_nvtx_range */
    uint32_t category, message_type;
    const char *message;
};

/* Regions that begin: elements are ranges. */
struct tol_nvtx_regions {
    uint16_t compatible, bytes;
    uint32_t type;
    void *heap;
    size_t count, element_bytes;
    const void *elements;
    void **handles; /* NULL: addresses refer to them */
};

/* Regions that end: elements are addresses. */
struct tol_nvtx_references {
    uint16_t compatible, bytes;
    uint32_t type;
    size_t count, element_bytes;
    const void *const *elements;
};

typedef void *tol_nvtx_heap_register(void *domain, const struct tol_nvtx_heap *heap);
typedef void tol_nvtx_heap_unregister(void *domain, void *heap);
typedef void tol_nvtx_regions_register(void *domain, const struct tol_nvtx_regions *regions);
typedef void tol_nvtx_regions_unregister(void *domain,
                                         const struct tol_nvtx_references *references);

typedef void *tol_nvtx_domain_create(const char *name);
typedef int tol_nvtx_range_push(void *domain, const struct tol_nvtx_attributes *attributes);
typedef int tol_nvtx_range_pop(void *domain);

#endif
