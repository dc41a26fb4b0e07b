/*
 * The fields of struct tol_module and struct tol_kernel.
 */
#ifndef TOLLENS_MODULE_STATE_H
#define TOLLENS_MODULE_STATE_H

#include "context_state.h"

enum { TOL_MODULE_BUCKETS = 64 };

struct tol_module {
    struct tol_context *context;
    CUmodule handle;
    struct tol_module *next; /* in context->modules */
    int references;          /* guarded by context->lock */
    char *image;             /* the copy the cache compares with, followed by a NUL */
    size_t image_bytes;
    uint64_t image_hash;
    int options[4]; /* as loaded, for the cache */
    bool unshared;
    char *log;            /* the JIT's */
    pthread_mutex_t lock; /* guards adding kernels */
    _Atomic(struct tol_kernel *) buckets[TOL_MODULE_BUCKETS];
};

struct tol_kernel {
    const struct tol_driver_table *functions;
    struct tol_context *context;
    CUfunction handle;
    const char *name; /* the context's, so it outlives the module */
    unsigned block_threads_max;
    unsigned shared_static_bytes;
    atomic_uint shared_dynamic_bytes_max;
    int local_bytes;
    int registers;
    int parameter_count; /* -1: the driver cannot report it */
    unsigned parameter_bytes_total;
    struct tol_kernel *next;    /* in its bucket */
    unsigned parameter_bytes[]; /* the size of each */
};

#endif
