/*
 * Conditions: what the machine was doing around a comparison, and whether it could tell.
 *
 * They are read before the first block and after the last. What is not known on a machine, such as
 * a GPU's other processes where NVML is missing, is left out of the judgement and said so in the
 * evidence.
 */
#ifndef HYP_CONDITIONS_H
#define HYP_CONDITIONS_H

#include <stdbool.h>
#include <stddef.h>

struct hyp_conditions {
    double timer_step_ns; /* the smallest step that the clock takes */
    double pace_ns;       /* a fixed chain of operations: longer where the processor is slower */
    double sm_mhz;        /* measured on the GPU itself; 0 where it was not */
    long switches;        /* how often the system took the processor away, so far */
    int gpu_processes;    /* that compute on the GPU, this one too; -1 where not known */
    long long throttle;   /* NVML's reasons why the clocks are low; -1 where not known */
};

/* Reads all but sm_mhz, which stays 0. pci_bus_id names the GPU; NULL: there is none. Takes some
 * milliseconds. */
void hyp_conditions_read(const char *pci_bus_id, struct hyp_conditions *conditions);

/* For how many nanoseconds the calling thread has waited for a processor that others had, so far; 0
 * where the system keeps no such count. Takes about a microsecond. */
double hyp_conditions_waited_ns(void);

/* The code of why the machine could not tell, "unfit_clock", with a sentence; NULL where nothing
 * speaks against it. batch_ns_min is the shortest time that was measured. */
const char *hyp_conditions_judge(const struct hyp_conditions *before,
                                 const struct hyp_conditions *after, double batch_ns_min,
                                 char *sentence, size_t bytes);

struct json_t *hyp_conditions_pack(const struct hyp_conditions *conditions);

#endif
