/*
 * The maps as attention_backward_hopper.cuh reads them: the elements of a row, rows, heads and
 * batches. A box is 64 elements of 64 rows.
 */
#include "attention/backward/attention_backward_maps.h"

#include "core/check.h"

enum { MAPS = ATTENTION_BACKWARD_MAPS };

static void backward_maps_describe(const struct attention_backward_problem *problem,
                                   struct attention_tensor tensors[MAPS]) {
    const struct kn_attention *x = &problem->backward->forward;
    const struct attention_backward_arguments *b = &problem->arguments;
    const struct attention_arguments *a = &b->x;
    const size_t rows = x->q_length, keys = x->kv_length;
    const struct attention_tensor of[MAPS] = {
        {"attention's q", a->q, &a->q_strides, x->heads, rows},
        {"attention's k", a->k, &a->k_strides, x->kv_heads, keys},
        {"attention's v", a->v, &a->v_strides, x->kv_heads, keys},
        {"attention's d_out", b->d_out, &b->d_out_strides, x->heads, rows},
        {"attention's d_q", b->d_q, &b->d_q_strides, x->heads, rows},
        {"attention's d_k", b->d_k, &b->d_k_strides, x->kv_heads, keys},
        {"attention's d_v", b->d_v, &b->d_v_strides, x->kv_heads, keys}};
    for (int i = 0; i < MAPS; i++) tensors[i] = of[i];
}

bool attention_backward_maps_serve(const struct attention_backward_problem *problem) {
    struct attention_tensor tensors[MAPS];
    bool serve = problem->has_maps;
    backward_maps_describe(problem, tensors);
    for (int i = 0; i < MAPS; i++) {
        serve = serve && attention_tensor_serves(&problem->backward->forward, &tensors[i]);
    }
    return serve;
}

tol_status attention_backward_maps_make(struct tol_context *context,
                                        const struct attention_backward_problem *problem,
                                        CUtensorMap maps[MAPS]) {
    tol_status status = TOL_OK;
    struct attention_tensor tensors[MAPS];
    backward_maps_describe(problem, tensors);
    for (int i = 0; i < MAPS; i++) {
        TOL_TRY(attention_tensor_make(context, &problem->backward->forward, &tensors[i],
                                      ATTENTION_BOX_ROWS, false, &maps[i]));
    }
out:
    return status;
}
