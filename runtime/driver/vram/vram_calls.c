/*
 * The functions of specifications 000 and 002: one driver and one set of devices per process,
 * opened when first needed and kept until it ends. If opening fails, the next call tries again.
 */
#include "tollens/vram.h"

#include "core/context_state.h"
#include "tollens/transfer.h"
#include "once.h"

enum { DEVICES_MAX = 64 };

struct vram_device {
    struct tol_context *context;
    struct tol_once *once;
    struct tol_transfer *transfer;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards what is opened */
static struct tol_driver *driver;
/* Written once, under the lock, and read beside anything. */
static _Atomic(struct vram_device *) opened[DEVICES_MAX];
static struct vram_device devices[DEVICES_MAX];

static _Thread_local int current_device;

static int vram_calls_code_of(tol_status status) {
    switch (status) {
    case TOL_OK:
        return VRAM_OK;
    case TOL_OUT_OF_DEVICE_MEMORY:
    case TOL_OUT_OF_HOST_MEMORY:
        return VRAM_E_ALLOCATION;
    case TOL_INVALID_ARGUMENT:
    case TOL_OUT_OF_RANGE:
        return VRAM_E_INVALID;
    default:
        return VRAM_E_DRIVER;
    }
}

/* The caller holds the lock. */
static tol_status vram_calls_open_driver(void) {
    return driver != NULL ? TOL_OK : tol_driver_open(NULL, &driver);
}

static tol_status vram_calls_open_device(int ordinal, struct vram_device **result) {
    tol_status status = TOL_OK;
    struct vram_device *device = &devices[ordinal];
    TOL_TRY(vram_calls_open_driver());
    if (device->context == NULL) TOL_TRY(tol_context_create(driver, ordinal, &device->context));
    if (device->once == NULL) TOL_TRY(tol_once_create(device->context, 0, &device->once));
    if (device->transfer == NULL) {
        TOL_TRY(tol_transfer_create(device->context, NULL, &device->transfer));
    }
    atomic_store_explicit(&opened[ordinal], device, memory_order_release);
    *result = device;
out:
    return status;
}

/* The calling thread's device, opened. */
static tol_status this_device(struct vram_device **result) {
    *result = atomic_load_explicit(&opened[current_device], memory_order_acquire);
    if (*result != NULL) return TOL_OK;
    pthread_mutex_lock(&lock);
    tol_status status = vram_calls_open_device(current_device, result);
    pthread_mutex_unlock(&lock);
    return status;
}

/* The device whose addresses include this one; NULL: none. */
static struct vram_device *vram_calls_device_of(CUdeviceptr address) {
    for (int i = 0; i < DEVICES_MAX; i++) {
        struct vram_device *device = atomic_load_explicit(&opened[i], memory_order_acquire);
        if (device != NULL && tol_once_has(device->once, address)) return device;
    }
    return NULL;
}

int vram_malloc(void **ptr, size_t bytes) {
    tol_status status = TOL_OK;
    struct vram_device *device = NULL;
    CUdeviceptr address = 0;
    TOL_CHECK(ptr != NULL, TOL_INVALID_ARGUMENT, "vram_malloc: ptr is NULL");
    *ptr = NULL;
    TOL_CHECK(bytes > 0, TOL_INVALID_ARGUMENT, "vram_malloc: bytes is 0");
    status = this_device(&device);
    /* A device that could not be opened fails requests of any size. */
    if (status != TOL_OK) return VRAM_E_DRIVER;
    TOL_TRY(tol_once_allocate(device->once, bytes, &address));
    *ptr = (void *)(uintptr_t)address;
out:
    return vram_calls_code_of(status);
}

int vram_free(void *ptr) {
    tol_status status = TOL_OK;
    enum tol_once_kind kind = TOL_ONCE_FOREIGN;
    if (ptr == NULL) return VRAM_OK;
    const CUdeviceptr address = (CUdeviceptr)(uintptr_t)ptr;
    struct vram_device *device = vram_calls_device_of(address);
    if (device != NULL) TOL_TRY(tol_once_free(device->once, address, &kind));
    TOL_CHECK(kind != TOL_ONCE_FOREIGN, TOL_INVALID_ARGUMENT,
              "vram_free: %p was not returned by vram_malloc", ptr);
out:
    return vram_calls_code_of(status);
}

static int vram_calls_copy(void *dst, const void *src, size_t bytes, bool to_device) {
    tol_status status = TOL_OK;
    struct vram_device *device = NULL;
    struct tol_place place = {0};
    const char *name = to_device ? "vram_memcpy_h2d" : "vram_memcpy_d2h";
    const CUdeviceptr address = (CUdeviceptr)(uintptr_t)(to_device ? dst : src);
    const CUdeviceptr host = (CUdeviceptr)(uintptr_t)(to_device ? src : dst);
    TOL_CHECK(dst != NULL && src != NULL, TOL_INVALID_ARGUMENT, "%s: an argument is NULL", name);
    TOL_CHECK(bytes > 0, TOL_INVALID_ARGUMENT, "%s: bytes is 0", name);
    TOL_CHECK(bytes <= UINTPTR_MAX - address && bytes <= UINTPTR_MAX - host, TOL_OUT_OF_RANGE,
              "%s: %zu bytes exceed the address space", name, bytes);
    TOL_CHECK(vram_calls_device_of(host) == NULL, TOL_INVALID_ARGUMENT,
              "%s: %#llx is a device address where a host address is needed", name, host);
    device = vram_calls_device_of(address);
    TOL_CHECK(device != NULL && tol_once_hold(device->once, address, &place.address, &place.bytes),
              TOL_INVALID_ARGUMENT, "%s: %#llx is in no live allocation", name, address);
    const size_t offset = (size_t)(address - place.address);
    if (bytes > place.bytes - offset) {
        status = tol_fail(__FILE__, __LINE__, TOL_OUT_OF_RANGE,
                          "%s: %zu bytes at offset %zu are not inside an allocation of %zu bytes",
                          name, bytes, offset, place.bytes);
    } else {
        status = to_device ? tol_transfer_write(device->transfer, place, offset, src, bytes)
                           : tol_transfer_read(device->transfer, place, offset, dst, bytes);
        if (status != TOL_OK) {
            tol_once_release(device->once, place.address);
            return VRAM_E_COPY;
        }
    }
    tol_once_release(device->once, place.address);
out:
    return vram_calls_code_of(status);
}

int vram_memcpy_h2d(void *dst, const void *src, size_t bytes) {
    return vram_calls_copy(dst, src, bytes, true);
}

int vram_memcpy_d2h(void *dst, const void *src, size_t bytes) {
    return vram_calls_copy(dst, src, bytes, false);
}

int vram_get_info(size_t *free_bytes, size_t *total_bytes) {
    tol_status status = TOL_OK;
    struct vram_device *device = NULL;
    TOL_CHECK(free_bytes != NULL && total_bytes != NULL, TOL_INVALID_ARGUMENT,
              "vram_get_info: an argument is NULL");
    if (this_device(&device) != TOL_OK) return VRAM_E_DRIVER;
    if (tol_context_memory(device->context, free_bytes, total_bytes) != TOL_OK) {
        return VRAM_E_DRIVER;
    }
out:
    return vram_calls_code_of(status);
}

/* How many of them can be used here. */
static tol_status vram_calls_count_devices(int *count) {
    int found = 0;
    pthread_mutex_lock(&lock);
    tol_status status = vram_calls_open_driver();
    pthread_mutex_unlock(&lock);
    if (status == TOL_OK) status = tol_device_count(driver, &found);
    *count = found < DEVICES_MAX ? found : DEVICES_MAX;
    return status;
}

int vram_set_device(int device) {
    tol_status status = TOL_OK;
    int count = 0;
    if (vram_calls_count_devices(&count) != TOL_OK) return VRAM_E_DRIVER;
    TOL_CHECK(device >= 0 && device < count, TOL_INVALID_ARGUMENT,
              "vram_set_device: device %d does not exist: the driver reports %d devices", device,
              count);
    current_device = device;
out:
    return vram_calls_code_of(status);
}

int vram_get_device_count(int *count) {
    tol_status status = TOL_OK;
    TOL_CHECK(count != NULL, TOL_INVALID_ARGUMENT, "vram_get_device_count: an argument is NULL");
    if (vram_calls_count_devices(count) != TOL_OK) return VRAM_E_DRIVER;
out:
    return vram_calls_code_of(status);
}
