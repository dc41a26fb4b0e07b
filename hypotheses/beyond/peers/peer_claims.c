/*
 * The claims on devices that use each other's memory, P1 and P2. Their text and their saboteurs are
 * in hypotheses/beyond/beyond.toml.
 */
#include "peer_faults.h"

#define PEERS_SABOTEURS(id, ...)                                                                   \
    static const struct hyp_saboteur saboteurs_of_##id[] = {__VA_ARGS__};
#include "beyond.def"

static const struct hyp_plugin_claim claims[] = {
#define PEERS_CLAIM(id, ...) {__VA_ARGS__, .saboteurs = saboteurs_of_##id},
#include "beyond.def"
    {.id = NULL}};

HYP_PLUGIN(.name = "peers", .version = "1", .claims = claims, .faults = peer_faults);
