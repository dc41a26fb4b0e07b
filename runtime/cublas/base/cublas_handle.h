/*
 * A handle of cuBLAS or of cublasLt: they are the same, since a cublasHandle_t may be passed as a
 * cublasLtHandle_t. All work is queued on a stream of the handle's context: the one that is
 * current when the handle is created, or else the primary context of device 0, as in the CUDA
 * runtime.
 *
 * Like cuBLAS's, a handle may be used by several threads, as long as none changes its settings or
 * destroys it meanwhile.
 */
#ifndef CUBLAS_HANDLE_H
#define CUBLAS_HANDLE_H

#include "blas/blas_arguments.h"
#include "cublas_types.h"
#include "driver.h"

#include <pthread.h>
#include <stdbool.h>

/* The files of kernels, each loaded when one of its kernels is first needed. */
enum cublas_image {
    CUBLAS_PRODUCT_REAL,
    CUBLAS_PRODUCT_COMPLEX,
    CUBLAS_SUM,
    CUBLAS_REDUCE,
    CUBLAS_IMAGES
};

struct cublas_handle {
    const struct tol_driver_table *driver;
    CUcontext context;
    CUstream stream;
    unsigned processors; /* multiprocessors of the first device */
    int pointer_mode, math_mode, atomics_mode, sm_count_target, emulation;
    pthread_mutex_t lock; /* of what follows */
    CUmodule modules[CUBLAS_IMAGES];
    CUdeviceptr result; /* room for one result in host pointer mode; 0: not allocated yet */
};

/* CUBLAS(name, parameters, call) defines an exported function of cuBLAS: a call of the library's
 * own, with the program's call site known to the soft device. */
#define CUBLAS_VISIBLE __attribute__((visibility("default")))
#define CUBLAS(name, parameters, call)                                                             \
    CUBLAS_VISIBLE cublasStatus_t name parameters;                                                 \
    cublasStatus_t name parameters {                                                               \
        cublas_begin(__builtin_return_address(0));                                                 \
        return cublas_end(call);                                                                   \
    }
void cublas_begin(const void *site);
cublasStatus_t cublas_end(cublasStatus_t status);

/* The driver, and the current context or else the first device's primary one, which becomes
 * current. NOT_INITIALIZED: there is no driver or no device. */
cublasStatus_t cublas_find_context(const struct tol_driver_table **driver, CUcontext *context);

/* NOT_INITIALIZED: there is no driver or no device. ALLOC_FAILED. */
cublasStatus_t cublas_handle_create(struct cublas_handle **handle);
/* Waits for the context's work. NOT_INITIALIZED: handle is NULL. */
cublasStatus_t cublas_handle_destroy(struct cublas_handle *handle);

/* The status of a driver's result. */
cublasStatus_t cublas_status_of(CUresult result);

/* Makes the handle's context current; *previous is what was, for cublas_leave. NOT_INITIALIZED:
 * handle is NULL. */
cublasStatus_t cublas_enter(struct cublas_handle *handle, CUcontext *previous);
void cublas_leave(struct cublas_handle *handle, CUcontext previous);

/* A launch of a kernel with one parameter, a struct. */
struct cublas_launch {
    enum cublas_image image;
    char name[32];
    CUstream stream;
    unsigned blocks, batch, threads;
    void *argument;
};
/* Queues it. Enters and leaves. NOT_INITIALIZED, ALLOC_FAILED, ARCH_MISMATCH: the kernels do not
 * load; EXECUTION_FAILED. */
cublasStatus_t cublas_launch(struct cublas_handle *handle, const struct cublas_launch *launch);

/* The address that a kernel writes a result of at most 16 bytes to: the program's, in device
 * pointer mode, or room of the handle's. In host pointer mode results are for one thread at a
 * time, from cublas_result_begin to cublas_result_end, which is called if that succeeded. */
cublasStatus_t cublas_result_begin(struct cublas_handle *handle, const void *to,
                                   CUdeviceptr *address);
/* In host pointer mode waits for the result, and copies it if status is SUCCESS. Returns the first
 * failure. */
cublasStatus_t cublas_result_end(struct cublas_handle *handle, cublasStatus_t status, void *to,
                                 size_t bytes);

/* NOT_SUPPORTED, and the first time a sentence on stderr, which the soft device counts as a
 * refusal. Any thread. */
cublasStatus_t cublas_refuse(const char *name, const char *why);

/* CUBLAS_REFUSED(name) defines an exported function that is not modelled. It reads no argument; the
 * calling conventions of this library's platforms let a function ignore its arguments. */
#define CUBLAS_REFUSED(name)                                                                       \
    CUBLAS_VISIBLE cublasStatus_t name(void);                                                      \
    cublasStatus_t name(void) {                                                                    \
        return cublas_refuse(#name, "this function");                                              \
    }

#endif
