/*
 * Pass: computes a batch of rows, each one position of one session, from tokens to logits.
 *
 * If a pass of the same form (number of rows, number of key spans, the same outputs) was computed
 * before, it is one launch of a graph: tokens, positions, slots and pages are data on the device,
 * so the graph is never changed. The caller holds the loaded model's lock.
 */
#ifndef TOLLENS_PASS_H
#define TOLLENS_PASS_H

#include "loaded_state.h"

struct loaded_row {
    int token, position, slot;
};

struct loaded_pass {
    const struct loaded_row *rows;
    size_t count;      /* from 1 to loaded_pass_room */
    size_t wanted;     /* the last rows whose largest logits are wanted; at most `sessions` */
    bool wants_logits; /* and all logits of these rows */
    /* The samplers of the rows, which are all wanted, if the device draws a token for each. NULL:
     * it draws none. */
    struct tol_sampler *const *samplers;
    size_t left_out; /* the last layers, which are not computed if no row is wanted; 0: none */
};

/* The most rows that a pass can have if this is the largest position. */
size_t loaded_pass_room(const struct tol_loaded *loaded, size_t position);

/* Computes it and waits. TOL_TIMEOUT, TOL_POISONED, TOL_DRIVER_ERROR. */
tol_status loaded_pass_run(struct tol_loaded *loaded, const struct loaded_pass *pass,
                           struct loaded_outcome *outcome);

/* Parts of a pass, for passes of prompts: writes its rows to the pinned block; queues the logits of
 * the row at the beginning of the scratch buffer's x, if it is wanted, and the copies of what was
 * found; waits, and takes what was copied. */
tol_status loaded_pass_send(struct tol_loaded *loaded, const struct loaded_pass *pass);
tol_status loaded_pass_queue_logits(struct tol_loaded *loaded, size_t wanted, bool wants_logits);
tol_status loaded_pass_take(struct tol_loaded *loaded, size_t wanted, bool wants_logits,
                            bool is_drawn, struct loaded_outcome *outcome);

#endif
