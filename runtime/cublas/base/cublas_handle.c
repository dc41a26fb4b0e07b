/*
 * Handles: the driver, contexts, kernels, results.
 */
#include "cublas_handle.h"

#include "kernel_image.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RESULT_BYTES = 16 };

KN_IMAGES(blas_product_real);
KN_IMAGES(blas_product_complex);
KN_IMAGES(blas_sum);
KN_IMAGES(blas_reduce);
static const struct kn_image *const handle_images[CUBLAS_IMAGES] = {
    [CUBLAS_PRODUCT_REAL] = kn_images_blas_product_real,
    [CUBLAS_PRODUCT_COMPLEX] = kn_images_blas_product_complex,
    [CUBLAS_SUM] = kn_images_blas_sum,
    [CUBLAS_REDUCE] = kn_images_blas_reduce};

/* ---- the driver ---- */

static pthread_once_t handle_once = PTHREAD_ONCE_INIT;
static struct tol_driver *handle_driver; /* NULL: none could be opened */
static void (*handle_site)(const void *site);
static void (*handle_refusal)(const char *text);

/* Only the soft device exports these. */
static void handle_find_soft(void) {
    void *library = dlopen(tol_driver_path(handle_driver), RTLD_NOW | RTLD_NOLOAD);
    if (library == NULL) return;
    void *site = dlsym(library, "tollens_soft_call_site"),
         *refusal = dlsym(library, "tollens_soft_refusal");
    memcpy(&handle_site, &site, sizeof site);
    memcpy(&handle_refusal, &refusal, sizeof refusal);
}

static void handle_open_driver(void) {
    if (tol_driver_open(NULL, &handle_driver) == TOL_OK) handle_find_soft();
}

static const struct tol_driver_table *handle_driver_table(void) {
    pthread_once(&handle_once, handle_open_driver);
    return handle_driver != NULL ? tol_driver_functions(handle_driver) : NULL;
}

void cublas_begin(const void *site) {
    if (handle_driver_table() != NULL && handle_site != NULL) handle_site(site);
}

cublasStatus_t cublas_end(cublasStatus_t status) {
    if (handle_site != NULL) handle_site(NULL);
    return status;
}

/* Notes a text, and says whether it is new. Those after the first TOLD_MAX always are. */
static bool handle_is_new(const char *text) {
    enum { TOLD_MAX = 64 };
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static char *told[TOLD_MAX];
    static int count;
    int i = 0;
    pthread_mutex_lock(&lock);
    while (i < count && strcmp(told[i], text) != 0) i++;
    const bool is_new = i == count;
    if (is_new && count < TOLD_MAX && (told[count] = strdup(text)) != NULL) count++;
    pthread_mutex_unlock(&lock);
    return is_new;
}

