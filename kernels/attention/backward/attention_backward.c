/*
 * The host's side of attention's backward pass: checks a problem, picks a kernel and launches it
 * behind the one that makes the figures of rows.
 */
#include "attention/backward/attention_backward_maps.h"

#include "core/check.h"
#include "operand.h"

#include <math.h>
#include <string.h>

enum { STEP = ATTENTION_FIGURES_STEP, WARPS = 4 };

/* Where the parts of a workspace begin, in bytes. */
struct parts {
    size_t sums, turns, end; /* behind the figures; the same if the variant keeps no sums */
};

bool attention_backward_is_long(const struct kn_attention *x) {
    /* Four for each multiprocessor of an H100; with fewer, "wgmma" has more blocks to spread. */
    enum { TILE = 128, BLOCKS_MIN = 528 };
    size_t blocks = 0;
    if (x->type == KN_F32 || (x->head_size != 64 && x->head_size != 128)) return false;
    return x->kv_heads > 0 && x->batch <= SIZE_MAX / x->kv_heads &&
           kn_add_product(&blocks, x->batch * x->kv_heads, x->kv_length / TILE) &&
           blocks >= BLOCKS_MIN;
}

/* Whether rows of this name keep sums in the workspace, to which blocks add in turn; without a name
 * whether those that do would be chosen. */
static bool keeps_sums(const struct kn_attention_backward *b) {
    const struct kn_variants *table =
        b->variants != NULL ? b->variants : &kn_attention_backward_variants;
    if (b->variant == NULL) return attention_backward_is_long(&b->forward);
    for (size_t i = 0; i < table->count; i++) {
        const struct kn_variant *row = &table->rows[i];
        if (strcmp(row->name, b->variant) == 0 && row->tile[1] != 0) return true;
    }
    return false;
}

/* false: a size overflows. */
static bool divide_workspace(const struct kn_attention *x, bool has_sums, struct parts *parts) {
    const size_t pitch = (x->q_length + STEP - 1) / STEP * STEP;
    size_t rows = 0;
    *parts = (struct parts){0};
    if (x->heads != 0 && x->batch > SIZE_MAX / x->heads) return false;
    if (pitch < x->q_length || !kn_add_product(&rows, x->batch * x->heads, pitch) ||
        !kn_add_product(&parts->sums, rows, 2 * sizeof(float))) {
        return false;
    }
    parts->turns = parts->end = parts->sums;
    if (!has_sums) return true;
    if (x->head_size > SIZE_MAX / sizeof(float) ||
        !kn_add_product(&parts->turns, rows, x->head_size * sizeof(float))) {
        return false;
    }
    parts->end = parts->turns;
    return kn_add_product(&parts->end, rows / ATTENTION_TURN_ROWS + 1, sizeof(uint32_t));
}

size_t kn_attention_backward_workspace_of(const struct kn_attention_backward *b) {
    struct parts parts;
    return divide_workspace(&b->forward, keeps_sums(b), &parts) ? parts.end : SIZE_MAX;
}

size_t kn_attention_backward_workspace(const struct kn_attention *x) {
    struct parts parts;
    return divide_workspace(x, false, &parts) ? parts.end : SIZE_MAX;
}

/* What a gradient must not overlap. */
struct range {
    const char *name;
    CUdeviceptr begin, end;
};

static struct range range_of(const struct attention_operand *operand) {
    return (struct range){operand->name, operand->begin, operand->end};
}

static struct range range_of_buffer(const char *name, const struct tol_buffer *buffer) {
    const CUdeviceptr begin = tol_buffer_address(buffer);
    return (struct range){name, begin, begin + tol_buffer_bytes(buffer)};
}

enum { Q, K, V, OUT, D_OUT, INPUTS, D_Q = INPUTS, D_K, D_V, OPERANDS };

static tol_status check_gradients(const struct kn_attention_backward *b,
                                  struct attention_operand operands[OPERANDS]) {
    tol_status status = TOL_OK;
    const struct kn_attention *x = &b->forward;
    struct range ranges[OPERANDS + 2];
    size_t count = 0;
    for (int i = 0; i < OPERANDS; i++) ranges[count++] = range_of(&operands[i]);
    ranges[count++] = range_of_buffer("lse", x->lse);
    ranges[count++] = range_of_buffer("workspace", b->workspace);
    for (int i = D_Q; i < OPERANDS; i++) {
        TOL_CHECK(attention_operand_is_written_once(x, &operands[i]), TOL_INVALID_ARGUMENT,
                  "rows of %s overlap", operands[i].name);
        for (size_t j = 0; j < count; j++) {
            if ((int)j == i) continue;
            TOL_TRY(attention_operand_is_apart(&operands[i], ranges[j].name, ranges[j].begin,
                                               ranges[j].end));
        }
    }
out:
    return status;
}

