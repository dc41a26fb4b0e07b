/*
 * The driver's functions, found by name in the library that is opened: libcuda.so.1, or the file
 * that TOLLENS_LIBCUDA names. A function that this driver lacks returns
 * CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER.
 */
#ifndef CUDART_DRIVER_H
#define CUDART_DRIVER_H

#include "cudart_types.h"

/* own is the variant for which the null stream is the calling thread's. */
struct cudart_driver {
#define SOFT_FN(thread, version, base, name, parameters, names)                                    \
    struct {                                                                                       \
        CUresult(CUDAAPI *plain) parameters;                                                       \
        CUresult(CUDAAPI *own) parameters;                                                         \
    } name;
#include "base/functions.def"
};

extern struct cudart_driver cudart_driver;

/* Only the soft device exports this. The runtime passes it the program's call site before its first
 * driver call, and NULL after the last. NULL: this driver has no such function. */
extern void (*cudart_driver_site)(const void *site);

/* Counts a call that this library refuses as one that the driver refused. NULL: not the soft
 * device. */
extern void (*cudart_driver_refusal)(const char *text);

/* Opens the driver and initialises it, once; any thread. cudaErrorInsufficientDriver: there is
 * none, or it is older than this library's major version of CUDA. */
cudaError_t cudart_driver_ready(void);

#endif
