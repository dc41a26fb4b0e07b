/*
 * cuInit, the driver's version, and the attributes of devices. As in "Initialization", "Version
 * Management" and "Device Management" of the CUDA Driver API 13.0.
 */
#include "state/driver_start.h"
#include "state/driver_state.h"
#include "export.h"
#include "driver/leak.h"
#include "base/options.h"
#include "queue/process_end.h"

#include <stdio.h>
#include <string.h>

EXPORT(cuInit, (unsigned int flags)) {
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    CUresult result = soft_state_init();
    if (result == CUDA_SUCCESS) {
        soft_leak_watch_exit();
        soft_process_end_watch();
    }
    return result;
}

EXPORT(cuDriverGetVersion, (int *version)) {
    if (version == NULL) return CUDA_ERROR_INVALID_VALUE;
    *version = soft_options()->driver_version;
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

/* The checks common to all queries of a device. */
static CUresult device_check_device(CUdevice device, const void *answer) {
    CUresult result = soft_state_check();
    if (result != CUDA_SUCCESS) return result;
    if (answer == NULL) return CUDA_ERROR_INVALID_VALUE;
    return soft_device_of(device) != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

EXPORT(cuDeviceGetName, (char *name, int len, CUdevice device)) {
    CUresult result = device_check_device(device, name);
    if (result != CUDA_SUCCESS) return result;
    if (len <= 0) return CUDA_ERROR_INVALID_VALUE;
    snprintf(name, (size_t)len, SOFT_DEVICE_NAME);
    return CUDA_SUCCESS;
}

EXPORT(cuDeviceGetUuid_v2, (CUuuid * uuid, CUdevice device)) {
    CUresult result = device_check_device(device, uuid);
    if (result != CUDA_SUCCESS) return result;
    soft_options_uuid(soft_options()->hardware[device], uuid->bytes);
    return CUDA_SUCCESS;
}

EXPORT(cuDeviceGetUuid, (CUuuid * uuid, CUdevice device)) {
    return soft_cuDeviceGetUuid_v2(uuid, device);
}

/* Windows alone has these. */
EXPORT(cuDeviceGetLuid, (char *luid, unsigned int *mask, CUdevice device)) {
    CUresult result = device_check_device(device, luid);
    if (result != CUDA_SUCCESS) return result;
    return mask == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_SUPPORTED;
}

EXPORT(cuDeviceGetPCIBusId, (char *id, int len, CUdevice device)) {
    CUresult result = device_check_device(device, id);
    if (result != CUDA_SUCCESS) return result;
    if (len < 13) return CUDA_ERROR_INVALID_VALUE;
    snprintf(id, (size_t)len, "0000:%02X:00.0", (unsigned)soft_options()->hardware[device] & 0xff);
    return CUDA_SUCCESS;
}

/* "domain:bus:device.function", "domain:bus:device" or "bus:device.function", in hexadecimal. */
EXPORT(cuDeviceGetByPCIBusId, (CUdevice * device, const char *id)) {
    CUresult result = soft_state_check();
    if (result != CUDA_SUCCESS) return result;
    if (device == NULL || id == NULL) return CUDA_ERROR_INVALID_VALUE;
    unsigned domain = 0, bus = 0, slot = 0, function = 0;
    int end = 0, length = (int)strlen(id);
    /* NOLINTBEGIN(cert-err34-c): a number too large to read names no device either */
    bool known = (sscanf(id, "%x:%x:%x.%x%n", &domain, &bus, &slot, &function, &end) == 4 &&
                  end == length) ||
                 (sscanf(id, "%x:%x:%x%n", &domain, &bus, &slot, &end) == 3 && end == length &&
                  (function = 0) == 0) ||
                 (sscanf(id, "%x:%x.%x%n", &bus, &slot, &function, &end) == 3 && end == length &&
                  (domain = 0) == 0);
    /* NOLINTEND(cert-err34-c) */
    if (!known) return CUDA_ERROR_INVALID_VALUE;
    if (domain != 0 || slot != 0 || function != 0) return CUDA_ERROR_INVALID_DEVICE;
    for (int i = 0; i < soft_options()->devices; i++) {
        if (soft_options()->hardware[i] != (int)bus) continue;
        *device = i;
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_DEVICE;
}

EXPORT(cuDeviceTotalMem_v2, (size_t * bytes, CUdevice device)) {
    CUresult result = device_check_device(device, bytes);
    if (result != CUDA_SUCCESS) return result;
    *bytes = (size_t)soft_device_of(device)->memory_bytes;
    return CUDA_SUCCESS;
}

/* The compute capability as 10 * major + minor. */
static int device_capability(void) {
    return soft_options()->compute_capability;
}

EXPORT(cuDeviceGetAttribute, (int *value, CUdevice_attribute attribute, CUdevice device)) {
    CUresult result = device_check_device(device, value);
    if (result != CUDA_SUCCESS) return result;
    if ((int)attribute < 1 || (int)attribute >= CU_DEVICE_ATTRIBUTE_MAX) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    switch ((int)attribute) {
#define SOFT_ATTRIBUTE(name, number)                                                               \
    case CU_DEVICE_ATTRIBUTE_##name:                                                               \
        *value = number;                                                                           \
        return CUDA_SUCCESS;
#include "base/device.def"
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
        *value = device_capability() / 10;
        return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
        *value = device_capability() % 10;
        return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH:
        *value = device_capability() >= 90;
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

EXPORT(cuDeviceComputeCapability, (int *major, int *minor, CUdevice device)) {
    CUresult result = device_check_device(device, major);
    if (result != CUDA_SUCCESS) return result;
    if (minor == NULL) return CUDA_ERROR_INVALID_VALUE;
    *major = device_capability() / 10;
    *minor = device_capability() % 10;
    return CUDA_SUCCESS;
}

EXPORT(cuDeviceGetProperties, (CUdevprop * prop, CUdevice device)) {
    CUresult result = device_check_device(device, prop);
    if (result != CUDA_SUCCESS) return result;
    static const CUdevice_attribute attributes[] = {
        CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
        CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X,
        CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y,
        CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z,
        CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X,
        CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y,
        CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z,
        CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK,
        CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY,
        CU_DEVICE_ATTRIBUTE_WARP_SIZE,
        CU_DEVICE_ATTRIBUTE_MAX_PITCH,
        CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK,
        CU_DEVICE_ATTRIBUTE_CLOCK_RATE,
        CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT,
    };
    int values[sizeof attributes / sizeof attributes[0]];
    _Static_assert(sizeof values == sizeof *prop, "an attribute for each field, in its order");
    for (size_t i = 0; i < sizeof values / sizeof values[0] && result == CUDA_SUCCESS; i++) {
        result = soft_cuDeviceGetAttribute(&values[i], attributes[i], device);
    }
    if (result == CUDA_SUCCESS) memcpy(prop, values, sizeof values);
    return result;
}

EXPORT(cuDeviceGetExecAffinitySupport, (int *pi, CUexecAffinityType type, CUdevice device)) {
    CUresult result = device_check_device(device, pi);
    if (result != CUDA_SUCCESS) return result;
    if (type != CU_EXEC_AFFINITY_TYPE_SM_COUNT) return CUDA_ERROR_INVALID_VALUE;
    *pi = 0;
    return CUDA_SUCCESS;
}
