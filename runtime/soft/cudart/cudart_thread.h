/*
 * The state of each host thread: its device, its last error, and the launch that it prepares.
 *
 * A context is created when a call first needs one. As in the manual's "Interactions with the CUDA
 * Driver API", a context that the program made current through the driver is used; otherwise the
 * primary context of the thread's device.
 *
 * Errors: each call that fails leaves its code for cudaPeekAtLastError and cudaGetLastError, which
 * clears it. The codes after which the context is lost (CUDA Runtime API 13.0, cudaError: "leaves
 * the process in an inconsistent state") stay until the device is reset.
 */
#ifndef CUDART_THREAD_H
#define CUDART_THREAD_H

#include "cudart_driver.h"

#include <stdbool.h>

struct cudart_thread {
    bool own_default;    /* the call is a _ptsz or _ptds variant */
    int device;          /* set by cudaSetDevice, used if no context is current */
    unsigned long reset; /* the count of resets that this thread has seen */
    cudaError_t last;    /* what cudaGetLastError returns */
    cudaError_t failure; /* of the last cudart_context */
};

extern _Thread_local struct cudart_thread cudart_thread;

/* Around every exported call. site: where the program called. */
void cudart_begin(bool own_default, const void *site);
cudaError_t cudart_end(cudaError_t error);

/* The last error, cleared unless the context is lost. */
cudaError_t cudart_take_last(void);

/* Makes sure that the thread has a context; its error is the last error too. */
cudaError_t cudart_context(void);

/* Makes the primary context of a device current. */
cudaError_t cudart_set_device(int device);

/* The device of the current context, or the thread's device; creates no context. */
cudaError_t cudart_get_device(int *device);

/* The primary context of a device, retained once for the process. */
cudaError_t cudart_primary(int device, CUcontext *context);

/* Destroys the primary context of the thread's device, and forgets the thread's error. */
cudaError_t cudart_reset(void);

/* A driver function in the variant of this call. */
#define CU(name) (cudart_thread.own_default ? cudart_driver.name.own : cudart_driver.name.plain)

/* The result of a driver call in the thread's context. arguments have parentheses. */
#define CU_CALL(name, arguments)                                                                   \
    (cudart_context() != cudaSuccess ? cudart_thread.failure : (cudaError_t)CU(name) arguments)

/* Likewise of a call that needs no context. */
#define CU_PLAIN(name, arguments)                                                                  \
    (cudart_driver_ready() != cudaSuccess ? cudart_driver_ready() : (cudaError_t)CU(name) arguments)

#endif
