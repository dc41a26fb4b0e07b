/*
 * Checks a problem of attention: its shape, and its operands against their buffers and each other.
 */
#include "attention/forward/attention_problem.h"

#include "core/check.h"

#include <assert.h>
#include <math.h>

enum { HEAD_SIZE_MAX = 256 };

tol_status attention_check_shape(const struct kn_attention *x) {
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
    TOL_CHECK(x->batch <= ATTENTION_GRID_YZ_MAX && x->heads <= ATTENTION_GRID_YZ_MAX &&
                  x->q_length < ATTENTION_LENGTH_MAX && x->kv_length < ATTENTION_LENGTH_MAX,
              TOL_OVER_LIMIT, "%zu batches of %zu heads, %zu rows and %zu keys", x->batch, x->heads,
              x->q_length, x->kv_length);
out:
    return status;
}

/* lse has a float for each row of q. */
static tol_status check_lse(const struct kn_attention *x, struct attention_span *lse) {
    tol_status status = TOL_OK;
    const size_t rows = x->batch * x->heads * x->q_length; /* below 2^63 */
    if (x->lse == NULL) return TOL_OK;
    *lse = attention_span_of_buffer("lse", x->lse);
    TOL_CHECK(rows <= tol_buffer_bytes(x->lse) / sizeof(float), TOL_OUT_OF_RANGE,
              "lse is %zu floats, and its buffer has %zu bytes", rows, tol_buffer_bytes(x->lse));
out:
    return status;
}

static struct attention_arguments problem_arguments(const struct kn_attention *x) {
    const size_t window = x->window != 0 && x->window < x->kv_length ? x->window : x->kv_length;
    const double scale = x->scale != 0 ? (double)x->scale : 1 / sqrt((double)x->head_size);
    return (struct attention_arguments){
        .lse = x->lse != NULL ? tol_buffer_address(x->lse) : 0,
        .part = x->workspace != NULL ? tol_buffer_address(x->workspace) : 0,
        .batch = (int)x->batch,
        .heads = (int)x->heads,
        .group = x->kv_heads > 0 ? (int)(x->heads / x->kv_heads) : 1,
        .q_length = (int)x->q_length,
        .kv_length = (int)x->kv_length,
        .head_size = (int)x->head_size,
        .causal = x->causal,
        .window = (int)window,
        .splits = 1,
        .scale_log2 = (float)(scale * 1.4426950408889634)};
}

tol_status attention_check(const struct kn_attention *x, size_t element,
                           struct attention_problem *problem) {
    enum { OUT, Q, K, V, OPERANDS, LSE = OPERANDS, WORKSPACE, SPANS };
    tol_status status = TOL_OK;
    TOL_TRY(attention_check_shape(x));
    const struct kn_heads *const heads[] = {&x->out, &x->q, &x->k, &x->v};
    struct attention_operand operands[OPERANDS] = {
        {.name = "out", .heads = x->heads, .rows = x->q_length},
        {.name = "q", .heads = x->heads, .rows = x->q_length, .element = element},
        {.name = "k", .heads = x->kv_heads, .rows = x->kv_length, .element = element},
        {.name = "v", .heads = x->kv_heads, .rows = x->kv_length, .element = element}};
    struct attention_span spans[SPANS] = {[LSE] = {"lse", 0, 0}};
    const size_t rows = x->batch * x->heads * x->q_length;
    static const int order[OPERANDS] = {Q, OUT, K, V}; /* keys are not read for no row */
    bool is_aligned = true;
    for (int i = 0; i < OPERANDS; i++) {
        struct attention_operand *operand = &operands[order[i]];
        if (rows > 0 || i < 2) TOL_TRY(attention_operand_locate(x, heads[order[i]], operand));
        spans[order[i]] = attention_span_of(operand);
        is_aligned = is_aligned && attention_operand_is_aligned(x, operand);
    }
    TOL_CHECK(attention_operand_is_written_once(x, &operands[OUT]), TOL_INVALID_ARGUMENT,
              "rows of out overlap");
    TOL_TRY(check_lse(x, &spans[LSE]));
    spans[WORKSPACE] = attention_span_of_buffer("workspace", x->workspace);
    TOL_TRY(attention_spans_check(spans, 1, SPANS));
    *problem = (struct attention_problem){.attention = x,
                                          .arguments = problem_arguments(x),
                                          .written = {spans[OUT], spans[LSE]},
                                          .is_aligned = is_aligned};
    struct attention_arguments *a = &problem->arguments;
    a->q = operands[Q].begin, a->q_strides = operands[Q].strides;
    a->k = operands[K].begin, a->k_strides = operands[K].strides;
    a->v = operands[V].begin, a->v_strides = operands[V].strides;
    a->out = operands[OUT].begin, a->out_strides = operands[OUT].strides;
    if (x->lse != NULL) problem->written[1].end = a->lse + rows * sizeof(float);
    assert(a->splits == 1 && a->window <= a->kv_length && a->scale_log2 > 0 &&
           a->group * (x->kv_heads > 0 ? (int)x->kv_heads : 0) == a->heads);
out:
    return status;
}

tol_status attention_check_place(const struct attention_problem *problem, const char *name,
                                 struct kn_place place, size_t bytes, size_t alignment) {
    tol_status status = TOL_OK;
    TOL_CHECK(place.address != 0 && place.address % alignment == 0, TOL_INVALID_ARGUMENT,
              "%s at %#llx is NULL or not aligned to %zu bytes", name,
              (unsigned long long)place.address, alignment);
    TOL_CHECK(bytes <= place.bytes, TOL_OUT_OF_RANGE, "%s needs %zu bytes, and there are %zu", name,
              bytes, place.bytes);
    const struct attention_span spans[3] = {
        problem->written[0], problem->written[1], {name, place.address, place.address + bytes}};
    status = attention_spans_check(spans, 2, 3);
out:
    return status;
}
