/*
 * Shared by the calls that launch kernels.
 */
#ifndef SOFT_KERNEL_CALL_H
#define SOFT_KERNEL_CALL_H

#include "state/kernel_library.h"
#include "task.h"

/* A launch as the program requested it. */
struct soft_kernel_call {
    CUfunction function;
    uint32_t grid[3], block[3];
    uint32_t cluster[3]; /* 0: the launch does not say */
    uint32_t shared;
    bool cooperative;
    bool programmatic; /* CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION */
    void **parameters, **extra;
};

/* Checks a launch in a context and makes its task, which owns what it needs. The caller holds
 * soft_lock, which is released while a library's module is loaded or the code is completed. */
CUresult soft_kernel_task(const struct soft_kernel_call *call, struct soft_context *context,
                          struct soft_task *task);

#endif
