/*
 * Enqueues a pass: stages on each device, and exchanges of columns between them.
 */
#include "pass.h"

#include "core/check.h"
#include "decode/best.h"
#include "decode/embed.h"
#include "decode/paged_step.h"
#include "device_team.h"
#include "norm/norm.h"
#include "pass_draw.h"
#include "pass_graphs.h"
#include "quantised/linear/linear_pair.h"
#include "quantised/formats/rounded.h"
#include "share.h"

enum { INPUTS = 3 };

static size_t splits_most(const struct tol_loaded *l) {
    return (l->positions + KN_PAGED_SPAN - 1) / KN_PAGED_SPAN;
}

/* Spans for a position, as a power of two, so that there are few forms. */
static size_t splits_for(const struct tol_loaded *l, size_t position) {
    size_t splits = 1;
    while (splits < position / KN_PAGED_SPAN + 1) splits *= 2;
    return splits < splits_most(l) ? splits : splits_most(l);
}

size_t loaded_pass_room(const struct tol_loaded *l, size_t position) {
    const struct kn_paged_heads shape = loaded_heads(l);
    const size_t each = kn_paged_workspace(&shape, 1, splits_for(l, position));
    const size_t fit = l->scratch.parts_bytes / each;
    return fit < l->rows ? fit : l->rows;
}

/* ---- what is queued on a device ---- */

struct work {
    struct tol_loaded *l; /* of the device */
    struct tol_stream *stream;
    size_t rows, wanted, splits;
    size_t layer; /* that is queued */
    bool wants_logits;
    bool apart; /* each row is of another session */
    bool draws;
    struct kn_paged_rows batch;
    size_t qkv_width;      /* of the share */
    size_t attended_width; /* of all heads */
};

static struct kn_place scratch_place(const struct work *w, size_t offset) {
    return kn_place_of(w->l->scratch.buffer, offset);
}

static struct kn_place split_place(const struct work *w) {
    return (struct kn_place){scratch_place(w, w->l->scratch.split).address,
                             w->l->scratch.split_bytes};
}

/* Whether products of all these matrices are of rounded columns. */
static bool are_bytes(const struct work *w, const struct loaded_matrix *matrices, size_t count) {
    const struct tol_device *device = tol_context_device(w->l->context);
    for (size_t i = 0; i < count; i++) {
        if (!kn_linear_is_bytes(device, matrices[i].format)) return false;
    }
    return true;
}

/* Of an array that devices exchange, where the columns of this one begin. */
static size_t pass_own(const struct work *w, size_t offset, size_t columns) {
    return offset + w->l->share.rank * columns * sizeof(float);
}

/* Rounded: into the place of split columns; else as floats. */
static tol_status pass_queue_norm(const struct work *w, size_t weight, size_t first, size_t rows,
                                  bool *is_rounded) {
    const size_t width = w->l->shape.width;
    const struct tol_buffer *scratch = w->l->scratch.buffer;
    const size_t in = w->l->scratch.x / sizeof(float) + first * width;
    const size_t out = w->l->scratch.normed / sizeof(float);
    *is_rounded = *is_rounded && width <= KN_ROUNDED_NORM_MAX;
    if (*is_rounded) {
        return kn_rounded(
            w->l->kernels, w->stream,
            &(struct kn_rounded){.columns = rows,
                                 .k = width,
                                 .x = kn_place_of(scratch, in * sizeof(float)),
                                 .x_stride = width,
                                 .norm = kn_place_of(w->l->weights, weight * sizeof(float)),
                                 .epsilon = w->l->shape.epsilon,
                                 .out = split_place(w)});
    }
    return kn_norm(w->l->kernels, w->stream,
                   &(struct kn_norm){.kind = KN_RMSNORM,
                                     .type = KN_F32,
                                     .rows = rows,
                                     .columns = width,
                                     .in = {scratch, in, 0},
                                     .out = {scratch, out, 0},
                                     .affine_type = KN_F32,
                                     .weight = {w->l->weights, weight, 0},
                                     .epsilon = w->l->shape.epsilon,
                                     .variant = "registers"});
}

/* Where a gated product writes y rounded to bytes, for the following product. */
static struct kn_place fed_place(const struct work *w) {
    return (struct kn_place){scratch_place(w, w->l->scratch.fed).address, w->l->scratch.fed_bytes};
}

