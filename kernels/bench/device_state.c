/*
 * Three functions of libnvidia-ml, which the runtime has opened.
 */
#include "device_state.h"

#include "core/library.h"
#include "health/nvml.h"

#include <stdio.h>

enum { SUCCESS = 0, CLOCK_SM = 1, CLOCK_MEMORY = 2, TEMPERATURE_GPU = 0 };

struct calls {
    int (*clock)(void *device, int type, unsigned *mhz);
    int (*power)(void *device, unsigned *milliwatts);
    int (*temperature)(void *device, int sensor, unsigned *celsius);
};

static int device_state_clock_of(const struct calls *calls, void *device, int type) {
    unsigned mhz = 0;
    return calls->clock != NULL && calls->clock(device, type, &mhz) == SUCCESS ? (int)mhz : -1;
}

bool kn_device_state_read(const struct tol_device *device, struct kn_device_state *state) {
    void *library = NULL, *handle = NULL;
    char reason[200];
    struct calls calls = {NULL, NULL, NULL};
    unsigned value = 0;
    *state = (struct kn_device_state){-1, -1, -1, -1};
    if (!tol_nvml_find(device->pci_bus_id, device->name, &library, &handle, reason,
                       sizeof reason)) {
        return false;
    }
    tol_library_find(library, "nvmlDeviceGetClockInfo", &calls.clock, sizeof calls.clock);
    tol_library_find(library, "nvmlDeviceGetPowerUsage", &calls.power, sizeof calls.power);
    tol_library_find(library, "nvmlDeviceGetTemperature", &calls.temperature,
                     sizeof calls.temperature);
    state->sm_mhz = device_state_clock_of(&calls, handle, CLOCK_SM);
    state->memory_mhz = device_state_clock_of(&calls, handle, CLOCK_MEMORY);
    if (calls.power != NULL && calls.power(handle, &value) == SUCCESS) state->watts = value * 1e-3;
    if (calls.temperature != NULL &&
        calls.temperature(handle, TEMPERATURE_GPU, &value) == SUCCESS) {
        state->celsius = (int)value;
    }
    return true;
}

void kn_device_state_say(const struct kn_device_state *before, const struct kn_device_state *after,
                         char *text, size_t bytes) {
    snprintf(text, bytes,
             "clock %d to %d MHz, memory %d to %d MHz, power %.1f to %.1f W, %d to %d C",
             before->sm_mhz, after->sm_mhz, before->memory_mhz, after->memory_mhz, before->watts,
             after->watts, before->celsius, after->celsius);
}
