/*
 * Cluster: CTAs that run together.
 */
#ifndef SOFT_CLUSTER_H
#define SOFT_CLUSTER_H

#include "machine/machine_state.h"

/* Runs the CTAs of a cluster in turn until all have ended (DONE), a turn is over (YIELD), or the
 * launch failed (FAULT). */
enum soft_stop soft_cluster_run(struct soft_cluster *cluster, struct soft_view *views);

#endif
