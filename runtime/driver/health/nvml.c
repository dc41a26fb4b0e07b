/*
 * A dozen functions of libnvidia-ml, found by name.
 */
#include "nvml.h"

#include "core/library.h"
#include "tollens/cuda_nvml.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    SUCCESS = 0,
    TOO_SMALL = 7,          /* NVML_ERROR_INSUFFICIENT_SIZE */
    TEMPERATURE_GPU = 0,    /* the sensor on the die */
    ERROR_UNCORRECTED = 1,  /* NVML_MEMORY_ERROR_TYPE_UNCORRECTED */
    COUNTER_VOLATILE = 0,   /* since the driver was loaded */
    PROCESSES_MAX = 1 << 16 /* more are a library that talks nonsense */
};

typedef struct device *device_handle;

static const unsigned long long NOT_AVAILABLE = ~0ull;

static struct {
    char reason[200]; /* why there is none; "": there is */
    void *library;
    int (*init)(void);
    int (*by_address)(const char *pci_bus_id, device_handle *device);
    int (*name)(device_handle device, char *name, unsigned bytes);
    /* Any of these may be missing. */
    int (*memory)(device_handle device, struct cuda_nvml_memory *memory);
    int (*memory_2)(device_handle device, struct cuda_nvml_memory_v2 *memory);
    int (*temperature)(device_handle device, int sensor, unsigned *celsius);
    int (*ecc_errors)(device_handle device, int type, int counter, unsigned long long *count);
    int (*processes)(device_handle device, unsigned *count, struct cuda_nvml_process *processes);
    const char *(*error)(int result);
} nvml;

#define FIND(name, function) tol_library_find(library, name, &(function), sizeof(function))

static void nvml_open_library(void) {
    const char *named = getenv("TOLLENS_LIBNVML");
    const char *path = named != NULL && named[0] != '\0' ? named : "libnvidia-ml.so.1";
    void *library = tol_library_open(path, nvml.reason, sizeof nvml.reason);
    if (library == NULL) return;
    nvml.library = library;
    if (!FIND("nvmlInit_v2", nvml.init) ||
        !FIND("nvmlDeviceGetHandleByPciBusId_v2", nvml.by_address) ||
        !FIND("nvmlDeviceGetName", nvml.name)) {
        snprintf(nvml.reason, sizeof nvml.reason, "%.120s is not NVML, or is too old", path);
        return;
    }
    FIND("nvmlDeviceGetMemoryInfo", nvml.memory);
    FIND("nvmlDeviceGetMemoryInfo_v2", nvml.memory_2);
    FIND("nvmlDeviceGetTemperature", nvml.temperature);
    FIND("nvmlDeviceGetTotalEccErrors", nvml.ecc_errors);
    if (!FIND("nvmlDeviceGetComputeRunningProcesses_v3", nvml.processes)) {
        FIND("nvmlDeviceGetComputeRunningProcesses_v2", nvml.processes);
    }
    FIND("nvmlErrorString", nvml.error);
    int result = nvml.init();
    if (result != SUCCESS) {
        snprintf(nvml.reason, sizeof nvml.reason, "nvmlInit_v2: %d, %.120s", result,
                 nvml.error != NULL ? nvml.error(result) : "no further details");
    }
}

static int64_t nvml_count_of(unsigned long long value) {
    return value <= INT64_MAX ? (int64_t)value : -1;
}

static void ask_memory(device_handle device, struct tol_nvml *answer) {
    struct cuda_nvml_memory_v2 second = {.version = (unsigned)sizeof second | 2u << 24};
    struct cuda_nvml_memory first;
    if (nvml.memory_2 != NULL && nvml.memory_2(device, &second) == SUCCESS) {
        answer->free_bytes = nvml_count_of(second.free);
        answer->used_bytes = nvml_count_of(second.used);
    } else if (nvml.memory != NULL && nvml.memory(device, &first) == SUCCESS) {
        answer->free_bytes = nvml_count_of(first.free);
        answer->used_bytes = nvml_count_of(first.used);
    }
}

/* The list may grow between the queries of its length and of its entries. */
static int64_t ask_process(device_handle device) {
    const unsigned own = (unsigned)getpid();
    struct cuda_nvml_process *list = NULL;
    unsigned room = 16, count = 0;
    int result = TOO_SMALL;
    int64_t found = -1;
    while (nvml.processes != NULL && result == TOO_SMALL && room <= PROCESSES_MAX) {
        struct cuda_nvml_process *more = realloc(list, room * sizeof *list);
        if (more == NULL) break;
        list = more;
        count = room;
        result = nvml.processes(device, &count, list);
        room = 2 * (count > room ? count : room);
    }
    for (unsigned i = 0; result == SUCCESS && i < count; i++) {
        if (list[i].pid != own || list[i].bytes == NOT_AVAILABLE) continue;
        /* One row for each part of a device that is shared out. */
        found = (found < 0 ? 0 : found) + nvml_count_of(list[i].bytes);
    }
    free(list);
    return found;
}

int tol_nvml_find(const char *pci_bus_id, const char *name, void **library, void **device,
                  char *reason, size_t reason_bytes) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    device_handle found = NULL;
    char known[128] = "";
    pthread_once(&once, nvml_open_library);
    if (nvml.reason[0] != '\0') {
        snprintf(reason, reason_bytes, "%s", nvml.reason);
        return 0;
    }
    if (nvml.by_address(pci_bus_id, &found) != SUCCESS ||
        nvml.name(found, known, sizeof known) != SUCCESS || strcmp(known, name) != 0) {
        snprintf(reason, reason_bytes, "NVML knows no %.60s at %.40s", name, pci_bus_id);
        return 0;
    }
    *library = nvml.library;
    *device = found;
    return 1;
}

int tol_nvml_ask(const char *pci_bus_id, const char *name, struct tol_nvml *result, char *reason,
                 size_t reason_bytes) {
    struct tol_nvml answer = {-1, -1, -1, -1, -1};
    void *library = NULL, *device = NULL;
    unsigned celsius = 0;
    unsigned long long errors = 0;
    if (!tol_nvml_find(pci_bus_id, name, &library, &device, reason, reason_bytes)) return 0;
    ask_memory(device, &answer);
    answer.process_bytes = ask_process(device);
    if (nvml.ecc_errors != NULL &&
        nvml.ecc_errors(device, ERROR_UNCORRECTED, COUNTER_VOLATILE, &errors) == SUCCESS) {
        answer.ecc_uncorrected = nvml_count_of(errors);
    }
    if (nvml.temperature != NULL &&
        nvml.temperature(device, TEMPERATURE_GPU, &celsius) == SUCCESS && celsius < 1000) {
        answer.temperature_celsius = (int)celsius;
    }
    *result = answer;
    return 1;
}
