/*
 * The runtime's last errors, and their names and texts.
 */
#include "test/test_cudart.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

TestSuite(cudart_error, .init = test_cudart_begin);

Test(cudart_error, the_last_error_is_kept_until_it_is_taken) {
    void *address = NULL;
    OK(rt.cudaGetLastError());
    IS(rt.cudaMalloc(NULL, 4), cudaErrorInvalidValue);
    OK(rt.cudaMalloc(&address, 4));
    IS(rt.cudaPeekAtLastError(), cudaErrorInvalidValue);
    IS(rt.cudaGetLastError(), cudaErrorInvalidValue);
    OK(rt.cudaPeekAtLastError());
    OK(rt.cudaGetLastError());
    OK(rt.cudaFree(address));
}

Test(cudart_error, the_newest_error_is_the_last) {
    IS(rt.cudaMalloc(NULL, 4), cudaErrorInvalidValue);
    IS(rt.cudaSetDevice(99), cudaErrorInvalidDevice);
    IS(rt.cudaGetLastError(), cudaErrorInvalidDevice);
}

static void *peek(void *error) {
    *(cudaError_t *)error = rt.cudaPeekAtLastError();
    return NULL;
}

Test(cudart_error, each_thread_has_its_own) {
    pthread_t thread;
    cudaError_t other = cudaErrorUnknown;
    IS(rt.cudaSetDevice(-1), cudaErrorInvalidDevice);
    cr_assert(pthread_create(&thread, NULL, peek, &other) == 0);
    pthread_join(thread, NULL);
    OK(other);
    IS(rt.cudaGetLastError(), cudaErrorInvalidDevice);
}

/* A kernel that stores to no memory. */
static void fault(void) {
    void *nowhere = (void *)64, *arguments[2];
    unsigned value = 7;
    arguments[0] = &nowhere;
    arguments[1] = &value;
    test_cudart_register();
    OK(rt.cudaLaunchKernel(&test_kernel, (dim3){1, 1, 1}, (dim3){1, 1, 1}, arguments, 0, NULL));
    IS(rt.cudaDeviceSynchronize(), cudaErrorIllegalAddress);
}

Test(cudart_error, a_lost_context_is_not_cleared) {
    void *address = NULL;
    fault();
    IS(rt.cudaGetLastError(), cudaErrorIllegalAddress);
    IS(rt.cudaGetLastError(), cudaErrorIllegalAddress);
    IS(rt.cudaMalloc(&address, 4), cudaErrorIllegalAddress);
    IS(rt.cudaMalloc(NULL, 4), cudaErrorInvalidValue);
    IS(rt.cudaGetLastError(), cudaErrorIllegalAddress);
}

Test(cudart_error, a_reset_ends_it) {
    void *address = NULL, *arguments[2];
    unsigned value = 7, stored = 0;
    fault();
    OK(rt.cudaDeviceReset());
    OK(rt.cudaGetLastError());
    OK(rt.cudaMalloc(&address, sizeof value));
    arguments[0] = &address;
    arguments[1] = &value;
    OK(rt.cudaLaunchKernel(&test_kernel, (dim3){1, 1, 1}, (dim3){1, 1, 1}, arguments, 0, NULL));
    OK(rt.cudaMemcpy(&stored, address, sizeof stored, cudaMemcpyDeviceToHost));
    cr_assert(stored == 7, "%u", stored);
    OK(rt.cudaFree(address));
}

Test(cudart_error, every_error_has_a_name_and_a_text) {
    static const cudaError_t errors[] = {
#define CUDART_ERROR(name, value) name,
#include "cudart_errors.def"
#undef CUDART_ERROR
    };
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        const char *name = rt.cudaGetErrorName(errors[i]), *text = rt.cudaGetErrorString(errors[i]);
        cr_assert(strncmp(name, "cuda", 4) == 0, "%d is %s", errors[i], name);
        cr_assert(text != NULL && text[0] != '\0' && strcmp(text, "unrecognized error code") != 0,
                  "%s has no text", name);
    }
    cr_assert_str_eq(rt.cudaGetErrorName(cudaErrorInvalidValue), "cudaErrorInvalidValue");
    cr_assert_str_eq(rt.cudaGetErrorString(cudaSuccess), "no error");
    cr_assert_str_eq(rt.cudaGetErrorString(cudaErrorInvalidConfiguration), "invalid configuration");
    cr_assert_str_eq(rt.cudaGetErrorName(12345), "unrecognized error code");
    cr_assert_str_eq(rt.cudaGetErrorString(12345), "unrecognized error code");
}

Test(cudart_error, names_and_texts_leave_no_error) {
    (void)rt.cudaGetErrorString(cudaErrorNoDevice);
    (void)rt.cudaGetErrorName(4711);
    OK(rt.cudaGetLastError());
}

Test(cudart_error, without_a_driver_calls_say_that_it_is_insufficient) {
    int count = 5, version = 5;
    setenv("TOLLENS_LIBCUDA", "/nowhere/libcuda.so.1", 1);
    IS(rt.cudaGetDeviceCount(&count), cudaErrorInsufficientDriver);
    cr_assert(count == 0, "%d", count);
    OK(rt.cudaDriverGetVersion(&version));
    cr_assert(version == 0, "%d", version);
    OK(rt.cudaRuntimeGetVersion(&version));
    cr_assert(version == 13000, "%d", version);
    IS(rt.cudaFree(NULL), cudaErrorInsufficientDriver);
    cr_assert_str_eq(rt.cudaGetErrorString(cudaErrorInsufficientDriver), "insufficient driver");
}

Test(cudart_error, a_driver_of_an_older_cuda_is_insufficient) {
    int version = 0;
    setenv("TOLLENS_SOFT_DRIVER_VERSION", "12040", 1);
    IS(rt.cudaFree(NULL), cudaErrorInsufficientDriver);
    OK(rt.cudaRuntimeGetVersion(&version));
    /* CUDA 12's library takes any driver of CUDA 12. */
    cudaError_t (*free_12)(void *) = NULL;
    void *function = test_cudart_find(test_cudart_open("libcudart.so.12"), "cudaFree");
    memcpy(&free_12, &function, sizeof function);
    OK(free_12(NULL));
}

Test(cudart_error, what_is_not_modelled_says_so) {
    void *library = test_cudart_open("libcudart.so.13");
    cudaError_t (*refused)(void *, void *) = NULL;
    void *function = test_cudart_find(library, "cudaImportExternalMemory");
    memcpy(&refused, &function, sizeof function);
    IS(refused(NULL, NULL), cudaErrorNotSupported);
    IS(rt.cudaGetLastError(), cudaErrorNotSupported);
}
