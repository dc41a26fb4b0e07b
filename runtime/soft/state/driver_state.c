/*
 * Initialisation and devices.
 */
#include "driver_state.h"

#include "driver/fault.h"
#include "driver/leak.h"
#include "memory_pool.h"
#include "base/options.h"

pthread_mutex_t soft_lock = PTHREAD_MUTEX_INITIALIZER;

static struct soft_device devices[SOFT_DEVICES_MAX];
static struct soft_context primaries[SOFT_DEVICES_MAX];
static _Atomic bool initialized;

CUresult soft_state_check(void) {
    return initialized ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

CUresult soft_state_init(void) {
    CUresult result = soft_fault_state();
    if (result != CUDA_SUCCESS) return result;
    pthread_mutex_lock(&soft_lock);
    if (!initialized && !soft_space_open()) result = CUDA_ERROR_OUT_OF_MEMORY;
    for (int i = 0; !initialized && result == CUDA_SUCCESS && i < soft_options()->devices; i++) {
        devices[i] = (struct soft_device){
            .ordinal = i, .memory_bytes = soft_options()->memory_bytes, .primary = &primaries[i]};
        devices[i].memory_given = soft_fault_budget(i, devices[i].memory_bytes);
        primaries[i].device = &devices[i];
        const CUmemPoolProps usual = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = {CU_MEM_LOCATION_TYPE_DEVICE, i}};
        devices[i].usual_pool = devices[i].pool = soft_pool_new(&devices[i], &usual);
        devices[i].graph_pool = soft_pool_new(&devices[i], &usual);
        if (devices[i].pool == NULL || devices[i].graph_pool == NULL) {
            result = CUDA_ERROR_OUT_OF_MEMORY;
        } else {
            devices[i].graph_pool->threshold = UINT64_MAX; /* until it is trimmed */
        }
    }
    if (result == CUDA_SUCCESS && !initialized) soft_leak_watch_exit();
    if (result == CUDA_SUCCESS) initialized = true;
    pthread_mutex_unlock(&soft_lock);
    return result;
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
