/*
 * The tensor maps as attention_hopper.cuh reads them: the elements of a row, rows, heads and
 * batches. A box has 64 elements of each of its rows.
 */
#include "attention/forward/attention_maps.h"

#include "core/check.h"

/* A stride of 0 repeats rows, which the driver's manual does not promise. */
static bool stride_serves(enum kn_type type, size_t count, long long stride) {
    return count <= 1 || (stride > 0 && kn_tensor_map_takes(type, stride));
}

bool attention_tensor_serves(const struct kn_attention *x, const struct attention_tensor *tensor) {
    return stride_serves(x->type, tensor->rows, tensor->by->row) &&
           stride_serves(x->type, tensor->heads, tensor->by->head) &&
           stride_serves(x->type, x->batch, tensor->by->batch);
}

tol_status attention_tensor_make(struct tol_context *context, const struct kn_attention *x,
                                 const struct attention_tensor *tensor, int box_rows, bool is_bytes,
                                 CUtensorMap *map) {
    const struct kn_tensor described = {.name = tensor->name,
                                        .address = tensor->address,
                                        .type = x->type,
                                        .columns = (int)x->head_size,
                                        .rows = (int)tensor->rows,
                                        .matrices = (int)tensor->heads,
                                        .leading = tensor->rows > 1 ? tensor->by->row
                                                                    : (long long)x->head_size,
                                        .stride = tensor->by->head,
                                        .groups = (int)x->batch,
                                        .group_stride = tensor->by->batch,
                                        .is_bytes = is_bytes,
                                        .box_rows = box_rows};
    return kn_tensor_map_make(context, &described, map);
}

int attention_box_keys(const struct kn_attention *x) {
    return x->head_size > 128 ? 64 : 128;
}

static void attention_maps_describe(const struct attention_problem *problem,
                                    struct attention_tensor tensors[ATTENTION_MAPS]) {
    const struct kn_attention *x = problem->attention;
    const struct attention_arguments *a = &problem->arguments;
    const size_t keys = (size_t)a->kv_length;
    const struct attention_tensor of[ATTENTION_MAPS] = {
        [ATTENTION_MAP_Q] = {"attention's q", a->q, &a->q_strides, x->heads, x->q_length},
        [ATTENTION_MAP_K] = {"attention's k", a->k, &a->k_strides, x->kv_heads, keys},
        [ATTENTION_MAP_V] = {"attention's v", a->v, &a->v_strides, x->kv_heads, keys},
        [ATTENTION_MAP_OUT] = {"attention's out", a->out, &a->out_strides, x->heads, x->q_length}};
    for (int i = 0; i < ATTENTION_MAPS; i++) tensors[i] = of[i];
}

static bool tensors_serve(const struct attention_problem *problem) {
    struct attention_tensor tensors[ATTENTION_MAPS];
    bool serve = problem->has_maps;
    attention_maps_describe(problem, tensors);
    for (int i = 0; i < ATTENTION_MAPS; i++) {
        serve = serve && attention_tensor_serves(problem->attention, &tensors[i]);
    }
    return serve;
}

const char *attention_maps_refuse(const struct attention_problem *problem, size_t head_size) {
    const struct kn_attention *x = problem->attention;
    /* The last box of 64 elements begins in the row; stores are of 16 bytes. */
    if (x->head_size <= head_size - 64 || x->head_size > head_size) {
        return "heads are of another size";
    }
    if (x->head_size % 8 != 0) return "a head is no multiple of 16 bytes";
    if (!problem->is_aligned) return "a row does not begin at a multiple of 16 bytes";
    if (x->kv_length == 0) return "there is no key";
    return tensors_serve(problem) ? NULL : "no tensor maps can be made";
}

tol_status attention_maps_make(struct tol_context *context, const struct attention_problem *problem,
                               bool is_bytes, CUtensorMap maps[ATTENTION_MAPS]) {
    tol_status status = TOL_OK;
    const struct kn_attention *x = problem->attention;
    struct attention_tensor tensors[ATTENTION_MAPS];
    attention_maps_describe(problem, tensors);
    for (int i = 0; i < ATTENTION_MAPS; i++) {
        const bool is_key = i == ATTENTION_MAP_K || i == ATTENTION_MAP_V;
        TOL_TRY(attention_tensor_make(context, x, &tensors[i],
                                      is_key ? attention_box_keys(x) : ATTENTION_BOX_ROWS,
                                      is_bytes && i != ATTENTION_MAP_OUT, &maps[i]));
    }
out:
    return status;
}
