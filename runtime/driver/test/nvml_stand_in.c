/*
 * A stand-in for libnvidia-ml.so.1, for tests: it answers what TOLLENS_TEST_NVML says, in words
 * such as "free=1024 used=2048 process=512 ecc=0 celsius=40". What is not in it is not supported.
 * "name=..." is last and extends to the end; "init=999" is the status of initialisation, and
 * "others=100" the number of other processes.
 */
#include "tollens/cuda_nvml.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum { SUCCESS = 0, NOT_SUPPORTED = 3, NOT_FOUND = 6, TOO_SMALL = 7 };

int nvmlInit_v2(void);
int nvmlDeviceGetHandleByPciBusId_v2(const char *pci_bus_id, void **device);
int nvmlDeviceGetName(void *device, char *name, unsigned bytes);
int nvmlDeviceGetMemoryInfo_v2(void *device, struct cuda_nvml_memory_v2 *memory);
int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius);
int nvmlDeviceGetTotalEccErrors(void *device, int type, int counter, unsigned long long *count);
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count,
                                            struct cuda_nvml_process *processes);
const char *nvmlErrorString(int result);

/* The text after "word="; NULL if it is not there. */
static const char *find(const char *word) {
    const char *text = getenv("TOLLENS_TEST_NVML");
    const char *at = text != NULL ? strstr(text, word) : NULL;
    return at != NULL ? at + strlen(word) : NULL;
}

static int number(const char *word, unsigned long long *value) {
    const char *text = find(word);
    if (text != NULL) *value = strtoull(text, NULL, 10);
    return text != NULL ? SUCCESS : NOT_SUPPORTED;
}

EXPORT int nvmlInit_v2(void) {
    unsigned long long code = SUCCESS;
    number("init=", &code);
    return (int)code;
}

EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char *pci_bus_id, void **device) {
    if (strlen(pci_bus_id) < strlen("0000:00:00.0")) return NOT_FOUND;
    *device = (void *)find("");
    return SUCCESS;
}

EXPORT int nvmlDeviceGetName(void *device, char *name, unsigned bytes) {
    const char *text = find("name=");
    (void)device;
    snprintf(name, bytes, "%s", text != NULL ? text : "a GPU");
    return SUCCESS;
}

/* Like the real library, it rejects an unknown version. */
EXPORT int nvmlDeviceGetMemoryInfo_v2(void *device, struct cuda_nvml_memory_v2 *memory) {
    (void)device;
    if (memory->version != (sizeof *memory | 2u << 24)) return NOT_SUPPORTED;
    if (number("free=", &memory->free) != SUCCESS) return NOT_SUPPORTED;
    return number("used=", &memory->used);
}

EXPORT int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius) {
    unsigned long long value = 0;
    (void)device;
    if (sensor != 0 || number("celsius=", &value) != SUCCESS) return NOT_SUPPORTED;
    *celsius = (unsigned)value;
    return SUCCESS;
}

/* Errors that were corrected are many, and no news. */
EXPORT int nvmlDeviceGetTotalEccErrors(void *device, int type, int counter,
                                       unsigned long long *count) {
    (void)device;
    if (type != 1 || counter != 0) {
        *count = 77;
        return SUCCESS;
    }
    return number("ecc=", count);
}

EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count,
                                                   struct cuda_nvml_process *processes) {
    unsigned long long others = 0, bytes = ~0ull;
    const unsigned room = *count;
    const int is_listed = number("process=", &bytes) == SUCCESS;
    (void)device;
    number("others=", &others);
    *count = (unsigned)others + (is_listed ? 1 : 0);
    if (*count > room) return TOO_SMALL;
    for (unsigned i = 0; i < *count; i++) {
        processes[i] = (struct cuda_nvml_process){1, 1 << 20, ~0u, ~0u};
    }
    if (is_listed)
        processes[others] = (struct cuda_nvml_process){(unsigned)getpid(), bytes, ~0u, ~0u};
    return SUCCESS;
}

