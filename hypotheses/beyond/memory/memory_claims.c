/*
 * The claims on sealed and watched weights, S1 and S2. Their text and their saboteurs are in
 * hypotheses/beyond/beyond.toml.
 */
#include "memory_faults.h"

#define MEMORY_SABOTEURS(id, ...)                                                                  \
    static const struct hyp_saboteur saboteurs_of_##id[] = {__VA_ARGS__};
#include "beyond.def"

static const struct hyp_plugin_claim claims[] = {
#define MEMORY_CLAIM(id, ...) {__VA_ARGS__, .saboteurs = saboteurs_of_##id},
#include "beyond.def"
    {.id = NULL}};

HYP_PLUGIN(.name = "memory", .version = "1", .claims = claims, .faults = memory_faults);
