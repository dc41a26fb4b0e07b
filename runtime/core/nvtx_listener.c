/*
 * libnvtx-listener.so: a tool that the tests load as Nsight loads its own, and that records the
 * ranges of the process. It uses NVTX's protocol alone, and nothing of the runtime.
 *
 * NVTX_LISTENER=decline: it wants nothing; incomplete: it offers no function that ends a range.
 */
#include "nvtx_listener.h"
#include "nvtx_abi.h"

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
