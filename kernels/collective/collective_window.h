/*
 * Collective window: memory of a device that the processes of all ranks map. It lives as long as
 * any of them maps it, so that a rank whose process has ended leaves no hole. Internal.
 */
#ifndef KN_COLLECTIVE_WINDOW_H
#define KN_COLLECTIVE_WINDOW_H

#include "tollens.h"

struct kn_window {
    CUmemGenericAllocationHandle handle;
    CUdeviceptr address;
    size_t bytes; /* whole granules */
};

/* Memory of the context's device, and a descriptor of it that the caller closes. */
tol_status kn_window_create(struct tol_context *context, size_t bytes, struct kn_window *window,
                            int *file);

/* Memory of another process, for the context's device. bytes are those it was created with. */
tol_status kn_window_open(struct tol_context *context, int file, size_t bytes,
                          struct kn_window *window);

/* The context is bound, and nothing uses the memory any more. */
void kn_window_close(struct tol_context *context, struct kn_window *window);

#endif
