/*
 * Enqueues a pass of a prompt.
 */
#include "prompt.h"

#include "attention/forward/attention.h"
#include "core/check.h"
#include "decode/embed.h"
#include "decode/halves.h"
#include "device_team.h"
#include "gemm/gemm.h"
#include "share.h"

#include <math.h>

enum { MULTIPROCESSORS = 132 }; /* of an H200, as gemm counts them */

struct prompt_work {
    struct tol_loaded *l; /* of the device */
    const struct loaded_prompt *p;
    size_t rows, end; /* of the pass; positions that the session has then */
    size_t first;     /* rows before it are left out of what follows */
    struct kn_paged_rows batch;
    size_t qkv_width, own_width; /* of the share: q k and v; attended */
    size_t attended_width;       /* of all heads */
};

static struct kn_place prompt_place(const struct prompt_work *w, size_t offset) {
    return kn_place_of(w->p->buffer, offset);
}

/* Where this device's columns of halves begin in rows of all. */
static size_t own_halves(const struct prompt_work *w) {
    return w->p->halves + w->l->share.rank * w->own_width * sizeof(uint16_t);
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
                                                      prompt_place(w, *at), exponent});
    *at += count * sizeof(uint16_t);
    return status;
}

/* The faster tile width. Both give the same bits, because sums go through k in the same steps. */
static const char *variant_for(const struct prompt_work *w, size_t rows, size_t n) {
    const size_t down = (rows + 127) / 128;
    const size_t wide = down * ((n + 255) / 256), narrow = down * ((n + 127) / 128);
    const double wide_turns = ceil((double)wide / MULTIPROCESSORS);
    const double narrow_turns = ceil((double)narrow / MULTIPROCESSORS);
    return wide_turns <= 0.52 * narrow_turns ? w->p->wide : w->p->narrow;
}

/* The place of a product's n columns in the sums: the first column, the width of rows; and from
 * which of its rows on a matrix is in the workspace. */
struct sums {
    size_t column, stride, weight_row;
};

/* sums = halves W^T * 2^-exponent, for the rows from w->first on, which lie at the beginning of
 * both, and n rows of k elements in the workspace. */
static tol_status prompt_queue_product(const struct prompt_work *w, size_t n, size_t k,
                                       int exponent, struct sums to) {
    const struct loaded_prompt *p = w->p;
    const size_t rows = w->rows - w->first, sums = p->sums / sizeof(float) + to.column;
    const size_t weights = p->weights / sizeof(uint16_t) + to.weight_row * k;
    return kn_gemm(w->l->kernels, w->l->stream,
                   &(struct kn_gemm){.precision = KN_GEMM_F16,
                                     .c_type = KN_F32,
                                     .transpose_b = true,
                                     .m = rows,
                                     .n = n,
                                     .k = k,
                                     .alpha = ldexpf(1, -exponent),
                                     .a = {p->buffer, p->halves / sizeof(uint16_t), 0, 0},
                                     .b = {p->buffer, weights, 0, 0},
                                     .c = {p->buffer, sums, to.stride, 0},
                                     .variant = variant_for(w, rows, n)});
}

/* Adds a matrix's biases, if it has some, to the sums from a column on. */
static tol_status queue_bias(const struct prompt_work *w, const struct loaded_matrix *matrix,
                             size_t column, size_t stride) {
    if (matrix->bias.address == 0) return TOL_OK;
    return kn_halves_bias(w->l->kernels, w->l->stream,
                          &(struct kn_halves_bias){
                              w->rows - w->first, matrix->rows, stride,
                              prompt_place(w, w->p->sums + column * sizeof(float)), matrix->bias});
}

