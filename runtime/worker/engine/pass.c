/*
 * What is queued for a pass, and the graphs of passes.
 */
#include "pass.h"

#include "core/check.h"
#include "decoder/best.h"
#include "decoder/rounded.h"
#include "norm/norm.h"

#include <stdlib.h>

enum { INPUTS = 3, DEADLINE_MS = 60000, GRAPHS_MAX = 256 };

/* A form of passes, and its graph from the second pass of this form on. */
struct loaded_graph {
    size_t rows, wanted, splits;
    bool wants_logits;
    struct tol_graph *graph;
    struct tol_graph_exec *exec;
};

static size_t splits_most(const struct tol_loaded *l) {
    return (l->positions + KN_PAGED_SPAN - 1) / KN_PAGED_SPAN;
}

/* Spans for a position, as a power of two, so that there are few forms. */
static size_t splits_for(const struct tol_loaded *l, size_t position) {
    size_t splits = 1;
    while (splits < position / KN_PAGED_SPAN + 1) splits *= 2;
    return splits < splits_most(l) ? splits : splits_most(l);
}

static struct kn_paged_heads heads_of(const struct tol_loaded *l) {
    return (struct kn_paged_heads){l->shape.heads, l->shape.kv_heads, l->shape.head_size, l->cache};
}

size_t loaded_pass_room(const struct tol_loaded *l, size_t position) {
    const struct kn_paged_heads shape = heads_of(l);
    const size_t each = kn_paged_workspace(&shape, 1, splits_for(l, position));
    const size_t fit = l->scratch.parts_bytes / each;
    return fit < l->rows ? fit : l->rows;
}

/* ---- what is queued ---- */

