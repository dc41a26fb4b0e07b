/*
 * The maps as attention_hopper.cuh reads them: the elements of a row, rows, heads and batches. A
 * box is 64 elements of 64 rows of q or out, or of 128 keys or values, of large heads 64.
 */
#include "attention/forward/attention_maps.h"

#include "core/check.h"

enum { BOX_ROWS = 64 };

/* A stride of 0 repeats rows, which the driver's manual does not promise. */
static bool serves(const struct attention_problem *problem, const struct attention_strides *by,
                   size_t heads, size_t rows) {
    const struct kn_attention *x = problem->attention;
    return (rows <= 1 || (by->row > 0 && kn_tensor_map_takes(x->type, by->row))) &&
           (heads <= 1 || (by->head > 0 && kn_tensor_map_takes(x->type, by->head))) &&
           (x->batch <= 1 || (by->batch > 0 && kn_tensor_map_takes(x->type, by->batch)));
}

static bool describe(const struct attention_problem *problem) {
    const struct kn_attention *x = problem->attention;
    const struct attention_arguments *a = &problem->arguments;
    return problem->has_maps && serves(problem, &a->q_strides, x->heads, x->q_length) &&
           serves(problem, &a->out_strides, x->heads, x->q_length) &&
           serves(problem, &a->k_strides, x->kv_heads, (size_t)a->kv_length) &&
           serves(problem, &a->v_strides, x->kv_heads, (size_t)a->kv_length);
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
    return describe(problem) ? NULL : "no tensor maps can be made";
}

static tol_status make(struct tol_context *context, const struct kn_attention *x, const char *name,
                       CUdeviceptr address, const struct attention_strides *by, size_t heads,
                       size_t rows, int box_rows, bool is_bytes, CUtensorMap *map) {
    const long long row = rows > 1 ? by->row : (long long)x->head_size;
    const struct kn_tensor tensor = {.name = name,
                                     .address = address,
                                     .type = x->type,
                                     .columns = (int)x->head_size,
                                     .rows = (int)rows,
                                     .matrices = (int)heads,
                                     .leading = row,
                                     .stride = by->head,
                                     .groups = (int)x->batch,
                                     .group_stride = by->batch,
                                     .is_bytes = is_bytes,
                                     .box_rows = box_rows};
    return kn_tensor_map_make(context, &tensor, map);
}

tol_status attention_maps_make(struct tol_context *context, const struct attention_problem *problem,
                               bool is_bytes, struct attention_maps *maps) {
    tol_status status = TOL_OK;
    const struct kn_attention *x = problem->attention;
    const struct attention_arguments *a = &problem->arguments;
    const int keys = x->head_size > 128 ? 64 : 128;
    const size_t kv_length = (size_t)a->kv_length;
    TOL_TRY(make(context, x, "attention's q", a->q, &a->q_strides, x->heads, x->q_length, BOX_ROWS,
                 is_bytes, &maps->q));
    TOL_TRY(make(context, x, "attention's k", a->k, &a->k_strides, x->kv_heads, kv_length, keys,
                 is_bytes, &maps->k));
    TOL_TRY(make(context, x, "attention's v", a->v, &a->v_strides, x->kv_heads, kv_length, keys,
                 is_bytes, &maps->v));
    status = make(context, x, "attention's out", a->out, &a->out_strides, x->heads, x->q_length,
                  BOX_ROWS, false, &maps->out);
out:
    return status;
}

tol_status attention_maps_launch(struct kn_kernels *kernels, struct tol_stream *stream,
                                 const struct kn_variant *variant, const struct tol_kernel *kernel,
                                 struct tol_launch_shape shape,
                                 const struct attention_problem *problem, bool is_bytes,
                                 void *arguments, unsigned size) {
    tol_status status = TOL_OK;
    struct attention_maps maps;
    void *values[] = {&maps.q, &maps.k, &maps.v, &maps.out, arguments};
    const unsigned bytes[] = {sizeof maps.q, sizeof maps.k, sizeof maps.v, sizeof maps.out, size};
    const unsigned skipped = variant->cluster != 0 ? 0 : 4; /* the maps */
    if (skipped == 0) {
        TOL_TRY(attention_maps_make(kn_kernels_context(kernels), problem, is_bytes, &maps));
    }
    status = tol_launch(stream, kernel, shape,
                        (struct tol_arguments){5 - skipped, values + skipped, bytes + skipped});
out:
    return status;
}