static tol_status prompt_queue_norm(const struct prompt_work *w, size_t weight, int exponent,
                                    bool adds, bool scales) {
    const struct tol_loaded *l = w->l;
    const size_t width = l->shape.width;
    const struct kn_place none = {0, 0};
    return kn_halves_norm(
        l->kernels, l->stream,
        &(struct kn_halves_norm){
            .rows = w->rows - w->first,
            .columns = width,
            .x = prompt_place(w, w->p->x + w->first * width * sizeof(float)),
            .sums = adds ? prompt_place(w, w->p->sums) : none,
            .scales = scales ? prompt_place(w, w->p->scales) : none,
            .weight = weight != SIZE_MAX ? kn_place_of(l->weights, weight * sizeof(float)) : none,
            .out = prompt_place(w, w->p->halves),
            .epsilon = l->shape.epsilon,
            .exponent = exponent});
}

/* ---- attention ---- */

/* q k and v of all rows, and keys and values into the pages. */
static tol_status queue_heads(struct prompt_work *w, size_t index) {
    tol_status status = TOL_OK;
    const struct loaded_layer *layer = &w->l->layers[index];
    const struct prompt_powers *powers = &w->p->powers[index];
    const struct tol_model_shape *shape = &w->l->shape;
    size_t at = w->p->weights, column = 0;
    for (size_t i = 0; i < layer->qkv_count; i++) {
        TOL_TRY(queue_weights(w, &layer->qkv[i], powers->qkv, &at));
    }
    TOL_TRY(prompt_queue_product(w, w->qkv_width, shape->width,
                                 powers->qkv + powers->attention_norm,
                                 (struct sums){0, w->qkv_width, 0}));
    for (size_t i = 0; i < layer->qkv_count; i++) {
        TOL_TRY(queue_bias(w, &layer->qkv[i], column, w->qkv_width));
        column += layer->qkv[i].rows;
    }
    status = kn_heads(w->l->kernels, w->l->stream,
                      &(struct kn_heads_ready){
                          .batch = w->batch,
                          .shape = loaded_heads(w->l),
                          .qkv = prompt_place(w, w->p->sums),
                          .qkv_stride = w->qkv_width,
                          .q_norm = layer->q_norm,
                          .k_norm = layer->k_norm,
                          .epsilon = shape->epsilon,
                          .rotated = shape->rotated,
                          .halves = shape->halves,
                          .frequencies = w->l->frequencies,
                          .magnitude = shape->magnitude,
                          .layer = index,
                          .notices = kn_place_of(w->l->scratch.buffer, w->l->scratch.notices)});
out:
    return status;
}

/* Attention over pages, a part of the rows at a time, and its result as halves: for windows, and
 * heads of sizes that the other has no kernel for. The halves of one of several devices are rows
 * without gaps in place of q. */
static tol_status queue_paged(const struct prompt_work *w) {
    tol_status status = TOL_OK;
    const struct tol_loaded *l = w->l;
    const struct kn_paged_heads heads = loaded_heads(l);
    const size_t row = w->qkv_width * sizeof(float), out = w->own_width * sizeof(float);
    const size_t attended = w->p->sums + w->rows * row;
    const size_t splits = (w->end - 1) / KN_PAGED_SPAN + 1;
    const bool is_alone = l->share.ranks == 1;
    const size_t room = l->scratch.parts_bytes / kn_paged_workspace(&heads, 1, splits);
    for (size_t first = w->first; first < w->rows; first += room) {
        struct kn_paged_rows some = rest_of(w, first);
        if (some.rows > room) some.rows = room;
        TOL_TRY(kn_paged_attention(
            l->kernels, l->stream,
            &(struct kn_paged){
                .batch = some,
                .shape = heads,
                .q = prompt_place(w, w->p->sums + first * row),
                .out = prompt_place(w, attended + (first - w->first) * out),
                .q_stride = w->qkv_width,
                .out_stride = w->own_width,
                .window = l->shape.window,
                .splits = splits,
                .workspace = {tol_buffer_address(l->scratch.buffer) + l->scratch.parts,
                              l->scratch.parts_bytes}}));
    }
    status = kn_halves_rows(
        l->kernels, l->stream,
        &(struct kn_halves_rows){w->rows - w->first, w->own_width, w->own_width,
                                 prompt_place(w, attended),
                                 prompt_place(w, is_alone ? w->p->halves : w->p->q)});
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
        &(struct kn_halves_rows){rows, w->own_width, w->qkv_width,
                                 prompt_place(w, p->sums + w->first * w->qkv_width * sizeof(float)),
                                 prompt_place(w, p->q)}));
    TOL_TRY(kn_halves_cache(l->kernels, l->stream,
                            &(struct kn_halves_cache){.batch = w->batch,
                                                      .shape = loaded_heads(l),
                                                      .positions = w->end,
                                                      .keys = prompt_place(w, p->keys),
                                                      .values = prompt_place(w, p->values)}));
    status = kn_attention(
        l->kernels, l->stream,
        &(struct kn_attention){.type = KN_F16,
                               .batch = 1,
                               .heads = l->share.heads,
                               .kv_heads = l->share.kv_heads,
                               .q_length = rows,
                               .kv_length = w->end,
                               .head_size = head,
                               .causal = true,
                               .q = {p->buffer, p->q / half, 0, head, w->own_width},
                               .k = {.buffer = p->buffer, .offset = p->keys / half},
                               .v = {.buffer = p->buffer, .offset = p->values / half},
                               .out = {p->buffer, own_halves(w) / half, 0, head, w->attended_width},
                               .variant = p->attention});
