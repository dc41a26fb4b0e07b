/*
 * The tensor maps that step 10 takes beside its arguments. Internal to the operation.
 */
#ifndef KN_GEMM_MAPS_H
#define KN_GEMM_MAPS_H

#include "gemm_problem.h"
#include "boxes.h"

/* The parameters a and b of gemm_10_hopper.cu. */
struct gemm_maps {
    CUtensorMap a, b;
};

/* Whether the driver makes tensor maps and these matrices can be described by them. */
bool gemm_maps_serve(const struct gemm_problem *problem);

/* Makes the maps of a launch with these arguments. Fails as the driver does. */
tol_status gemm_maps_make(struct tol_context *context, const struct gemm_arguments *x,
                          enum kn_type type, struct gemm_maps *maps);

#endif
