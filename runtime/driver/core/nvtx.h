/*
 * NVTX: a range for each operation of the runtime, for NVIDIA Nsight and similar tools.
 *
 * A tool that wants ranges names its library in NVTX_INJECTION64_PATH; it is loaded when the first
 * driver is opened. If the variable is not set, an operation costs one more comparison. Ranges are
 * in the domain "tollens", have the name of the public function, and carry the number of bytes if
 * the call has one. They are on the calling thread; Nsight itself shows the time of kernels.
 */
#ifndef TOLLENS_NVTX_H
#define TOLLENS_NVTX_H

#include "check.h"

#include <stdbool.h>
#include <stdint.h>

/* Whether a tool listens. Does not change once a driver was opened. */
extern TOL_HIDDEN bool tol_nvtx_listens;

/* Looks for a tool, once in a process. Called before a driver is opened. Thread-safe. */
void tol_nvtx_open(void);

/* Begins and ends a range on this thread, if a tool listens. */
void tol_nvtx_push(const char *name, uint64_t bytes);
void tol_nvtx_pop(void);

static inline bool tol_range_begin(const char *name, uint64_t bytes) {
    if (!TOL_UNLIKELY(tol_nvtx_listens)) return false;
    tol_nvtx_push(name, bytes);
    return true;
}

static inline void tol_range_end(const bool *is_open) {
    if (TOL_UNLIKELY(*is_open)) tol_nvtx_pop();
}

/* Makes a range of the rest of the block: TOL_RANGE("tol_buffer_write_at", bytes); */
#if defined(__GNUC__)
#define TOL_RANGE(name, bytes)                                                                     \
    __attribute__((cleanup(tol_range_end), unused)) const bool tol_range_is_open =                 \
        tol_range_begin(name, bytes)
#else
#define TOL_RANGE(name, bytes) ((void)0)
#endif

#endif
