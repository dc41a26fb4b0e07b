/*
 * Running rows through a driver opened by its path.
 */
#include "table_device.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool table_device_fail(struct table_device *device, const char *what, CUresult code) {
    snprintf(device->message, sizeof device->message, "%s failed with code %d", what, (int)code);
    return false;
}

#define CALL(device, name, arguments)                                                              \
    do {                                                                                           \
        CUresult result = (device)->name arguments;                                                \
        if (result != CUDA_SUCCESS) return table_device_fail((device), #name, result);             \
    } while (0)

bool table_device_open(struct table_device *device, const char *path) {
    memset(device, 0, sizeof *device);
    device->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (device->library == NULL) {
        snprintf(device->message, sizeof device->message, "%s", dlerror());
        return false;
    }
#define TOL_DRIVER_FN(feature, function, parameters, names)                                        \
    {                                                                                              \
        void *found = dlsym(device->library, #function);                                           \
        memcpy(&device->function, &found, sizeof found);                                           \
    }
#include "tollens/driver.def"
    if (device->cuInit == NULL || device->cuModuleLoadDataEx == NULL) {
        snprintf(device->message, sizeof device->message, "%s is not a CUDA driver", path);
        return false;
    }
    int major = 0, minor = 0;
    CALL(device, cuInit, (0));
    CALL(device, cuDriverGetVersion, (&device->version));
    CALL(device, cuDeviceGet, (&device->device, 0));
    CALL(device, cuDeviceGetName, (device->name, sizeof device->name, device->device));
    CALL(device, cuDeviceGetAttribute,
         (&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device->device));
    CALL(device, cuDeviceGetAttribute,
         (&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device->device));
    device->capability = 10 * major + minor;
    CALL(device, cuDevicePrimaryCtxRetain, (&device->context, device->device));
    CALL(device, cuCtxSetCurrent, (device->context));
    return true;
}

void table_device_close(struct table_device *device) {
    if (device->context != NULL) device->cuDevicePrimaryCtxRelease_v2(device->device);
    device->context = NULL;
    /* The library stays: a driver does not survive being unloaded. */
}

static CUresult table_device_load(struct table_device *device, const char *ptx,
                                  struct table_outcome *outcome, CUmodule *module) {
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {outcome->log, (void *)(uintptr_t)(sizeof outcome->log - 1)};
    return device->cuModuleLoadDataEx(module, ptx, 2, options, values);
}

/* Blocks of 63 threads: every second warp is a lane short, so machines that treat whole warps
 * otherwise than others do both. */
static unsigned block_threads(const struct table_row *row) {
    return row->group ? TABLE_GROUP : row->warp ? 64 : 63;
}

static bool table_device_launch(struct table_device *device, const struct table_row *row,
                                CUfunction function, struct table_outcome *outcome) {
    size_t source_bytes = (size_t)row->tuples * row->source_count * TABLE_BYTES;
    size_t result_bytes = (size_t)row->tuples * row->result_count * TABLE_BYTES;
    CUdeviceptr sources = 0, results = 0;
    uint32_t count = row->tuples;
    unsigned threads = block_threads(row), blocks = (count + threads - 1) / threads;
    void *parameters[] = {&sources, &results, &count};
    CALL(device, cuMemAlloc_v2, (&sources, source_bytes + TABLE_BYTES));
    CALL(device, cuMemAlloc_v2, (&results, result_bytes));
    if (source_bytes > 0) {
        CALL(device, cuMemcpyHtoD_v2, (sources, outcome->sources, source_bytes));
    }
    CALL(device, cuMemsetD8_v2, (results, 0, result_bytes));
    CALL(device, cuLaunchKernel,
         (function, blocks, 1, 1, threads, 1, 1, 0, NULL, parameters, NULL));
    CALL(device, cuCtxSynchronize, ());
    CALL(device, cuMemcpyDtoH_v2, (outcome->results, results, result_bytes));
    CALL(device, cuMemFree_v2, (sources));
    CALL(device, cuMemFree_v2, (results));
    return true;
}

bool table_device_run(struct table_device *device, const struct table_row *row,
                      struct table_outcome *outcome) {
    memset(outcome, 0, sizeof *outcome);
    char *ptx = table_kernel(row, "row", true);
    outcome->sources = calloc((size_t)row->tuples * row->source_count + 1, TABLE_BYTES);
    outcome->results = calloc((size_t)row->tuples * row->result_count, TABLE_BYTES);
    if (ptx == NULL || outcome->sources == NULL || outcome->results == NULL) {
        free(ptx);
        return table_device_fail(device, "malloc", CUDA_ERROR_OUT_OF_MEMORY);
    }
    for (uint32_t tuple = 0; tuple < row->tuples; tuple++) {
        for (unsigned s = 0; s < row->source_count; s++) {
            outcome->sources[(size_t)tuple * row->source_count + s] = table_value(row, tuple, s);
        }
    }
    CUmodule module = NULL;
    CUfunction function = NULL;
    outcome->code = table_device_load(device, ptx, outcome, &module);
    free(ptx);
    if (outcome->code != CUDA_SUCCESS) return true;
    CALL(device, cuModuleGetFunction, (&function, module, "row"));
    bool ok = table_device_launch(device, row, function, outcome);
    device->cuModuleUnload(module);
    return ok;
}

void table_outcome_free(struct table_outcome *outcome) {
    free(outcome->sources);
    free(outcome->results);
    *outcome = (struct table_outcome){0};
}