static tol_status check(const struct kn_attention_backward *b,
                        struct attention_backward_problem *problem) {
    static const char *const names[OPERANDS] = {"q", "k", "v", "out", "d_out", "d_q", "d_k", "d_v"};
    tol_status status = TOL_OK;
    struct attention_operand operands[OPERANDS];
    struct attention_problem forward = {0};
    TOL_CHECK(b != NULL, TOL_INVALID_ARGUMENT, "attention's backward pass needs a problem");
    const struct kn_attention *x = &b->forward;
    TOL_TRY(attention_check(x, &forward));
    if (x->batch == 0 || x->heads == 0) return TOL_OK;
    TOL_CHECK(x->q_length > 0 && x->kv_length > 0, TOL_INVALID_ARGUMENT,
              "the gradients of %zu rows and %zu keys", x->q_length, x->kv_length);
    TOL_CHECK(x->lse != NULL && b->workspace != NULL, TOL_INVALID_ARGUMENT,
              "attention's backward pass needs lse and a workspace");
    const size_t needed = b->variant != NULL ? kn_attention_backward_workspace_of(b)
                                             : kn_attention_backward_workspace(x);
    TOL_CHECK(needed <= tol_buffer_bytes(b->workspace), TOL_OUT_OF_RANGE,
              "the workspace has %zu bytes, and needs %zu", tol_buffer_bytes(b->workspace), needed);
    const struct kn_heads *const heads[OPERANDS] = {&x->q,     &x->k,   &x->v,   &x->out,
                                                    &b->d_out, &b->d_q, &b->d_k, &b->d_v};
    problem->is_aligned = true;
    for (int i = 0; i < OPERANDS; i++) {
        const bool of_keys = i == K || i == V || i == D_K || i == D_V;
        operands[i] = (struct attention_operand){.name = names[i],
                                                 .heads = of_keys ? x->kv_heads : x->heads,
                                                 .rows = of_keys ? x->kv_length : x->q_length};
        TOL_TRY(attention_operand_locate(x, heads[i], &operands[i]));
        problem->is_aligned = problem->is_aligned && attention_operand_is_aligned(x, &operands[i]);
    }
    TOL_TRY(check_gradients(b, operands));
    struct parts parts;
    const CUdeviceptr room = tol_buffer_address(b->workspace);
    const bool has_sums =
        divide_workspace(x, true, &parts) && parts.end <= tol_buffer_bytes(b->workspace);
    problem->arguments = (struct attention_backward_arguments){
        .x = forward.arguments,
        .d_out = operands[D_OUT].begin,
        .d_q = operands[D_Q].begin,
        .d_k = operands[D_K].begin,
        .d_v = operands[D_V].begin,
        .figures = room,
        .d_out_strides = operands[D_OUT].strides,
        .d_q_strides = operands[D_Q].strides,
        .d_k_strides = operands[D_K].strides,
        .d_v_strides = operands[D_V].strides,
        .figures_pitch = (int)((x->q_length + STEP - 1) / STEP * STEP),
        .scale = x->scale != 0 ? x->scale : (float)(1 / sqrt((double)x->head_size)),
        .sums = has_sums ? room + parts.sums : 0,
        .turns = has_sums ? room + parts.turns : 0};
out:
    return status;
}

static tol_status launch(struct tol_stream *stream, const struct tol_kernel *kernel,
                         struct tol_launch_shape shape,
                         struct attention_backward_arguments *arguments) {
    const unsigned bytes = sizeof *arguments;
    void *value = arguments;
    return tol_launch(stream, kernel, shape, (struct tol_arguments){1, &value, &bytes});
}

static tol_status launch_with_maps(struct kn_kernels *kernels, struct tol_stream *stream,
                                   const struct tol_kernel *kernel, struct tol_launch_shape shape,
                                   struct attention_backward_problem *problem) {
    struct attention_backward_maps maps;
    struct attention_backward_arguments *arguments = &problem->arguments;
    void *values[] = {&maps.q,   &maps.k,   &maps.v,   &maps.d_out,
                      &maps.d_q, &maps.d_k, &maps.d_v, arguments};
    const unsigned map = sizeof maps.q;
    const unsigned bytes[] = {map, map, map, map, map, map, map, sizeof *arguments};
    const tol_status status =
        attention_backward_maps_make(kn_kernels_context(kernels), problem, &maps);
    if (status != TOL_OK) return status;
    return tol_launch(stream, kernel, shape, (struct tol_arguments){8, values, bytes});
}

/* One block for each tile of keys and of rows, or of keys alone where blocks add to rows in turn;
 * of the naive kernel a warp for each row and key. */
