/*
 * Conditions: the state of the machine around a comparison, and whether it allowed a decision.
 *
 * They are read before the first block and after the last. A condition that is unknown, such as the
 * other processes on a GPU without NVML, is not judged, and the evidence notes it.
 */
#ifndef HYP_CONDITIONS_H
#define HYP_CONDITIONS_H

#include <stdbool.h>
#include <stddef.h>

struct hyp_conditions {
    double timer_step_ns; /* the resolution of the clock */
    double pace_ns;       /* duration of a fixed chain of operations, for the processor's speed */
    double sm_mhz;        /* measured on the GPU; 0 if it was not */
    long switches;        /* involuntary context switches so far */
    int gpu_processes;    /* that compute on the GPU, including this one; -1 if unknown */
    long long throttle;   /* NVML's throttle reasons; -1 if unknown */
};

/* Reads everything but sm_mhz, which stays 0, in some milliseconds. pci_bus_id names the GPU;
 * NULL: there is none. */
void hyp_conditions_read(const char *pci_bus_id, struct hyp_conditions *conditions);

/* The code of the reason why the machine could not decide, "unfit_clock", with a sentence; NULL
 * if there is none. batch_ns_min is the shortest batch. */
const char *hyp_conditions_judge(const struct hyp_conditions *before,
                                 const struct hyp_conditions *after, double batch_ns_min,
                                 char *sentence, size_t bytes);

struct json_t *hyp_conditions_pack(const struct hyp_conditions *conditions);

#endif
