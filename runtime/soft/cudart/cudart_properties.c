/*
 * The properties of devices: as in "Device Management" of the CUDA Runtime API 13.0 and 12.9, which
 * have different structures. A property unknown to the driver is 0.
 *
 * CUDA 12's headers spell the function cudaGetDeviceProperties_v2.
 */
#include "cudart_properties.h"

#include "cudart_export.h"

#include <string.h>

CUDART_VISIBLE cudaError_t CUDART_GET_PROPERTIES(struct cudart_properties *properties, int device);
CUDART_VISIBLE cudaError_t cudaChooseDevice(int *device, const struct cudart_properties *wished);

static int properties_ask(int attribute, int device) {
    int value = 0;
    CUresult result = CU(cuDeviceGetAttribute)(&value, (CUdevice_attribute)attribute, device);
    return result == CUDA_SUCCESS ? value : 0;
}

static cudaError_t read_properties(struct cudart_properties *to, int device) {
    int count = 0;
    cudaError_t error = CU_PLAIN(cuDeviceGetCount, (&count));
    if (error != cudaSuccess) return error;
    if (device < 0 || device >= count) return cudaErrorInvalidDevice;
    memset(to, 0, sizeof *to);
    (void)CU(cuDeviceGetName)(to->name, (int)sizeof to->name, device);
    (void)CU(cuDeviceGetUuid_v2)((CUuuid *)&to->uuid, device);
    (void)CU(cuDeviceTotalMem_v2)(&to->totalGlobalMem, device);
#define CUDART_PROPERTY(versions, type, member, elements, first, second, third)                    \
    CUDART_IN_##versions({                                                                         \
        static const int attributes[] = {first, second, third};                                    \
        for (int i = 0; i < elements; i++)                                                         \
            to->member[i] = (type)properties_ask(attributes[i], device);                           \
    })
#include "cudart_property.def"
    return cudaSuccess;
}

cudaError_t CUDART_GET_PROPERTIES(struct cudart_properties *properties, int device) {
    cudart_begin(false, __builtin_return_address(0));
    return cudart_end(properties == NULL ? cudaErrorInvalidValue
                                         : read_properties(properties, device));
}

/* The number of nonzero requested properties that a device satisfies. */
static int properties_score(const struct cudart_properties *wished,
                            const struct cudart_properties *has) {
    int met = wished->totalGlobalMem != 0 && has->totalGlobalMem >= wished->totalGlobalMem;
#define CUDART_PROPERTY(versions, type, member, elements, first, second, third)                    \
    CUDART_IN_##versions(for (int i = 0; i < elements; i++) {                                      \
        met += wished->member[i] != 0 && has->member[i] >= wished->member[i];                      \
    })
#include "cudart_property.def"
    return met;
}

static cudaError_t properties_choose(int *device, const struct cudart_properties *wished) {
    struct cudart_properties has;
    int count = 0, best = -1;
    cudaError_t error = CU_PLAIN(cuDeviceGetCount, (&count));
    for (int i = 0; i < count && error == cudaSuccess; i++) {
        error = read_properties(&has, i);
        const int met = error == cudaSuccess ? properties_score(wished, &has) : 0;
        if (error != cudaSuccess || met <= best) continue;
        best = met;
        *device = i;
    }
    return error;
}

cudaError_t cudaChooseDevice(int *device, const struct cudart_properties *wished) {
    cudart_begin(false, __builtin_return_address(0));
    return cudart_end(device == NULL || wished == NULL ? cudaErrorInvalidValue
                                                       : properties_choose(device, wished));
}
