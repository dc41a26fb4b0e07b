/*
 * The calls of attention: check a problem, pick a kernel and launch it.
 */
#include "attention/forward/attention_launch.h"
#include "attention/forward/attention_maps.h"
#include "attention/forward/attention_variants.h"
#include "core/check.h"

#include <assert.h>

/* The only row of a head sees the last keys: the others are left out, and every kernel serves. */
static void take_window_of_one_row(struct attention_arguments *a, size_t element) {
    if (a->q_length != 1 || !a->causal) return;
    const long long left_out = a->kv_length - a->window;
    a->k += (CUdeviceptr)(left_out * a->k_strides.row * (long long)element);
    a->v += (CUdeviceptr)(left_out * a->v_strides.row * (long long)element);
    a->kv_length = a->window, a->causal = false;
}

static tol_status call_check(const struct kn_attention *x, struct attention_problem *problem) {
    const tol_status status = attention_check(x, 0, problem);
    if (status != TOL_OK) return status;
    take_window_of_one_row(&problem->arguments, kn_type_bytes(x->type));
    return TOL_OK;
}

/* Without the workspace: a call that asks for its size has none yet. */
static struct kn_tuning_key attention_call_key_of(const struct attention_problem *problem) {
    const struct kn_attention *x = problem->attention;
    return (struct kn_tuning_key){"attention",
                                  {(int64_t)x->type, (int64_t)x->batch, (int64_t)x->heads,
                                   (int64_t)x->kv_heads, (int64_t)x->q_length,
                                   (int64_t)x->kv_length, (int64_t)x->head_size, x->causal,
                                   (int64_t)x->window, problem->is_aligned}};
}

tol_status kn_attention_key(const struct kn_attention *attention, struct kn_tuning_key *key) {
    tol_status status = TOL_OK;
    struct attention_problem problem = {.attention = attention};
    TOL_CHECK(key != NULL, TOL_INVALID_ARGUMENT, "a key needs a place");
    TOL_TRY(call_check(attention, &problem));
    *key = attention_call_key_of(&problem);
out:
    return status;
}

static tol_status attention_call_pick(struct kn_kernels *kernels, struct attention_problem *problem,
                                      const struct kn_variant **variant,
                                      const struct tol_kernel **kernel) {
    const struct kn_attention *x = problem->attention;
    const struct kn_tuning_key key = attention_call_key_of(problem);
    problem->has_maps = kn_tensor_map_has(kn_kernels_context(kernels));
    return kn_kernels_choose(kernels, &kn_attention_variants,
                             (struct kn_wish){x->variant, x->variants}, &key, problem, variant,
                             kernel);
}

tol_status kn_attention_pick(struct kn_kernels *kernels, const struct kn_attention *x,
                             const struct kn_variant **variant) {
    const struct tol_kernel *kernel = NULL;
    struct attention_problem problem = {.attention = x};
    tol_status status = TOL_OK;
    TOL_CHECK(kernels != NULL, TOL_INVALID_ARGUMENT, "attention needs a set of kernels");
    TOL_TRY(call_check(x, &problem));
    status = attention_call_pick(kernels, &problem, variant, &kernel);
out:
    return status;
}

/* ---- split-KV decoding: few rows of q and many keys ------------------------------------------ */

/* Whether blocks share the keys of a row or of a head; both leave parts of rows, to be merged. */
static bool shares_keys(const struct kn_variant *variant) {
    return (variant->needs & (ATTENTION_BY_ROW | ATTENTION_BY_HEAD)) != 0;
}

static bool is_by_head(const struct kn_variant *variant) {
    return (variant->needs & ATTENTION_BY_HEAD) != 0;
}

/* The bytes of the parts of all rows. */
static size_t split_bytes(const struct kn_attention *x) {
    return x->batch * x->heads * x->q_length * (x->head_size + 1) * sizeof(float);
}

/* The parts of each row: the blocks that the multiprocessors hold at once, of KEYS_MIN keys or
 * more. */
static size_t count_splits(const struct kn_kernels *kernels, const struct kn_variant *variant,
                           const struct attention_problem *problem) {
    enum { KEYS_MIN = 128 };
    const struct kn_attention *x = problem->attention;
    const bool by_head = is_by_head(variant);
    const size_t blocks = x->batch * (by_head ? x->kv_heads : x->heads * x->q_length);
    const size_t held = by_head ? 3 : 2;
    const size_t wanted =
        held * (size_t)tol_context_device(kn_kernels_context(kernels))->multiprocessors / blocks;
    const size_t most = (size_t)problem->arguments.kv_length / KEYS_MIN;
    const size_t splits = wanted < most ? wanted : most;
    return splits > 1 ? splits : 1;
}

tol_status kn_attention_workspace(struct kn_kernels *kernels, const struct kn_attention *x,
                                  size_t *bytes) {
    tol_status status = TOL_OK;
    const struct kn_variant *variant = NULL;
    const struct tol_kernel *kernel = NULL;
    struct attention_problem problem = {.attention = x};
    TOL_CHECK(kernels != NULL && bytes != NULL, TOL_INVALID_ARGUMENT,
              "attention's workspace needs a set of kernels and a pointer to the result");
    TOL_TRY(attention_check_shape(x));
    *bytes = 0;
    if (x->batch == 0 || x->heads == 0 || x->q_length == 0) return TOL_OK;
    TOL_TRY(call_check(x, &problem));
    TOL_TRY(attention_call_pick(kernels, &problem, &variant, &kernel));
    const size_t splits = shares_keys(variant) ? count_splits(kernels, variant, &problem) : 1;
    if (splits > 1) *bytes = splits * split_bytes(x);
out:
    return status;
}

