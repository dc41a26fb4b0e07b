/*
 * Loads images, and links those with several parts.
 */
#include "cudart_link.h"

#include "cudart_thread.h"
#include "tollens/plain_text.h"

#include <stdio.h>
#include <string.h>

static cudaError_t link_load(const void *image, CUlibrary *library) {
    CUresult result = CU(cuLibraryLoadData)(library, image, NULL, NULL, 0, NULL, NULL, 0);
    return (cudaError_t)result;
}

/* The bytes of a fat binary: 16 of its header, and the size in the header. Source: fatbinary.h of
 * CUDA 11, struct fatBinaryHeader: magic, version, header's size, size of the rest. */
static size_t fatbin_bytes(const void *fatbin) {
    unsigned short header = 0;
    unsigned long long rest = 0;
    memcpy(&header, (const char *)fatbin + 6, sizeof header);
    memcpy(&rest, (const char *)fatbin + 8, sizeof rest);
    return header + (size_t)rest;
}

/* Adds the parts and links them. A part without code for this device is left out, because nvcc adds
 * its library for launches by kernels to each program. The linker reports missing symbols. */
static CUresult link_parts(CUlinkState state, const struct cudart_wrapper *wrapper,
                           CUlibrary *library) {
    void *image = NULL;
    size_t bytes = 0;
    CUresult result = CUDA_SUCCESS;
    for (void *const *part = wrapper->parts; result == CUDA_SUCCESS && *part != NULL; part++) {
        result = CU(cuLinkAddData_v2)(state, CU_JIT_INPUT_FATBINARY, *part, fatbin_bytes(*part),
                                      "part of the program", 0, NULL, NULL);
        if (result == CUDA_ERROR_NO_BINARY_FOR_GPU) result = CUDA_SUCCESS;
    }
    if (result == CUDA_SUCCESS) result = CU(cuLinkComplete)(state, &image, &bytes);
    return result != CUDA_SUCCESS ? result : (CUresult)link_load(image, library);
}

static cudaError_t link_image(const struct cudart_wrapper *wrapper, CUlibrary *library) {
    char log[2048] = ""; /* also of parts that may be left out, so it is shown only on failure */
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)sizeof log};
    CUlinkState state = NULL;
    CUresult result = CU(cuLinkCreate_v2)(2, options, values, &state);
    if (result != CUDA_SUCCESS) return (cudaError_t)result;
    result = link_parts(state, wrapper, library);
    if (result != CUDA_SUCCESS && log[0] != '\0') {
        tol_plain_print(stderr, "tollens-cudart: the program's parts cannot be linked: %s\n", log);
    }
    (void)CU(cuLinkDestroy)(state);
    return (cudaError_t)result;
}

cudaError_t cudart_link(const struct cudart_wrapper *wrapper, CUlibrary *library) {
    cudaError_t error = cudart_context();
    if (error != cudaSuccess) return error;
    if (wrapper->magic != CUDART_WRAPPER_MAGIC) return cudaErrorInvalidKernelImage;
    return wrapper->version == CUDART_WRAPPER_PARTS ? link_image(wrapper, library)
                                                    : link_load(wrapper->data, library);
}
