/*
 * Plugin rules: what a plugin must declare, so that the verdicts of its claims mean something.
 *
 * They are the rules of thresholds.toml and sabotage.toml: a claim has a threshold, a text for each
 * of its parts, an attack, and a saboteur under which it must be falsified.
 */
#ifndef HYP_PLUGIN_RULES_H
#define HYP_PLUGIN_RULES_H

#include "harness/plugin.h"

/* Whether a plugin has a name, a version, claims, and attacks on its own claims only. false:
 * hyp_error(). */
bool hyp_plugin_is_whole(const struct hyp_plugin *plugin);

/* Whether one of its claims is complete. Add its faults before. false: hyp_error(). */
bool hyp_plugin_claim_is_whole(const struct hyp_plugin *plugin,
                               const struct hyp_plugin_claim *claim);

#endif
