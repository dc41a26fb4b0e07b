/*
 * The key of a tensor map has all that the driver is given.
 */
#include "choose/plan_map.h"

_Static_assert(sizeof(CUtensorMap) <= KN_PLAN_BYTES, "a plan holds a tensor map");

tol_status kn_kernels_map(struct kn_kernels *kernels, const struct kn_tensor *tensor,
                          CUtensorMap *map) {
    const struct kn_tensor *t = tensor;
    struct kn_plan_key key = {"tensor map",
                              {(int64_t)t->address, (int64_t)t->type, t->columns, t->rows,
                               t->matrices, t->leading, t->stride, t->groups, t->group_stride,
                               t->is_bytes, t->is_tf32, t->box_rows, t->plain_bytes}};
    if (kn_kernels_recall(kernels, &key, map, sizeof *map)) return TOL_OK;
    const tol_status status = kn_tensor_map_make(kn_kernels_context(kernels), tensor, map);
    if (status == TOL_OK) kn_kernels_keep(kernels, &key, map, sizeof *map);
    return status;
}
