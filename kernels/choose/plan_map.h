/*
 * Tensor maps of a set of kernels: a map that was described before, address and all, is taken from
 * the set's plans. Thread-safe. Internal to the operations.
 */
#ifndef KN_PLAN_MAP_H
#define KN_PLAN_MAP_H

#include "boxes.h"
#include "choose/kernel_set.h"

/* As kn_tensor_map_make, in the set's context. */
tol_status kn_kernels_map(struct kn_kernels *kernels, const struct kn_tensor *tensor,
                          CUtensorMap *map);

#endif
