/*
 * Threads, their contexts and their errors.
 */
#include "cudart_thread.h"

#include <pthread.h>
#include <stdatomic.h>

enum { DEVICES_MAX = 64 };

_Thread_local struct cudart_thread cudart_thread;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static CUcontext primaries[DEVICES_MAX]; /* retained by this library */
static atomic_ulong resets;

static bool is_sticky(cudaError_t error) {
    switch (error) {
    case cudaErrorContained:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorTensorMemoryLeak:
    case cudaErrorExternalDevice:
        return true;
    default:
        return false;
    }
}

void cudart_begin(bool own_default, const void *site) {
    cudart_thread.own_default = own_default;
    /* The call itself reports a driver that cannot be opened. */
    if (cudart_driver_ready() == cudaSuccess && cudart_driver_site != NULL) {
        cudart_driver_site(site);
    }
}

cudaError_t cudart_end(cudaError_t error) {
    cudart_thread.own_default = false;
    if (cudart_driver_site != NULL) cudart_driver_site(NULL);
    if (error != cudaSuccess && !is_sticky(cudart_thread.last)) cudart_thread.last = error;
    return error;
}

cudaError_t cudart_take_last(void) {
    const cudaError_t last = cudart_thread.last;
    if (!is_sticky(last)) cudart_thread.last = cudaSuccess;
    return last;
}

static cudaError_t thread_check_device(int device) {
    int count = 0;
    cudaError_t error = CU_PLAIN(cuDeviceGetCount, (&count));
    if (error != cudaSuccess) return error;
    return device < 0 || device >= count || device >= DEVICES_MAX ? cudaErrorInvalidDevice
                                                                  : cudaSuccess;
}

cudaError_t cudart_primary(int device, CUcontext *context) {
    cudaError_t error = thread_check_device(device);
    if (error != cudaSuccess) return error;
    pthread_mutex_lock(&lock);
    if (primaries[device] == NULL) {
        CUcontext retained = NULL;
        error = (cudaError_t)CU(cuDevicePrimaryCtxRetain)(&retained, device);
        if (error == cudaSuccess) primaries[device] = retained;
    }
    *context = primaries[device];
    pthread_mutex_unlock(&lock);
    return error;
}

cudaError_t cudart_set_device(int device) {
    CUcontext context = NULL;
    cudaError_t error = cudart_primary(device, &context);
    if (error == cudaSuccess) error = (cudaError_t)CU(cuCtxSetCurrent)(context);
    if (error == cudaSuccess) cudart_thread.device = device;
    return error;
}

/* Whether a context is one that this library retained, and of which device. */
static bool is_primary(CUcontext context, int *device) {
    pthread_mutex_lock(&lock);
    int i = 0;
    while (i < DEVICES_MAX && primaries[i] != context) i++;
    pthread_mutex_unlock(&lock);
    if (i < DEVICES_MAX) *device = i;
    return i < DEVICES_MAX;
}

/* The current context; NULL: there is none, or it is a primary one from before a reset. */
static cudaError_t thread_find_current(CUcontext *context) {
    const unsigned long count = atomic_load(&resets);
    cudaError_t error = CU_PLAIN(cuCtxGetCurrent, (context));
    if (error != cudaSuccess || cudart_thread.reset == count) return error;
    cudart_thread.reset = count;
    int device = 0;
    if (*context != NULL && !is_primary(*context, &device)) *context = NULL;
    return cudaSuccess;
}

cudaError_t cudart_context(void) {
    CUcontext context = NULL;
    cudaError_t error = thread_find_current(&context);
    if (error == cudaSuccess && context == NULL) error = cudart_set_device(cudart_thread.device);
    cudart_thread.failure = error;
    return error;
}

cudaError_t cudart_get_device(int *device) {
    CUcontext context = NULL;
    cudaError_t error = thread_find_current(&context);
    if (error != cudaSuccess) return error;
    *device = cudart_thread.device;
    if (context == NULL) return thread_check_device(*device);
    /* For a primary context it is known, even if the context is lost. */
    return is_primary(context, device) ? cudaSuccess : (cudaError_t)CU(cuCtxGetDevice)(device);
}

cudaError_t cudart_reset(void) {
    int device = 0;
    cudaError_t error = cudart_get_device(&device);
    if (error != cudaSuccess) return error;
    pthread_mutex_lock(&lock);
    error = (cudaError_t)CU(cuDevicePrimaryCtxReset_v2)(device);
    if (primaries[device] != NULL) CU(cuDevicePrimaryCtxRelease_v2)(device);
    primaries[device] = NULL;
    atomic_fetch_add(&resets, 1);
    pthread_mutex_unlock(&lock);
    cudart_thread.last = cudaSuccess;
    cudart_thread.device = device;
    (void)CU(cuCtxSetCurrent)(NULL);
    return error;
}
