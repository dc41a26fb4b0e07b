/*
 * Plugins: what was loaded with --plugin, for the program. plugin.h is what a plugin's author sees.
 *
 * The paths travel in TOLLENS_PLUGIN, so that the worker and the process of each attack load what
 * the program did. A plugin that is not as plugin.h has it is refused in a sentence, and nothing is
 * run.
 */
#ifndef HYP_PLUGINS_H
#define HYP_PLUGINS_H

#include <stdbool.h>
#include <stddef.h>

enum { HYP_PLUGINS_MAX = 8, HYP_GUEST_ATTACKS_MAX = 256 };

struct hyp_plugin_info {
    char file[256];  /* its name without the folders: a path is of one machine */
    char words[256]; /* "sums 1.0" */
    const struct hyp_plugin *plugin;
};

/* Takes --plugin PATH and --plugin=PATH out of the words and puts the paths behind those of
 * TOLLENS_PLUGIN. false: hyp_error(). */
bool hyp_plugins_take(int *count, char **words);

/* Loads all of TOLLENS_PLUGIN, once. false: one cannot be; hyp_error() says which and why. */
bool hyp_plugins_load(void);

size_t hyp_plugin_count(void);
const struct hyp_plugin_info *hyp_plugin_at(size_t index);

/* The attack at an index among those of all plugins; NULL past the end. */
const struct hyp_plugin_attack *hyp_plugin_attack_at(size_t index);

/* The sentence for a claim that is not there. Static. */
const char *hyp_plugin_no_claim(const char *name);

#endif
