/*
 * The tensor maps that steps 3 and 4 of attention's backward pass take beside their arguments.
 * Internal to the operation.
 */
#ifndef KN_ATTENTION_BACKWARD_MAPS_H
#define KN_ATTENTION_BACKWARD_MAPS_H

#include "attention/backward/attention_backward_problem.h"
#include "boxes.h"

/* The parameters of attention_backward_3_hopper.cu and attention_backward_4_ordered.cu; the latter
 * does not use d_q. */
struct attention_backward_maps {
    CUtensorMap q, k, v, d_out, d_q, d_k, d_v;
};

/* Whether the driver makes tensor maps and the heads can be described by them. */
bool attention_backward_maps_serve(const struct attention_backward_problem *problem);

/* Makes the maps. Fails as the driver does. */
tol_status attention_backward_maps_make(struct tol_context *context,
                                        const struct attention_backward_problem *problem,
                                        struct attention_backward_maps *maps);

#endif
