/*
 * NVML: reads device data from the vendor's management library, if it is installed.
 *
 * The library is opened by name on first use, declared by hand, never linked and never closed. The
 * device is found by its PCI address and must have the name that the driver reports, so that a soft
 * device is not mistaken for a GPU in the same machine. Thread-safe.
 *
 * Source: NVML API Reference; D-38.
 */
#ifndef TOLLENS_NVML_H
#define TOLLENS_NVML_H

#include <stddef.h>
#include <stdint.h>

struct tol_nvml {
    int64_t free_bytes, used_bytes; /* -1, here and below: not reported */
    int64_t process_bytes;          /* of this process */
    int64_t ecc_uncorrected;
    int temperature_celsius;
};

/* Finds the device. *library and *device are for calls of NVML's own functions. Returns and reason
 * as below. */
int tol_nvml_find(const char *pci_bus_id, const char *name, void **library, void **device,
                  char *reason, size_t reason_bytes);

/* Reads the data. Returns 0 if there is no such library or device; reason (cut to reason_bytes)
 * says why. */
int tol_nvml_ask(const char *pci_bus_id, const char *name, struct tol_nvml *nvml, char *reason,
                 size_t reason_bytes);

#endif
