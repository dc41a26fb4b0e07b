/*
 * What is queued for a pass of a prompt.
 */
#include "prompt.h"

#include "attention/attention.h"
#include "core/check.h"
#include "decoder/halves.h"
#include "gemm/gemm.h"

#include <math.h>

enum { MULTIPROCESSORS = 132 }; /* of an H200, as gemm counts them */

struct prompt_work {
    struct tol_loaded *l;
    const struct loaded_prompt *p;
    size_t rows, end; /* of the pass; positions that the session has then */
    size_t first;     /* rows before it are left out of what follows */
    struct kn_paged_rows batch;
    size_t qkv_width, attended_width;
};

static struct kn_place place(const struct prompt_work *w, size_t offset) {
    return kn_place_of(w->p->buffer, offset);
}

static struct kn_paged_heads heads_of(const struct tol_loaded *l) {
    return (struct kn_paged_heads){l->shape.heads, l->shape.kv_heads, l->shape.head_size, l->cache};
}

/* The part of the batch from w->first on. */
static struct kn_paged_rows rest_of(const struct prompt_work *w, size_t first) {
    struct kn_paged_rows rest = w->batch;
    const size_t at = first * sizeof(int);
    rest.rows = w->rows - first;
    rest.positions = (struct kn_place){rest.positions.address + at, rest.positions.bytes - at};
    rest.slots = (struct kn_place){rest.slots.address + at, rest.slots.bytes - at};
    return rest;
}

/* ---- products ---- */

static tol_status queue_weights(const struct prompt_work *w, const struct loaded_matrix *matrix,
                                int exponent, size_t *at) {
    const size_t count = matrix->rows * matrix->k;
    const tol_status status =
        kn_halves_weights(w->l->kernels, w->l->stream,
                          &(struct kn_halves_weights){matrix->format, count, matrix->weights,
                                                      place(w, *at), exponent});
    *at += count * sizeof(uint16_t);
    return status;
}

/* The tiles that are done sooner. Both give the same bits: sums go through k in the same steps. */
static const char *variant_for(const struct prompt_work *w, size_t rows, size_t n) {
    const size_t down = (rows + 127) / 128;
    const size_t wide = down * ((n + 255) / 256), narrow = down * ((n + 127) / 128);
    const double wide_turns = ceil((double)wide / MULTIPROCESSORS);
    const double narrow_turns = ceil((double)narrow / MULTIPROCESSORS);
    return wide_turns <= 0.52 * narrow_turns ? w->p->wide : w->p->narrow;
}

/* sums = halves W^T * 2^-exponent, for the rows from w->first on, which lie at the beginning of
 * both, and the n rows of k elements in the workspace. */
static tol_status queue_product(const struct prompt_work *w, size_t n, size_t k, int exponent) {
    const struct loaded_prompt *p = w->p;
    const size_t rows = w->rows - w->first;
    return kn_gemm(w->l->kernels, w->l->stream,
                   &(struct kn_gemm){.precision = KN_GEMM_F16,
                                     .c_type = KN_F32,
                                     .transpose_b = true,
                                     .m = rows,
                                     .n = n,
                                     .k = k,
                                     .alpha = ldexpf(1, -exponent),
                                     .a = {p->buffer, p->halves / sizeof(uint16_t), 0, 0},
                                     .b = {p->buffer, p->weights / sizeof(uint16_t), 0, 0},
                                     .c = {p->buffer, p->sums / sizeof(float), 0, 0},
                                     .variant = variant_for(w, rows, n)});
}

/* Adds a matrix's biases, if it has some, to the sums from a column on. */
static tol_status queue_bias(const struct prompt_work *w, const struct loaded_matrix *matrix,
                             size_t column, size_t stride) {
    if (matrix->bias.address == 0) return TOL_OK;
    return kn_halves_bias(w->l->kernels, w->l->stream,
                          &(struct kn_halves_bias){w->rows - w->first, matrix->rows, stride,
                                                   place(w, w->p->sums + column * sizeof(float)),
                                                   matrix->bias});
}

static tol_status queue_norm(const struct prompt_work *w, size_t weight, int exponent, bool adds,
                             bool scales) {
    const struct tol_loaded *l = w->l;
    const size_t width = l->shape.width;
    const struct kn_place none = {0, 0};
    return kn_halves_norm(
        l->kernels, l->stream,
        &(struct kn_halves_norm){
            .rows = w->rows - w->first,
            .columns = width,
            .x = place(w, w->p->x + w->first * width * sizeof(float)),
            .sums = adds ? place(w, w->p->sums) : none,
            .scales = scales ? place(w, w->p->scales) : none,
            .weight = weight != SIZE_MAX ? kn_place_of(l->weights, weight * sizeof(float)) : none,
            .out = place(w, w->p->halves),
            .epsilon = l->shape.epsilon,
            .exponent = exponent});
}

