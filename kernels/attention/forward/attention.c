/*
 * The host's side of attention: checks a problem, picks a kernel and launches it.
 */
#include "attention/forward/attention.h"

#include "attention/forward/attention_maps.h"
#include "attention/forward/attention_operand.h"
#include "core/check.h"

#include <math.h>
#include <string.h>

enum { GRID_YZ_MAX = 65535, LENGTH_MAX = INT32_MAX - 256, HEAD_SIZE_MAX = 256 };

static tol_status check_shape(const struct kn_attention *x) {
    tol_status status = TOL_OK;
    TOL_CHECK(x != NULL, TOL_INVALID_ARGUMENT, "attention needs a problem");
    TOL_CHECK((unsigned)x->type < KN_TYPES, TOL_INVALID_ARGUMENT, "type %d does not exist",
              (int)x->type);
    TOL_CHECK(x->head_size > 0 && x->head_size <= HEAD_SIZE_MAX, TOL_INVALID_ARGUMENT,
              "heads of %zu elements; from 1 to %d are allowed", x->head_size, HEAD_SIZE_MAX);
    TOL_CHECK(x->kv_heads > 0 ? x->heads % x->kv_heads == 0 : x->heads == 0, TOL_INVALID_ARGUMENT,
              "%zu heads of q cannot share %zu of k and v", x->heads, x->kv_heads);
    TOL_CHECK(x->window == 0 || x->causal, TOL_INVALID_ARGUMENT,
              "a window of %zu keys, and attention is not causal", x->window);
    TOL_CHECK(x->scale == 0 || (isfinite(x->scale) && x->scale > 0), TOL_INVALID_ARGUMENT,
              "a scale of %g", (double)x->scale);
    TOL_CHECK(x->batch <= GRID_YZ_MAX && x->heads <= GRID_YZ_MAX && x->q_length < LENGTH_MAX &&
                  x->kv_length < LENGTH_MAX,
              TOL_OVER_LIMIT, "%zu batches of %zu heads, %zu rows and %zu keys", x->batch, x->heads,
              x->q_length, x->kv_length);
out:
    return status;
}

tol_status attention_check(const struct kn_attention *x, struct attention_problem *problem) {
    return attention_check_elements(x, 0, problem);
}

tol_status attention_check_elements(const struct kn_attention *x, size_t element,
                                    struct attention_problem *problem) {
    tol_status status = TOL_OK;
    TOL_TRY(check_shape(x));
    struct attention_operand q = {"q", x->heads, x->q_length, {0, 0, 0}, 0, 0, element}, out = q;
    struct attention_operand k = {"k", x->kv_heads, x->kv_length, {0, 0, 0}, 0, 0, element}, v = k;
    const size_t rows = x->batch * x->heads * x->q_length; /* below 2^63 */
    CUdeviceptr lse = 0, part = 0;
    size_t lse_bytes = 0;
    out.name = "out", out.element = 0, v.name = "v";
    TOL_TRY(attention_operand_locate(x, &x->q, &q));
    TOL_TRY(attention_operand_locate(x, &x->out, &out));
    if (rows > 0) {
        TOL_TRY(attention_operand_locate(x, &x->k, &k));
        TOL_TRY(attention_operand_locate(x, &x->v, &v));
    }
    TOL_CHECK(attention_operand_is_written_once(x, &out), TOL_INVALID_ARGUMENT,
              "rows of out overlap");
    TOL_TRY(attention_operand_is_apart(&out, "q", q.begin, q.end));
    TOL_TRY(attention_operand_is_apart(&out, "k", k.begin, k.end));
    TOL_TRY(attention_operand_is_apart(&out, "v", v.begin, v.end));
    if (x->lse != NULL) {
        lse = tol_buffer_address(x->lse), lse_bytes = tol_buffer_bytes(x->lse);
        TOL_CHECK(rows <= lse_bytes / sizeof(float), TOL_OUT_OF_RANGE,
                  "lse is %zu floats, and its buffer has %zu bytes", rows, lse_bytes);
        TOL_TRY(attention_operand_is_apart(&out, "lse", lse, lse + lse_bytes));
    }
    if (x->workspace != NULL) {
        part = tol_buffer_address(x->workspace);
        TOL_TRY(attention_operand_is_apart(&out, "workspace", part,
                                           part + tol_buffer_bytes(x->workspace)));
    }
    const size_t window = x->window != 0 && x->window < x->kv_length ? x->window : x->kv_length;
    const double scale = x->scale != 0 ? (double)x->scale : 1 / sqrt((double)x->head_size);
    *problem = (struct attention_problem){
        .attention = x,
        .arguments = {.q = q.begin,
                      .k = k.begin,
                      .v = v.begin,
                      .out = out.begin,
                      .lse = lse,
                      .part = part,
                      .q_strides = q.strides,
                      .k_strides = k.strides,
                      .v_strides = v.strides,
                      .out_strides = out.strides,
                      .batch = (int)x->batch,
                      .heads = (int)x->heads,
                      .group = x->kv_heads > 0 ? (int)(x->heads / x->kv_heads) : 1,
                      .q_length = (int)x->q_length,
                      .kv_length = (int)x->kv_length,
                      .head_size = (int)x->head_size,
                      .causal = x->causal,
                      .window = (int)window,
                      .splits = 1,
                      .scale_log2 = (float)(scale * 1.4426950408889634)},
        .is_aligned = attention_operand_is_aligned(x, &q) && attention_operand_is_aligned(x, &k) &&
                      attention_operand_is_aligned(x, &v) && attention_operand_is_aligned(x, &out)};
out:
    return status;
}

