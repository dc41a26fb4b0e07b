/*
 * Model gaps: the part of a token's time in which no kernel runs.
 *
 * A pass of one row is traced with an event before and after each kernel. The time of a token in a
 * graph, less the kernels' own times, is the time between kernels. The events themselves prolong
 * kernels, so the kernels' times are upper bounds and the gaps lower bounds.
 */
#ifndef HYP_MODEL_GAPS_H
#define HYP_MODEL_GAPS_H

#include "harness/session.h"

struct hyp_model_kernels {
    size_t count; /* of a pass of one row */
    double ns;    /* of all of them together */
};

/* Opens the model on a context of its own and traces a pass. No interposer may be installed.
 * TOL_INVALID_FILE: the two passes have different numbers of kernels, or none; hyp_error() says how
 * many there are. Otherwise as tol_model_load. */
tol_status hyp_model_kernels(const char *path, enum hyp_device_kind kind, int ordinal,
                             struct hyp_model_kernels *kernels);

#endif