out:
    return status;
}

/* ---- stages of a layer on a device ---- */

/* Up to the halves that attention leaves. */
static tol_status prompt_queue_attention(struct prompt_work *w, size_t index, size_t wanted) {
    tol_status status = TOL_OK;
    const struct tol_loaded *l = w->l;
    const struct loaded_layer *layer = &l->layers[index];
    const struct prompt_powers *powers = &w->p->powers[index];
    const struct kn_paged_heads heads = loaded_heads(l);
    w->batch.layer_at = index * kn_paged_layer_bytes(&heads);
    TOL_TRY(
        prompt_queue_norm(w, layer->attention_norm, powers->attention_norm, index > 0, index > 0));
    TOL_TRY(queue_heads(w, index));
    /* After the keys and values of the last layer, only the wanted row is needed. */
    if (index + 1 == l->shape.layers) w->first = w->rows - wanted;
    if (w->first == w->rows) return TOL_OK;
    status = w->p->attention != NULL ? queue_gathered(w) : queue_paged(w);
out:
    return status;
}

/* The share's columns of what a matrix adds to x. */
static tol_status queue_adds(const struct prompt_work *w, const struct loaded_matrix *matrix,
                             int exponent) {
    tol_status status = TOL_OK;
    const struct loaded_share *share = &w->l->share;
    const size_t width = w->l->shape.width, column = share->rank * share->width;
    size_t at = w->p->weights;
    TOL_TRY(queue_weights(w, matrix, exponent, &at));
    TOL_TRY(prompt_queue_product(w, share->width, matrix->k, exponent,
                                 (struct sums){column, width, 0}));
    status = queue_bias(w, matrix, column, width);
out:
    return status;
}

static tol_status prompt_queue_output(struct prompt_work *w, size_t index, size_t wanted) {
    (void)wanted;
    return queue_adds(w, &w->l->layers[index].output, w->p->powers[index].output);
}

static tol_status prompt_queue_down(struct prompt_work *w, size_t index, size_t wanted) {
    (void)wanted;
    return queue_adds(w, &w->l->layers[index].down, w->p->powers[index].down);
}

