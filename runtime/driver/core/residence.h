/*
 * The kind of memory at an address, and the rejection of all but device memory in a context that
 * was created with device_memory_only.
 */
#ifndef TOLLENS_RESIDENCE_H
#define TOLLENS_RESIDENCE_H

#include "context_state.h"

/* Whose memory an address is, as the driver says: registered memory is the host's. */
enum tol_residence {
    TOL_RESIDENCE_UNKNOWN,
    TOL_RESIDENCE_DEVICE,
    TOL_RESIDENCE_HOST,
    TOL_RESIDENCE_MANAGED
};
tol_status tol_context_residence(struct tol_context *context, CUdeviceptr address,
                                 enum tol_residence *residence);

/* TOL_NOT_RESIDENT where what ("the new buffer") is at an address that is not the device's own
 * memory, if the context is to have no other. */
tol_status tol_context_refuse_astray(struct tol_context *context, CUdeviceptr address,
                                     const char *what);

/* The same of an argument of 8 bytes, which may be an address: one that the driver does not know
 * passes. Of a context with device_memory_only. */
tol_status tol_context_refuse_argument(struct tol_context *context, CUdeviceptr value,
                                       unsigned position, const char *kernel);

#endif
