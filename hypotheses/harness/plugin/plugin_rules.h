/*
 * Plugin rules: what a plugin must declare for its claims to be worth a verdict.
 *
 * They are those that thresholds.toml and sabotage.toml are held to: a claim has a number and words
 * for each of its parts, something attacks it, and a fault is named that it must fall under.
 */
#ifndef HYP_PLUGIN_RULES_H
#define HYP_PLUGIN_RULES_H

#include "harness/plugin.h"

/* Whether a plugin has a name, a version, claims, and attacks upon its own claims alone. false:
 * hyp_error(). */
bool hyp_plugin_is_whole(const struct hyp_plugin *plugin);

/* Whether a claim of it is whole; its faults have been added by then. false: hyp_error(). */
bool hyp_plugin_claim_is_whole(const struct hyp_plugin *plugin,
                               const struct hyp_plugin_claim *claim);

#endif