/* The share's gates and factors, in rows of all gates and then all factors. */
static tol_status queue_up(struct prompt_work *w, size_t index, size_t wanted) {
    tol_status status = TOL_OK;
    const struct tol_loaded *l = w->l;
    const struct loaded_layer *layer = &l->layers[index];
    const struct prompt_powers *powers = &w->p->powers[index];
    const size_t width = l->shape.width, feed = l->shape.feed_forward, n = l->share.feed_forward;
    const int exponent = powers->gated + powers->feed_norm;
    const size_t column = l->share.rank * n;
    size_t at = w->p->weights;
    (void)wanted;
    TOL_TRY(prompt_queue_norm(w, layer->feed_norm, powers->feed_norm, true, false));
    TOL_TRY(queue_weights(w, &layer->gate, powers->gated, &at));
    TOL_TRY(queue_weights(w, &layer->up, powers->gated, &at));
    if (l->share.ranks == 1) {
        return prompt_queue_product(w, 2 * n, width, exponent, (struct sums){0, 2 * n, 0});
    }
    TOL_TRY(prompt_queue_product(w, n, width, exponent, (struct sums){column, 2 * feed, 0}));
    status = prompt_queue_product(w, n, width, exponent, (struct sums){feed + column, 2 * feed, n});
out:
    return status;
}

/* Every device computes all halves, because a row has one power of two. */
static tol_status prompt_queue_gated(const struct prompt_work *w) {
    return kn_halves_gated(w->l->kernels, w->l->stream,
                           &(struct kn_halves_gated){w->rows - w->first, w->l->shape.feed_forward,
                                                     prompt_place(w, w->p->sums),
                                                     prompt_place(w, w->p->halves),
                                                     prompt_place(w, w->p->scales)});
}

/* ---- on all devices ---- */

struct prompt_works {
    struct tol_loaded *l; /* the first device's */
    size_t index, wanted; /* layer; rows wanted */
    struct prompt_work each[KN_COLLECTIVE_RANKS_MAX];
};

typedef tol_status stage(struct prompt_work *w, size_t index, size_t wanted);

static tol_status prompt_on_all(struct prompt_works *all, stage *queue) {
    tol_status status = TOL_OK;
    for (unsigned i = 0; i < all->l->share.ranks; i++) {
        TOL_TRY(queue(&all->each[i], all->index, all->wanted));
    }
out:
    return status;
}

/* Exchanges columns of `element` bytes, from a column on, in rows of `stride`. */
static tol_status prompt_exchange(const struct prompt_works *all, size_t element, size_t out,
                                  size_t column, size_t columns, size_t stride) {
    const struct prompt_work *w = &all->each[0];
    return loaded_team_exchange(
        all->l, &(struct loaded_columns){.is_prompt = true,
                                         .rows = w->rows - w->first,
                                         .stride = stride * element,
                                         .part_bytes = columns / all->l->share.ranks * element,
                                         .out = out + column * element});
}

static tol_status exchange_attended(const struct prompt_works *all) {
    const struct prompt_work *w = &all->each[0];
    const size_t half = sizeof(uint16_t);
    if (w->p->attention != NULL) {
        return prompt_exchange(all, half, w->p->halves, 0, w->attended_width, w->attended_width);
    }
    return loaded_team_exchange(all->l, &(struct loaded_columns){.is_prompt = true,
                                                                 .rows = w->rows - w->first,
                                                                 .stride = w->attended_width * half,
                                                                 .part_bytes = w->own_width * half,
                                                                 .out = w->p->halves,
                                                                 .in = w->p->q,
                                                                 .in_stride = w->own_width * half});
}

static tol_status prompt_queue_layer(struct prompt_works *all) {
    tol_status status = TOL_OK;
    const size_t width = all->l->shape.width, feed = all->l->shape.feed_forward;
    const size_t sums = all->l->prompt.sums, word = sizeof(float);
    TOL_TRY(prompt_on_all(all, prompt_queue_attention));
    if (all->each[0].first == all->each[0].rows) return TOL_OK;
    TOL_TRY(exchange_attended(all));
    TOL_TRY(prompt_on_all(all, prompt_queue_output));
    TOL_TRY(prompt_exchange(all, word, sums, 0, width, width));
    TOL_TRY(prompt_on_all(all, queue_up));
    TOL_TRY(prompt_exchange(all, word, sums, 0, feed, 2 * feed));
    TOL_TRY(prompt_exchange(all, word, sums, feed, feed, 2 * feed));
    for (unsigned i = 0; i < all->l->share.ranks; i++) TOL_TRY(prompt_queue_gated(&all->each[i]));
    TOL_TRY(prompt_on_all(all, prompt_queue_down));
    status = prompt_exchange(all, word, sums, 0, width, width);
out:
    return status;
}