/* The only row of a head sees the last keys: the others are left out, and every kernel serves. */
static void take_window_of_one_row(struct attention_arguments *a, size_t element) {
    if (a->q_length != 1 || !a->causal) return;
    const long long left_out = a->kv_length - a->window;
    a->k += (CUdeviceptr)(left_out * a->k_strides.row * (long long)element);
    a->v += (CUdeviceptr)(left_out * a->v_strides.row * (long long)element);
    a->kv_length = a->window, a->causal = false;
}

static tol_status check(const struct kn_attention *x, struct attention_problem *problem) {
    const tol_status status = attention_check(x, problem);
    if (status != TOL_OK) return status;
    take_window_of_one_row(&problem->arguments, kn_type_bytes(x->type));
    return TOL_OK;
}

/* Without the workspace: a call that asks for its size has none yet. */
static struct kn_tuning_key key_of(const struct attention_problem *problem) {
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
    TOL_TRY(check(attention, &problem));
    *key = key_of(&problem);
out:
    return status;
}

static tol_status pick(struct kn_kernels *kernels, struct attention_problem *problem,
                       const struct kn_variant **variant, const struct tol_kernel **kernel) {
    const struct kn_attention *x = problem->attention;
    const struct kn_tuning_key key = key_of(problem);
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
    TOL_TRY(check(x, &problem));
    status = pick(kernels, &problem, variant, &kernel);
out:
    return status;
}

/* ---- few rows and many keys ------------------------------------------------------------------ */

/* Which of the variants that share keys out among blocks one is; both leave parts alike. */
enum sharing { NONE, BY_ROW, BY_HEAD };

static enum sharing sharing_of(const struct kn_variant *variant) {
    if (strcmp(variant->name, "grouped") == 0) return BY_HEAD;
    return strcmp(variant->name, "decode") == 0 ? BY_ROW : NONE;
}

static size_t split_bytes(const struct kn_attention *x) {
    return x->batch * x->heads * x->q_length * (x->head_size + 1) * sizeof(float);
}

/* As many blocks as multiprocessors hold at once, of no fewer than KEYS_MIN keys. */
static size_t splits_of(const struct kn_kernels *kernels, const struct attention_problem *problem,
                        enum sharing sharing) {
    enum { KEYS_MIN = 128 };
    const struct kn_attention *x = problem->attention;
    const bool by_head = sharing == BY_HEAD;
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
    TOL_TRY(check_shape(x));
    *bytes = 0;
    if (x->batch == 0 || x->heads == 0 || x->q_length == 0) return TOL_OK;
    TOL_TRY(check(x, &problem));
    TOL_TRY(pick(kernels, &problem, &variant, &kernel));
    const enum sharing sharing = sharing_of(variant);
    const size_t splits = sharing != NONE ? splits_of(kernels, &problem, sharing) : 1;
    if (splits > 1) *bytes = splits * split_bytes(x);
out:
    return status;
}

static tol_status launch(struct tol_stream *stream, const struct tol_kernel *kernel,
                         struct tol_launch_shape shape, struct attention_arguments *arguments) {
    const unsigned bytes = sizeof *arguments;
    void *value = arguments;
    return tol_launch(stream, kernel, shape, (struct tol_arguments){1, &value, &bytes});
}

/* It may begin before the kernel in front has ended. */
static tol_status launch_early(struct tol_stream *stream, const struct tol_kernel *kernel,
                               struct tol_launch_shape shape,
                               struct attention_arguments *arguments) {
    const unsigned bytes = sizeof *arguments;
    void *value = arguments;
    return tol_launch_programmatic(stream, kernel, shape,
                                   (struct tol_arguments){1, &value, &bytes});
}

