/*
 * Looks up functions, and the names of errors. As in "Driver Entry Point Access" and "Error
 * Handling" of the CUDA Driver API 13.0.
 */
#include "driver/call.h"
#include "state/driver_state.h"
#include "entries.h"
#include "export.h"
#include "not_modelled.h"
#include "base/call_site.h"
#include "base/options.h"
#include "base/report.h"
#include "base/result_name.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* The newest variant of a name that the version has, modelled or not. */
static const struct soft_entry *find_entry(const char *base, int version, bool *known) {
    const struct soft_entry *best = NULL;
    for (int i = 0; i < SOFT_CALLS + SOFT_OTHERS; i++) {
        const struct soft_entry *entry =
            i < SOFT_CALLS ? &soft_entries[i] : &soft_other_entries[i - SOFT_CALLS];
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
    if (version > soft_options()->driver_version) return CUDA_ERROR_INVALID_VALUE;
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

/* NVRTC asks for a table, and compiles without it. */
static bool works_without_table(const char *object) {
    const char *slash = strrchr(object, '/');
    return strncmp(slash != NULL ? slash + 1 : object, "libnvrtc", 8) == 0;
}

/* Undocumented tables of NVIDIA's libraries, which are not here. A program with CUDA's runtime
 * linked in requests them before anything else, and ends with an uninformative error. */
EXPORT(cuGetExportTable, (const void **table, const CUuuid *id)) {
    static atomic_bool told;
    char object[1024], text[1400];
    if (table == NULL || id == NULL) return CUDA_ERROR_INVALID_VALUE;
    soft_call_site_object(object, sizeof object);
    snprintf(text, sizeof text,
             "cuGetExportTable: the requested table is not documented, and this driver lacks it. "
             "NVIDIA's CUDA runtime in %s needs it; link that with -cudart shared, or do not strip "
             "it, and tollens soft replaces the runtime\n",
             object[0] != '\0' ? object : "the program");
    if (!works_without_table(object)) {
        if (!atomic_exchange(&told, true)) soft_log_print(text);
        soft_refusal_add(SOFT_REFUSED_TABLE, text);
    }
    *table = NULL;
    return CUDA_ERROR_NOT_FOUND;
}

EXPORT(cuGetErrorName, (CUresult result, const char **text)) {
    if (text == NULL) return CUDA_ERROR_INVALID_VALUE;
    *text = soft_result_name((int)result);
    return *text != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT(cuGetErrorString, (CUresult result, const char **text)) {
    if (text == NULL) return CUDA_ERROR_INVALID_VALUE;
    *text = soft_result_text((int)result);
    return *text != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
