/*
 * The tensor maps of attention over paged sequences: when they can be made, and the maps. Internal.
 */
#ifndef KN_ATTENTION_PAGED_MAPS_H
#define KN_ATTENTION_PAGED_MAPS_H

#include "attention/forward/attention_maps.h"
#include "attention/paged/attention_paged_problem.h"

/* As attention_maps_refuse. */
const char *attention_paged_maps_refuse(const struct attention_paged_problem *problem,
                                        size_t head_size);

/* As attention_maps_make, for a checked problem that is not refused. */
tol_status attention_paged_maps_make(struct tol_context *context,
                                     const struct attention_paged_problem *problem,
                                     CUtensorMap maps[ATTENTION_MAPS]);

#endif