/* ---- attention ---- */

/* q k and v of all rows, and keys and values into the pages. */
static tol_status queue_heads(struct prompt_work *w, const struct loaded_layer *layer,
                              const struct prompt_powers *powers) {
    tol_status status = TOL_OK;
    const struct tol_model_shape *shape = &w->l->shape;
    size_t at = w->p->weights, column = 0;
    for (size_t i = 0; i < layer->qkv_count; i++) {
        TOL_TRY(queue_weights(w, &layer->qkv[i], powers->qkv, &at));
    }
    TOL_TRY(queue_product(w, w->qkv_width, shape->width, powers->qkv + powers->attention_norm));
    for (size_t i = 0; i < layer->qkv_count; i++) {
        TOL_TRY(queue_bias(w, &layer->qkv[i], column, w->qkv_width));
        column += layer->qkv[i].rows;
    }
    status = kn_heads(w->l->kernels, w->l->stream,
                      &(struct kn_heads_ready){.batch = w->batch,
                                               .shape = heads_of(w->l),
                                               .qkv = place(w, w->p->sums),
                                               .qkv_stride = w->qkv_width,
                                               .q_norm = layer->q_norm,
                                               .k_norm = layer->k_norm,
                                               .epsilon = shape->epsilon,
                                               .rotated = shape->rotated,
                                               .halves = shape->halves,
                                               .frequencies = w->l->frequencies,
                                               .magnitude = shape->magnitude});
out:
    return status;
}

/* Attention over pages, a part of the rows at a time, and its result as halves: for windows, and
 * heads of sizes that the other has no kernel for. */
static tol_status queue_paged(const struct prompt_work *w) {
    tol_status status = TOL_OK;
    const struct tol_loaded *l = w->l;
    const struct kn_paged_heads heads = heads_of(l);
    const size_t row = w->qkv_width * sizeof(float), out = w->attended_width * sizeof(float);
    const size_t attended = w->p->sums + w->rows * row;
    const size_t splits = (w->end - 1) / KN_PAGED_SPAN + 1;
    const size_t room = l->scratch.parts_bytes / kn_paged_workspace(&heads, 1, splits);
    for (size_t first = w->first; first < w->rows; first += room) {
        struct kn_paged_rows some = rest_of(w, first);
        if (some.rows > room) some.rows = room;
        TOL_TRY(kn_paged_attention(
            l->kernels, l->stream,
            &(struct kn_paged){
                .batch = some,
                .shape = heads,
                .q = place(w, w->p->sums + first * row),
                .out = place(w, attended + (first - w->first) * out),
                .q_stride = w->qkv_width,
                .out_stride = w->attended_width,
                .window = l->shape.window,
                .splits = splits,
                .workspace = {tol_buffer_address(l->scratch.buffer) + l->scratch.parts,
                              l->scratch.parts_bytes}}));
    }
    status = kn_halves_rows(l->kernels, l->stream,
                            &(struct kn_halves_rows){w->rows - w->first, w->attended_width,
                                                     w->attended_width, place(w, attended),
                                                     place(w, w->p->halves)});
out:
    return status;
}

/* Attention over keys and values that were gathered; its result is halves. */
static tol_status queue_gathered(const struct prompt_work *w) {
    tol_status status = TOL_OK;
    const struct tol_loaded *l = w->l;
    const struct loaded_prompt *p = w->p;
    const size_t rows = w->rows - w->first, head = l->shape.head_size, half = sizeof(uint16_t);
    TOL_TRY(kn_halves_rows(
        l->kernels, l->stream,
        &(struct kn_halves_rows){rows, w->attended_width, w->qkv_width,
                                 place(w, p->sums + w->first * w->qkv_width * sizeof(float)),
                                 place(w, p->q)}));
    TOL_TRY(kn_halves_cache(l->kernels, l->stream,
                            &(struct kn_halves_cache){.batch = w->batch,
                                                      .shape = heads_of(l),
                                                      .positions = w->end,
                                                      .keys = place(w, p->keys),
                                                      .values = place(w, p->values)}));
    status = kn_attention(
        l->kernels, l->stream,
        &(struct kn_attention){.type = KN_F16,
                               .batch = 1,
                               .heads = l->shape.heads,
                               .kv_heads = l->shape.kv_heads,
                               .q_length = rows,
                               .kv_length = w->end,
                               .head_size = head,
                               .causal = true,
                               .q = {p->buffer, p->q / half, 0, head, w->attended_width},
                               .k = {.buffer = p->buffer, .offset = p->keys / half},
                               .v = {.buffer = p->buffer, .offset = p->values / half},
                               .out = {p->buffer, p->halves / half, 0, head, w->attended_width},
                               .variant = p->attention});
out:
    return status;
}

