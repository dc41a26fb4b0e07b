/*
 * The tensor maps that the Hopper kernels of attention's backward pass take before their arguments.
 * Internal.
 */
#ifndef KN_ATTENTION_BACKWARD_MAPS_H
#define KN_ATTENTION_BACKWARD_MAPS_H

#include "attention/backward/attention_backward_problem.h"
#include "attention/forward/attention_maps.h"

/* Of q, k, v, d_out, d_q, d_k and d_v, in the order of the kernels' parameters. */
enum { ATTENTION_BACKWARD_MAPS = 7 };

/* Whether they can be made. */
bool attention_backward_maps_serve(const struct attention_backward_problem *problem);

/* Makes them. Fails as kn_tensor_map_make does. */
tol_status attention_backward_maps_make(struct tol_context *context,
                                        const struct attention_backward_problem *problem,
                                        CUtensorMap maps[ATTENTION_BACKWARD_MAPS]);

#endif
