/*
 * Accesses: the bytes that a kernel has read and written, if the driver reports them.
 *
 * The soft device exports TOL_ACCESSES_NAME, of the type tol_accesses_function; no other driver
 * does. Programs use tol_watch_accesses (watch.h), which looks for it.
 */
#ifndef TOLLENS_ACCESSES_H
#define TOLLENS_ACCESSES_H

#include "cuda_abi.h"

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TOL_ACCESSES_NAME "tollens_soft_accesses"

/* Bytes of global memory. Those of one kernel and one kind do not overlap, and are in no order. */
struct tol_access {
    CUdeviceptr address;
    size_t bytes;
    bool is_write; /* otherwise read. An atomic operation does both */
};

/* A kernel that has ended, also one of a graph. Valid during the call. */
struct tol_accesses {
    CUfunction function; /* of a library's kernel: that of the context */
    const char *kernel;  /* its name */
    const struct tol_access *accesses;
    size_t count;
};

/* Runs on the thread that has carried the kernel out, before anybody can wait for its end. Must not
 * call the driver. */
typedef void (*tol_accesses_hook)(const struct tol_accesses *accesses, void *user);

/* Has the hook called for each kernel that begins from now on; NULL: for none, and waits for calls
 * that have begun. One hook a process: CUDA_ERROR_ALREADY_MAPPED if there is another. */
typedef CUresult(CUDAAPI *tol_accesses_function)(tol_accesses_hook hook, void *user);

#ifdef __cplusplus
}
#endif
#endif
