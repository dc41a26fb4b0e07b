/*
 * GPU clock: the clock rate of the multiprocessors, measured on the GPU as cycles per nanosecond of
 * its own timer. It needs no tool and no privileges. On the soft device the rate has no meaning.
 */
#ifndef HYP_GPU_CLOCK_H
#define HYP_GPU_CLOCK_H

#include "harness/attack.h"

/* Keeps one multiprocessor busy for this long and returns its clock in MHz; 0: a violation was
 * recorded. Measure twice: the clock of an idle GPU rises first. */
double hyp_gpu_clock_mhz(struct hyp_attack *attack, uint64_t wait_ns);

#endif
