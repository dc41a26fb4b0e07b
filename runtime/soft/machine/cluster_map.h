/*
 * Cluster map: mapa and getctarank.
 */
#ifndef SOFT_CLUSTER_MAP_H
#define SOFT_CLUSTER_MAP_H

#include "machine_state.h"

/* mapa: the address of the same variable in the block of a rank. false: there is none, and the
 * launch has failed. */
bool soft_cluster_map(struct soft_warp *warp, const struct soft_instruction *in, uint32_t lane,
                      uint32_t rank, uint64_t *address);

/* getctarank: the rank of the block that an address in shared memory is in. The same. */
bool soft_cluster_rank(struct soft_warp *warp, const struct soft_instruction *in, uint32_t lane,
                       uint64_t address, uint32_t *rank);

#endif
