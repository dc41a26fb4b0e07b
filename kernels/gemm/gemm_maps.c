/*
 * Tensor maps as gemm_hopper.cuh reads them.
 */
#include "gemm_maps.h"

#include "choose/plan_map.h"
#include "core/check.h"

enum { BOX_BYTES = 128, TILE_ROWS = 128, BOX_COLUMNS_MAX = 128 };

bool gemm_maps_serve(const struct gemm_problem *problem) {
    const struct gemm_arguments *x = &problem->arguments;
    const enum kn_type type = kn_gemm_input_type(problem->gemm->precision);
    return problem->has_maps && kn_tensor_map_takes(type, x->lda) &&
           kn_tensor_map_takes(type, x->batch_a) && kn_tensor_map_takes(type, x->ldb) &&
           kn_tensor_map_takes(type, x->batch_b);
}

static int gemm_maps_box_at_most(int most, int count) {
    const int unit = 8;
    const int whole = count / unit * unit + (count % unit != 0 ? unit : 0);
    return whole < most ? whole : most;
}

struct gemm_boxes gemm_boxes_of(const struct gemm_arguments *x, enum kn_type type,
                                unsigned columns) {
    const int steps = BOX_BYTES / (int)kn_type_bytes(type);
    const int wide = (int)(columns <= BOX_COLUMNS_MAX ? columns : columns / 2);
    return (struct gemm_boxes){
        .a_rows = x->transpose_a ? steps : gemm_maps_box_at_most(TILE_ROWS, x->m),
        .b_rows = x->transpose_b ? gemm_maps_box_at_most(wide, x->n) : steps};
}

tol_status gemm_maps_make(struct kn_kernels *kernels, const struct gemm_arguments *x,
                          enum kn_type type, int parts, const struct gemm_arguments *was,
                          const struct gemm_boxes *boxes, struct gemm_maps *maps) {
    tol_status status = TOL_OK;
    struct kn_tensor a = {.name = "gemm's a",
                          .address = x->a,
                          .type = type,
                          .columns = x->transpose_a ? x->m : x->k,
                          .rows = x->transpose_a ? x->k : x->m,
                          .matrices = parts * (was->batch_a != 0 ? x->batch : 1),
                          .leading = x->lda,
                          .stride = x->batch_a,
                          .is_tf32 = type == KN_F32,
                          .box_rows = boxes->a_rows};
    struct kn_tensor b = {.name = "gemm's b",
                          .address = x->b,
                          .type = type,
                          .columns = x->transpose_b ? x->k : x->n,
                          .rows = x->transpose_b ? x->n : x->k,
                          .matrices = parts * (was->batch_b != 0 ? x->batch : 1),
                          .leading = x->ldb,
                          .stride = x->batch_b,
                          .is_tf32 = type == KN_F32,
                          .box_rows = boxes->b_rows};
    TOL_TRY(kn_kernels_map(kernels, &a, &maps->a));
    status = kn_kernels_map(kernels, &b, &maps->b);
out:
    return status;
}
