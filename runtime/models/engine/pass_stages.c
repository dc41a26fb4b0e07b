/*
 * The kernels of each stage.
 */
#include "pass_stages.h"

#include "core/check.h"
#include "decode/best.h"
#include "decode/embed.h"
#include "decode/gated.h"
#include "decode/paged_step.h"
#include "device_team.h"
#include "norm/norm.h"
#include "pass_draw.h"
#include "quantised/formats/rounded.h"
#include "quantised/linear/linear_pair.h"
#include "share.h"

static struct kn_place stages_scratch(const struct pass_work *w, size_t offset) {
    return kn_place_of(w->l->scratch.buffer, offset);
}

static struct kn_place stages_split(const struct pass_work *w) {
    return (struct kn_place){stages_scratch(w, w->l->scratch.split).address,
                             w->l->scratch.split_bytes};
}

/* Whether products of all these matrices are of rounded columns. */
static bool stages_are_bytes(const struct pass_work *w, const struct loaded_matrix *matrices,
                             size_t count) {
    const struct tol_device *device = tol_context_device(w->l->context);
    for (size_t i = 0; i < count; i++) {
        if (!kn_linear_is_bytes(device, matrices[i].format)) return false;
    }
    return true;
}

/* Of an array that devices exchange, where the columns of this one begin. */
static size_t stages_own(const struct pass_work *w, size_t offset, size_t columns) {
    return offset + w->l->share.rank * columns * sizeof(float);
}

/* Rounded: into the place of split columns; else as floats. */
static tol_status stages_norm(const struct pass_work *w, size_t weight, size_t first, size_t rows,
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
                                 .out = stages_split(w)});
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
static struct kn_place stages_fed(const struct pass_work *w) {
    return (struct kn_place){stages_scratch(w, w->l->scratch.fed).address, w->l->scratch.fed_bytes};
}

/* y = W x, from and to places of the scratch buffer whose rows have these widths. */
static struct kn_linear stages_product_of(const struct pass_work *w,
                                          const struct loaded_matrix *matrix, size_t rows, size_t x,
                                          struct kn_place y, size_t y_width) {
    return (struct kn_linear){.format = matrix->format,
                              .rows = matrix->rows,
                              .columns = rows,
                              .k = matrix->k,
                              .weights = matrix->weights,
                              .bias = matrix->bias,
                              .x = stages_scratch(w, x),
                              .y = y,
                              .x_stride = matrix->k,
                              .y_stride = y_width,
                              .workspace = stages_split(w)};
}

static tol_status stages_product(const struct pass_work *w, const struct loaded_matrix *matrix,
                                 size_t rows, size_t x, struct kn_place y, size_t y_width,
                                 bool adds, bool is_rounded) {
    struct kn_linear product = stages_product_of(w, matrix, rows, x, y, y_width);
    product.adds = adds;
    product.is_rounded = is_rounded;
    return kn_linear(w->l->kernels, w->stream, &product);
}

/* Where attention writes its rounded rows, for the following product or an exchange. */
static struct kn_place stages_rounded(const struct pass_work *w) {
    return w->l->share.ranks == 1 ? stages_split(w) : stages_fed(w);
}

bool pass_rounds_attended(const struct pass_work *w, const struct loaded_layer *layer) {
    const struct kn_paged_heads heads = loaded_heads(w->l);
    return kn_paged_can_round(&heads) && stages_are_bytes(w, &layer->output, 1);
}

