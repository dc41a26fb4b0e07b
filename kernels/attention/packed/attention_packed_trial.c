/*
 * Runs a kernel on the rows that packed_stage.c makes.
 */
#include "attention/packed/attention_packed_trial.h"

#include "attention/packed/packed_stage.h"
#include "core/check.h"

tol_status kn_attention_packed_try(struct kn_kernels *kernels, struct tol_stream *stream,
                                   const struct kn_attention_packed_trial *trial,
                                   struct kn_attention_packed_outcome *outcome) {
    tol_status status = TOL_OK;
    struct packed_stage stage = {0};
    TOL_TRY(packed_stage_make(kernels, trial, &stage));
    const struct kn_attention_packed wish = packed_stage_wish(trial, &stage);
    if (trial->loses_row) {
        const int early = trial->q_begins[1] - 1;
        TOL_TRY(tol_buffer_write_at(stage.begins[0], sizeof early, &early, sizeof early));
    }
    TOL_TRY(kn_attention_packed(kernels, stream, &wish));
    status = packed_stage_judge(stream, trial, &stage, outcome);
out:
    packed_stage_destroy(&stage);
    return status;
}