static tol_status prompt_queue_begin(const struct prompt_work *w) {
    tol_status status = TOL_OK;
    const struct tol_loaded *l = w->l;
    TOL_TRY(tol_copy_to_device(l->stream, l->input, 0, l->sent, 0, 3 * w->rows * sizeof(int)));
    status = kn_embed(l->kernels, l->stream,
                      &(struct kn_embed){.format = l->embedding.format,
                                         .rows = w->rows,
                                         .columns = l->shape.width,
                                         .table_rows = l->shape.vocabulary,
                                         .table = l->embedding.weights,
                                         .tokens = kn_place_of(l->input, 0),
                                         .out = prompt_place(w, w->p->x),
                                         .out_stride = l->shape.width});
out:
    return status;
}

/* Copies the wanted row to the place from which logits are computed. */
static tol_status queue_wanted(const struct prompt_work *w) {
    tol_status status = TOL_OK;
    const struct tol_loaded *l = w->l;
    const size_t row = l->shape.width * sizeof(float);
    TOL_TRY(prompt_queue_norm(w, SIZE_MAX, 0, true, true));
    status = tol_copy_on_device(l->stream, l->scratch.buffer, l->scratch.x, w->p->buffer,
                                w->p->x + w->first * row, row);
out:
    return status;
}

static tol_status prompt_queue_all(struct prompt_works *all, bool wants_logits) {
    tol_status status = TOL_OK;
    const unsigned ranks = all->l->share.ranks;
    for (unsigned i = 0; i < ranks; i++) TOL_TRY(prompt_queue_begin(&all->each[i]));
    for (all->index = 0; all->index < all->l->shape.layers; all->index++) {
        TOL_TRY(prompt_queue_layer(all));
    }
    for (unsigned i = 0; i < ranks && all->wanted > 0; i++) TOL_TRY(queue_wanted(&all->each[i]));
    status = loaded_pass_queue_logits(all->l, all->wanted, wants_logits);
out:
    return status;
}

static struct prompt_work prompt_work_of(struct tol_loaded *l, size_t rows, size_t end) {
    const size_t head = l->shape.head_size;
    return (struct prompt_work){.l = l,
                                .p = &l->prompt,
                                .rows = rows,
                                .end = end,
                                .batch = {.rows = rows,
                                          .positions = kn_place_of(l->input, rows * sizeof(int)),
                                          .slots = kn_place_of(l->input, 2 * rows * sizeof(int)),
                                          .tables = kn_place_of(l->tables, 0),
                                          .pages_max = l->pages_max},
                                .qkv_width = (l->share.heads + 2 * l->share.kv_heads) * head,
                                .own_width = l->share.heads * head,
                                .attended_width = l->shape.heads * head};
}

tol_status loaded_prompt_run(struct tol_loaded *l, const struct loaded_pass *pass,
                             struct loaded_outcome *outcome) {
    tol_status status = TOL_OK;
    const size_t rows = pass->count;
    const bool wants_logits = pass->wants_logits && pass->wanted > 0;
    struct prompt_works all = {.l = l, .wanted = pass->wanted};
    for (unsigned i = 0; i < l->share.ranks; i++) {
        all.each[i] =
            prompt_work_of(l->team.part[i], rows, (size_t)pass->rows[rows - 1].position + 1);
    }
    TOL_TRY(loaded_team_check(l));
    TOL_TRY(loaded_pass_send(l, pass));
    status = prompt_queue_all(&all, wants_logits);
    if (status == TOL_OK) status = loaded_pass_take(l, pass->wanted, wants_logits, false, outcome);
    status = loaded_team_settle(l, status);
out:
    return status;
}
