/*
 * The tensor maps that step 7 takes beside its arguments. Internal to the operation.
 */
#ifndef KN_ATTENTION_MAPS_H
#define KN_ATTENTION_MAPS_H

#include "attention/attention_problem.h"
#include "boxes.h"

/* The parameters of attention_7_hopper.cu. */
struct attention_maps {
    CUtensorMap q, k, v, out;
};

/* Whether the driver makes tensor maps and the heads can be described by them. */
bool attention_maps_serve(const struct attention_problem *problem);

/* Makes the maps. Fails as the driver does. */
tol_status attention_maps_make(struct tol_context *context, const struct attention_problem *problem,
                               struct attention_maps *maps);

#endif
