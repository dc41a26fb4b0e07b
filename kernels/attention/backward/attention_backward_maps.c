/*
 * The maps as attention_backward_hopper.cuh reads them: the elements of a row, rows, heads and
 * batches. A box is 64 elements of 64 rows.
 */
#include "attention/backward/attention_backward_maps.h"

#include "core/check.h"

enum { BOX_ROWS = 64, MAPS = 7 };

/* What a map describes. */
struct described {
    const char *name;
    CUdeviceptr address;
    const struct attention_strides *by;
    size_t heads, rows;
    CUtensorMap *map;
};

static void describe(const struct attention_backward_problem *problem,
                     struct attention_backward_maps *maps, struct described all[MAPS]) {
    const struct kn_attention *x = &problem->backward->forward;
    const struct attention_backward_arguments *b = &problem->arguments;
    const struct attention_arguments *a = &b->x;
    const size_t rows = x->q_length, keys = x->kv_length;
    const struct described of[MAPS] = {
        {"attention's q", a->q, &a->q_strides, x->heads, rows, &maps->q},
        {"attention's k", a->k, &a->k_strides, x->kv_heads, keys, &maps->k},
        {"attention's v", a->v, &a->v_strides, x->kv_heads, keys, &maps->v},
        {"attention's d_out", b->d_out, &b->d_out_strides, x->heads, rows, &maps->d_out},
        {"attention's d_q", b->d_q, &b->d_q_strides, x->heads, rows, &maps->d_q},
        {"attention's d_k", b->d_k, &b->d_k_strides, x->kv_heads, keys, &maps->d_k},
        {"attention's d_v", b->d_v, &b->d_v_strides, x->kv_heads, keys, &maps->d_v}};
    for (int i = 0; i < MAPS; i++) all[i] = of[i];
}

/* A stride of 0 repeats rows, which the driver's manual does not promise. */
static bool serves(const struct kn_attention *x, const struct described *of) {
    const struct attention_strides *by = of->by;
    return (of->rows <= 1 || (by->row > 0 && kn_tensor_map_takes(x->type, by->row))) &&
           (of->heads <= 1 || (by->head > 0 && kn_tensor_map_takes(x->type, by->head))) &&
           (x->batch <= 1 || (by->batch > 0 && kn_tensor_map_takes(x->type, by->batch)));
}

bool attention_backward_maps_serve(const struct attention_backward_problem *problem) {
    struct attention_backward_maps maps;
    struct described all[MAPS];
    bool serve = problem->has_maps;
    describe(problem, &maps, all);
    for (int i = 0; i < MAPS; i++) {
        serve = serve && serves(&problem->backward->forward, &all[i]);
    }
    return serve;
}

tol_status attention_backward_maps_make(struct tol_context *context,
                                        const struct attention_backward_problem *problem,
                                        struct attention_backward_maps *maps) {
    tol_status status = TOL_OK;
    const struct kn_attention *x = &problem->backward->forward;
    struct described all[MAPS];
    describe(problem, maps, all);
    for (int i = 0; i < MAPS; i++) {
        const struct described *of = &all[i];
        const struct kn_tensor tensor = {.name = of->name,
                                         .address = of->address,
                                         .type = x->type,
                                         .columns = (int)x->head_size,
                                         .rows = (int)of->rows,
                                         .matrices = (int)of->heads,
                                         .leading =
                                             of->rows > 1 ? of->by->row : (long long)x->head_size,
                                         .stride = of->by->head,
                                         .groups = (int)x->batch,
                                         .group_stride = of->by->batch,
                                         .box_rows = BOX_ROWS};
        TOL_TRY(kn_tensor_map_make(context, &tensor, of->map));
    }
out:
    return status;
}