cublasStatus_t cublas_refuse(const char *name, const char *why) {
    char text[256];
    snprintf(text, sizeof text, "%s: %s is not supported\n", name, why);
    if (!handle_is_new(text)) return CUBLAS_STATUS_NOT_SUPPORTED;
    fprintf(stderr, "tollens-cublas: %s", text);
    if (handle_driver_table() != NULL && handle_refusal != NULL) handle_refusal(text);
    return CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublas_status_of(CUresult result) {
    switch (result) {
    case CUDA_SUCCESS:
        return CUBLAS_STATUS_SUCCESS;
    case CUDA_ERROR_NOT_INITIALIZED:
    case CUDA_ERROR_DEINITIALIZED:
    case CUDA_ERROR_NO_DEVICE:
        return CUBLAS_STATUS_NOT_INITIALIZED;
    case CUDA_ERROR_OUT_OF_MEMORY:
        return CUBLAS_STATUS_ALLOC_FAILED;
    case CUDA_ERROR_INVALID_VALUE:
        return CUBLAS_STATUS_INVALID_VALUE;
    default:
        return CUBLAS_STATUS_EXECUTION_FAILED;
    }
}

/* ---- handles ---- */

cublasStatus_t cublas_find_context(const struct tol_driver_table **driver, CUcontext *context) {
    const struct tol_driver_table *table = handle_driver_table();
    CUdevice device = 0;
    if (table == NULL) return CUBLAS_STATUS_NOT_INITIALIZED;
    *driver = table;
    CUresult result = table->cuCtxGetCurrent(context);
    if (result != CUDA_SUCCESS || *context != NULL) return cublas_status_of(result);
    result = table->cuDeviceGet(&device, 0);
    if (result == CUDA_SUCCESS) result = table->cuDevicePrimaryCtxRetain(context, device);
    if (result == CUDA_SUCCESS) result = table->cuCtxSetCurrent(*context);
    return cublas_status_of(result);
}

/* Those of the first device: they only determine how large grids are. */
static CUresult handle_count_processors(const struct tol_driver_table *driver, int *count) {
    CUdevice device = 0;
    const CUresult result = driver->cuDeviceGet(&device, 0);
    return result != CUDA_SUCCESS ? result
                                  : driver->cuDeviceGetAttribute(
                                        count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
}

cublasStatus_t cublas_handle_create(struct cublas_handle **handle) {
    const struct tol_driver_table *driver = NULL;
    CUcontext context = NULL;
    int processors = 0;
    if (handle == NULL) return CUBLAS_STATUS_INVALID_VALUE;
    *handle = NULL;
    cublasStatus_t status = cublas_find_context(&driver, &context);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = cublas_status_of(handle_count_processors(driver, &processors));
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    struct cublas_handle *made = calloc(1, sizeof *made);
    if (made == NULL) return CUBLAS_STATUS_ALLOC_FAILED;
    made->driver = driver;
    made->context = context;
    made->processors = (unsigned)processors;
    pthread_mutex_init(&made->lock, NULL);
    *handle = made;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublas_handle_destroy(struct cublas_handle *handle) {
    CUcontext previous = NULL;
    if (handle == NULL) return CUBLAS_STATUS_NOT_INITIALIZED;
    if (cublas_enter(handle, &previous) == CUBLAS_STATUS_SUCCESS) {
        (void)handle->driver->cuCtxSynchronize(); /* unloading does not wait for kernels */
        for (int i = 0; i < CUBLAS_IMAGES; i++) {
            if (handle->modules[i] != NULL)
                (void)handle->driver->cuModuleUnload(handle->modules[i]);
        }
        if (handle->result != 0) (void)handle->driver->cuMemFree_v2(handle->result);
        cublas_leave(handle, previous);
    }
    pthread_mutex_destroy(&handle->lock);
    free(handle);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublas_enter(struct cublas_handle *handle, CUcontext *previous) {
    if (handle == NULL) return CUBLAS_STATUS_NOT_INITIALIZED;
    CUresult result = handle->driver->cuCtxGetCurrent(previous);
    if (result == CUDA_SUCCESS && *previous != handle->context)
        result = handle->driver->cuCtxSetCurrent(handle->context);
    return cublas_status_of(result);
}

void cublas_leave(struct cublas_handle *handle, CUcontext previous) {
    /* A thread without a context keeps this one, as after a call of the CUDA runtime. */
    if (previous != NULL && previous != handle->context)
        (void)handle->driver->cuCtxSetCurrent(previous);
}

/* ---- kernels ---- */

/* What a thread may not call while a stream is captured in the usual mode, and which concerns no
 * stream here: before and after it, the thread's mode is exchanged. */
static void handle_exchange(const struct cublas_handle *handle, CUstreamCaptureMode *mode) {
    if (handle->driver->cuThreadExchangeStreamCaptureMode != NULL)
        (void)handle->driver->cuThreadExchangeStreamCaptureMode(mode);
}

static cublasStatus_t handle_load(struct cublas_handle *handle, enum cublas_image image) {
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    char *text = NULL;
    if (kn_image_unpack(&handle_images[image][0], &text) != TOL_OK)
        return CUBLAS_STATUS_ALLOC_FAILED;
    handle_exchange(handle, &mode);
    const CUresult result = handle->driver->cuModuleLoadData(&handle->modules[image], text);
    handle_exchange(handle, &mode);
    free(text);
    if (result == CUDA_SUCCESS) return CUBLAS_STATUS_SUCCESS;
    handle->modules[image] = NULL;
    return result == CUDA_ERROR_INVALID_PTX || result == CUDA_ERROR_NO_BINARY_FOR_GPU
               ? CUBLAS_STATUS_ARCH_MISMATCH
               : cublas_status_of(result);
}

static cublasStatus_t handle_find(struct cublas_handle *handle, const struct cublas_launch *launch,
                                  CUfunction *function) {
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
    pthread_mutex_lock(&handle->lock);
    if (handle->modules[launch->image] == NULL) status = handle_load(handle, launch->image);
    pthread_mutex_unlock(&handle->lock);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    return cublas_status_of(handle->driver->cuModuleGetFunction(
        function, handle->modules[launch->image], launch->name));
}

cublasStatus_t cublas_launch(struct cublas_handle *handle, const struct cublas_launch *launch) {
    CUfunction function = NULL;
    CUcontext previous = NULL;
    void *parameters[] = {launch->argument};
    cublasStatus_t status = cublas_enter(handle, &previous);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    status = handle_find(handle, launch, &function);
    if (status == CUBLAS_STATUS_SUCCESS) {
        const CUresult result = handle->driver->cuLaunchKernel(
            function, launch->blocks, launch->batch, 1, launch->threads, 1, 1, 0, launch->stream,
            parameters, NULL);
        if (result != CUDA_SUCCESS) status = CUBLAS_STATUS_EXECUTION_FAILED;
    }
    cublas_leave(handle, previous);
    return status;
}

/* ---- results ---- */

cublasStatus_t cublas_result_begin(struct cublas_handle *handle, const void *to,
                                   CUdeviceptr *address) {
    CUcontext previous = NULL;
    if (handle == NULL) return CUBLAS_STATUS_NOT_INITIALIZED;
    if (to == NULL) return CUBLAS_STATUS_INVALID_VALUE;
    *address = (CUdeviceptr)(uintptr_t)to;
    if (handle->pointer_mode == CUBLAS_POINTER_MODE_DEVICE) return CUBLAS_STATUS_SUCCESS;
    cublasStatus_t status = cublas_enter(handle, &previous);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    pthread_mutex_lock(&handle->lock);
    if (handle->result == 0)
        status = cublas_status_of(handle->driver->cuMemAlloc_v2(&handle->result, RESULT_BYTES));
    pthread_mutex_unlock(&handle->lock);
    *address = handle->result;
    cublas_leave(handle, previous);
    return status;
}

cublasStatus_t cublas_result_end(struct cublas_handle *handle, cublasStatus_t status, void *to,
                                 size_t bytes) {
    CUcontext previous = NULL;
    if (status != CUBLAS_STATUS_SUCCESS || handle->pointer_mode == CUBLAS_POINTER_MODE_DEVICE)
        return status;
    status = cublas_enter(handle, &previous);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    CUresult result =
        handle->driver->cuMemcpyDtoHAsync_v2(to, handle->result, bytes, handle->stream);
    if (result == CUDA_SUCCESS) result = handle->driver->cuStreamSynchronize(handle->stream);
    cublas_leave(handle, previous);
    return result == CUDA_SUCCESS ? status : CUBLAS_STATUS_EXECUTION_FAILED;
}
