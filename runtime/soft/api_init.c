/*
 * cuInit, the driver's version, and the devices. As in "Initialization", "Version Management" and
 * "Device Management" of the CUDA Driver API 13.0.
 */
#include "driver_state.h"
#include "export.h"
#include "options.h"

#include <stdio.h>
#include <string.h>

EXPORT(cuInit, (unsigned int flags)) {
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    return soft_state_init();
}

EXPORT(cuDriverGetVersion, (int *version)) {
    if (version == NULL) return CUDA_ERROR_INVALID_VALUE;
    *version = SOFT_DRIVER_VERSION;
    return CUDA_SUCCESS;
}

EXPORT(cuDeviceGetCount, (int *count)) {
    CUresult result = soft_state_check();
    if (result != CUDA_SUCCESS) return result;
    if (count == NULL) return CUDA_ERROR_INVALID_VALUE;
    *count = soft_options()->devices;
    return CUDA_SUCCESS;
}

EXPORT(cuDeviceGet, (CUdevice * device, int ordinal)) {
    CUresult result = soft_state_check();
    if (result != CUDA_SUCCESS) return result;
    if (device == NULL) return CUDA_ERROR_INVALID_VALUE;
    if (soft_device_of(ordinal) == NULL) return CUDA_ERROR_INVALID_DEVICE;
    *device = ordinal;
    return CUDA_SUCCESS;
}

/* The checks that all questions about a device share. */
static CUresult check_device(CUdevice device, const void *answer) {
    CUresult result = soft_state_check();
    if (result != CUDA_SUCCESS) return result;
    if (answer == NULL) return CUDA_ERROR_INVALID_VALUE;
    return soft_device_of(device) != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

EXPORT(cuDeviceGetName, (char *name, int len, CUdevice device)) {
    CUresult result = check_device(device, name);
    if (result != CUDA_SUCCESS) return result;
    if (len <= 0) return CUDA_ERROR_INVALID_VALUE;
    snprintf(name, (size_t)len, "Tollens soft device");
    return CUDA_SUCCESS;
}

EXPORT(cuDeviceGetPCIBusId, (char *id, int len, CUdevice device)) {
    CUresult result = check_device(device, id);
    if (result != CUDA_SUCCESS) return result;
    if (len < 13) return CUDA_ERROR_INVALID_VALUE;
    snprintf(id, (size_t)len, "0000:%02x:00.0", (unsigned)device & 0xff);
    return CUDA_SUCCESS;
}

EXPORT(cuDeviceTotalMem_v2, (size_t * bytes, CUdevice device)) {
    CUresult result = check_device(device, bytes);
    if (result != CUDA_SUCCESS) return result;
    *bytes = (size_t)soft_device_of(device)->memory_bytes;
    return CUDA_SUCCESS;
}

EXPORT(cuDeviceGetAttribute, (int *value, CUdevice_attribute attribute, CUdevice device)) {
    CUresult result = check_device(device, value);
    if (result != CUDA_SUCCESS) return result;
    if ((int)attribute < 1) return CUDA_ERROR_INVALID_VALUE;
    switch ((int)attribute) {
#define SOFT_ATTRIBUTE(name, number)                                                               \
    case CU_DEVICE_ATTRIBUTE_##name:                                                               \
        *value = number;                                                                           \
        return CUDA_SUCCESS;
#include "device.def"
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
        *value = soft_options()->compute_capability / 10;
        return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
        *value = soft_options()->compute_capability % 10;
        return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
        *value = soft_options()->workers;
        return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
        *value = device;
        return CUDA_SUCCESS;
    default:
        *value = 0;
        return CUDA_SUCCESS;
    }
}
