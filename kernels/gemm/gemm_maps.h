/*
 * The tensor maps and boxes that steps 10 and 12 take beside their arguments. Internal to the
 * operation.
 */
#ifndef KN_GEMM_MAPS_H
#define KN_GEMM_MAPS_H

#include "gemm_boxes.h"
#include "gemm_problem.h"
#include "boxes.h"

/* The parameters a and b of the kernels of gemm_hopper.cuh. */
struct gemm_maps {
    CUtensorMap a, b;
};

/* Whether the driver makes tensor maps and these matrices can be described by them. */
bool gemm_maps_serve(const struct gemm_problem *problem);

/* The boxes of a tile of so many columns: 128 bytes of steps of the rows of A's tile, or of the
 * columns of B's up to 128, else of half of them, and of no more than there are, in whole units of
 * eight: what lies outside of a tensor is copied as zeros, more slowly than a tensor. Where steps
 * are not contiguous, 128 bytes of rows or columns of as many steps as 128 bytes have. c_is_whole
 * is left to the caller. */
struct gemm_boxes gemm_boxes_of(const struct gemm_arguments *x, enum kn_type type,
                                unsigned columns);

/* Makes the maps of a launch with these boxes, of the matrices of x, each in so many parts, of
 * which the kernel gets the arguments `was`; floats are copied as tf32. Fails as the
 * driver does. */
tol_status gemm_maps_make(struct tol_context *context, const struct gemm_arguments *x,
                          enum kn_type type, int parts, const struct gemm_arguments *was,
                          const struct gemm_boxes *boxes, struct gemm_maps *maps);

#endif
