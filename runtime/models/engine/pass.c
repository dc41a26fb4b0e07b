/*
 * Enqueues a pass: its stages on each device, and exchanges of columns between them.
 */
#include "pass.h"

#include "core/check.h"
#include "device_team.h"
#include "pass_draw.h"
#include "pass_graphs.h"
#include "pass_stages.h"
#include "quantised/formats/rounded.h"
#include "share.h"

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

/* ---- on all devices ---- */

/* A stage of a layer on all devices. */
typedef tol_status stage(const struct pass_work *w, const struct loaded_layer *layer);

static tol_status pass_on_all(struct tol_loaded *l, const struct pass_work *works, stage *queue,
                              size_t layer) {
    tol_status status = TOL_OK;
    for (unsigned i = 0; i < l->share.ranks; i++) {
        TOL_TRY(queue(&works[i], &works[i].l->layers[layer]));
    }
out:
    return status;
}

/* Exchanges columns of floats, in place. */
static tol_status pass_exchange(struct tol_loaded *l, const struct pass_work *works, size_t out,
                                size_t columns) {
    return loaded_team_exchange(
        l, &(struct loaded_columns){.rows = works[0].rows,
                                    .stride = columns * sizeof(float),
                                    .part_bytes = columns / l->share.ranks * sizeof(float),
                                    .out = out});
}

/* Exchanges columns that are rounded to bytes, whose chunks are stored tile by tile, from the
 * place where stages write them to the place where products read them. */
static tol_status exchange_rounded(struct tol_loaded *l, const struct pass_work *works,
                                   size_t columns) {
    const size_t part = kn_rounded_bytes(1, columns / l->share.ranks);
    const size_t tiles = kn_rounded_bytes(works[0].rows, columns) / kn_rounded_bytes(1, columns);
    return loaded_team_exchange(l, &(struct loaded_columns){.rows = tiles,
                                                            .stride = l->share.ranks * part,
                                                            .part_bytes = part,
                                                            .out = l->scratch.split,
                                                            .in = l->scratch.fed,
                                                            .in_stride = part});
}

static tol_status pass_queue_layer(struct tol_loaded *l, struct pass_work *works, size_t index) {
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
    TOL_TRY(pass_rounds_attended(works, layer)
                ? exchange_rounded(l, works, attended)
                : pass_exchange(l, works, scratch->attended, attended));
    TOL_TRY(pass_on_all(l, works, pass_queue_output, index));
    TOL_TRY(pass_exchange(l, works, scratch->x, l->shape.width));
    TOL_TRY(pass_on_all(l, works, pass_queue_gated, index));
    TOL_TRY(pass_rounds_fed(works, layer) ? exchange_rounded(l, works, feed)
                                          : pass_exchange(l, works, scratch->activated, feed));
    TOL_TRY(pass_on_all(l, works, pass_queue_down, index));
    status = pass_exchange(l, works, scratch->x, l->shape.width);
out:
    return status;
}

static struct pass_work pass_work_of(struct tol_loaded *l, const struct loaded_form *form) {
    const size_t rows = form->rows, head = l->shape.head_size;
    return (struct pass_work){.l = l,
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
    struct pass_work works[KN_COLLECTIVE_RANKS_MAX];
    for (unsigned i = 0; i < l->share.ranks; i++) {
        works[i] = pass_work_of(l->team.part[i], form);
        TOL_TRY(pass_queue_begin(&works[i]));
    }
    for (size_t i = 0; i < form->layers; i++) TOL_TRY(pass_queue_layer(l, works, i));
    for (unsigned i = 0; i < l->share.ranks; i++) TOL_TRY(pass_queue_logits(&works[i]));
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
    l->team.number_at = PASS_INPUTS * pass->count * sizeof(int);
    for (unsigned part = 0; part < l->share.ranks; part++) {
        void *bytes = NULL;
        TOL_TRY(tol_pinned_access(l->team.part[part]->sent, &bytes));
        int *inputs = bytes;
        for (size_t i = 0; i < pass->count; i++) {
            inputs[i] = pass->rows[i].token;
            inputs[pass->count + i] = pass->rows[i].position;
            inputs[2 * pass->count + i] = pass->rows[i].slot;
        }
        inputs[PASS_INPUTS * pass->count] = 0;
    }
out:
    return status;
}

tol_status loaded_pass_queue_logits(struct tol_loaded *l, size_t wanted, bool wants_logits) {
    tol_status status = TOL_OK;
    const struct loaded_form form = {.rows = 1, .wanted = wanted, .wants_logits = wants_logits};
    for (unsigned i = 0; i < l->share.ranks; i++) {
        const struct pass_work w = pass_work_of(l->team.part[i], &form);
        TOL_TRY(pass_queue_logits(&w));
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
