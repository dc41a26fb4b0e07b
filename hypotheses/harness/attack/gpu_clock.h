/*
 * GPU clock: the multiprocessors' clock as the GPU itself counts it, in cycles over its own
 * nanoseconds, needing no tool and no rights. On the soft device a cycle is whatever it counts.
 */
#ifndef HYP_GPU_CLOCK_H
#define HYP_GPU_CLOCK_H

#include "harness/attack.h"

/* Keeps one multiprocessor busy for so long and gives its clock in MHz; 0: a violation was noted.
 * Clocks of a GPU that was idle rise first: measure twice. */
double hyp_gpu_clock_mhz(struct hyp_attack *attack, uint64_t wait_ns);

#endif
