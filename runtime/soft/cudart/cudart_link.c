/*
 * Loads images, and links those that are in parts.
 */
#include "cudart_link.h"

#include "cudart_thread.h"

#include <string.h>

static cudaError_t load(const void *image, CUlibrary *library) {
    CUresult result = CU(cuLibraryLoadData)(library, image, NULL, NULL, 0, NULL, NULL, 0);
    return (cudaError_t)result;
}

/* The bytes of a fat binary: 16 of its header, and what the header says. Source: fatbinary.h of
 * CUDA 11, struct fatBinaryHeader: magic, version, header's size, size of the rest. */
static size_t fatbin_bytes(const void *fatbin) {
    unsigned short header = 0;
    unsigned long long rest = 0;
    memcpy(&header, (const char *)fatbin + 6, sizeof header);
    memcpy(&rest, (const char *)fatbin + 8, sizeof rest);
    return header + (size_t)rest;
}

static CUresult link_parts(CUlinkState state, const struct cudart_wrapper *wrapper,
                           CUlibrary *library) {
    void *image = NULL;
    size_t bytes = 0;
    CUresult result = CUDA_SUCCESS;
    for (void *const *part = wrapper->parts; result == CUDA_SUCCESS && *part != NULL; part++) {
        result = CU(cuLinkAddData_v2)(state, CU_JIT_INPUT_FATBINARY, *part, fatbin_bytes(*part),
                                      "part of the program", 0, NULL, NULL);
    }
    if (result == CUDA_SUCCESS) result = CU(cuLinkComplete)(state, &image, &bytes);
    return result != CUDA_SUCCESS ? result : (CUresult)load(image, library);
}

cudaError_t cudart_link(const struct cudart_wrapper *wrapper, CUlibrary *library) {
    CUlinkState state = NULL;
    cudaError_t error = cudart_context();
    if (error != cudaSuccess) return error;
    if (wrapper->magic != CUDART_WRAPPER_MAGIC) return cudaErrorInvalidKernelImage;
    if (wrapper->version != CUDART_WRAPPER_PARTS) return load(wrapper->data, library);
    CUresult result = CU(cuLinkCreate_v2)(0, NULL, NULL, &state);
    if (result != CUDA_SUCCESS) return (cudaError_t)result;
    result = link_parts(state, wrapper, library);
    (void)CU(cuLinkDestroy)(state);
    return (cudaError_t)result;
}