tol_status pass_queue_attention(const struct pass_work *w, const struct loaded_layer *layer) {
    tol_status status = TOL_OK;
    const struct tol_model_shape *shape = &w->l->shape;
    const struct loaded_scratch *scratch = &w->l->scratch;
    const struct kn_paged_heads heads = loaded_heads(w->l);
    size_t at = scratch->qkv;
    bool is_rounded = stages_are_bytes(w, layer->qkv, layer->qkv_count);
    struct kn_linear products[QKV];
    TOL_TRY(stages_norm(w, layer->attention_norm, 0, w->rows, &is_rounded));
    for (size_t i = 0; i < layer->qkv_count; i++) {
        products[i] = stages_product_of(w, &layer->qkv[i], w->rows, scratch->normed,
                                        stages_scratch(w, at), w->qkv_width);
        products[i].is_rounded = is_rounded;
        at += layer->qkv[i].rows * sizeof(float);
    }
    if (layer->qkv_count == 2) {
        TOL_TRY(kn_linear_pair(w->l->kernels, w->stream, &products[0], &products[1]));
    }
    for (size_t i = 0; i < layer->qkv_count && layer->qkv_count != 2; i++) {
        TOL_TRY(kn_linear(w->l->kernels, w->stream, &products[i]));
    }
    is_rounded = pass_rounds_attended(w, layer);
    const struct kn_heads_ready ready = {.batch = w->batch,
                                         .shape = heads,
                                         .qkv = stages_scratch(w, scratch->qkv),
                                         .qkv_stride = w->qkv_width,
                                         .q_norm = layer->q_norm,
                                         .k_norm = layer->k_norm,
                                         .epsilon = shape->epsilon,
                                         .rotated = shape->rotated,
                                         .halves = shape->halves,
                                         .frequencies = w->l->frequencies,
                                         .magnitude = shape->magnitude,
                                         .layer = w->layer,
                                         .notices = stages_scratch(w, scratch->notices)};
    const struct kn_paged paged = {
        .batch = w->batch,
        .shape = heads,
        .q = stages_scratch(w, scratch->qkv),
        .out = stages_scratch(w, stages_own(w, scratch->attended, heads.heads * heads.head_size)),
        .q_stride = w->qkv_width,
        .out_stride = w->attended_width,
        .window = shape->window,
        .splits = w->splits,
        .rounded = is_rounded ? stages_rounded(w) : (struct kn_place){0, 0},
        .workspace = {tol_buffer_address(scratch->buffer) + scratch->parts, scratch->parts_bytes}};
    if (w->apart) return kn_paged_step(w->l->kernels, w->stream, &ready, &paged);
    TOL_TRY(kn_heads(w->l->kernels, w->stream, &ready));
    status = kn_paged_attention(w->l->kernels, w->stream, &paged);
out:
    return status;
}

tol_status pass_queue_output(const struct pass_work *w, const struct loaded_layer *layer) {
    const struct loaded_scratch *scratch = &w->l->scratch;
    return stages_product(w, &layer->output, w->rows, scratch->attended,
                          stages_scratch(w, stages_own(w, scratch->x, w->l->share.width)),
                          w->l->shape.width, true, pass_rounds_attended(w, layer));
}

bool pass_rounds_fed(const struct pass_work *w, const struct loaded_layer *layer) {
    enum { CHUNK = 256 };
    return w->l->share.feed_forward % CHUNK == 0 && layer->gate.format == layer->up.format &&
           stages_are_bytes(w, &layer->up, 1) && stages_are_bytes(w, &layer->down, 1);
}

/* The gate of another format than up: a product of its own. */
static tol_status stages_gate_apart(const struct pass_work *w, const struct loaded_layer *layer,
                                    const struct kn_linear *up) {
    tol_status status = TOL_OK;
    const struct kn_place gates = stages_scratch(w, w->l->scratch.gates);
    TOL_TRY(kn_linear(w->l->kernels, w->stream, up));
    TOL_TRY(stages_product(w, &layer->gate, w->rows, w->l->scratch.normed, gates, up->rows, false,
                           up->is_rounded));
    status = kn_gated(w->l->kernels, w->stream,
                      &(struct kn_gated){.rows = w->rows,
                                         .columns = up->rows,
                                         .gate = gates,
                                         .y = up->y,
                                         .gate_stride = up->rows,
                                         .y_stride = up->y_stride});
out:
    return status;
}

