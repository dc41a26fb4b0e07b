/*
 * The tensor maps and TMA boxes that steps 10 to 14 take beside their arguments. Internal to the
 * operation.
 */
#ifndef KN_GEMM_MAPS_H
#define KN_GEMM_MAPS_H

#include "boxes.h"
#include "gemm_boxes.h"
#include "gemm_check.h"

/* The parameters a and b of the kernels of gemm_hopper.cuh. */
struct gemm_maps {
    CUtensorMap a, b;
};

/* Whether the driver makes tensor maps and these matrices can be described by them. */
bool gemm_maps_serve(const struct gemm_problem *problem);

/* The TMA boxes of a tile with this many columns. Where steps are contiguous, a box has 128 bytes
 * of steps of each row of A's tile, or of each column of B's tile (of half of them if there are
 * more than 128). Elsewhere it has 128 bytes of rows or columns, of as many steps. A box has no
 * more rows than the matrix, rounded up to a multiple of eight: TMA fills what lies outside of a
 * tensor with zeros, and takes longer for that than for the tensor. The caller sets c_is_whole. */
struct gemm_boxes gemm_boxes_of(const struct gemm_arguments *x, enum kn_type type,
                                unsigned columns);

/* Makes the tensor maps of a launch with these boxes, of the matrices of x, each of `parts`
 * matrices of bf16; the kernel gets the arguments `was`. Floats are copied as tf32. Fails as
 * kn_tensor_map_make does. */
tol_status gemm_maps_make(struct kn_kernels *kernels, const struct gemm_arguments *x,
                          enum kn_type type, int parts, const struct gemm_arguments *was,
                          const struct gemm_boxes *boxes, struct gemm_maps *maps);

#endif
