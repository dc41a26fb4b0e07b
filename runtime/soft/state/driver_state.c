/*
 * The lock, and the devices.
 */
#include "driver_state.h"

#include "base/options.h"

pthread_mutex_t soft_lock = PTHREAD_MUTEX_INITIALIZER;

static struct soft_device devices[SOFT_DEVICES_MAX];
static _Atomic bool initialized;

static _Atomic bool forked;

static void note_fork(void) {
    forked = true;
}

bool soft_state_is_forked(void) {
    return forked;
}

CUresult soft_state_check(void) {
    return initialized && !forked ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

void soft_state_ready(void) {
    if (!initialized) pthread_atfork(NULL, NULL, note_fork);
    initialized = true;
}

struct soft_device *soft_device_of(CUdevice device) {
    bool known = device >= 0 && device < soft_options()->devices;
    return known ? &devices[device] : NULL;
}

bool soft_device_charge(struct soft_device *device, uint64_t bytes) {
    pthread_mutex_lock(&soft_lock);
    bool fits = bytes <= device->memory_given - device->memory_used;
    if (fits) device->memory_used += bytes;
    pthread_mutex_unlock(&soft_lock);
    return fits;
}

void soft_device_refund(struct soft_device *device, uint64_t bytes) {
    pthread_mutex_lock(&soft_lock);
    device->memory_used -= bytes;
    pthread_mutex_unlock(&soft_lock);
}
