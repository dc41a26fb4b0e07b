/*
 * Model gaps: how much of a token's time no kernel runs; and the words that `model run` and `model
 * bench` share.
 *
 * A pass of one row is traced with an event before and behind each kernel. What a token takes in a
 * graph, less the kernels' own times, is the time between them. The events themselves can add up to
 * a microsecond to a kernel, so the kernels' times are upper bounds and the gaps lower ones.
 */
#ifndef HYP_MODEL_GAPS_H
#define HYP_MODEL_GAPS_H

#include "harness/session.h"

#include "decode/paged.h"

struct hyp_model_kernels {
    size_t count; /* of a pass of one row */
    double ns;    /* of all of them together */
};

/* "f16" or "q8_0". false: it is neither; hyp_error(). */
bool hyp_model_cache(const char *name, enum kn_cache *cache);

/* Opens the model on a context of its own and traces a pass. No interposer may be installed.
 * TOL_INVALID_FILE: the two passes have not as many kernels each, or none; hyp_error() says how
 * many there are. Otherwise as tol_model_load. */
tol_status hyp_model_kernels(const char *path, enum hyp_device_kind kind, int ordinal,
                             struct hyp_model_kernels *kernels);

#endif
