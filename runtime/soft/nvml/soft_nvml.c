/*
 * NVML for the soft device: programs that look for devices with NVML, such as PyTorch, find those
 * that CUDA finds. Source: NVML API Reference 580, and nvml.h's public structures.
 *
 * NVML numbers devices without CUDA_VISIBLE_DEVICES, and needs neither cuInit nor a context, so a
 * process may fork after it used NVML. Of memory it tells what this process has, because each
 * process has soft devices of its own. There are no sensors: temperature, power, clocks and
 * utilisation are not supported, as everything in soft_nvml.def.
 */
#include "api/export.h"
#include "base/options.h"
#include "state/driver_state.h"
#include "tollens/cuda_nvml.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum {
    NVML_SUCCESS = 0,
    NVML_ERROR_UNINITIALIZED = 1,
    NVML_ERROR_INVALID_ARGUMENT = 2,
    NVML_ERROR_NOT_SUPPORTED = 3,
    NVML_ERROR_NOT_FOUND = 6,
    NVML_ERROR_INSUFFICIENT_SIZE = 7,
    NVML_ERROR_ARGUMENT_VERSION_MISMATCH = 25
};

struct nvml_device {
    int hardware; /* its number without CUDA_VISIBLE_DEVICES */
};

struct nvml_pci {
    char legacy_id[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char id[32];
};
/* As the versions before knew it; programs have no room for more. */
struct nvml_pci_v2 {
    char id[16];
    unsigned domain, bus, device, device_id, subsystem_id, reserved[4];
};
struct nvml_pci_v1 {
    char id[16];
    unsigned domain, bus, device, device_id;
};

struct nvml_process_v1 {
    unsigned pid;
    unsigned long long bytes;
};

static struct nvml_device nvml_devices[] = {{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}};
_Static_assert(sizeof nvml_devices / sizeof nvml_devices[0] == SOFT_OPTIONS_DEVICES_MAX,
               "a handle for each device");
static _Atomic unsigned nvml_users; /* calls of nvmlInit without their nvmlShutdown */

#define NVML(name, parameters)                                                                     \
    SOFT_VISIBLE int name parameters;                                                              \
    int name parameters

/* The first check of every function, and that what it writes is there. */
static int nvml_begin(const void *answer) {
    if (nvml_users == 0) return NVML_ERROR_UNINITIALIZED;
    return answer != NULL ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

static int nvml_begin_device(const struct nvml_device *device, const void *answer) {
    const int result = nvml_begin(answer);
    if (result != NVML_SUCCESS) return result;
    for (int i = 0; i < soft_options()->all_devices; i++) {
        if (device == &nvml_devices[i]) return NVML_SUCCESS;
    }
    return NVML_ERROR_INVALID_ARGUMENT;
}

static int nvml_put(char *to, unsigned bytes, const char *text) {
    if (strlen(text) >= bytes) return NVML_ERROR_INSUFFICIENT_SIZE;
    snprintf(to, bytes, "%s", text);
    return NVML_SUCCESS;
}

/* ---- the library ---- */

NVML(nvmlInit_v2, (void)) {
    nvml_users++;
    return NVML_SUCCESS;
}

NVML(nvmlInit, (void)) {
    return nvmlInit_v2();
}

NVML(nvmlInitWithFlags, (unsigned flags)) {
    enum { NO_GPUS = 1, NO_ATTACH = 2 };
    if ((flags & ~(unsigned)(NO_GPUS | NO_ATTACH)) != 0) return NVML_ERROR_INVALID_ARGUMENT;
    return nvmlInit_v2();
}

NVML(nvmlShutdown, (void)) {
    unsigned users = nvml_users;
    do {
        if (users == 0) return NVML_ERROR_UNINITIALIZED;
    } while (!atomic_compare_exchange_weak(&nvml_users, &users, users - 1));
    return NVML_SUCCESS;
}

SOFT_VISIBLE const char *nvmlErrorString(int result);
const char *nvmlErrorString(int result) {
    switch (result) {
    case NVML_SUCCESS:
        return "Success";
    case NVML_ERROR_UNINITIALIZED:
        return "Uninitialized";
    case NVML_ERROR_INVALID_ARGUMENT:
        return "Invalid Argument";
    case NVML_ERROR_NOT_SUPPORTED:
        return "Not Supported";
    case NVML_ERROR_NOT_FOUND:
        return "Not Found";
    case NVML_ERROR_INSUFFICIENT_SIZE:
        return "Insufficient Size";
    case NVML_ERROR_ARGUMENT_VERSION_MISMATCH:
        return "Argument Version Mismatch";
    default:
        return "Unknown Error";
    }
}

/* The oldest driver that runs programs of a CUDA version: "CUDA Toolkit Release Notes", "Minor
 * Version Compatibility". */
static const char *nvml_driver_text(void) {
    const int major = soft_options()->driver_version / 1000;
    return major >= 13 ? "580.65.06" : major == 12 ? "525.60.13" : "450.80.02";
}

NVML(nvmlSystemGetDriverVersion, (char *version, unsigned bytes)) {
    const int result = nvml_begin(version);
    return result != NVML_SUCCESS ? result : nvml_put(version, bytes, nvml_driver_text());
}

NVML(nvmlSystemGetNVMLVersion, (char *version, unsigned bytes)) {
    char text[40];
    const int result = nvml_begin(version);
    if (result != NVML_SUCCESS) return result;
    snprintf(text, sizeof text, "%d.%.30s", soft_options()->driver_version / 1000,
             nvml_driver_text());
    return nvml_put(version, bytes, text);
}

/* Like the driver's, it works before nvmlInit. */
NVML(nvmlSystemGetCudaDriverVersion, (int *version)) {
    if (version == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    *version = soft_options()->driver_version;
    return NVML_SUCCESS;
}

NVML(nvmlSystemGetCudaDriverVersion_v2, (int *version)) {
    return nvmlSystemGetCudaDriverVersion(version);
}

/* ---- which devices there are ---- */

NVML(nvmlDeviceGetCount_v2, (unsigned *count)) {
    const int result = nvml_begin(count);
    if (result == NVML_SUCCESS) *count = (unsigned)soft_options()->all_devices;
    return result;
}

NVML(nvmlDeviceGetCount, (unsigned *count)) {
    return nvmlDeviceGetCount_v2(count);
}

NVML(nvmlDeviceGetHandleByIndex_v2, (unsigned index, struct nvml_device **device)) {
    const int result = nvml_begin(device);
    if (result != NVML_SUCCESS) return result;
    if (index >= (unsigned)soft_options()->all_devices) return NVML_ERROR_INVALID_ARGUMENT;
    *device = &nvml_devices[index];
    return NVML_SUCCESS;
}

NVML(nvmlDeviceGetHandleByIndex, (unsigned index, struct nvml_device **device)) {
    return nvmlDeviceGetHandleByIndex_v2(index, device);
}

NVML(nvmlDeviceGetHandleByUUID, (const char *uuid, struct nvml_device **device)) {
    const int result = nvml_begin(uuid != NULL ? (const void *)device : NULL);
    if (result != NVML_SUCCESS) return result;
    for (int i = 0; i < soft_options()->all_devices; i++) {
        char text[SOFT_UUID_TEXT] = "GPU-";
        soft_options_uuid_text(i, text + 4);
        if (strcasecmp(text, uuid) != 0) continue;
        *device = &nvml_devices[i];
        return NVML_SUCCESS;
    }
    return NVML_ERROR_NOT_FOUND;
}

NVML(nvmlDeviceGetHandleByPciBusId_v2, (const char *id, struct nvml_device **device)) {
    unsigned domain = 0, bus = 0, slot = 0, function = 0;
    const int result = nvml_begin(id != NULL ? (const void *)device : NULL);
    if (result != NVML_SUCCESS) return result;
    if (sscanf(id, "%8x:%2x:%2x.%1x", &domain, &bus, &slot, &function) < 3) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    if (domain != 0 || slot != 0 || function != 0 || bus >= (unsigned)soft_options()->all_devices) {
        return NVML_ERROR_NOT_FOUND;
    }
    *device = &nvml_devices[bus];
    return NVML_SUCCESS;
}

NVML(nvmlDeviceGetHandleByPciBusId, (const char *id, struct nvml_device **device)) {
    return nvmlDeviceGetHandleByPciBusId_v2(id, device);
}

/* ---- what a device is ---- */

NVML(nvmlDeviceGetIndex, (struct nvml_device * device, unsigned *index)) {
    const int result = nvml_begin_device(device, index);
    if (result == NVML_SUCCESS) *index = (unsigned)device->hardware;
    return result;
}

NVML(nvmlDeviceGetMinorNumber, (struct nvml_device * device, unsigned *number)) {
    return nvmlDeviceGetIndex(device, number);
}

NVML(nvmlDeviceGetName, (struct nvml_device * device, char *name, unsigned bytes)) {
    const int result = nvml_begin_device(device, name);
    return result != NVML_SUCCESS ? result : nvml_put(name, bytes, SOFT_DEVICE_NAME);
}

NVML(nvmlDeviceGetUUID, (struct nvml_device * device, char *uuid, unsigned bytes)) {
    char text[SOFT_UUID_TEXT] = "GPU-";
    const int result = nvml_begin_device(device, uuid);
    if (result != NVML_SUCCESS) return result;
    soft_options_uuid_text(device->hardware, text + 4);
    return nvml_put(uuid, bytes, text);
}

NVML(nvmlDeviceGetPciInfo_v3, (struct nvml_device * device, struct nvml_pci *pci)) {
    const int result = nvml_begin_device(device, pci);
    if (result != NVML_SUCCESS) return result;
    *pci = (struct nvml_pci){.bus = (unsigned)device->hardware};
    snprintf(pci->legacy_id, sizeof pci->legacy_id, "0000:%02X:00.0", pci->bus & 0xff);
    snprintf(pci->id, sizeof pci->id, "00000000:%02X:00.0", pci->bus & 0xff);
    return NVML_SUCCESS;
}

NVML(nvmlDeviceGetPciInfo_v2, (struct nvml_device * device, struct nvml_pci_v2 *pci)) {
    const int result = nvml_begin_device(device, pci);
    if (result != NVML_SUCCESS) return result;
    *pci = (struct nvml_pci_v2){.bus = (unsigned)device->hardware};
    snprintf(pci->id, sizeof pci->id, "0000:%02X:00.0", pci->bus & 0xff);
    return NVML_SUCCESS;
}

NVML(nvmlDeviceGetPciInfo, (struct nvml_device * device, struct nvml_pci_v1 *pci)) {
    struct nvml_pci_v2 later;
    const int result = nvml_begin_device(device, pci);
    if (result != NVML_SUCCESS) return result;
    nvmlDeviceGetPciInfo_v2(device, &later);
    memcpy(pci, &later, sizeof *pci);
    return NVML_SUCCESS;
}

NVML(nvmlDeviceGetCudaComputeCapability, (struct nvml_device * device, int *major, int *minor)) {
    const int result = nvml_begin_device(device, minor != NULL ? major : NULL);
    if (result != NVML_SUCCESS) return result;
    *major = soft_options()->compute_capability / 10;
    *minor = soft_options()->compute_capability % 10;
    return NVML_SUCCESS;
}

NVML(nvmlDeviceGetArchitecture, (struct nvml_device * device, unsigned *architecture)) {
    enum { VOLTA = 5, TURING, AMPERE, ADA, HOPPER, BLACKWELL };
    const int capability = soft_options()->compute_capability;
    const int result = nvml_begin_device(device, architecture);
    if (result != NVML_SUCCESS) return result;
    *architecture = capability >= 100  ? BLACKWELL
                    : capability >= 90 ? HOPPER
                    : capability == 89 ? ADA
                    : capability >= 80 ? AMPERE
                    : capability >= 75 ? TURING
                                       : VOLTA;
    return NVML_SUCCESS;
}

NVML(nvmlDeviceGetComputeMode, (struct nvml_device * device, int *mode)) {
    enum { COMPUTEMODE_DEFAULT = 0 };
    const int result = nvml_begin_device(device, mode);
    if (result == NVML_SUCCESS) *mode = COMPUTEMODE_DEFAULT;
    return result;
}

/* ---- memory and processes ---- */

/* What this process has of a device's memory: nothing before cuInit, or if CUDA does not see it. */
static unsigned long long nvml_used(const struct nvml_device *device) {
    const struct soft_options *options = soft_options();
    unsigned long long used = 0;
    if (soft_state_check() != CUDA_SUCCESS) return 0;
    pthread_mutex_lock(&soft_lock);
    for (int i = 0; i < options->devices; i++) {
        if (options->hardware[i] == device->hardware) used = soft_device_of(i)->memory_used;
    }
    pthread_mutex_unlock(&soft_lock);
    return used;
}

NVML(nvmlDeviceGetMemoryInfo, (struct nvml_device * device, struct cuda_nvml_memory *memory)) {
    const int result = nvml_begin_device(device, memory);
    if (result != NVML_SUCCESS) return result;
    memory->total = soft_options()->memory_bytes;
    memory->used = nvml_used(device);
    memory->free = memory->total - memory->used;
    return NVML_SUCCESS;
}

NVML(nvmlDeviceGetMemoryInfo_v2,
     (struct nvml_device * device, struct cuda_nvml_memory_v2 *memory)) {
    const int result = nvml_begin_device(device, memory);
    if (result != NVML_SUCCESS) return result;
    if (memory->version != (sizeof *memory | 2u << 24)) {
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    }
    memory->total = soft_options()->memory_bytes;
    memory->reserved = 0;
    memory->used = nvml_used(device);
    memory->free = memory->total - memory->used;
    return NVML_SUCCESS;
}

/* Other processes have soft devices of their own, so at most this one uses the device. */
static int nvml_room(struct nvml_device *device, unsigned *count, const void *processes,
                     unsigned long long *used) {
    const int result = nvml_begin_device(device, count);
    if (result != NVML_SUCCESS) return result;
    *used = nvml_used(device);
    const unsigned room = *count;
    *count = *used > 0 ? 1 : 0;
    if (room < *count) return NVML_ERROR_INSUFFICIENT_SIZE;
    return *count == 0 || processes != NULL ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

NVML(nvmlDeviceGetComputeRunningProcesses_v3,
     (struct nvml_device * device, unsigned *count, struct cuda_nvml_process *processes)) {
    unsigned long long used = 0;
    const int result = nvml_room(device, count, processes, &used);
    if (result != NVML_SUCCESS || *count == 0) return result;
    /* An instance of ~0: the device is not divided. */
    processes[0] = (struct cuda_nvml_process){(unsigned)getpid(), used, ~0u, ~0u};
    return NVML_SUCCESS;
}

NVML(nvmlDeviceGetComputeRunningProcesses_v2,
     (struct nvml_device * device, unsigned *count, struct cuda_nvml_process *processes)) {
    return nvmlDeviceGetComputeRunningProcesses_v3(device, count, processes);
}

NVML(nvmlDeviceGetComputeRunningProcesses,
     (struct nvml_device * device, unsigned *count, struct nvml_process_v1 *processes)) {
    unsigned long long used = 0;
    const int result = nvml_room(device, count, processes, &used);
    if (result != NVML_SUCCESS || *count == 0) return result;
    processes[0] = (struct nvml_process_v1){(unsigned)getpid(), used};
    return NVML_SUCCESS;
}

NVML(nvmlDeviceGetGraphicsRunningProcesses_v3,
     (struct nvml_device * device, unsigned *count, struct cuda_nvml_process *processes)) {
    const int result = nvml_begin_device(device, count);
    (void)processes;
    if (result == NVML_SUCCESS) *count = 0;
    return result;
}

NVML(nvmlDeviceGetGraphicsRunningProcesses_v2,
     (struct nvml_device * device, unsigned *count, struct cuda_nvml_process *processes)) {
    return nvmlDeviceGetGraphicsRunningProcesses_v3(device, count, processes);
}

NVML(nvmlDeviceGetGraphicsRunningProcesses,
     (struct nvml_device * device, unsigned *count, struct cuda_nvml_process *processes)) {
    return nvmlDeviceGetGraphicsRunningProcesses_v3(device, count, processes);
}

/* ---- everything else ---- */

/* They read no argument, as in api/not_modelled.c. */
#define SOFT_NVML(name)                                                                            \
    NVML(name, (void)) {                                                                           \
        return nvml_users > 0 ? NVML_ERROR_NOT_SUPPORTED : NVML_ERROR_UNINITIALIZED;               \
    }
#include "soft_nvml.def"
