/*
 * The graphs of passes.
 */
#include "pass_graphs.h"

#include "collective/gather_columns.h"
#include "core/check.h"

#include <stdlib.h>

enum { GRAPHS_MAX = 256 };

/* A form of passes, and its graphs from the second pass of this form on. */
struct loaded_graph {
    struct loaded_form form;
    unsigned numbers; /* that its exchanges need */
    bool is_ready;
    struct tol_graph *graph[KN_COLLECTIVE_RANKS_MAX]; /* a device each */
    struct tol_graph_exec *exec[KN_COLLECTIVE_RANKS_MAX];
};

/* The entry of this form; *is_new: it was made now. NULL: there are too many forms, or no memory:
 * the pass is then queued as it is. */
static struct loaded_graph *entry_of(struct tol_loaded *l, const struct loaded_form *form,
                                     bool *is_new) {
    *is_new = false;
    for (size_t i = 0; i < l->graph_count; i++) {
        const struct loaded_form *other = &l->graphs[i].form;
        if (other->rows == form->rows && other->wanted == form->wanted &&
            other->splits == form->splits && other->wants_logits == form->wants_logits &&
            other->apart == form->apart && other->draws == form->draws) {
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

static void forget(struct loaded_graph *entry) {
    for (size_t i = 0; i < KN_COLLECTIVE_RANKS_MAX; i++) {
        tol_graph_exec_destroy(entry->exec[i]);
        tol_graph_destroy(entry->graph[i]);
        entry->exec[i] = NULL;
        entry->graph[i] = NULL;
    }
}

/* Every capture that began must end, whatever happens between. */
static tol_status capture(struct tol_loaded *l, struct loaded_graph *entry, loaded_queue *queue) {
    tol_status status = TOL_OK;
    unsigned begun = 0;
    while (begun < l->share.ranks && status == TOL_OK) {
        status = tol_graph_capture_begin(l->team.part[begun]->stream);
        if (status == TOL_OK) begun++;
    }
    if (status == TOL_OK) status = queue(l, &entry->form);
    for (unsigned i = 0; i < begun; i++) {
        const tol_status ended = tol_graph_capture_end(l->team.part[i]->stream, &entry->graph[i]);
        if (status == TOL_OK) status = ended;
    }
    for (unsigned i = 0; i < begun && status == TOL_OK; i++) {
        status = tol_graph_instantiate(entry->graph[i], &entry->exec[i]);
    }
    entry->is_ready = status == TOL_OK;
    if (!entry->is_ready) forget(entry);
    return status;
}

static tol_status capture_team(struct tol_loaded *l, struct loaded_graph *entry,
                               loaded_queue *queue) {
    if (l->share.ranks == 1) return capture(l, entry, queue);
    tol_status status = kn_columns_capture_begin(l->team.collective);
    if (status == TOL_OK) {
        status = capture(l, entry, queue);
        entry->numbers = kn_columns_capture_end(l->team.collective);
    }
    return status;
}

/* The numbers of this launch's exchanges go in behind the pass's input. */
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

/* Only passes whose rows are all wanted come again in the same form: those of steps. */
tol_status loaded_graphs_queue(struct tol_loaded *l, const struct loaded_form *form,
                               loaded_queue *queue) {
    tol_status status = TOL_OK;
    bool is_new = false;
    const bool can = l->share.ranks == 1 || kn_columns_can_capture(l->team.collective);
    struct loaded_graph *entry =
        can && form->rows == form->wanted ? entry_of(l, form, &is_new) : NULL;
    if (entry == NULL || is_new) return queue(l, form); /* loads the kernels, too */
    if (!entry->is_ready) TOL_TRY(capture_team(l, entry, queue));
    TOL_TRY(send_number(l, entry));
    for (unsigned i = 0; i < l->share.ranks; i++) {
        TOL_TRY(tol_graph_launch(entry->exec[i], l->team.part[i]->stream));
    }
    l->launched_graphs++;
out:
    return status;
}

void loaded_graphs_end(struct tol_loaded *l) {
    for (size_t i = 0; i < l->graph_count; i++) forget(&l->graphs[i]);
    free(l->graphs);
    l->graphs = NULL;
    l->graph_count = l->graph_room = 0;
}
