/*
 * Devices, their limits and their peers. As in "Device Management", "Peer Device Memory Access",
 * "Version Management", "Error Log Management" and "Profiler Control" of the CUDA Runtime API 13.0.
 * Attributes, limits and flags have the driver's numbers.
 */
#include "cudart_export.h"
#include "cudart_version.h"

enum { DEVICE_MAP_HOST = 8, INIT_FLAGS_ARE_VALID = 1 };

RT(cudaGetDeviceCount, (int *count)) {
    if (count == NULL) return cudaErrorInvalidValue;
    cudaError_t error = CU_PLAIN(cuDeviceGetCount, (count));
    if (error == cudaSuccess && *count == 0) error = cudaErrorNoDevice;
    if (error != cudaSuccess) *count = 0;
    return error;
}

RT(cudaSetDevice, (int device)) {
    return cudart_set_device(device);
}

RT(cudaGetDevice, (int *device)) {
    return device == NULL ? cudaErrorInvalidValue : cudart_get_device(device);
}

RT(cudaInitDevice, (int device, unsigned int device_flags, unsigned int flags)) {
    CUcontext context = NULL;
    cudaError_t error = cudaSuccess;
    if (flags > INIT_FLAGS_ARE_VALID) return cudaErrorInvalidValue;
    if (flags == INIT_FLAGS_ARE_VALID) {
        error = CU_PLAIN(cuDevicePrimaryCtxSetFlags_v2,
                         (device, device_flags & ~(unsigned)DEVICE_MAP_HOST));
    }
    return error != cudaSuccess ? error : cudart_primary(device, &context);
}

/* The first of the list is the device of a thread that has not selected one. */
RT(cudaSetValidDevices, (int *devices, int count)) {
    int known = 0;
    CUcontext context = NULL;
    if (count < 0 || (devices == NULL && count > 0)) return cudaErrorInvalidValue;
    cudaError_t error = CU_PLAIN(cuDeviceGetCount, (&known));
    for (int i = 0; i < count && error == cudaSuccess; i++) {
        if (devices[i] < 0 || devices[i] >= known) error = cudaErrorInvalidDevice;
    }
    if (error == cudaSuccess) error = (cudaError_t)CU(cuCtxGetCurrent)(&context);
    if (error == cudaSuccess && context == NULL) cudart_thread.device = count > 0 ? devices[0] : 0;
    return error;
}

RT(cudaSetDeviceFlags, (unsigned int flags)) {
    int device = 0;
    cudaError_t error = cudart_get_device(&device);
    if (error != cudaSuccess) return error;
    return (cudaError_t)CU(cuDevicePrimaryCtxSetFlags_v2)(device,
                                                          flags & ~(unsigned)DEVICE_MAP_HOST);
}

/* Host memory can always be mapped. */
RT(cudaGetDeviceFlags, (unsigned int *flags)) {
    int device = 0, active = 0;
    if (flags == NULL) return cudaErrorInvalidValue;
    cudaError_t error = cudart_get_device(&device);
    if (error != cudaSuccess) return error;
    CUresult result = CU(cuDevicePrimaryCtxGetState)(device, flags, &active);
    if (result == CUDA_SUCCESS) *flags |= DEVICE_MAP_HOST;
    return (cudaError_t)result;
}

RT(cudaDeviceReset, (void)) {
    return cudart_reset();
}

RT(cudaDeviceSynchronize, (void)) {
    return CU_CALL(cuCtxSynchronize, ());
}

RT(cudaDeviceGetAttribute, (int *value, cudaDeviceAttr attribute, int device)) {
    return CU_PLAIN(cuDeviceGetAttribute, (value, (CUdevice_attribute)attribute, device));
}

RT(cudaDeviceSetLimit, (cudaLimit limit, size_t value)) {
    return CU_CALL(cuCtxSetLimit, (limit, value));
}

RT(cudaDeviceGetLimit, (size_t * value, cudaLimit limit)) {
    return CU_CALL(cuCtxGetLimit, (value, limit));
}

RT(cudaDeviceGetCacheConfig, (cudaFuncCache * config)) {
    return CU_CALL(cuCtxGetCacheConfig, (config));
}

RT(cudaDeviceSetCacheConfig, (cudaFuncCache config)) {
    return CU_CALL(cuCtxSetCacheConfig, (config));
}

RT(cudaDeviceGetSharedMemConfig, (cudaSharedMemConfig * config)) {
    return CU_CALL(cuCtxGetSharedMemConfig, (config));
}

RT(cudaDeviceSetSharedMemConfig, (cudaSharedMemConfig config)) {
    return CU_CALL(cuCtxSetSharedMemConfig, (config));
}

RT(cudaCtxResetPersistingL2Cache, (void)) {
    return CU_CALL(cuCtxResetPersistingL2Cache, ());
}

RT(cudaDeviceGetByPCIBusId, (int *device, const char *id)) {
    return CU_PLAIN(cuDeviceGetByPCIBusId, (device, id));
}

RT(cudaDeviceGetPCIBusId, (char *id, int length, int device)) {
    return CU_PLAIN(cuDeviceGetPCIBusId, (id, length, device));
}

/* ---- peers ---- */

RT(cudaDeviceGetP2PAttribute,
   (int *value, cudaDeviceP2PAttr attribute, int source, int destination)) {
    return CU_PLAIN(cuDeviceGetP2PAttribute, (value, attribute, source, destination));
}

RT(cudaDeviceCanAccessPeer, (int *can, int device, int peer)) {
    return CU_PLAIN(cuDeviceCanAccessPeer, (can, device, peer));
}

RT(cudaDeviceEnablePeerAccess, (int peer, unsigned int flags)) {
    CUcontext context = NULL;
    cudaError_t error = cudart_primary(peer, &context);
    return error != cudaSuccess ? error : CU_CALL(cuCtxEnablePeerAccess, (context, flags));
}

RT(cudaDeviceDisablePeerAccess, (int peer)) {
    CUcontext context = NULL;
    cudaError_t error = cudart_primary(peer, &context);
    return error != cudaSuccess ? error : CU_CALL(cuCtxDisablePeerAccess, (context));
}

/* ---- versions, the log, the profiler ---- */

/* 0 without a driver, and no error. */
RT(cudaDriverGetVersion, (int *version)) {
    if (version == NULL) return cudaErrorInvalidValue;
    cudaError_t error = CU_PLAIN(cuDriverGetVersion, (version));
    if (error != cudaErrorInsufficientDriver) return error;
    *version = 0;
    return cudaSuccess;
}

RT(cudaRuntimeGetVersion, (int *version)) {
    if (version == NULL) return cudaErrorInvalidValue;
    *version = cudart_version;
    return cudaSuccess;
}

RT(cudaLogsCurrent, (cudaLogIterator * iterator, unsigned int flags)) {
    return CU_PLAIN(cuLogsCurrent, (iterator, flags));
}

RT(cudaLogsDumpToFile, (cudaLogIterator * iterator, const char *path, unsigned int flags)) {
    return CU_PLAIN(cuLogsDumpToFile, (iterator, path, flags));
}

RT(cudaLogsDumpToMemory,
   (cudaLogIterator * iterator, char *buffer, size_t *size, unsigned int flags)) {
    return CU_PLAIN(cuLogsDumpToMemory, (iterator, buffer, size, flags));
}

RT(cudaProfilerStart, (void)) {
    return CU_CALL(cuProfilerStart, ());
}

RT(cudaProfilerStop, (void)) {
    return CU_CALL(cuProfilerStop, ());
}
