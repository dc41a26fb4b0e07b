/*
 * The kind of memory at an address, and the rejection of all but device memory in a context that
 * was created with device_memory_only.
 */
#ifndef TOLLENS_RESIDENCE_H
#define TOLLENS_RESIDENCE_H

#include "context_state.h"

/* The kind of memory at an address, as the driver reports it: registered memory is the host's. */
enum tol_residence {
    TOL_RESIDENCE_UNKNOWN,
    TOL_RESIDENCE_DEVICE,
    TOL_RESIDENCE_HOST,
    TOL_RESIDENCE_MANAGED
};
tol_status tol_context_residence(struct tol_context *context, CUdeviceptr address,
                                 enum tol_residence *residence);

/* TOL_NOT_RESIDENT if what ("the new buffer") is at an address that is not in the device's own
 * memory, and the context allows no other. */
tol_status tol_context_refuse_astray(struct tol_context *context, CUdeviceptr address,
                                     const char *what);

/* The same for an argument of 8 bytes, which may be an address: one that the driver does not know
 * passes. For a context with device_memory_only. */
tol_status tol_context_refuse_argument(struct tol_context *context, CUdeviceptr value,
                                       unsigned position, const char *kernel);

#endif
