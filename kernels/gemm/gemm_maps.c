/*
 * The maps as gemm_hopper.cuh reads them. A box of A or B is 64 steps of 128 rows of op(matrix), or
 * where steps are not contiguous 64 of its rows for 64 steps.
 */
#include "gemm_maps.h"

#include "core/check.h"

enum { BOX_ROWS = 64, UNIT_ROWS = 128 };

bool gemm_maps_serve(const struct gemm_problem *problem) {
    const struct gemm_arguments *x = &problem->arguments;
    const enum kn_type type = kn_gemm_input_type(problem->gemm->precision);
    return problem->has_maps && kn_tensor_map_takes(type, x->lda) &&
           kn_tensor_map_takes(type, x->batch_a) && kn_tensor_map_takes(type, x->ldb) &&
           kn_tensor_map_takes(type, x->batch_b);
}

tol_status gemm_maps_make(struct tol_context *context, const struct gemm_arguments *x,
                          enum kn_type type, struct gemm_maps *maps) {
    tol_status status = TOL_OK;
    struct kn_tensor a = {.name = "gemm's a",
                          .address = x->a,
                          .type = type,
                          .columns = x->transpose_a ? x->m : x->k,
                          .rows = x->transpose_a ? x->k : x->m,
                          .matrices = x->batch_a != 0 ? x->batch : 1,
                          .leading = x->lda,
                          .stride = x->batch_a,
                          .box_rows = x->transpose_a ? BOX_ROWS : UNIT_ROWS};
    struct kn_tensor b = {.name = "gemm's b",
                          .address = x->b,
                          .type = type,
                          .columns = x->transpose_b ? x->k : x->n,
                          .rows = x->transpose_b ? x->n : x->k,
                          .matrices = x->batch_b != 0 ? x->batch : 1,
                          .leading = x->ldb,
                          .stride = x->batch_b,
                          .box_rows = x->transpose_b ? UNIT_ROWS : BOX_ROWS};
    TOL_TRY(kn_tensor_map_make(context, &a, &maps->a));
    status = kn_tensor_map_make(context, &b, &maps->b);
out:
    return status;
}