/* y = W x, from and to places of the scratch buffer whose rows have these widths. */
static struct kn_linear pass_product_of(const struct work *w, const struct loaded_matrix *matrix,
                                        size_t rows, size_t x, struct kn_place y, size_t y_width) {
    return (struct kn_linear){.format = matrix->format,
                              .rows = matrix->rows,
                              .columns = rows,
                              .k = matrix->k,
                              .weights = matrix->weights,
                              .bias = matrix->bias,
                              .x = scratch_place(w, x),
                              .y = y,
                              .x_stride = matrix->k,
                              .y_stride = y_width,
                              .workspace = split_place(w)};
}

static tol_status pass_queue_product(const struct work *w, const struct loaded_matrix *matrix,
                                     size_t rows, size_t x, struct kn_place y, size_t y_width,
                                     bool adds, bool is_rounded) {
    struct kn_linear product = pass_product_of(w, matrix, rows, x, y, y_width);
    product.adds = adds;
    product.is_rounded = is_rounded;
    return kn_linear(w->l->kernels, w->stream, &product);
}

/* Where attention writes its rounded rows, for the following product or an exchange. */
static struct kn_place rounded_place(const struct work *w) {
    return w->l->share.ranks == 1 ? split_place(w) : fed_place(w);
}

/* Whether attention leaves its rows rounded for the output matrix: the share's, as the product of
 * one device would round them. */
static bool rounds_attended(const struct work *w, const struct loaded_layer *layer) {
    const struct kn_paged_heads heads = loaded_heads(w->l);
    return kn_paged_can_round(&heads) && are_bytes(w, &layer->output, 1);
}

static tol_status pass_queue_attention(const struct work *w, const struct loaded_layer *layer) {
    tol_status status = TOL_OK;
    const struct tol_model_shape *shape = &w->l->shape;
    const struct loaded_scratch *scratch = &w->l->scratch;
    const struct kn_paged_heads heads = loaded_heads(w->l);
    size_t at = scratch->qkv;
    bool is_rounded = are_bytes(w, layer->qkv, layer->qkv_count);
    struct kn_linear products[QKV];
    TOL_TRY(pass_queue_norm(w, layer->attention_norm, 0, w->rows, &is_rounded));
    for (size_t i = 0; i < layer->qkv_count; i++) {
        products[i] = pass_product_of(w, &layer->qkv[i], w->rows, scratch->normed,
                                      scratch_place(w, at), w->qkv_width);
        products[i].is_rounded = is_rounded;
        at += layer->qkv[i].rows * sizeof(float);
    }
    if (layer->qkv_count == 2) {
        TOL_TRY(kn_linear_pair(w->l->kernels, w->stream, &products[0], &products[1]));
    }
    for (size_t i = 0; i < layer->qkv_count && layer->qkv_count != 2; i++) {
        TOL_TRY(kn_linear(w->l->kernels, w->stream, &products[i]));
    }
    is_rounded = rounds_attended(w, layer);
    const struct kn_heads_ready ready = {.batch = w->batch,
                                         .shape = heads,
                                         .qkv = scratch_place(w, scratch->qkv),
                                         .qkv_stride = w->qkv_width,
                                         .q_norm = layer->q_norm,
                                         .k_norm = layer->k_norm,
                                         .epsilon = shape->epsilon,
                                         .rotated = shape->rotated,
                                         .halves = shape->halves,
                                         .frequencies = w->l->frequencies,
                                         .magnitude = shape->magnitude,
                                         .layer = w->layer,
                                         .notices = scratch_place(w, scratch->notices)};
    const struct kn_paged paged = {
        .batch = w->batch,
        .shape = heads,
        .q = scratch_place(w, scratch->qkv),
        .out = scratch_place(w, pass_own(w, scratch->attended, heads.heads * heads.head_size)),
        .q_stride = w->qkv_width,
        .out_stride = w->attended_width,
        .window = shape->window,
        .splits = w->splits,
        .rounded = is_rounded ? rounded_place(w) : (struct kn_place){0, 0},
        .workspace = {tol_buffer_address(scratch->buffer) + scratch->parts, scratch->parts_bytes}};
    if (w->apart) return kn_paged_step(w->l->kernels, w->stream, &ready, &paged);
    TOL_TRY(kn_heads(w->l->kernels, w->stream, &ready));
    status = kn_paged_attention(w->l->kernels, w->stream, &paged);
out:
    return status;
}

/* Adds to the share's columns of x. */
static tol_status pass_queue_output(const struct work *w, const struct loaded_layer *layer) {
    const struct loaded_scratch *scratch = &w->l->scratch;
    return pass_queue_product(w, &layer->output, w->rows, scratch->attended,
                              scratch_place(w, pass_own(w, scratch->x, w->l->share.width)),
                              w->l->shape.width, true, rounds_attended(w, layer));
}

