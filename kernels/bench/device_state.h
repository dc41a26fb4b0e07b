/*
 * The state that a device is timed in: clocks, power, temperature, by the vendor's management
 * library where it is installed (NVML API Reference; TOLLENS_LIBNVML names another library).
 *
 * Internal: not installed.
 */
#ifndef KN_DEVICE_STATE_H
#define KN_DEVICE_STATE_H

#include "tollens.h"

#include <stddef.h>

struct kn_device_state {
    int sm_mhz, memory_mhz; /* now; -1, here and below: not reported */
    int celsius;
    double watts;
};

/* Reads it. False: there is no NVML, or it knows no such device; *state has -1 throughout. Takes
 * about a millisecond. Any thread. */
bool kn_device_state_read(const struct tol_device *device, struct kn_device_state *state);

/* "clock 345 to 1980 MHz, memory 2619 to 2619 MHz, power 71.2 to 655.0 W, 31 to 58 C". Cut to
 * bytes. */
void kn_device_state_say(const struct kn_device_state *before, const struct kn_device_state *after,
                         char *text, size_t bytes);

#endif
