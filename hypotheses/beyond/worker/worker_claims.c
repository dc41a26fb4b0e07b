/*
 * The claims on language models, W1 to W3. Their text and their saboteurs are in
 * hypotheses/beyond/beyond.toml.
 */
#include "worker_faults.h"

#define WORKER_SABOTEURS(id, ...)                                                                  \
    static const struct hyp_saboteur saboteurs_of_##id[] = {__VA_ARGS__};
#include "beyond.def"

static const struct hyp_plugin_claim claims[] = {
#define WORKER_CLAIM(id, ...) {__VA_ARGS__, .saboteurs = saboteurs_of_##id},
#include "beyond.def"
    {.id = NULL}};

HYP_PLUGIN(.name = "worker", .version = "1", .claims = claims, .faults = worker_faults);