/* Whether the gated product leaves its result rounded. */
static bool rounds_fed(const struct work *w, const struct loaded_layer *layer) {
    enum { CHUNK = 256 };
    return w->l->share.feed_forward % CHUNK == 0 && are_bytes(w, &layer->up, 1) &&
           are_bytes(w, &layer->down, 1);
}

static tol_status pass_queue_gated(const struct work *w, const struct loaded_layer *layer) {
    tol_status status = TOL_OK;
    const struct loaded_scratch *scratch = &w->l->scratch;
    const size_t columns = w->l->share.feed_forward;
    bool is_rounded = are_bytes(w, &layer->up, 1);
    struct kn_linear gated = pass_product_of(
        w, &layer->up, w->rows, scratch->normed,
        scratch_place(w, pass_own(w, scratch->activated, columns)), w->l->shape.feed_forward);
    TOL_TRY(pass_queue_norm(w, layer->feed_norm, 0, w->rows, &is_rounded));
    gated.gate = layer->gate.weights;
    gated.is_rounded = is_rounded;
    if (rounds_fed(w, layer)) {
        gated.rounded = fed_place(w);
        gated.tickets =
            (struct kn_place){scratch_place(w, scratch->tickets).address, scratch->tickets_bytes};
    }
    status = kn_linear(w->l->kernels, w->stream, &gated);
out:
    return status;
}

static tol_status pass_queue_down(const struct work *w, const struct loaded_layer *layer) {
    const struct loaded_scratch *scratch = &w->l->scratch;
    struct kn_linear down = pass_product_of(
        w, &layer->down, w->rows, scratch->activated,
        scratch_place(w, pass_own(w, scratch->x, w->l->share.width)), w->l->shape.width);
    down.adds = true;
    if (rounds_fed(w, layer)) {
        if (w->l->share.ranks == 1) down.workspace = fed_place(w);
        down.is_rounded = true;
    }
    return kn_linear(w->l->kernels, w->stream, &down);
}

/* To the host: what was noted, and the tokens of the largest logits. */
static tol_status pass_queue_results(const struct work *w) {
    const struct tol_loaded *l = w->l;
    const size_t tokens = l->share.vocabulary > 0 ? w->wanted : 0;
    return tol_copy_to_host(w->stream, l->received, loaded_received_notices(l), l->scratch.buffer,
                            l->scratch.notices, loaded_notices_bytes(l) + tokens * sizeof(int));
}

/* The logits of the wanted rows, the largest of each, and what goes to the host. */
static tol_status queue_logits(const struct work *w) {
    tol_status status = TOL_OK;
    const struct tol_loaded *l = w->l;
    const struct loaded_scratch *scratch = &l->scratch;
    const size_t columns = l->share.vocabulary;
    bool is_rounded = are_bytes(w, &l->output, 1);
    if (columns == 0 || w->wanted == 0) return pass_queue_results(w);
    TOL_TRY(pass_queue_norm(w, l->output_norm, w->rows - w->wanted, w->wanted, &is_rounded));
    TOL_TRY(pass_queue_product(w, &l->output, w->wanted, scratch->normed,
                               scratch_place(w, scratch->logits), columns, false, is_rounded));
    if (w->wants_logits) { /* before draws, which change those of penalised tokens */
        TOL_TRY(tol_copy_to_host(w->stream, l->received, loaded_received_logits(l), scratch->buffer,
                                 scratch->logits, w->wanted * columns * sizeof(float)));
    }
    if (w->draws) {
        TOL_TRY(loaded_draw_queue(l, w->rows, w->wants_logits));
    } else {
        TOL_TRY(kn_best(l->kernels, w->stream,
                        &(struct kn_best){.rows = w->wanted,
                                          .columns = columns,
                                          .in = scratch_place(w, scratch->logits),
                                          .in_stride = columns,
                                          .out = scratch_place(w, scratch->best),
                                          .workspace = scratch_place(w, scratch->keys),
                                          .variant = w->wants_logits ? "parts" : NULL}));
        TOL_TRY(tol_copy_to_host(w->stream, l->received, 0, scratch->buffer, scratch->keys,
                                 kn_best_workspace(w->wanted)));
    }
    status = pass_queue_results(w);
out:
    return status;
}

