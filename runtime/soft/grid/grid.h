/*
 * Grid: one launch of a kernel, and the distribution of its CTAs to host threads.
 */
#ifndef SOFT_GRID_H
#define SOFT_GRID_H

#include "machine/machine_state.h"

/* A thread that runs CTAs keeps one of these. */
struct soft_worker {
    /* The last range that each memory access of the kernel found; then, if accesses are recorded, a
     * second copy that the fast paths of an access do not use. */
    struct soft_view *views;
    uint32_t views_room;
    uint64_t launch;     /* the launch they are of */
    uint64_t generation; /* of the space they are of */
};

/* Runs CTAs of the launch until none is left to begin or continue, or slice_ns is over (0: no
 * limit). true: the launch is over. Several threads may work on one launch. */
bool soft_launch_work(struct soft_launch *launch, struct soft_worker *worker, uint64_t slice_ns);

/* The number of PTX instructions that warps executed in all finished launches. Warps that a fault
 * ends before their next jump count too little, even less than 0; no launch counts less than 0. */
uint64_t soft_launch_executed(void);

/* Frees the CTAs kept for the next launch. */
void soft_launch_trim(void);

/* Releases what a launch holds, not the launch itself. */
void soft_launch_end(struct soft_launch *launch);

void soft_worker_end(struct soft_worker *worker);

#endif
