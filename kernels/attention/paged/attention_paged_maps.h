/*
 * What the host needs for the kernels of attention over paged sequences that take tensor maps: when
 * they serve, and the maps. Internal to the operation.
 */
#ifndef KN_ATTENTION_PAGED_MAPS_H
#define KN_ATTENTION_PAGED_MAPS_H

#include "attention/forward/attention_maps.h"
#include "attention/paged/attention_paged.h"
#include "attention/paged/attention_paged_arguments.h"

/* A problem as the variants see it. */
struct attention_paged_problem {
    const struct kn_attention_paged *paged;
    struct kn_attention whole; /* the rows of all sequences as one problem */
    struct attention_problem rows;
    struct attention_paged_arguments arguments;
    bool is_aligned; /* each piece of 8 elements begins at a multiple of 16 bytes */
};

/* The units of the pool at which a page may begin; 0: there is no pool, or no page fits. */
long long attention_paged_units(const struct attention_paged_problem *problem);

/* As attention_maps_refuse. */
const char *attention_paged_maps_refuse(const struct attention_paged_problem *problem,
                                        size_t head_size);

/* As attention_maps_make, for a checked problem that is served. */
tol_status attention_paged_maps_make(struct tol_context *context,
                                     const struct attention_paged_problem *problem,
                                     struct attention_maps *maps);

#endif
