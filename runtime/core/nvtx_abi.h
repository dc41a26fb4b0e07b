/*
 * The part of NVTX 3 that this runtime and a tool share: how a tool that is loaded into the process
 * gets the addresses to write its functions to, and what those are called with.
 *
 * Facts only; nvtx_test.c compares them with the toolkit's headers where there is one.
 * Source: NVTX 3, nvtxTypes.h and nvToolsExt.h.
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

/* What a tool's entry is called with; it returns 0 where it wants nothing. */
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

typedef void *tol_nvtx_domain_create(const char *name);
typedef int tol_nvtx_range_push(void *domain, const struct tol_nvtx_attributes *attributes);
typedef int tol_nvtx_range_pop(void *domain);

#endif