tol_status pass_queue_gated(const struct pass_work *w, const struct loaded_layer *layer) {
    tol_status status = TOL_OK;
    const struct loaded_scratch *scratch = &w->l->scratch;
    const size_t columns = w->l->share.feed_forward;
    const bool is_apart = layer->gate.format != layer->up.format;
    bool is_rounded = stages_are_bytes(w, &layer->up, 1) && stages_are_bytes(w, &layer->gate, 1);
    struct kn_linear gated = stages_product_of(
        w, &layer->up, w->rows, scratch->normed,
        stages_scratch(w, stages_own(w, scratch->activated, columns)), w->l->shape.feed_forward);
    TOL_TRY(stages_norm(w, layer->feed_norm, 0, w->rows, &is_rounded));
    gated.is_rounded = is_rounded;
    if (is_apart) return stages_gate_apart(w, layer, &gated);
    gated.gate = layer->gate.weights;
    if (pass_rounds_fed(w, layer)) {
        gated.rounded = stages_fed(w);
        gated.tickets =
            (struct kn_place){stages_scratch(w, scratch->tickets).address, scratch->tickets_bytes};
    }
    status = kn_linear(w->l->kernels, w->stream, &gated);
out:
    return status;
}

tol_status pass_queue_down(const struct pass_work *w, const struct loaded_layer *layer) {
    const struct loaded_scratch *scratch = &w->l->scratch;
    struct kn_linear down = stages_product_of(
        w, &layer->down, w->rows, scratch->activated,
        stages_scratch(w, stages_own(w, scratch->x, w->l->share.width)), w->l->shape.width);
    down.adds = true;
    if (pass_rounds_fed(w, layer)) {
        if (w->l->share.ranks == 1) down.workspace = stages_fed(w);
        down.is_rounded = true;
    }
    return kn_linear(w->l->kernels, w->stream, &down);
}

/* To the host: what was noted, and the tokens of the largest logits. */
static tol_status stages_results(const struct pass_work *w) {
    const struct tol_loaded *l = w->l;
    const size_t tokens = l->share.vocabulary > 0 ? w->wanted : 0;
    return tol_copy_to_host(w->stream, l->received, loaded_received_notices(l), l->scratch.buffer,
                            l->scratch.notices, loaded_notices_bytes(l) + tokens * sizeof(int));
}

tol_status pass_queue_logits(const struct pass_work *w) {
    tol_status status = TOL_OK;
    const struct tol_loaded *l = w->l;
    const struct loaded_scratch *scratch = &l->scratch;
    const size_t columns = l->share.vocabulary;
    bool is_rounded = stages_are_bytes(w, &l->output, 1);
    if (columns == 0 || w->wanted == 0) return stages_results(w);
    TOL_TRY(stages_norm(w, l->output_norm, w->rows - w->wanted, w->wanted, &is_rounded));
    TOL_TRY(stages_product(w, &l->output, w->wanted, scratch->normed,
                           stages_scratch(w, scratch->logits), columns, false, is_rounded));
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
                                          .in = stages_scratch(w, scratch->logits),
                                          .in_stride = columns,
                                          .out = stages_scratch(w, scratch->best),
                                          .workspace = stages_scratch(w, scratch->keys),
                                          .variant = w->wants_logits ? "parts" : NULL}));
        TOL_TRY(tol_copy_to_host(w->stream, l->received, 0, scratch->buffer, scratch->keys,
                                 kn_best_workspace(w->wanted)));
    }
    status = stages_results(w);
out:
    return status;
}

tol_status pass_queue_begin(const struct pass_work *w) {
    tol_status status = TOL_OK;
    const struct tol_loaded *l = w->l;
    const size_t number = l->share.ranks > 1 ? 1 : 0;
    const size_t bytes = (PASS_INPUTS * w->rows + number) * sizeof(int);
    TOL_TRY(tol_copy_to_device(w->stream, l->input, 0, l->sent, 0,
                               w->draws ? loaded_draw_end(w->rows) : bytes));
    status = kn_embed(l->kernels, w->stream,
                      &(struct kn_embed){.format = l->embedding.format,
                                         .rows = w->rows,
                                         .columns = l->shape.width,
                                         .table_rows = l->shape.vocabulary,
                                         .table = l->embedding.weights,
                                         .tokens = kn_place_of(l->input, 0),
                                         .out = stages_scratch(w, l->scratch.x),
                                         .out_stride = l->shape.width});
out:
    return status;
}
