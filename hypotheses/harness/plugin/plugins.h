/*
 * Plugins: the plugins loaded with --plugin, for the program. plugin.h is for authors of plugins.
 *
 * The paths are passed in TOLLENS_PLUGIN, so that the worker and the process of each attack load
 * the same plugins as the program. A plugin that does not follow plugin.h is rejected with a
 * sentence, and nothing runs.
 */
#ifndef HYP_PLUGINS_H
#define HYP_PLUGINS_H

#include <stdbool.h>
#include <stddef.h>

enum { HYP_PLUGINS_MAX = 8, HYP_PLUGIN_ATTACKS_MAX = 256 };

struct hyp_plugin_info {
    char file[256];  /* its name without folders, which belong to one machine */
    char words[256]; /* "sums 1.0" */
    const struct hyp_plugin *plugin;
};

/* Removes --plugin PATH and --plugin=PATH from the words and appends the paths to
 * TOLLENS_PLUGIN. false: hyp_error(). */
bool hyp_plugins_take(int *count, char **words);

/* Loads all plugins of TOLLENS_PLUGIN. Call it once. false: one failed; hyp_error() says which
 * and why. */
bool hyp_plugins_load(void);

size_t hyp_plugin_count(void);
const struct hyp_plugin_info *hyp_plugin_at(size_t index);

/* An attack by its index among those of all plugins; NULL past the last. */
const struct hyp_plugin_attack *hyp_plugin_attack_at(size_t index);

/* The error message for an unknown claim, in a static buffer. */
const char *hyp_plugin_no_claim(const char *name);

#endif