struct work {
    struct tol_loaded *l;
    struct tol_stream *stream;
    size_t rows, wanted, splits;
    bool wants_logits;
    struct kn_paged_rows batch;
    size_t qkv_width, attended_width;
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

/* Rounded: into the place of split columns; else as floats. */
static tol_status queue_norm(const struct work *w, size_t weight, size_t first, size_t rows,
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

/* Where a gated product leaves y rounded to bytes, for the product behind it. */
static struct kn_place fed_place(const struct work *w) {
    return (struct kn_place){scratch_place(w, w->l->scratch.fed).address, w->l->scratch.fed_bytes};
}

/* y = W x, from and to places of the scratch buffer whose rows have these widths. */
static struct kn_linear product_of(const struct work *w, const struct loaded_matrix *matrix,
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

static tol_status queue_product(const struct work *w, const struct loaded_matrix *matrix,
                                size_t rows, size_t x, struct kn_place y, size_t y_width, bool adds,
                                bool is_rounded) {
    struct kn_linear product = product_of(w, matrix, rows, x, y, y_width);
    product.adds = adds;
    product.is_rounded = is_rounded;
    return kn_linear(w->l->kernels, w->stream, &product);
}

static tol_status queue_attention(struct work *w, const struct loaded_layer *layer, size_t index) {
    tol_status status = TOL_OK;
    const struct tol_model_shape *shape = &w->l->shape;
    const struct loaded_scratch *scratch = &w->l->scratch;
    const struct kn_paged_heads heads = heads_of(w->l);
    size_t at = scratch->qkv;
    w->batch.layer_at = index * kn_paged_layer_bytes(&heads);
    bool is_rounded = are_bytes(w, layer->qkv, layer->qkv_count);
    TOL_TRY(queue_norm(w, layer->attention_norm, 0, w->rows, &is_rounded));
    for (size_t i = 0; i < layer->qkv_count; i++) {
        TOL_TRY(queue_product(w, &layer->qkv[i], w->rows, scratch->normed, scratch_place(w, at),
                              w->qkv_width, false, is_rounded));
        at += layer->qkv[i].rows * sizeof(float);
    }
    TOL_TRY(kn_heads(w->l->kernels, w->stream,
                     &(struct kn_heads_ready){.batch = w->batch,
                                              .shape = heads,
                                              .qkv = scratch_place(w, scratch->qkv),
                                              .qkv_stride = w->qkv_width,
                                              .q_norm = layer->q_norm,
                                              .k_norm = layer->k_norm,
                                              .epsilon = shape->epsilon,
                                              .rotated = shape->rotated,
                                              .halves = shape->halves,
                                              .frequencies = w->l->frequencies,
                                              .magnitude = shape->magnitude}));
    is_rounded = kn_paged_can_round(&heads) && are_bytes(w, &layer->output, 1);
    TOL_TRY(kn_paged_attention(
        w->l->kernels, w->stream,
        &(struct kn_paged){.batch = w->batch,
                           .shape = heads,
                           .q = scratch_place(w, scratch->qkv),
                           .out = scratch_place(w, scratch->attended),
                           .q_stride = w->qkv_width,
                           .out_stride = w->attended_width,
                           .window = shape->window,
                           .splits = w->splits,
                           .rounded = is_rounded ? split_place(w) : (struct kn_place){0, 0},
                           .workspace = {tol_buffer_address(scratch->buffer) + scratch->parts,
                                         scratch->parts_bytes}}));
    status = queue_product(w, &layer->output, w->rows, scratch->attended,
                           scratch_place(w, scratch->x), shape->width, true, is_rounded);
out:
    return status;
}

static tol_status queue_feed(const struct work *w, const struct loaded_layer *layer) {
    tol_status status = TOL_OK;
    const struct loaded_scratch *scratch = &w->l->scratch;
    bool is_rounded = are_bytes(w, &layer->up, 1);
    const bool rounds = is_rounded && are_bytes(w, &layer->down, 1);
    struct kn_linear gated =
        product_of(w, &layer->up, w->rows, scratch->normed, scratch_place(w, scratch->activated),
                   w->l->shape.feed_forward);
    struct kn_linear down = product_of(w, &layer->down, w->rows, scratch->activated,
                                       scratch_place(w, scratch->x), w->l->shape.width);
    TOL_TRY(queue_norm(w, layer->feed_norm, 0, w->rows, &is_rounded));
    gated.gate = layer->gate.weights;
    gated.is_rounded = is_rounded;
    down.adds = true;
    if (rounds) {
        gated.rounded = fed_place(w);
        gated.tickets =
            (struct kn_place){scratch_place(w, scratch->tickets).address, scratch->tickets_bytes};
        down.workspace = fed_place(w);
        down.is_rounded = true;
    }
    TOL_TRY(kn_linear(w->l->kernels, w->stream, &gated));
    status = kn_linear(w->l->kernels, w->stream, &down);
out:
    return status;
}

/* The logits of the wanted rows, the largest of each, and what goes to the host. */
static tol_status queue_logits(const struct work *w) {
    tol_status status = TOL_OK;
    const struct loaded_scratch *scratch = &w->l->scratch;
    const size_t vocabulary = w->l->shape.vocabulary;
    bool is_rounded = are_bytes(w, &w->l->output, 1);
    TOL_TRY(queue_norm(w, w->l->output_norm, w->rows - w->wanted, w->wanted, &is_rounded));
    TOL_TRY(queue_product(w, &w->l->output, w->wanted, scratch->normed,
                          scratch_place(w, scratch->logits), vocabulary, false, is_rounded));
    TOL_TRY(kn_best(w->l->kernels, w->stream,
                    &(struct kn_best){.rows = w->wanted,
                                      .columns = vocabulary,
                                      .in = scratch_place(w, scratch->logits),
                                      .in_stride = vocabulary,
                                      .out = scratch_place(w, scratch->best),
                                      .workspace = scratch_place(w, scratch->keys)}));
    TOL_TRY(tol_copy_to_host(w->stream, w->l->received, 0, scratch->buffer, scratch->best,
                             w->wanted * sizeof(int)));
    if (w->wants_logits) {
        status = tol_copy_to_host(w->stream, w->l->received, w->l->sessions * sizeof(int),
                                  scratch->buffer, scratch->logits,
                                  w->wanted * vocabulary * sizeof(float));
    }
out:
    return status;
}

static tol_status queue_all(struct work *w) {
    tol_status status = TOL_OK;
    struct tol_loaded *l = w->l;
    TOL_TRY(tol_copy_to_device(w->stream, l->input, 0, l->sent, 0, INPUTS * w->rows * sizeof(int)));
    TOL_TRY(kn_embed(l->kernels, w->stream,
                     &(struct kn_embed){.format = l->embedding.format,
                                        .rows = w->rows,
                                        .columns = l->shape.width,
                                        .table_rows = l->shape.vocabulary,
                                        .table = l->embedding.weights,
                                        .tokens = kn_place_of(l->input, 0),
                                        .out = scratch_place(w, l->scratch.x),
                                        .out_stride = l->shape.width}));
    for (size_t i = 0; i < l->shape.layers; i++) {
        TOL_TRY(queue_attention(w, &l->layers[i], i));
        TOL_TRY(queue_feed(w, &l->layers[i]));
    }
    if (w->wanted > 0) TOL_TRY(queue_logits(w));
out:
    return status;
}

/* ---- graphs ---- */

/* The entry of this form; *is_new: it was made now. NULL: there are too many forms, or no memory:
 * the pass is then queued as it is. */
static struct loaded_graph *entry_of(struct tol_loaded *l, const struct work *w, bool *is_new) {
    *is_new = false;
    for (size_t i = 0; i < l->graph_count; i++) {
        struct loaded_graph *g = &l->graphs[i];
        if (g->rows == w->rows && g->wanted == w->wanted && g->splits == w->splits &&
            g->wants_logits == w->wants_logits) {
            return g;
        }
    }
    if (l->graph_count == GRAPHS_MAX) return NULL;
    if (l->graph_count == l->graph_room) {
        const size_t room = l->graph_room > 0 ? 2 * l->graph_room : 16;
        struct loaded_graph *grown = realloc(l->graphs, room * sizeof *grown);
        if (grown == NULL) return NULL;
        l->graphs = grown;
        l->graph_room = room;
    }
    *is_new = true;
    l->graphs[l->graph_count] = (struct loaded_graph){
        .rows = w->rows, .wanted = w->wanted, .splits = w->splits, .wants_logits = w->wants_logits};
    return &l->graphs[l->graph_count++];
}

static tol_status capture(struct work *w, struct loaded_graph *entry) {
    tol_status status = TOL_OK;
    struct tol_graph *graph = NULL;
    TOL_TRY(tol_graph_capture_begin(w->stream));
    status = queue_all(w);
    const tol_status ended = tol_graph_capture_end(w->stream, &graph);
    if (status == TOL_OK) status = ended;
    if (status == TOL_OK) status = tol_graph_instantiate(graph, &entry->exec);
    if (status == TOL_OK) {
        entry->graph = graph;
        graph = NULL;
    }
out:
    tol_graph_destroy(graph);
    return status;
}

/* Only passes whose rows are all wanted come again in the same form: those of steps. */
static tol_status queue(struct work *w) {
    tol_status status = TOL_OK;
    bool is_new = false;
    struct loaded_graph *entry = w->rows == w->wanted ? entry_of(w->l, w, &is_new) : NULL;
    if (entry == NULL || is_new) return queue_all(w); /* loads the kernels, too */
    if (entry->exec == NULL) TOL_TRY(capture(w, entry));
    TOL_TRY(tol_graph_launch(entry->exec, w->stream));
    w->l->launched_graphs++;
out:
    return status;
}

void loaded_pass_end(struct tol_loaded *l) {
    for (size_t i = 0; i < l->graph_count; i++) {
        tol_graph_exec_destroy(l->graphs[i].exec);
        tol_graph_destroy(l->graphs[i].graph);
    }
    free(l->graphs);
    l->graphs = NULL;
    l->graph_count = l->graph_room = 0;
}

/* ---- a pass ---- */

tol_status loaded_pass_send(struct tol_loaded *l, const struct loaded_pass *pass) {
    tol_status status = TOL_OK;
    void *bytes = NULL;
    TOL_TRY(tol_pinned_access(l->sent, &bytes));
    int *inputs = bytes;
    for (size_t i = 0; i < pass->count; i++) {
        inputs[i] = pass->rows[i].token;
        inputs[pass->count + i] = pass->rows[i].position;
        inputs[2 * pass->count + i] = pass->rows[i].slot;
    }
out:
    return status;
}

tol_status loaded_pass_queue_logits(struct tol_loaded *l, bool wants_logits) {
    const struct work w = {
        .l = l, .stream = l->stream, .rows = 1, .wanted = 1, .wants_logits = wants_logits};
    return queue_logits(&w);
}

tol_status loaded_pass_take(struct tol_loaded *l, bool wants_logits,
                            struct loaded_outcome *outcome) {
    tol_status status = TOL_OK;
    void *bytes = NULL;
    TOL_TRY(tol_stream_synchronize_for(l->stream, DEADLINE_MS));
    l->passes++;
    TOL_TRY(tol_pinned_access(l->received, &bytes));
    outcome->best = bytes;
    outcome->logits =
        wants_logits ? (const float *)(void *)((char *)bytes + l->sessions * sizeof(int)) : NULL;
out:
    return status;
}

tol_status loaded_pass_run(struct tol_loaded *l, const struct loaded_pass *pass,
                           struct loaded_outcome *outcome) {
    tol_status status = TOL_OK;
    size_t position = 0;
    const size_t rows = pass->count;
    for (size_t i = 0; i < rows; i++) {
        if ((size_t)pass->rows[i].position > position) position = (size_t)pass->rows[i].position;
    }
    struct work w = {.l = l,
                     .stream = l->stream,
                     .rows = rows,
                     .wanted = pass->wanted,
                     .splits = splits_for(l, position),
                     .wants_logits = pass->wants_logits && pass->wanted > 0,
                     .batch = {.rows = rows,
                               .positions = kn_place_of(l->input, rows * sizeof(int)),
                               .slots = kn_place_of(l->input, 2 * rows * sizeof(int)),
                               .tables = kn_place_of(l->tables, 0),
                               .pages_max = l->pages_max},
                     .qkv_width = (l->shape.heads + 2 * l->shape.kv_heads) * l->shape.head_size,
                     .attended_width = l->shape.heads * l->shape.head_size};
    TOL_TRY(tol_context_check(l->context));
    TOL_TRY(loaded_pass_send(l, pass));
    TOL_TRY(queue(&w));
    status = loaded_pass_take(l, w.wants_logits, outcome);
out:
    return status;
}
