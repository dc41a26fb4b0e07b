/*
 * Model load: how fast a model's weights come to the device, beside a copy of pinned memory.
 * Any thread.
 */
#ifndef HYP_MODEL_LOAD_H
#define HYP_MODEL_LOAD_H

#include "decode_session.h"

struct hyp_model_load {
    double bytes_per_s;        /* of the fastest load: reading the file, and copying */
    double pinned_bytes_per_s; /* of copies of pinned memory on one stream, the fastest */
};

/* Loads a model a few times, and keeps the last. The caller unloads *loaded. Fails as
 * tol_model_load does. */
tol_status hyp_model_load(const struct tol_model *model, struct tol_context *context,
                          const struct tol_load_options *options, struct tol_loaded **loaded,
                          struct hyp_model_load *load);

#endif
