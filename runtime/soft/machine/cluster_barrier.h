/*
 * Cluster barrier: the barrier of all threads of a cluster.
 */
#ifndef SOFT_CLUSTER_BARRIER_H
#define SOFT_CLUSTER_BARRIER_H

#include "machine_state.h"

/* The active lanes arrive at the cluster barrier; or wait there, and NULL is returned. */
const struct soft_instruction *soft_cluster_arrive(struct soft_warp *warp,
                                                   const struct soft_instruction *in);
const struct soft_instruction *soft_cluster_wait(struct soft_warp *warp,
                                                 const struct soft_instruction *in);

/* Opens that barrier if all threads that have not exited have arrived. */
void soft_cluster_check(struct soft_cta *cta);

#endif