/* Clocks: 1 is that of the multiprocessors, 2 that of the memory. */
int nvmlDeviceGetClockInfo(void *device, int type, unsigned *mhz);
int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts);

static int small_number(const char *word, unsigned *value) {
    unsigned long long large = 0;
    const int result = number(word, &large);
    if (result == SUCCESS) *value = (unsigned)large;
    return result;
}

EXPORT int nvmlDeviceGetClockInfo(void *device, int type, unsigned *mhz) {
    (void)device;
    if (type != 1 && type != 2) return NOT_SUPPORTED;
    return small_number(type == 1 ? "sm_mhz=" : "memory_mhz=", mhz);
}

EXPORT int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts) {
    (void)device;
    return small_number("milliwatts=", milliwatts);
}

/* ---- links ---- */

struct field {
    unsigned id, scope;
    long long timestamp_us, latency_us;
    int type, result;
    unsigned long long value;
};

int nvmlDeviceGetCurrPcieLinkGeneration(void *device, unsigned *value);
int nvmlDeviceGetCurrPcieLinkWidth(void *device, unsigned *value);
int nvmlDeviceGetMaxPcieLinkGeneration(void *device, unsigned *value);
int nvmlDeviceGetMaxPcieLinkWidth(void *device, unsigned *value);
int nvmlDeviceGetNvLinkState(void *device, unsigned link, unsigned *is_active);
int nvmlDeviceGetNvLinkVersion(void *device, unsigned link, unsigned *value);
int nvmlDeviceGetFieldValues(void *device, int count, struct field *fields);

EXPORT int nvmlDeviceGetCurrPcieLinkGeneration(void *device, unsigned *value) {
    (void)device;
    return small_number("generation=", value);
}

EXPORT int nvmlDeviceGetCurrPcieLinkWidth(void *device, unsigned *value) {
    (void)device;
    return small_number("width=", value);
}

EXPORT int nvmlDeviceGetMaxPcieLinkGeneration(void *device, unsigned *value) {
    (void)device;
    return small_number("generation_max=", value);
}

EXPORT int nvmlDeviceGetMaxPcieLinkWidth(void *device, unsigned *value) {
    (void)device;
    return small_number("width_max=", value);
}

/* Links with an even number are active. */
EXPORT int nvmlDeviceGetNvLinkState(void *device, unsigned link, unsigned *is_active) {
    unsigned links = 0;
    (void)device;
    if (small_number("nvlinks=", &links) != SUCCESS) return NOT_SUPPORTED;
    *is_active = link % 2 == 0 && link / 2 < links;
    return SUCCESS;
}

EXPORT int nvmlDeviceGetNvLinkVersion(void *device, unsigned link, unsigned *value) {
    (void)device, (void)link;
    return small_number("nvlink_version=", value);
}

/* Like the real library, it succeeds and reports for each field whether it is there. */
EXPORT int nvmlDeviceGetFieldValues(void *device, int count, struct field *fields) {
    enum { COMMON = 90, SENT = 138, RECEIVED = 139, SPEED = 164 };
    enum { UNSIGNED = 1, UNSIGNED_LONG_LONG = 3, FAST = 16 };
    (void)device;
    for (int i = 0; i < count; i++) {
        struct field *field = &fields[i];
        const bool is_speed = field->id == COMMON || field->id == SPEED;
        const char *word = field->id == COMMON                            ? "nvlink_mbps="
                           : field->id == SPEED && field->scope < FAST    ? "each_mbps="
                           : field->id == SPEED                           ? "last_mbps="
                           : field->id == SENT && field->scope == ~0u     ? "sent="
                           : field->id == RECEIVED && field->scope == ~0u ? "received="
                                                                          : "no such field";
        field->type = is_speed ? UNSIGNED : UNSIGNED_LONG_LONG;
        field->result = number(word, &field->value);
    }
    return SUCCESS;
}

EXPORT const char *nvmlErrorString(int result) {
    return result == 999 ? "Unknown Error" : "Success";
}
