/*
 * Grid: one launch of a kernel, and the distribution of its CTAs to host threads.
 */
#ifndef SOFT_GRID_H
#define SOFT_GRID_H

#include "machine/machine_state.h"

/* A thread that runs CTAs keeps one of these. */
struct soft_worker {
    /* Where each memory access of the kernel found its last range, and then, where it is noted,
     * the same once more, which the quick ways through an access do not see. */
    struct soft_view *views;
    uint32_t views_room;
    uint64_t launch;     /* the launch they are of */
    uint64_t generation; /* of the space they are of */
};

/* Runs CTAs of the launch until none is left to begin or go on with, or slice_ns is over (0: no
 * limit). true: the launch is over. Several threads may work on one launch. */
bool soft_launch_work(struct soft_launch *launch, struct soft_worker *worker, uint64_t slice_ns);

/* How many PTX instructions warps have executed in all launches that have ended. */
uint64_t soft_launch_executed(void);

/* Frees the CTAs kept for the next launch. */
void soft_launch_trim(void);

/* Ends what a launch holds, not the launch itself. */
void soft_launch_end(struct soft_launch *launch);

void soft_worker_end(struct soft_worker *worker);

#endif
