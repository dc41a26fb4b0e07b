/*
 * Cluster member: finds the other CTAs of a cluster, and places in their shared memory.
 */
#ifndef SOFT_CLUSTER_MEMBER_H
#define SOFT_CLUSTER_MEMBER_H

#include "lower/modes.h"
#include "machine_state.h"

/* The number of CTAs in a CTA's cluster, and the CTA of a rank. */
static inline uint32_t soft_cluster_count(const struct soft_cta *cta) {
    return cta->cluster != NULL ? cta->cluster->count : 1;
}
static inline struct soft_cta *soft_cluster_member(struct soft_cta *cta, uint32_t rank) {
    return cta->cluster != NULL ? cta->cluster->members[rank] : cta;
}

/* The CTA whose shared memory contains a cluster address, as seen by a CTA, and the offset there:
 * see lower/modes.h. NULL: the cluster has no such CTA. */
static inline struct soft_cta *soft_cluster_find(struct soft_cta *cta, uint32_t address,
                                                 uint32_t *offset) {
    uint32_t rank = address >> SOFT_RANK_SHIFT;
    *offset = address & ((1u << SOFT_RANK_SHIFT) - 1);
    if (rank == 0) return cta;
    bool has = cta->cluster != NULL && rank <= cta->cluster->count;
    return has ? cta->cluster->members[rank - 1] : NULL;
}

/* A CTA's address for an offset in the shared memory of a CTA of its cluster; for its own it is the
 * offset. */
static inline uint32_t soft_cluster_name(const struct soft_cta *cta, const struct soft_cta *other,
                                         uint32_t offset) {
    return cta == other ? offset : soft_cluster_address(other->rank, offset);
}

#endif
