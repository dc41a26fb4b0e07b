/*
 * Team: the devices that compute a model together, in step.
 *
 * The host queues each stage of a pass on the streams of all devices, and between two stages an
 * exchange of the columns that each has made (collective/gather_columns.h). Memory of a pass has
 * the same layout on all devices, so an offset identifies an array. All functions take the first
 * device's loaded model, whose lock the caller holds, and also serve one device alone, where they
 * exchange nothing.
 */
#ifndef TOLLENS_DEVICE_TEAM_H
#define TOLLENS_DEVICE_TEAM_H

#include "loaded_state.h"

/* Checks that the contexts can be a team, and joins them. part[] is filled. */
tol_status loaded_team_join(struct tol_loaded *loaded, const struct tol_load_options *options);

/* A collective in which `to` has a rank's place. Nothing changes yet. NULL for one device. */
tol_status loaded_team_with(const struct tol_loaded *loaded, unsigned rank, struct tol_context *to,
                            struct kn_collective **collective);
void loaded_team_end(struct tol_loaded *loaded);

/* Rows of an array in the buffers of all devices, in bytes. Each device has part_bytes of a row. */
struct loaded_columns {
    bool is_prompt; /* in the buffers for prompts, else in scratch */
    size_t rows, stride, part_bytes;
    size_t out;
    size_t in, in_stride; /* in_stride 0: in place */
};
/* Queues an exchange: then all devices have all columns. */
tol_status loaded_team_exchange(struct tol_loaded *loaded, const struct loaded_columns *columns);

/* TOL_POISONED, TOL_DRIVER_ERROR: a device or the team is lost. */
tol_status loaded_team_check(const struct tol_loaded *loaded);

/* Waits until all devices are done, at most the pass's deadline. */
tol_status loaded_team_wait(struct tol_loaded *loaded);

/* After a failure of a pass: waits for what was queued, so that it cannot affect the next pass.
 * If that fails the team is lost. Leaves the message. Returns the status. */
tol_status loaded_team_settle(struct tol_loaded *loaded, tol_status status);

/* Combines the devices' logits of the wanted rows. best has what a draw answers: a token,
 * DRAW_NONE or DRAW_BAD - token. is_drawn: the devices have drawn it; else it is the largest
 * logit's token. */
tol_status loaded_team_outcome(struct tol_loaded *loaded, size_t wanted, bool wants_logits,
                               bool is_drawn, struct loaded_outcome *outcome);

/* The slots in tables and notices: one per session, and one more to compute a position again. */
size_t loaded_slots(const struct tol_loaded *loaded);
size_t loaded_notices_bytes(const struct tol_loaded *loaded);

/* What the latest pass noted of a slot on any device (kn_notice_read), and forgetting it. */
tol_status loaded_team_notice(struct tol_loaded *loaded, size_t slot, uint64_t *bits);
tol_status loaded_team_forget_notice(struct tol_loaded *loaded, size_t slot);

/* In the pinned block that a device's results go to: keys of the largest logits, notices of slots,
 * tokens of the largest logits, and all logits. */
size_t loaded_received_notices(const struct tol_loaded *loaded);
size_t loaded_received_best(const struct tol_loaded *loaded);
size_t loaded_received_logits(const struct tol_loaded *loaded);
size_t loaded_received_bytes(const struct tol_loaded *loaded);

#endif
