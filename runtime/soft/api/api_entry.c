/*
 * How a program finds functions, and what errors are called. As in "Driver Entry Point Access" and
 * "Error Handling" of the CUDA Driver API 13.0.
 */
#include "driver/call.h"
#include "state/driver_state.h"
#include "export.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* Of the variants of a name the newest that the version knows. */
static const struct soft_entry *find_entry(const char *base, int version, bool *known) {
    const struct soft_entry *best = NULL;
    for (int i = 0; i < SOFT_CALLS; i++) {
        const struct soft_entry *entry = &soft_entries[i];
        if (strcmp(entry->base, base) != 0) continue;
        *known = true;
        if (entry->version > version) continue;
        if (best == NULL || entry->version > best->version) best = entry;
    }
    return best;
}

EXPORT(cuGetProcAddress_v2, (const char *symbol, void **pfn, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *status)) {
    const cuuint64_t both =
        CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    if (symbol == NULL || pfn == NULL || (flags & ~both) != 0 || (flags & both) == both) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (version > SOFT_DRIVER_VERSION) return CUDA_ERROR_INVALID_VALUE;
    bool known = false, own = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
    const struct soft_entry *entry = find_entry(symbol, version, &known);
    void (*function)(void) = NULL;
    if (entry != NULL) {
        function = own && entry->own != NULL ? entry->own : entry->function;
    }
    memcpy(pfn, &function, sizeof function);
    if (status != NULL) {
        *status = entry != NULL ? CU_GET_PROC_ADDRESS_SUCCESS
                  : known       ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                                : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    }
    return CUDA_SUCCESS;
}

EXPORT(cuGetProcAddress, (const char *symbol, void **pfn, int version, cuuint64_t flags)) {
    return soft_cuGetProcAddress_v2(symbol, pfn, version, flags, NULL);
}

/* Tables of NVIDIA's own libraries, which are not documented and not here. */
EXPORT(cuGetExportTable, (const void **table, const CUuuid *id)) {
    if (table == NULL || id == NULL) return CUDA_ERROR_INVALID_VALUE;
    *table = NULL;
    return CUDA_ERROR_NOT_FOUND;
}

static const struct result_name {
    CUresult result;
    const char *name;
} result_names[] = {
#define CUDA_RESULT(name, value) {name, #name},
#include "tollens/cuda_result.def"
#undef CUDA_RESULT
};
enum { RESULTS = sizeof result_names / sizeof result_names[0], TEXT_BYTES = 64 };

static const struct result_name *find_result(CUresult result) {
    for (size_t i = 0; i < RESULTS; i++) {
        if (result_names[i].result == result) return &result_names[i];
    }
    return NULL;
}

EXPORT(cuGetErrorName, (CUresult result, const char **text)) {
    if (text == NULL) return CUDA_ERROR_INVALID_VALUE;
    const struct result_name *known = find_result(result);
    *text = known != NULL ? known->name : NULL;
    return known != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static char result_texts[RESULTS][TEXT_BYTES];
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* CUDA_ERROR_OUT_OF_MEMORY is "out of memory". */
static void write_texts(void) {
    for (size_t i = 0; i < RESULTS; i++) {
        const char *name = result_names[i].name + strlen("CUDA_");
        if (strncmp(name, "ERROR_", 6) == 0) name += 6;
        for (size_t c = 0; name[c] != '\0' && c + 1 < TEXT_BYTES; c++) {
            result_texts[i][c] = name[c] == '_' ? ' ' : (char)tolower((unsigned char)name[c]);
        }
    }
}

EXPORT(cuGetErrorString, (CUresult result, const char **text)) {
    if (text == NULL) return CUDA_ERROR_INVALID_VALUE;
    pthread_once(&once, write_texts);
    const struct result_name *known = find_result(result);
    *text = known != NULL ? result_texts[known - result_names] : NULL;
    return known != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
