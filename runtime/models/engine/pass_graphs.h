/*
 * Pass graphs: a form of passes that comes again is captured, and launched as graphs, one a device.
 *
 * Devices that exchange columns by flags have the exchanges in their graphs. Those that exchange
 * them by events do not capture: their passes are queued anew each time. The caller holds the
 * loaded model's lock.
 */
#ifndef TOLLENS_PASS_GRAPHS_H
#define TOLLENS_PASS_GRAPHS_H

#include "loaded_state.h"

/* What passes must have alike to be the same work on the device. */
struct loaded_form {
    size_t rows, wanted, splits;
    bool wants_logits;
    bool apart; /* each row is of another session */
    bool draws; /* a token of each wanted row, by its row of parameters */
};

/* Queues the work of a form on the streams of all devices. */
typedef tol_status loaded_queue(struct tol_loaded *loaded, const struct loaded_form *form);

/* Queues a pass, whose input was sent, by `queue` or by the graphs of an earlier one. */
tol_status loaded_graphs_queue(struct tol_loaded *loaded, const struct loaded_form *form,
                               loaded_queue *queue);

/* Frees the graphs. */
void loaded_graphs_end(struct tol_loaded *loaded);

#endif
