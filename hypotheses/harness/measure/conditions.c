/*
 * The clock's own step, the processor's pace, the kernel's count of switches, and NVML's word.
 *
 * NVML is optional. Its functions are declared here as its manual does.
 */
#include "conditions.h"

#include "harness/clock.h"

#include <dlfcn.h>
#include <jansson.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* The least steps of the clock in a batch; the shares by which clock rates may change. */
static const double TIMER_STEPS_MIN = 100, PACE_SHARE = 0.1, SM_SHARE = 0.1;

/* Reasons for which a GPU is slower than it should be: nvmlClocksThrottleReasonSwPowerCap,
 * HwSlowdown, SwThermalSlowdown, HwThermalSlowdown, HwPowerBrakeSlowdown. An idle GPU, a fixed
 * clock and a display are no such reasons. */
static const long long THROTTLED = 0x4 | 0x8 | 0x20 | 0x40 | 0x80;

static double timer_step(void) {
    double least = INFINITY;
    for (int i = 0; i < 1000; i++) {
        uint64_t begin = hyp_clock_ns(), end = begin;
        while (end == begin) end = hyp_clock_ns();
        least = fmin(least, (double)(end - begin));
    }
    return least;
}

/* Each step depends on the previous one, so the cycles are the number of steps times a constant:
 * what is left is the length of a cycle. The least of several, since others only make it longer. */
static double conditions_pace(void) {
    enum { STEPS = 100000, TURNS = 9 };
    static volatile uint64_t start = 1;
    double least = INFINITY;
    for (int turn = 0; turn < TURNS; turn++) {
        uint64_t begin = hyp_clock_ns(), value = start;
        for (int i = 0; i < STEPS; i++) value = value * 6364136223846793005u + 1442695040888963407u;
        start = value | 1;
        least = fmin(least, (double)(hyp_clock_ns() - begin));
    }
    return least;
}

/* What NVML knows of one GPU. */
static void ask_nvml(const char *pci_bus_id, struct hyp_conditions *conditions) {
    typedef struct nvml_device *device_handle;
    int (*init)(void) = NULL, (*find)(const char *, device_handle *) = NULL;
    int (*processes)(device_handle, unsigned *, void *) = NULL;
    int (*reasons)(device_handle, unsigned long long *) = NULL;
    enum { SUCCESS = 0, INSUFFICIENT_SIZE = 7 };
    device_handle device = NULL;
    const char *named = getenv("TOLLENS_LIBNVML"); /* as tollens/health.h has it */
    void *library = dlopen(named != NULL && named[0] != '\0' ? named : "libnvidia-ml.so.1",
                           RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) return;
    /* POSIX allows the conversion of an object pointer to a function pointer; C has no syntax for
     * it. */
    *(void **)&init = dlsym(library, "nvmlInit_v2");
    *(void **)&find = dlsym(library, "nvmlDeviceGetHandleByPciBusId_v2");
    *(void **)&processes = dlsym(library, "nvmlDeviceGetComputeRunningProcesses_v3");
    *(void **)&reasons = dlsym(library, "nvmlDeviceGetCurrentClocksThrottleReasons");
    if (init == NULL || find == NULL || init() != SUCCESS || find(pci_bus_id, &device) != SUCCESS) {
        return;
    }
    unsigned count = 0;
    unsigned long long why = 0;
    /* Without a buffer it returns their number alone. */
    int result = processes != NULL ? processes(device, &count, NULL) : -1;
    if (result == SUCCESS || result == INSUFFICIENT_SIZE) conditions->gpu_processes = (int)count;
    if (reasons != NULL && reasons(device, &why) == SUCCESS) conditions->throttle = (long long)why;
}

void hyp_conditions_read(const char *pci_bus_id, struct hyp_conditions *conditions) {
    struct rusage usage;
    memset(conditions, 0, sizeof *conditions);
    conditions->gpu_processes = -1;
    conditions->throttle = -1;
    conditions->timer_step_ns = timer_step();
    conditions->pace_ns = conditions_pace();
    if (getrusage(RUSAGE_THREAD, &usage) == 0) conditions->switches = usage.ru_nivcsw;
    if (pci_bus_id != NULL && pci_bus_id[0] != '\0') ask_nvml(pci_bus_id, conditions);
}

/* Whether two clocks differ by more than a share of the first. */
static bool conditions_differs(double before, double after, double share) {
    return !(fabs(after - before) <= share * before);
}

const char *hyp_conditions_judge(const struct hyp_conditions *before,
                                 const struct hyp_conditions *after, double batch_ns_min,
                                 char *sentence, size_t bytes) {
    double needed = TIMER_STEPS_MIN * fmax(before->timer_step_ns, after->timer_step_ns);
    int processes =
        before->gpu_processes > after->gpu_processes ? before->gpu_processes : after->gpu_processes;
    if (!(batch_ns_min >= needed)) {
        snprintf(sentence, bytes,
                 "the shortest batch took %.0f ns; the clock's resolution requires %.0f ns",
                 batch_ns_min, needed);
        return "unfit_timer";
    }
    if (conditions_differs(before->pace_ns, after->pace_ns, PACE_SHARE)) {
        snprintf(
            sentence, bytes,
            "the processor's speed changed: the same work took %.0f ns before and %.0f ns after",
            before->pace_ns, after->pace_ns);
        return "unfit_clock";
    }
    if (before->sm_mhz > 0 && after->sm_mhz > 0 &&
        conditions_differs(before->sm_mhz, after->sm_mhz, SM_SHARE)) {
        snprintf(sentence, bytes, "the GPU's clock changed from %.0f to %.0f MHz", before->sm_mhz,
                 after->sm_mhz);
        return "unfit_clock";
    }
    if (processes > 1) {
        snprintf(sentence, bytes, "%d processes compute on the GPU", processes);
        return "unfit_shared";
    }
    if (after->throttle > 0 && (after->throttle & THROTTLED) != 0) {
        snprintf(sentence, bytes, "the GPU was throttled (NVML's reasons %#llx)",
                 (unsigned long long)after->throttle);
        return "unfit_throttle";
    }
    return NULL;
}

json_t *hyp_conditions_pack(const struct hyp_conditions *conditions) {
    return json_pack("{s:f, s:f, s:f, s:I, s:i, s:I}", "timer_step_ns", conditions->timer_step_ns,
                     "pace_ns", conditions->pace_ns, "sm_mhz", conditions->sm_mhz, "switches",
                     (json_int_t)conditions->switches, "gpu_processes", conditions->gpu_processes,
                     "throttle", (json_int_t)conditions->throttle);
}
