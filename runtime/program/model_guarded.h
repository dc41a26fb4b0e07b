/*
 * model run --guarded: a language model as a worker of a guard. A job is a prompt, its answer the
 * text; a text that another worker began is gone on with from its last token.
 */
#ifndef HYP_MODEL_GUARDED_H
#define HYP_MODEL_GUARDED_H

#include "decode_text.h"

#include <stdbool.h>

struct hyp_model_guarded {
    struct tol_loaded *loaded;
    const struct tol_tokenizer *tokenizer;
    const char *path, *device;    /* of the model; the device's name */
    struct tol_text_options text; /* job N is sampled with the seed plus N - 1 */
    const char *cache;            /* the name of its type */
    unsigned long long context;   /* positions, as asked for */
    bool as_json;
};

/* Serves jobs until the guard has no more. */
tol_status hyp_model_serve(const struct hyp_model_guarded *model);

#endif