static tol_status launch_with_maps(struct kn_kernels *kernels, struct tol_stream *stream,
                                   const struct tol_kernel *kernel, struct tol_launch_shape shape,
                                   struct attention_problem *problem) {
    struct attention_maps maps;
    struct attention_arguments *x = &problem->arguments;
    void *values[] = {&maps.q, &maps.k, &maps.v, &maps.out, x};
    const unsigned bytes[] = {sizeof maps.q, sizeof maps.k, sizeof maps.v, sizeof maps.out,
                              sizeof *x};
    tol_status status = attention_maps_make(kn_kernels_context(kernels), problem, false, &maps);
    if (status != TOL_OK) return status;
    return tol_launch(stream, kernel, shape, (struct tol_arguments){5, values, bytes});
}

static tol_status decode(struct kn_kernels *kernels, struct tol_stream *stream,
                         const struct kn_variant *variant, const struct tol_kernel *kernel,
                         struct attention_problem *problem) {
    tol_status status = TOL_OK;
    const struct kn_attention *x = problem->attention;
    struct attention_arguments *arguments = &problem->arguments;
    const struct kn_variant *combine = NULL;
    const struct tol_kernel *combining = NULL;
    const enum sharing sharing = sharing_of(variant);
    size_t splits = 1;
    const size_t rows = x->batch * x->q_length;
    TOL_CHECK(rows <= GRID_YZ_MAX, TOL_OVER_LIMIT, "%zu batches of %zu rows for the variant %s",
              x->batch, x->q_length, variant->name);
    if (x->workspace != NULL) {
        const size_t room = tol_buffer_bytes(x->workspace) / split_bytes(x);
        splits = splits_of(kernels, problem, sharing);
        if (splits > room) splits = room;
    }
    arguments->splits = splits > 1 ? (int)splits : 1;
    if (splits > 1) {
        TOL_TRY(kn_kernels_pick(kernels, &kn_attention_combine[x->type], NULL, problem, &combine,
                                &combining));
    }
    struct tol_launch_shape shape = {.grid_x = (unsigned)arguments->splits,
                                     .grid_y = (unsigned)x->heads,
                                     .grid_z = (unsigned)rows,
                                     .block_x = variant->threads,
                                     .block_y = 1,
                                     .block_z = 1,
                                     .shared_bytes = variant->shared_bytes};
    if (sharing == BY_HEAD) shape.grid_y = (unsigned)x->kv_heads, shape.grid_z = (unsigned)x->batch;
    TOL_TRY(launch(stream, kernel, shape, arguments));
    if (splits <= 1) return TOL_OK;
    shape.grid_x = (unsigned)x->heads, shape.grid_y = (unsigned)rows, shape.grid_z = 1;
    shape.block_x = combine->threads, shape.shared_bytes = 0;
    const bool is_early = combine->compute_capability_min >= 90;
    status = (is_early ? launch_early : launch)(stream, combining, shape, arguments);
out:
    return status;
}

tol_status kn_attention(struct kn_kernels *kernels, struct tol_stream *stream,
                        const struct kn_attention *x) {
    enum { NAIVE_ROWS = 4 };
    tol_status status = TOL_OK;
    const struct kn_variant *variant = NULL;
    const struct tol_kernel *kernel = NULL;
    struct attention_problem problem = {.attention = x};
    TOL_CHECK(kernels != NULL && stream != NULL, TOL_INVALID_ARGUMENT,
              "attention needs a set of kernels and a stream");
    TOL_TRY(check(x, &problem));
    if (x->batch == 0 || x->heads == 0 || x->q_length == 0) return TOL_OK;
    TOL_TRY(pick(kernels, &problem, &variant, &kernel));
    if (sharing_of(variant) != NONE) return decode(kernels, stream, variant, kernel, &problem);
    struct tol_launch_shape shape = {.grid_x = 0,
                                     .grid_y = 1,
                                     .grid_z = 1,
                                     .block_x = variant->threads,
                                     .block_y = 1,
                                     .block_z = 1,
                                     .shared_bytes = variant->shared_bytes};
    if (variant->tile[0] != 0) {
        shape.grid_x = (unsigned)((x->q_length + variant->tile[0] - 1) / variant->tile[0]);
        shape.grid_y = (unsigned)x->heads, shape.grid_z = (unsigned)x->batch;
    } else { /* a warp a row */
        const size_t rows = x->batch * x->heads * x->q_length;
        TOL_CHECK(rows <= INT32_MAX, TOL_OVER_LIMIT, "%zu rows for the variant %s", rows,
                  variant->name);
        shape.grid_x = (unsigned)((rows + NAIVE_ROWS - 1) / NAIVE_ROWS);
        shape.block_y = NAIVE_ROWS;
    }
    status = variant->cluster != 0 ? launch_with_maps(kernels, stream, kernel, shape, &problem)
                                   : launch(stream, kernel, shape, &problem.arguments);
out:
    return status;
}
