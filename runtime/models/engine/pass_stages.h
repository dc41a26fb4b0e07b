/*
 * Pass stages: what a pass queues on one device, between the exchanges of columns.
 *
 * Everything is queued on the device's stream and nothing waits. The caller holds the loaded
 * model's lock. All fail as the kernels that they queue.
 */
#ifndef TOLLENS_PASS_STAGES_H
#define TOLLENS_PASS_STAGES_H

#include "loaded_state.h"

enum { PASS_INPUTS = 3 }; /* a token, a position and a slot per row */

struct pass_work {
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

/* Copies the rows to the device, and embeds their tokens. */
tol_status pass_queue_begin(const struct pass_work *w);

/* The stages of a layer: attention; its output, which adds to the share's columns of x; the gated
 * product; and the product down, which adds to them too. */
tol_status pass_queue_attention(const struct pass_work *w, const struct loaded_layer *layer);
tol_status pass_queue_output(const struct pass_work *w, const struct loaded_layer *layer);
tol_status pass_queue_gated(const struct pass_work *w, const struct loaded_layer *layer);
tol_status pass_queue_down(const struct pass_work *w, const struct loaded_layer *layer);

/* Whether attention, and the gated product, leave their rows rounded for the next product: the
 * share's, as the product of one device would round them. */
bool pass_rounds_attended(const struct pass_work *w, const struct loaded_layer *layer);
bool pass_rounds_fed(const struct pass_work *w, const struct loaded_layer *layer);

/* The logits of the wanted rows, the largest of each, and what goes to the host. */
tol_status pass_queue_logits(const struct pass_work *w);

#endif
