/*
 * Kernels, symbols, libraries and the driver's entry points. As in "Execution Control", "Memory
 * Management", "Library Management" and "Driver Entry Point Access" of the CUDA Runtime API 13.0.
 */
#include "cudart_export.h"
#include "cudart_registry.h"
#include "cudart_version.h"

static cudaError_t cudart_function_find(const void *kernel, CUfunction *function) {
    cudaError_t error = cudart_context();
    return error != cudaSuccess ? error : cudart_function(kernel, function);
}

/* A kernel and the current device. */
static cudaError_t function_find_kernel(const void *host, CUkernel *kernel, CUdevice *device) {
    cudaError_t error = cudart_context();
    if (error == cudaSuccess) error = (cudaError_t)CU(cuCtxGetDevice)(device);
    return error != cudaSuccess ? error : cudart_kernel(host, kernel);
}

/* ---- attributes ---- */

RT(cudaFuncGetAttributes, (cudaFuncAttributes * attributes, const void *kernel)) {
    CUfunction function = NULL;
    int shared = 0, constant = 0, local = 0;
    if (attributes == NULL) return cudaErrorInvalidValue;
    cudaError_t error = cudart_function_find(kernel, &function);
    if (error != cudaSuccess) return error;
    *attributes = (cudaFuncAttributes){.ptxVersion = 0};
    const struct {
        CUfunction_attribute attribute;
        int *value;
    } rows[] = {
        {CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, &shared},
        {CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, &constant},
        {CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, &local},
        {CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &attributes->maxThreadsPerBlock},
        {CU_FUNC_ATTRIBUTE_NUM_REGS, &attributes->numRegs},
        {CU_FUNC_ATTRIBUTE_PTX_VERSION, &attributes->ptxVersion},
        {CU_FUNC_ATTRIBUTE_BINARY_VERSION, &attributes->binaryVersion},
        {CU_FUNC_ATTRIBUTE_CACHE_MODE_CA, &attributes->cacheModeCA},
        {CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, &attributes->maxDynamicSharedSizeBytes},
        {CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, &attributes->preferredShmemCarveout},
        {(CUfunction_attribute)CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET,
         &attributes->clusterDimMustBeSet},
        {(CUfunction_attribute)CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH,
         &attributes->requiredClusterWidth},
        {(CUfunction_attribute)CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT,
         &attributes->requiredClusterHeight},
        {(CUfunction_attribute)CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH,
         &attributes->requiredClusterDepth},
        {(CUfunction_attribute)CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
         &attributes->clusterSchedulingPolicyPreference},
        {(CUfunction_attribute)CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED,
         &attributes->nonPortableClusterSizeAllowed},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CUresult result = CU(cuFuncGetAttribute)(rows[i].value, rows[i].attribute, function);
        if (result != CUDA_SUCCESS) return (cudaError_t)result;
    }
    attributes->sharedSizeBytes = (size_t)shared;
    attributes->constSizeBytes = (size_t)constant;
    attributes->localSizeBytes = (size_t)local;
    return cudaSuccess;
}

RT(cudaFuncSetAttribute, (const void *host, cudaFuncAttribute attribute, int value)) {
    CUkernel kernel = NULL;
    CUdevice device = 0;
    cudaError_t error = function_find_kernel(host, &kernel, &device);
    if (error != cudaSuccess) return error;
    return (cudaError_t)CU(cuKernelSetAttribute)((CUfunction_attribute)attribute, value, kernel,
                                                 device);
}

RT(cudaKernelSetAttributeForDevice,
   (cudaKernel_t kernel, cudaFuncAttribute attribute, int value, int device)) {
    return CU_CALL(cuKernelSetAttribute,
                   ((CUfunction_attribute)attribute, value, kernel, (CUdevice)device));
}

RT(cudaFuncSetCacheConfig, (const void *host, cudaFuncCache config)) {
    CUkernel kernel = NULL;
    CUdevice device = 0;
    cudaError_t error = function_find_kernel(host, &kernel, &device);
    if (error != cudaSuccess) return error;
    return (cudaError_t)CU(cuKernelSetCacheConfig)(kernel, config, device);
}

RT(cudaFuncSetSharedMemConfig, (const void *kernel, cudaSharedMemConfig config)) {
    CUfunction function = NULL;
    cudaError_t error = cudart_function_find(kernel, &function);
    if (error != cudaSuccess) return error;
    return (cudaError_t)CU(cuFuncSetSharedMemConfig)(function, config);
}

RT(cudaFuncGetName, (const char **name, const void *host)) {
    CUkernel kernel = NULL;
    CUdevice device = 0;
    cudaError_t error = function_find_kernel(host, &kernel, &device);
    return error != cudaSuccess ? error : (cudaError_t)CU(cuKernelGetName)(name, kernel);
}

RT(cudaFuncGetParamInfo, (const void *host, size_t index, size_t *offset, size_t *size)) {
    CUkernel kernel = NULL;
    CUdevice device = 0;
    cudaError_t error = function_find_kernel(host, &kernel, &device);
    if (error != cudaSuccess) return error;
    return (cudaError_t)CU(cuKernelGetParamInfo)(kernel, index, offset, size);
}

/* ---- the driver's handles of registered symbols ---- */

