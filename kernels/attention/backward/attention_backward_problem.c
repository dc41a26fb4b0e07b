/*
 * Checks a problem of attention's backward pass, and divides its workspace.
 */
#include "attention/backward/attention_backward_problem.h"

#include "attention/attention_table.h"
#include "core/check.h"
#include "operand.h"

#include <assert.h>
#include <math.h>

enum { STEP = ATTENTION_FIGURES_STEP };

/* ---- the workspace --------------------------------------------------------------------------- */

/* Where the parts of a workspace begin, in bytes: the figures, sums, turns. */
struct parts {
    size_t sums, turns, end; /* all three the same if the variant keeps no sums */
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

/* Whether the call names a variant that keeps sums in the workspace. */
static bool names_sums(const struct kn_attention_backward *b) {
    const struct kn_variants *table =
        b->variants != NULL ? b->variants : &kn_attention_backward_variants;
    const struct kn_variant *row = kn_variants_find(table, b->variant);
    return row != NULL && (row->needs & ATTENTION_TO_SUMS) != 0;
}

/* Whether a call that names no variant may take one. */
static bool may_take_sums(const struct kn_attention_backward *b) {
    return kn_wish_is_open((struct kn_wish){b->variant, NULL}) &&
           attention_backward_is_long(&b->forward);
}

static size_t workspace_bytes(const struct kn_attention *x, bool has_sums) {
    struct parts parts;
    return divide_workspace(x, has_sums, &parts) ? parts.end : SIZE_MAX;
}

size_t kn_attention_backward_workspace_of(const struct kn_attention_backward *b) {
    return workspace_bytes(&b->forward, names_sums(b) || may_take_sums(b));
}

size_t kn_attention_backward_workspace(const struct kn_attention *x) {
    return workspace_bytes(x, false);
}

/* ---- checks ---------------------------------------------------------------------------------- */

static tol_status check_workspace(const struct kn_attention_backward *b) {
    tol_status status = TOL_OK;
    const struct kn_attention *x = &b->forward;
    TOL_CHECK(x->lse != NULL && b->workspace != NULL, TOL_INVALID_ARGUMENT,
              "attention's backward pass needs lse and a workspace");
    const size_t needed = workspace_bytes(x, names_sums(b));
    TOL_CHECK(needed <= tol_buffer_bytes(b->workspace), TOL_OUT_OF_RANGE,
              "the workspace has %zu bytes, and needs %zu", tol_buffer_bytes(b->workspace), needed);
out:
    return status;
}

enum { D_Q, D_K, D_V, GRADIENTS, Q = GRADIENTS, K, V, OUT, D_OUT, OPERANDS };

/* Finds the operands, whose gradients may overlap nothing. */
static tol_status locate_operands(const struct kn_attention_backward *b, bool *are_aligned,
                                  struct attention_operand operands[OPERANDS]) {
    tol_status status = TOL_OK;
    static const char *const names[OPERANDS] = {"d_q", "d_k", "d_v", "q", "k", "v", "out", "d_out"};
    const struct kn_attention *x = &b->forward;
    const struct kn_heads *const heads[OPERANDS] = {&b->d_q, &b->d_k, &b->d_v, &x->q,
                                                    &x->k,   &x->v,   &x->out, &b->d_out};
    struct attention_span spans[OPERANDS + 2];
    *are_aligned = true;
    for (int i = 0; i < OPERANDS; i++) {
        const bool of_keys = i == K || i == V || i == D_K || i == D_V;
        operands[i] = (struct attention_operand){.name = names[i],
                                                 .heads = of_keys ? x->kv_heads : x->heads,
                                                 .rows = of_keys ? x->kv_length : x->q_length};
        TOL_TRY(attention_operand_locate(x, heads[i], &operands[i]));
        *are_aligned = *are_aligned && attention_operand_is_aligned(x, &operands[i]);
        spans[i] = attention_span_of(&operands[i]);
    }
    for (int i = 0; i < GRADIENTS; i++) {
        TOL_CHECK(attention_operand_is_written_once(x, &operands[i]), TOL_INVALID_ARGUMENT,
                  "rows of %s overlap", operands[i].name);
    }
    spans[OPERANDS] = attention_span_of_buffer("lse", x->lse);
    spans[OPERANDS + 1] = attention_span_of_buffer("workspace", b->workspace);
    status = attention_spans_check(spans, GRADIENTS, OPERANDS + 2);
out:
    return status;
}

tol_status attention_backward_check(const struct kn_attention_backward *b,
                                    struct attention_backward_problem *problem) {
    tol_status status = TOL_OK;
    struct attention_operand operands[OPERANDS];
    struct attention_problem forward = {0};
    struct parts parts;
    TOL_CHECK(b != NULL, TOL_INVALID_ARGUMENT, "attention's backward pass needs a problem");
    const struct kn_attention *x = &b->forward;
    TOL_TRY(attention_check(x, 0, &forward));
    if (x->batch == 0 || x->heads == 0) return TOL_OK;
    TOL_CHECK(x->q_length > 0 && x->kv_length > 0, TOL_INVALID_ARGUMENT,
              "the gradients of %zu rows and %zu keys", x->q_length, x->kv_length);
    TOL_TRY(check_workspace(b));
    TOL_TRY(locate_operands(b, &problem->is_aligned, operands));
    const CUdeviceptr begin = tol_buffer_address(b->workspace);
    const bool has_sums =
        divide_workspace(x, true, &parts) && parts.end <= tol_buffer_bytes(b->workspace);
    problem->arguments = (struct attention_backward_arguments){
        .x = forward.arguments,
        .d_out = operands[D_OUT].begin,
        .d_q = operands[D_Q].begin,
        .d_k = operands[D_K].begin,
        .d_v = operands[D_V].begin,
        .figures = begin,
        .d_out_strides = operands[D_OUT].strides,
        .d_q_strides = operands[D_Q].strides,
        .d_k_strides = operands[D_K].strides,
        .d_v_strides = operands[D_V].strides,
        .figures_pitch = (int)((x->q_length + STEP - 1) / STEP * STEP),
        .scale = x->scale != 0 ? x->scale : (float)(1 / sqrt((double)x->head_size)),
        .sums = has_sums ? begin + parts.sums : 0,
        .turns = has_sums ? begin + parts.turns : 0};
    assert(problem->arguments.figures_pitch % ATTENTION_TURN_ROWS == 0 &&
           (size_t)problem->arguments.figures_pitch >= x->q_length);
out:
    return status;
}