static tol_status pass_queue_begin(const struct work *w) {
    tol_status status = TOL_OK;
    const struct tol_loaded *l = w->l;
    const size_t number = l->share.ranks > 1 ? 1 : 0;
    const size_t bytes = (INPUTS * w->rows + number) * sizeof(int);
    TOL_TRY(tol_copy_to_device(w->stream, l->input, 0, l->sent, 0,
                               w->draws ? loaded_draw_end(w->rows) : bytes));
    status = kn_embed(l->kernels, w->stream,
                      &(struct kn_embed){.format = l->embedding.format,
                                         .rows = w->rows,
                                         .columns = l->shape.width,
                                         .table_rows = l->shape.vocabulary,
                                         .table = l->embedding.weights,
                                         .tokens = kn_place_of(l->input, 0),
                                         .out = scratch_place(w, l->scratch.x),
                                         .out_stride = l->shape.width});
out:
    return status;
}

/* ---- on all devices ---- */

/* A stage of a layer on all devices. */
typedef tol_status stage(const struct work *w, const struct loaded_layer *layer);

static tol_status pass_on_all(struct tol_loaded *l, const struct work *works, stage *queue,
                              size_t layer) {
    tol_status status = TOL_OK;
    for (unsigned i = 0; i < l->share.ranks; i++) {
        TOL_TRY(queue(&works[i], &works[i].l->layers[layer]));
    }
out:
    return status;
}

/* Exchanges columns of floats, in place. */
static tol_status pass_exchange(struct tol_loaded *l, const struct work *works, size_t out,
                                size_t columns) {
    return loaded_team_exchange(
        l, &(struct loaded_columns){.rows = works[0].rows,
                                    .stride = columns * sizeof(float),
                                    .part_bytes = columns / l->share.ranks * sizeof(float),
                                    .out = out});
}

/* Exchanges columns that are rounded to bytes, whose chunks are stored tile by tile, from the
 * place where stages write them to the place where products read them. */
static tol_status exchange_rounded(struct tol_loaded *l, const struct work *works, size_t columns) {
    const size_t part = kn_rounded_bytes(1, columns / l->share.ranks);
    const size_t tiles = kn_rounded_bytes(works[0].rows, columns) / kn_rounded_bytes(1, columns);
    return loaded_team_exchange(l, &(struct loaded_columns){.rows = tiles,
                                                            .stride = l->share.ranks * part,
                                                            .part_bytes = part,
                                                            .out = l->scratch.split,
                                                            .in = l->scratch.fed,
                                                            .in_stride = part});
}

static tol_status pass_queue_layer(struct tol_loaded *l, struct work *works, size_t index) {
    tol_status status = TOL_OK;
    const struct loaded_scratch *scratch = &l->scratch;
    const struct loaded_layer *layer = &l->layers[index];
    const struct kn_paged_heads heads = loaded_heads(l);
    const size_t attended = works->attended_width, feed = l->shape.feed_forward;
    for (unsigned i = 0; i < l->share.ranks; i++) {
        works[i].layer = index;
        works[i].batch.layer_at = index * kn_paged_layer_bytes(&heads);
    }
    TOL_TRY(pass_on_all(l, works, pass_queue_attention, index));
    TOL_TRY(rounds_attended(works, layer) ? exchange_rounded(l, works, attended)
                                          : pass_exchange(l, works, scratch->attended, attended));
    TOL_TRY(pass_on_all(l, works, pass_queue_output, index));
    TOL_TRY(pass_exchange(l, works, scratch->x, l->shape.width));
    TOL_TRY(pass_on_all(l, works, pass_queue_gated, index));
    TOL_TRY(rounds_fed(works, layer) ? exchange_rounded(l, works, feed)
                                     : pass_exchange(l, works, scratch->activated, feed));
    TOL_TRY(pass_on_all(l, works, pass_queue_down, index));
    status = pass_exchange(l, works, scratch->x, l->shape.width);
out:
    return status;
}

static struct work pass_work_of(struct tol_loaded *l, const struct loaded_form *form) {
    const size_t rows = form->rows, head = l->shape.head_size;
    return (struct work){.l = l,
                         .stream = l->stream,
                         .rows = rows,
                         .wanted = form->wanted,
                         .splits = form->splits,
                         .wants_logits = form->wants_logits,
                         .apart = form->apart,
                         .draws = form->draws,
                         .batch = {.rows = rows,
                                   .positions = kn_place_of(l->input, rows * sizeof(int)),
                                   .slots = kn_place_of(l->input, 2 * rows * sizeof(int)),
                                   .tables = kn_place_of(l->tables, 0),
                                   .pages_max = l->pages_max},
                         .qkv_width = (l->share.heads + 2 * l->share.kv_heads) * head,
                         .attended_width = l->shape.heads * head};
}

