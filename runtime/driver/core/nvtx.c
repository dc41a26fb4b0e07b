/*
 * Loading a tool, and the functions that it provides. A tool may offer more of NVTX than ranges;
 * nothing here calls it.
 */
#include "nvtx.h"

#include "library.h"
#include "nvtx_abi.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

bool tol_nvtx_listens;

/* Of each module the tool's functions, and their addresses, with NULL at 0 and at the end. */
enum { SLOTS = 17 };
static tol_nvtx_function functions[TOL_NVTX_MODULES][SLOTS];
static tol_nvtx_function *tables[TOL_NVTX_MODULES][SLOTS];
static const unsigned sizes[TOL_NVTX_MODULES] = {[TOL_NVTX_MODULE_CORE] = TOL_NVTX_CORE_SIZE,
                                                 [TOL_NVTX_MODULE_CUDA] = TOL_NVTX_CUDA_SIZE,
                                                 [TOL_NVTX_MODULE_OPENCL] = TOL_NVTX_OPENCL_SIZE,
                                                 [TOL_NVTX_MODULE_CUDART] = TOL_NVTX_CUDART_SIZE,
                                                 [TOL_NVTX_MODULE_CORE2] = TOL_NVTX_CORE2_SIZE,
                                                 [TOL_NVTX_MODULE_SYNC] = TOL_NVTX_SYNC_SIZE};

static void *domain;
static tol_nvtx_range_push *push;
static tol_nvtx_range_pop *pop;

static int get_table(unsigned module, tol_nvtx_function ***table, unsigned *size) {
    if (module >= TOL_NVTX_MODULES || sizes[module] == 0) return 0;
    for (unsigned i = 1; i < sizes[module]; i++) tables[module][i] = &functions[module][i];
    if (table != NULL) *table = tables[module];
    if (size != NULL) *size = sizes[module];
    return 1;
}

static void set_tool_version(uint32_t version) {
    (void)version;
}

static const void *get_export(uint32_t number) {
    static const struct tol_nvtx_callbacks callbacks = {sizeof callbacks, get_table};
    static const struct tol_nvtx_version version = {sizeof version, TOL_NVTX_VERSION, 0,
                                                    set_tool_version};
    return number == TOL_NVTX_EXPORT_CALLBACKS ? (const void *)&callbacks
           : number == TOL_NVTX_EXPORT_VERSION ? (const void *)&version
                                               : NULL;
}

/* A tool that cannot be loaded, or that declines, is ignored without a message, as in NVTX's own
 * loader. */
static void nvtx_open_tool(void) {
    char reason[256];
    const char *path = getenv(TOL_NVTX_PATH);
    tol_nvtx_entry *entry = NULL;
    if (path == NULL || path[0] == '\0') return;
    void *library = tol_library_open(path, reason, sizeof reason);
    if (library == NULL || !tol_library_find(library, TOL_NVTX_ENTRY, &entry, sizeof entry)) return;
    if (entry(get_export) == 0) return;
    const tol_nvtx_function *core2 = functions[TOL_NVTX_MODULE_CORE2];
    push = (tol_nvtx_range_push *)core2[TOL_NVTX_DOMAIN_RANGE_PUSH];
    pop = (tol_nvtx_range_pop *)core2[TOL_NVTX_DOMAIN_RANGE_POP];
    tol_nvtx_domain_create *create = (tol_nvtx_domain_create *)core2[TOL_NVTX_DOMAIN_CREATE];
    if (push == NULL || pop == NULL || create == NULL) return;
    domain = create("tollens");
    tol_nvtx_listens = true;
}

void tol_nvtx_open(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, nvtx_open_tool);
}

void tol_nvtx_push(const char *name, uint64_t bytes) {
    const struct tol_nvtx_attributes attributes = {.version = TOL_NVTX_ATTRIBUTES_VERSION,
                                                   .bytes = sizeof attributes,
                                                   .payload_type =
                                                       bytes != 0 ? TOL_NVTX_PAYLOAD_UINT64 : 0,
                                                   .payload = bytes,
                                                   .message_type = TOL_NVTX_MESSAGE_ASCII,
                                                   .message = name};
    (void)push(domain, &attributes);
}

void tol_nvtx_pop(void) {
    (void)pop(domain);
}
