/*
 * Queries the driver for the kind of memory at an address, and rejects all but device memory.
 */
#include "residence.h"

#include "check.h"

#include <stdio.h>

tol_status tol_context_residence(struct tol_context *context, CUdeviceptr address,
                                 enum tol_residence *residence) {
    tol_status status = TOL_OK;
    unsigned type = 0, is_managed = 0; /* the driver writes a byte or a word of the second */
    CUresult answer =
        context->functions->cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address);
    if (answer == CUDA_ERROR_INVALID_VALUE) { /* never heard of it */
        *residence = TOL_RESIDENCE_UNKNOWN;
        return TOL_OK;
    }
    if (answer != CUDA_SUCCESS) {
        status = tol_context_fail(context, __FILE__, __LINE__, "cuPointerGetAttribute", (int)answer,
                                  "getting the memory type of %#llx", address);
        goto out;
    }
    TOL_CONTEXT_CU(context, cuPointerGetAttribute,
                   (&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address),
                   "checking whether %#llx is managed memory", address);
    *residence = is_managed != 0                ? TOL_RESIDENCE_MANAGED
                 : type == CU_MEMORYTYPE_DEVICE ? TOL_RESIDENCE_DEVICE
                                                : TOL_RESIDENCE_HOST;
out:
    return status;
}

TOL_COLD static tol_status residence_refuse(const struct tol_context *context, CUdeviceptr address,
                                            enum tol_residence residence, const char *what) {
    static const char *const whose[] = {"not known to the driver", "device memory", "host memory",
                                        "managed memory"};
    return tol_fail(__FILE__, __LINE__, TOL_NOT_RESIDENT,
                    "%s at %#llx is %s; the context of device %d was created with "
                    "device_memory_only",
                    what, address, whose[residence], context->device.ordinal);
}

tol_status tol_context_refuse_astray(struct tol_context *context, CUdeviceptr address,
                                     const char *what) {
    enum tol_residence residence = TOL_RESIDENCE_UNKNOWN;
    if (!context->device_memory_only) return TOL_OK;
    tol_status status = tol_context_residence(context, address, &residence);
    if (status != TOL_OK || residence == TOL_RESIDENCE_DEVICE) return status;
    return residence_refuse(context, address, residence, what);
}

tol_status tol_context_refuse_argument(struct tol_context *context, CUdeviceptr value,
                                       unsigned position, const char *kernel) {
    enum tol_residence residence = TOL_RESIDENCE_UNKNOWN;
    char what[160];
    tol_status status = tol_context_residence(context, value, &residence);
    if (status != TOL_OK || residence == TOL_RESIDENCE_DEVICE ||
        residence == TOL_RESIDENCE_UNKNOWN) {
        return status;
    }
    snprintf(what, sizeof what, "argument %u of the kernel \"%.100s\"", position, kernel);
    return residence_refuse(context, value, residence, what);
}
