/*
 * Shared by the tests of the CUDA runtime: one of the two libraries, opened as a program's loader
 * opens it, above the soft device. Each test runs in a separate process.
 */
#ifndef TEST_CUDART_H
#define TEST_CUDART_H

#include "cudart/cudart_types.h"

/* The functions of a library. cudart13 has those of CUDA 13 whose name means another function in
 * CUDA 12. */
struct cudart_library {
#define TEST_KEEP(text) text
#define TEST_DROP(text)
#define TEST_IN_BOTH TEST_KEEP
#define TEST_IN_NEW TEST_KEEP
#define TEST_IN_OLD TEST_DROP
#define CUDART_FN(versions, thread, name, parameters, names)                                       \
    TEST_IN_##versions(cudaError_t(*name) parameters;)
#define CUDART_AS(versions, thread, name, body, parameters, names)
#include "cudart/cudart_functions.def"
    cudaError_t (*cudaGetLastError)(void);
    cudaError_t (*cudaPeekAtLastError)(void);
    const char *(*cudaGetErrorName)(cudaError_t);
    const char *(*cudaGetErrorString)(cudaError_t);
    void **(*__cudaRegisterFatBinary)(void *);
    void (*__cudaRegisterFatBinaryEnd)(void **);
    void (*__cudaUnregisterFatBinary)(void **);
    void (*__cudaRegisterFunction)(void **, const char *, char *, const char *, int, void *, void *,
                                   void *, void *, int *);
    void (*__cudaRegisterVar)(void **, char *, char *, const char *, int, size_t, int, int);
    unsigned (*__cudaPushCallConfiguration)(dim3, dim3, size_t, cudaStream_t);
    cudaError_t (*__cudaPopCallConfiguration)(dim3 *, dim3 *, size_t *, void *);
};

extern struct cudart_library rt;

/* A suite's .init: opens libcudart.so.13 into rt. */
void test_cudart_begin(void);

/* Opens one by its name, and finds a function of it. */
void *test_cudart_open(const char *name);
void *test_cudart_find(void *library, const char *name);

/* Registers PTX as nvcc's code does: the kernel "store" for the address &test_kernel, the variable
 * "numbers" of 16 bytes for &test_variable. */
void test_cudart_register(void);
extern char test_kernel, test_variable;

#define IS(call, expected)                                                                         \
    do {                                                                                           \
        const cudaError_t is = (call);                                                             \
        cr_assert(is == (expected), #call " is %s, not " #expected, rt.cudaGetErrorName(is));      \
    } while (0)
#define OK(call) IS(call, cudaSuccess)

#endif
