/*
 * Shared by the tests of the soft device's driver API: calls that must succeed or fail with a code,
 * a context, and a few kernels.
 *
 * The functions are called directly: the test program is linked with the device's objects. Each
 * test runs in a separate process, so the environment can be set before the first call.
 */
#ifndef SOFT_TEST_API_H
#define SOFT_TEST_API_H

#include "api/export.h"

#include <criterion/criterion.h>

/* The name of a code. */
const char *api_code(CUresult result);

#define OK(call)                                                                                   \
    do {                                                                                           \
        CUresult ok_result = (call);                                                               \
        cr_assert(ok_result == CUDA_SUCCESS, "%s: %s", #call, api_code(ok_result));                \
    } while (0)

#define REFUSED(call, code)                                                                        \
    do {                                                                                           \
        CUresult refused_result = (call);                                                          \
        cr_assert(refused_result == (code), "%s: %s instead of %s", #call,                         \
                  api_code(refused_result), #code);                                                \
    } while (0)

/* Initialises, retains the primary context of a device and makes it current. */
CUcontext api_context(CUdevice device);

/* Loads PTX and finds a function of it. */
CUfunction api_function(const char *ptx, const char *name);

/* The kernels below, each with one block of one thread. */
extern const char *const api_kernels;

/* put: *address = value. */
void api_put(CUdeviceptr address, unsigned value, CUstream stream);

/* hold: waits until *address is not zero. */
void api_hold(CUdeviceptr address, CUstream stream);

/* A fault of the current context: a kernel stores to an invalid address. Returns the code of the
 * wait. */
CUresult api_fault(void);

/* An unsigned in pinned memory, visible to host and device; 0 at first. */
volatile unsigned *api_flag(CUdeviceptr *address);

/* Writes fault rules to a file that the device reads at the first call; returns the file's name. */
const char *api_faults(const char *rules);

/* Reads an unsigned of device memory. */
unsigned api_read(CUdeviceptr address);

/* The heap bytes in use by this process. 0 under a sanitizer, whose allocator does not count them,
 * but which finds leaks itself. */
size_t api_heap(void);

/* Allocates all memory that the allocator has, and frees it. Nothing may fail meanwhile, because a
 * failing test needs memory to report. */
void *api_take_memory(void);
void api_give_memory(void *all);

/* Requires that the work, repeated many times, leaves nothing in the heap; rounds may differ by
 * less than one byte per repetition, for memory that threads keep. */
void api_must_keep_nothing(void (*work)(void), int times);

#endif