/* ---- layers ---- */

static tol_status queue_layer(struct prompt_work *w, size_t index, size_t wanted) {
    tol_status status = TOL_OK;
    const struct tol_loaded *l = w->l;
    const struct loaded_layer *layer = &l->layers[index];
    const struct prompt_powers *powers = &w->p->powers[index];
    const size_t width = l->shape.width, feed = l->shape.feed_forward;
    const struct kn_paged_heads heads = heads_of(l);
    size_t at = w->p->weights;
    w->batch.layer_at = index * kn_paged_layer_bytes(&heads);
    TOL_TRY(queue_norm(w, layer->attention_norm, powers->attention_norm, index > 0, index > 0));
    TOL_TRY(queue_heads(w, layer, powers));
    /* Behind the keys and values of the last layer, only the wanted row is of use. */
    if (index + 1 == l->shape.layers) w->first = w->rows - wanted;
    if (w->first == w->rows) return TOL_OK;
    TOL_TRY(w->p->attention != NULL ? queue_gathered(w) : queue_paged(w));
    TOL_TRY(queue_weights(w, &layer->output, powers->output, &at));
    TOL_TRY(queue_product(w, width, w->attended_width, powers->output));
    TOL_TRY(queue_bias(w, &layer->output, 0, width));
    TOL_TRY(queue_norm(w, layer->feed_norm, powers->feed_norm, true, false));
    at = w->p->weights;
    TOL_TRY(queue_weights(w, &layer->gate, powers->gated, &at));
    TOL_TRY(queue_weights(w, &layer->up, powers->gated, &at));
    TOL_TRY(queue_product(w, 2 * feed, width, powers->gated + powers->feed_norm));
    TOL_TRY(
        kn_halves_gated(l->kernels, l->stream,
                        &(struct kn_halves_gated){w->rows - w->first, feed, place(w, w->p->sums),
                                                  place(w, w->p->halves), place(w, w->p->scales)}));
    at = w->p->weights;
    TOL_TRY(queue_weights(w, &layer->down, powers->down, &at));
    status = queue_product(w, width, feed, powers->down);
out:
    return status;
}

static tol_status queue_all(struct prompt_work *w, size_t wanted, bool wants_logits) {
    tol_status status = TOL_OK;
    struct tol_loaded *l = w->l;
    const size_t width = l->shape.width;
    TOL_TRY(tol_copy_to_device(l->stream, l->input, 0, l->sent, 0, 3 * w->rows * sizeof(int)));
    TOL_TRY(kn_embed(l->kernels, l->stream,
                     &(struct kn_embed){.format = l->embedding.format,
                                        .rows = w->rows,
                                        .columns = width,
                                        .table_rows = l->shape.vocabulary,
                                        .table = l->embedding.weights,
                                        .tokens = kn_place_of(l->input, 0),
                                        .out = place(w, w->p->x),
                                        .out_stride = width}));
    for (size_t i = 0; i < l->shape.layers; i++) TOL_TRY(queue_layer(w, i, wanted));
    if (wanted == 0) return TOL_OK;
    TOL_TRY(queue_norm(w, SIZE_MAX, 0, true, true));
    TOL_TRY(tol_copy_on_device(l->stream, l->scratch.buffer, l->scratch.x, w->p->buffer,
                               w->p->x + w->first * width * sizeof(float), width * sizeof(float)));
    status = loaded_pass_queue_logits(l, wants_logits);
out:
    return status;
}

tol_status loaded_prompt_run(struct tol_loaded *l, const struct loaded_pass *pass,
                             struct loaded_outcome *outcome) {
    tol_status status = TOL_OK;
    const size_t rows = pass->count;
    const bool wants_logits = pass->wants_logits && pass->wanted > 0;
    struct prompt_work w = {.l = l,
                            .p = &l->prompt,
                            .rows = rows,
                            .end = (size_t)pass->rows[rows - 1].position + 1,
                            .batch = {.rows = rows,
                                      .positions = kn_place_of(l->input, rows * sizeof(int)),
                                      .slots = kn_place_of(l->input, 2 * rows * sizeof(int)),
                                      .tables = kn_place_of(l->tables, 0),
                                      .pages_max = l->pages_max},
                            .qkv_width =
                                (l->shape.heads + 2 * l->shape.kv_heads) * l->shape.head_size,
                            .attended_width = l->shape.heads * l->shape.head_size};
    TOL_TRY(tol_context_check(l->context));
    TOL_TRY(loaded_pass_send(l, pass));
    TOL_TRY(queue_all(&w, pass->wanted, wants_logits));
    status = loaded_pass_take(l, wants_logits, outcome);
out:
    return status;
}