/* Those for which the workspace has parts. */
static size_t splits_that_fit(const struct kn_kernels *kernels, const struct kn_variant *variant,
                              const struct attention_problem *problem) {
    const struct kn_attention *x = problem->attention;
    if (x->workspace == NULL) return 1;
    const size_t splits = count_splits(kernels, variant, problem);
    const size_t fit = tol_buffer_bytes(x->workspace) / split_bytes(x);
    return splits < fit ? splits : fit > 1 ? fit : 1;
}

static tol_status launch_splits(struct kn_kernels *kernels, struct tol_stream *stream,
                                const struct kn_variant *variant, const struct tol_kernel *kernel,
                                struct attention_problem *problem) {
    tol_status status = TOL_OK;
    const struct kn_attention *x = problem->attention;
    struct attention_arguments *a = &problem->arguments;
    const struct kn_variant *combine = NULL;
    const struct tol_kernel *combining = NULL;
    const size_t rows = x->batch * x->q_length, splits = splits_that_fit(kernels, variant, problem);
    TOL_CHECK(rows <= ATTENTION_GRID_YZ_MAX, TOL_OVER_LIMIT,
              "%zu batches of %zu rows for the variant %s", x->batch, x->q_length, variant->name);
    a->splits = (int)splits;
    if (splits > 1) {
        TOL_TRY(
            kn_kernels_pick(kernels, &kn_attention_combine, NULL, problem, &combine, &combining));
    }
    const bool by_head = is_by_head(variant);
    struct attention_launch launch = {
        .kernel = kernel,
        .shape = {.grid_x = (unsigned)splits,
                  .grid_y = (unsigned)(by_head ? x->kv_heads : x->heads),
                  .grid_z = (unsigned)(by_head ? x->batch : rows),
                  .block_x = variant->threads,
                  .block_y = 1,
                  .block_z = 1,
                  .shared_bytes = variant->shared_bytes}};
    TOL_TRY(attention_launch(stream, &launch, a, sizeof *a));
    if (splits == 1) return TOL_OK;
    launch.kernel = combining, launch.is_programmatic = combine->pdl;
    launch.shape.grid_x = (unsigned)x->heads, launch.shape.grid_y = (unsigned)rows;
    launch.shape.grid_z = 1, launch.shape.shared_bytes = combine->shared_bytes;
    launch.shape.block_x = combine->threads;
    assert(splits * split_bytes(x) <= tol_buffer_bytes(x->workspace));
    status = attention_launch(stream, &launch, a, sizeof *a);
out:
    return status;
}

/* ---- the call -------------------------------------------------------------------------------- */

/* "naive" numbers the rows of all heads, so that its grid has one dimension. */
static tol_status line_up_rows(const struct kn_variant *variant, const struct kn_attention *x,
                               struct tol_launch_shape *shape) {
    tol_status status = TOL_OK;
    const size_t rows = x->batch * x->heads * x->q_length;
    if (variant->tile[0] != 0) return TOL_OK;
    TOL_CHECK(rows <= INT32_MAX, TOL_OVER_LIMIT, "%zu rows for the variant %s", rows,
              variant->name);
    shape->grid_x = (unsigned)((rows + ATTENTION_WARPS - 1) / ATTENTION_WARPS);
    shape->grid_y = shape->grid_z = 1;
out:
    return status;
}

tol_status kn_attention(struct kn_kernels *kernels, struct tol_stream *stream,
                        const struct kn_attention *x) {
    tol_status status = TOL_OK;
    const struct kn_variant *variant = NULL;
    CUtensorMap maps[ATTENTION_MAPS];
    struct attention_launch launch = {.maps = maps};
    struct attention_problem problem = {.attention = x};
    struct attention_arguments *a = &problem.arguments;
    TOL_CHECK(kernels != NULL && stream != NULL, TOL_INVALID_ARGUMENT,
              "attention needs a set of kernels and a stream");
    TOL_TRY(call_check(x, &problem));
    if (x->batch == 0 || x->heads == 0 || x->q_length == 0) return TOL_OK;
    TOL_TRY(attention_call_pick(kernels, &problem, &variant, &launch.kernel));
    if (shares_keys(variant)) {
        return launch_splits(kernels, stream, variant, launch.kernel, &problem);
    }
    launch.shape = attention_tiles(variant, x);
    TOL_TRY(line_up_rows(variant, x, &launch.shape));
    if ((variant->needs & ATTENTION_BY_MAPS) != 0) {
        TOL_TRY(attention_maps_make(kn_kernels_context(kernels), &problem, false, maps));
        launch.map_count = ATTENTION_MAPS;
    }
    status = attention_launch(stream, &launch, a, sizeof *a);
out:
    return status;
}
