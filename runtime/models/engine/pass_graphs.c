/*
 * The graphs of passes.
 */
#include "pass_graphs.h"

#include "collective/gather_columns.h"
#include "core/check.h"

#include <stdlib.h>

enum { GRAPHS_MAX = 256 };

/* A form of passes and its graphs. */
struct loaded_graph {
    struct loaded_form form;
    unsigned numbers; /* that its exchanges need */
    bool is_ready;
    struct tol_graph *graph[KN_COLLECTIVE_RANKS_MAX]; /* one per device */
    struct tol_graph_exec *exec[KN_COLLECTIVE_RANKS_MAX];
};

/* The entry of this form; *is_new: it was created now. NULL: too many forms, or no memory. */
static struct loaded_graph *pass_graphs_entry_of(struct tol_loaded *l,
                                                 const struct loaded_form *form, bool *is_new) {
    *is_new = false;
    for (size_t i = 0; i < l->graph_count; i++) {
        const struct loaded_form *other = &l->graphs[i].form;
        if (other->rows == form->rows && other->wanted == form->wanted &&
            other->splits == form->splits && other->layers == form->layers &&
            other->wants_logits == form->wants_logits && other->apart == form->apart &&
            other->draws == form->draws) {
            return &l->graphs[i];
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
    l->graphs[l->graph_count] = (struct loaded_graph){.form = *form};
    return &l->graphs[l->graph_count++];
}

static void pass_graphs_forget(struct loaded_graph *entry) {
    for (size_t i = 0; i < KN_COLLECTIVE_RANKS_MAX; i++) {
        tol_graph_exec_destroy(entry->exec[i]);
        tol_graph_destroy(entry->graph[i]);
        entry->exec[i] = NULL;
        entry->graph[i] = NULL;
    }
}

struct loaded_graph *loaded_graphs_find(struct tol_loaded *l, const struct loaded_form *form) {
    /* Only steps repeat a form, and in steps every row is wanted. */
    if (form->rows != form->wanted) return NULL;
    if (l->share.ranks > 1 && !kn_columns_can_capture(l->team.collective)) return NULL;
    bool is_new = false;
    struct loaded_graph *entry = pass_graphs_entry_of(l, form, &is_new);
    return is_new ? NULL : entry;
}

bool loaded_graphs_is_ready(const struct loaded_graph *entry) {
    return entry->is_ready;
}

/* Ends the captures of the first `count` devices; their graphs go to the entry, if there is one. */
static tol_status end_captures(struct tol_loaded *l, struct loaded_graph *entry, unsigned count) {
    tol_status status = TOL_OK;
    for (unsigned i = 0; i < count; i++) {
        struct tol_graph *graph = NULL;
        const tol_status ended = tol_graph_capture_end(l->team.part[i]->stream, &graph);
        if (status == TOL_OK) status = ended;
        if (entry != NULL) entry->graph[i] = graph;
        if (entry == NULL) tol_graph_destroy(graph);
    }
    return status;
}

tol_status loaded_graphs_capture_begin(struct tol_loaded *l) {
    tol_status status = TOL_OK;
    unsigned begun = 0;
    if (l->share.ranks > 1) TOL_TRY(kn_columns_capture_begin(l->team.collective));
    while (begun < l->share.ranks && status == TOL_OK) {
        status = tol_graph_capture_begin(l->team.part[begun]->stream);
        if (status == TOL_OK) begun++;
    }
    if (status == TOL_OK) return TOL_OK;
    (void)end_captures(l, NULL, begun);
    if (l->share.ranks > 1) (void)kn_columns_capture_end(l->team.collective);
out:
    return status;
}

tol_status loaded_graphs_capture_end(struct tol_loaded *l, struct loaded_graph *entry,
                                     tol_status queued) {
    /* Every capture must end, even if enqueueing failed. */
    tol_status status = end_captures(l, entry, l->share.ranks);
    if (queued != TOL_OK) status = queued;
    for (unsigned i = 0; i < l->share.ranks && status == TOL_OK; i++) {
        status = tol_graph_instantiate(entry->graph[i], &entry->exec[i]);
    }
    if (l->share.ranks > 1) entry->numbers = kn_columns_capture_end(l->team.collective);
    entry->is_ready = status == TOL_OK;
    if (!entry->is_ready) pass_graphs_forget(entry);
    return status;
}

/* Writes the number of this launch's first exchange after the pass's input. */
static tol_status send_number(struct tol_loaded *l, const struct loaded_graph *entry) {
    tol_status status = TOL_OK;
    unsigned first = 0;
    if (l->share.ranks == 1) return TOL_OK;
    TOL_TRY(kn_columns_take(l->team.collective, entry->numbers, &first));
    for (unsigned i = 0; i < l->share.ranks; i++) {
        void *bytes = NULL;
        TOL_TRY(tol_pinned_access(l->team.part[i]->sent, &bytes));
        ((unsigned *)bytes)[l->team.number_at / sizeof first] = first;
    }
out:
    return status;
}

tol_status loaded_graphs_launch(struct tol_loaded *l, const struct loaded_graph *entry) {
    tol_status status = TOL_OK;
    TOL_TRY(send_number(l, entry));
    for (unsigned i = 0; i < l->share.ranks; i++) {
        TOL_TRY(tol_graph_launch(entry->exec[i], l->team.part[i]->stream));
    }
    l->launched_graphs++;
out:
    return status;
}

void loaded_graphs_end(struct tol_loaded *l) {
    for (size_t i = 0; i < l->graph_count; i++) pass_graphs_forget(&l->graphs[i]);
    free(l->graphs);
    l->graphs = NULL;
    l->graph_count = l->graph_room = 0;
}