RT(cudaGetKernel, (cudaKernel_t * kernel, const void *host)) {
    CUdevice device = 0;
    if (kernel == NULL) return cudaErrorInvalidValue;
    cudaError_t error = function_find_kernel(host, kernel, &device);
    if (error == cudaSuccess) cudart_kernel_know(*kernel, NULL);
    return error;
}

RT(cudaGetFuncBySymbol, (cudaFunction_t * function, const void *host)) {
    return function == NULL ? cudaErrorInvalidValue : cudart_function_find(host, function);
}

RT(cudaGetSymbolAddress, (void **address, const void *symbol)) {
    CUdeviceptr found = 0;
    if (address == NULL) return cudaErrorInvalidValue;
    cudaError_t error = cudart_context();
    if (error == cudaSuccess) error = cudart_variable(symbol, &found, NULL);
    if (error == cudaSuccess) *address = (void *)(uintptr_t)found;
    return error;
}

RT(cudaGetSymbolSize, (size_t * size, const void *symbol)) {
    CUdeviceptr found = 0;
    if (size == NULL) return cudaErrorInvalidValue;
    cudaError_t error = cudart_context();
    return error != cudaSuccess ? error : cudart_variable(symbol, &found, size);
}

/* ---- libraries ---- */

RT(cudaLibraryLoadData,
   (cudaLibrary_t * library, const void *code, cudaJitOption *jit_options, void **jit_values,
    unsigned int jit_count, cudaLibraryOption *options, void **values, unsigned int count)) {
    return CU_CALL(cuLibraryLoadData, (library, code, (CUjit_option *)jit_options, jit_values,
                                       jit_count, options, values, count));
}

RT(cudaLibraryLoadFromFile,
   (cudaLibrary_t * library, const char *file, cudaJitOption *jit_options, void **jit_values,
    unsigned int jit_count, cudaLibraryOption *options, void **values, unsigned int count)) {
    return CU_CALL(cuLibraryLoadFromFile, (library, file, (CUjit_option *)jit_options, jit_values,
                                           jit_count, options, values, count));
}

RT(cudaLibraryUnload, (cudaLibrary_t library)) {
    cudart_library_forget(library);
    return CU_CALL(cuLibraryUnload, (library));
}

RT(cudaLibraryGetKernel, (cudaKernel_t * kernel, cudaLibrary_t library, const char *name)) {
    cudaError_t error = CU_CALL(cuLibraryGetKernel, (kernel, library, name));
    if (error == cudaSuccess) cudart_kernel_know(*kernel, library);
    return error;
}

RT(cudaLibraryGetKernelCount, (unsigned int *count, cudaLibrary_t library)) {
    return CU_CALL(cuLibraryGetKernelCount, (count, library));
}

RT(cudaLibraryEnumerateKernels,
   (cudaKernel_t * kernels, unsigned int count, cudaLibrary_t library)) {
    unsigned int own = 0;
    cudaError_t error = CU_CALL(cuLibraryEnumerateKernels, (kernels, count, library));
    if (error == cudaSuccess) error = (cudaError_t)CU(cuLibraryGetKernelCount)(&own, library);
    for (unsigned int i = 0; error == cudaSuccess && i < own && i < count; i++) {
        cudart_kernel_know(kernels[i], library);
    }
    return error;
}

/* from is read after the call with the error. */
static cudaError_t function_give_address(cudaError_t error, const CUdeviceptr *from, void **to) {
    if (error == cudaSuccess && to != NULL) *to = (void *)(uintptr_t)*from;
    return error;
}

RT(cudaLibraryGetGlobal, (void **address, size_t *bytes, cudaLibrary_t library, const char *name)) {
    CUdeviceptr found = 0;
    return function_give_address(CU_CALL(cuLibraryGetGlobal, (&found, bytes, library, name)),
                                 &found, address);
}

RT(cudaLibraryGetManaged,
   (void **address, size_t *bytes, cudaLibrary_t library, const char *name)) {
    CUdeviceptr found = 0;
    return function_give_address(CU_CALL(cuLibraryGetManaged, (&found, bytes, library, name)),
                                 &found, address);
}

/* ---- the driver's functions ---- */

RT(cudaGetDriverEntryPointByVersion,
   (const char *symbol, void **function, unsigned int version, unsigned long long flags,
    cudaDriverEntryPointQueryResult *status)) {
    CUdriverProcAddressQueryResult found = 0;
    if (symbol == NULL || function == NULL ||
        flags > CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) {
        return cudaErrorInvalidValue;
    }
    if (flags == CU_GET_PROC_ADDRESS_DEFAULT && cudart_thread.own_default) {
        flags = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    }
    cudaError_t error =
        CU_PLAIN(cuGetProcAddress_v2, (symbol, function, (int)version, flags, &found));
    if (status != NULL) *status = found;
    return error == cudaErrorSymbolNotFound ? cudaSuccess : error; /* a status and NULL say so */
}

RT(cudaGetDriverEntryPoint, (const char *symbol, void **function, unsigned long long flags,
                             cudaDriverEntryPointQueryResult *status)) {
    return cudart_cudaGetDriverEntryPointByVersion(symbol, function, (unsigned)cudart_version,
                                                   flags, status);
}