static tol_status pass_queue_all(struct tol_loaded *l, const struct loaded_form *form) {
    tol_status status = TOL_OK;
    struct work works[KN_COLLECTIVE_RANKS_MAX];
    for (unsigned i = 0; i < l->share.ranks; i++) {
        works[i] = pass_work_of(l->team.part[i], form);
        TOL_TRY(pass_queue_begin(&works[i]));
    }
    for (size_t i = 0; i < form->layers; i++) TOL_TRY(pass_queue_layer(l, works, i));
    for (unsigned i = 0; i < l->share.ranks; i++) TOL_TRY(queue_logits(&works[i]));
out:
    return status;
}

/* Launches the graphs of the form, which are captured now if this is its second pass. */
static tol_status queue_or_launch(struct tol_loaded *l, const struct loaded_form *form) {
    tol_status status = TOL_OK;
    struct loaded_graph *graph = loaded_graphs_find(l, form);
    if (graph == NULL) return pass_queue_all(l, form);
    if (!loaded_graphs_is_ready(graph)) {
        TOL_TRY(loaded_graphs_capture_begin(l));
        TOL_TRY(loaded_graphs_capture_end(l, graph, pass_queue_all(l, form)));
    }
    status = loaded_graphs_launch(l, graph);
out:
    return status;
}

/* ---- a pass ---- */

tol_status loaded_pass_send(struct tol_loaded *l, const struct loaded_pass *pass) {
    tol_status status = TOL_OK;
    l->team.number_at = INPUTS * pass->count * sizeof(int);
    for (unsigned part = 0; part < l->share.ranks; part++) {
        void *bytes = NULL;
        TOL_TRY(tol_pinned_access(l->team.part[part]->sent, &bytes));
        int *inputs = bytes;
        for (size_t i = 0; i < pass->count; i++) {
            inputs[i] = pass->rows[i].token;
            inputs[pass->count + i] = pass->rows[i].position;
            inputs[2 * pass->count + i] = pass->rows[i].slot;
        }
        inputs[INPUTS * pass->count] = 0;
    }
out:
    return status;
}

tol_status loaded_pass_queue_logits(struct tol_loaded *l, size_t wanted, bool wants_logits) {
    tol_status status = TOL_OK;
    const struct loaded_form form = {.rows = 1, .wanted = wanted, .wants_logits = wants_logits};
    for (unsigned i = 0; i < l->share.ranks; i++) {
        const struct work w = pass_work_of(l->team.part[i], &form);
        TOL_TRY(queue_logits(&w));
    }
out:
    return status;
}

tol_status loaded_pass_take(struct tol_loaded *l, size_t wanted, bool wants_logits, bool is_drawn,
                            struct loaded_outcome *outcome) {
    tol_status status = TOL_OK;
    TOL_TRY(loaded_team_wait(l));
    l->passes++;
    status = loaded_team_outcome(l, wanted, wants_logits, is_drawn, outcome);
out:
    return status;
}

/* Whether no two rows are of one session. Rows of a prompt are neighbours, so the search ends
 * soon. */
static bool are_apart(const struct loaded_pass *pass) {
    for (size_t i = 1; i < pass->count; i++) {
        for (size_t j = i; j-- > 0;) {
            if (pass->rows[i].slot == pass->rows[j].slot) return false;
        }
    }
    return true;
}

tol_status loaded_pass_run(struct tol_loaded *l, const struct loaded_pass *pass,
                           struct loaded_outcome *outcome) {
    tol_status status = TOL_OK;
    size_t position = 0;
    for (size_t i = 0; i < pass->count; i++) {
        if ((size_t)pass->rows[i].position > position) position = (size_t)pass->rows[i].position;
    }
    const struct loaded_form form = {.rows = pass->count,
                                     .wanted = pass->wanted,
                                     .splits = splits_for(l, position),
                                     .layers = l->shape.layers - pass->left_out,
                                     .wants_logits = pass->wants_logits && pass->wanted > 0,
                                     .apart = are_apart(pass),
                                     .draws = pass->samplers != NULL};
    TOL_TRY(loaded_team_check(l));
    TOL_TRY(loaded_pass_send(l, pass));
    if (form.draws) TOL_TRY(loaded_draw_send(l, pass->samplers, pass->count));
    status = queue_or_launch(l, &form);
    if (status == TOL_OK) {
        status = loaded_pass_take(l, form.wanted, form.wants_logits, form.draws, outcome);
    }
    status = loaded_team_settle(l, status);
out:
    return status;
}