static tol_status count_blocks(const struct kn_variant *variant, const struct kn_attention *x,
                               struct attention_backward_arguments *arguments, size_t *blocks) {
    tol_status status = TOL_OK;
    const size_t tile = variant->tile[0] != 0 ? variant->tile[0] : 1;
    const size_t k_tiles = (x->kv_length + tile - 1) / tile;
    const size_t q_tiles = (x->q_length + tile - 1) / tile;
    size_t count = 0;
    const bool fits =
        kn_add_product(&count, x->batch * x->kv_heads, k_tiles) &&
        (variant->tile[1] != 0 || kn_add_product(&count, x->batch * x->heads, q_tiles));
    if (variant->tile[0] == 0) {
        count = count / WARPS + (count % WARPS != 0);
    } else {
        arguments->k_tiles = (int)k_tiles, arguments->q_tiles = (int)q_tiles;
    }
    TOL_CHECK(fits && count <= INT32_MAX, TOL_OVER_LIMIT, "%zu blocks for the variant %s", count,
              variant->name);
    *blocks = count;
out:
    return status;
}

/* A kernel over the rows of q of all heads, of which a block takes so many. */
struct over_rows {
    const struct kn_variant *variant;
    const struct tol_kernel *kernel;
    unsigned rows;
};

static tol_status launch_over_rows(struct tol_stream *stream, const struct over_rows *over,
                                   struct attention_backward_arguments *arguments) {
    const unsigned threads = over->variant->threads;
    const struct tol_launch_shape shape = {.grid_x =
                                               (unsigned)arguments->figures_pitch / over->rows,
                                           .grid_y = (unsigned)arguments->x.heads,
                                           .grid_z = (unsigned)arguments->x.batch,
                                           .block_x = threads,
                                           .block_y = over->rows == WARPS ? WARPS : 1,
                                           .block_z = 1};
    return launch(stream, over->kernel, shape, arguments);
}

/* The kernels in front of a variant and, where it keeps sums, behind it. */
static tol_status find_others(struct kn_kernels *kernels, const struct kn_variant *variant,
                              const struct kn_attention *x, struct over_rows *front,
                              struct over_rows *behind) {
    tol_status status = TOL_OK;
    *behind = (struct over_rows){0};
    *front = (struct over_rows){.variant = &kn_attention_figures[x->type], .rows = WARPS};
    if (variant->tile[1] != 0) {
        front->variant = attention_backward_begin(x->type, x->head_size);
        behind->variant = attention_backward_finish(x->type, x->head_size);
        front->rows = behind->rows = ATTENTION_TURN_ROWS;
        TOL_TRY(kn_kernels_find(kernels, behind->variant, &behind->kernel));
    }
    status = kn_kernels_find(kernels, front->variant, &front->kernel);
out:
    return status;
}

tol_status kn_attention_backward(struct kn_kernels *kernels, struct tol_stream *stream,
                                 const struct kn_attention_backward *b) {
    tol_status status = TOL_OK;
    const struct kn_variant *variant = NULL;
    const struct tol_kernel *kernel = NULL;
    struct over_rows front, behind;
    struct attention_backward_problem problem = {.backward = b};
    struct attention_backward_arguments *arguments = &problem.arguments;
    size_t blocks = 0;
    TOL_CHECK(kernels != NULL && stream != NULL, TOL_INVALID_ARGUMENT,
              "attention's backward pass needs a set of kernels and a stream");
    TOL_TRY(check(b, &problem));
    const struct kn_attention *x = &b->forward;
    if (x->batch == 0 || x->heads == 0) return TOL_OK;
    problem.has_maps = kn_tensor_map_has(kn_kernels_context(kernels));
    TOL_TRY(kn_kernels_pick(kernels,
                            b->variants != NULL ? b->variants : &kn_attention_backward_variants,
                            b->variant, &problem, &variant, &kernel));
    TOL_TRY(find_others(kernels, variant, x, &front, &behind));
    TOL_TRY(count_blocks(variant, x, arguments, &blocks));
    TOL_TRY(launch_over_rows(stream, &front, arguments));
    const struct tol_launch_shape shape = {.grid_x = (unsigned)blocks,
                                           .grid_y = 1,
                                           .grid_z = 1,
                                           .block_x = variant->threads,
                                           .block_y = variant->tile[0] != 0 ? 1 : WARPS,
                                           .block_z = 1,
                                           .shared_bytes = variant->shared_bytes};
    TOL_TRY(variant->cluster != 0 ? launch_with_maps(kernels, stream, kernel, shape, &problem)
                                  : launch(stream, kernel, shape, arguments));
    if (behind.kernel != NULL) status = launch_over_rows(stream, &behind, arguments);
out:
    return status;
}
