/*
 * Creates the devices, each with its memory pools.
 */
#include "driver_start.h"

#include "driver_state.h"
#include "fault.h"
#include "memory_pool.h"
#include "base/options.h"

/* The caller holds soft_lock. */
static CUresult driver_start_begin_device(int ordinal) {
    static struct soft_context primaries[SOFT_DEVICES_MAX];
    struct soft_device *device = soft_device_of(ordinal);
    *device = (struct soft_device){.ordinal = ordinal,
                                   .memory_bytes = soft_options()->memory_bytes,
                                   .primary = &primaries[ordinal]};
    device->memory_given = soft_fault_budget(ordinal, device->memory_bytes);
    device->primary->device = device;
    const CUmemPoolProps usual = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                  .location = {CU_MEM_LOCATION_TYPE_DEVICE, ordinal}};
    device->usual_pool = device->pool = soft_pool_new(device, &usual);
    device->graph_pool = soft_pool_new(device, &usual);
    if (device->pool == NULL || device->graph_pool == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    device->graph_pool->threshold = UINT64_MAX; /* until it is trimmed */
    return CUDA_SUCCESS;
}

CUresult soft_state_init(void) {
    if (soft_state_is_forked()) return CUDA_ERROR_NOT_INITIALIZED;
    if (soft_options()->devices == 0) return CUDA_ERROR_NO_DEVICE; /* CUDA_VISIBLE_DEVICES */
    CUresult result = soft_fault_state();
    if (result != CUDA_SUCCESS) return result;
    pthread_mutex_lock(&soft_lock);
    bool first = soft_state_check() != CUDA_SUCCESS;
    if (first && !soft_space_open()) result = CUDA_ERROR_OUT_OF_MEMORY;
    for (int i = 0; first && result == CUDA_SUCCESS && i < soft_options()->devices; i++) {
        result = driver_start_begin_device(i);
    }
    if (result == CUDA_SUCCESS) soft_state_ready();
    pthread_mutex_unlock(&soft_lock);
    return result;
}
