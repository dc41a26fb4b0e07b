/*
 * Pass graphs: the second pass of a form is captured, one graph per device, and later passes of
 * that form launch these graphs.
 *
 * If devices exchange columns by flags, the exchanges are in the graphs. If they exchange columns
 * by events, passes are not captured but enqueued anew each time. The caller holds the loaded
 * model's lock.
 */
#ifndef TOLLENS_PASS_GRAPHS_H
#define TOLLENS_PASS_GRAPHS_H

#include "loaded_state.h"

/* Passes of equal forms are the same work on the device. */
struct loaded_form {
    size_t rows, wanted, splits, layers;
    bool wants_logits;
    bool apart; /* each row is of another session */
    bool draws; /* draws a token for each wanted row */
};

/* The graphs for a pass of this form. NULL: the pass must be enqueued without a graph, because it
 * is the first of its form (which also loads its kernels) or because such passes are not
 * captured. */
struct loaded_graph *loaded_graphs_find(struct tol_loaded *loaded, const struct loaded_form *form);

/* Whether the graphs were captured. If not, the caller enqueues the pass between begin and end, and
 * passes its status to end. If any step fails, the form stays without graphs. */
bool loaded_graphs_is_ready(const struct loaded_graph *graph);
tol_status loaded_graphs_capture_begin(struct tol_loaded *loaded);
tol_status loaded_graphs_capture_end(struct tol_loaded *loaded, struct loaded_graph *graph,
                                     tol_status queued);

/* Launches the graphs, after the pass's input was sent. */
tol_status loaded_graphs_launch(struct tol_loaded *loaded, const struct loaded_graph *graph);

/* Frees the graphs. */
void loaded_graphs_end(struct tol_loaded *loaded);

#endif
