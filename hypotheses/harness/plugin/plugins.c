/*
 * Loads plugins. Everything that can be wrong with one is checked before any of its code runs.
 */
#include "plugins.h"

#include "files/atomic_file.h"
#include "harness/session.h"
#include "plugin_file.h"
#include "plugin_rules.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct hyp_plugin_info infos[HYP_PLUGINS_MAX];
static size_t info_count;
static const struct hyp_plugin_attack *attacks[HYP_PLUGIN_ATTACKS_MAX];
static size_t attack_count;

/* ---- the paths ------------------------------------------------------------------------------- */

/* Adds the absolute path to TOLLENS_PLUGIN: a worker may have another working directory. */
static bool add_path(const char *path) {
    const char *before = getenv("TOLLENS_PLUGIN");
    if (before == NULL) before = "";
    if (path[0] == '\0') return hyp_fail("--plugin requires the path of a shared library");
    char *whole = realpath(path, NULL), *all = NULL;
    if (whole == NULL) return hyp_fail("the plugin %s does not exist", path);
    bool ok = strchr(whole, ':') == NULL;
    if (!ok) hyp_fail("the path of the plugin %s contains a colon, which separates paths", whole);
    if (ok && asprintf(&all, "%s%s%s", before, before[0] != '\0' ? ":" : "", whole) < 0) {
        all = NULL;
        ok = hyp_fail("out of memory");
    }
    if (ok) setenv("TOLLENS_PLUGIN", all, 1);
    free(all);
    free(whole);
    return ok;
}

/* The claims that are in a plugin beside the program, by the letter of their names. */
static const struct {
    char letter;
    const char *file;
} beside[] = {{'W', "worker-claims.so"},
              {'S', "memory-claims.so"},
              {'P', "peer-claims.so"},
              {'Q', "order-claims.so"}};

/* Whether a word names claims of a letter: "W1", or "H3,w2" after --only. */
static bool names_claim(const char *word, char letter) {
    for (const char *at = word; at != NULL; at = strchr(at, ',')) {
        if (*at == ',') at++;
        const size_t digits = strspn(at + (at[0] != '\0'), "0123456789");
        const char end = at[0] != '\0' ? at[1 + digits] : '\0';
        if ((at[0] & ~0x20) == letter && digits > 0 && (end == '\0' || end == ',')) return true;
    }
    return false;
}

/* Adds a plugin from the program's folder, if it exists. */
static bool add_beside(const char *file) {
    static const char *const ways[] = {"", "/lib", "/../lib/tollens"};
    char path[4400];
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        snprintf(path, sizeof path, "%s%s/%s", hyp_session_program_folder(), ways[i], file);
        if (access(path, R_OK) == 0) return add_path(path);
    }
    return true; /* the command says that it does not know the claim */
}

/* These plugins are loaded when their claims are named and no other plugin is. */
static bool add_claims_beside(int count, char *const *words) {
    const char *others = getenv("TOLLENS_PLUGIN");
    if (others != NULL && others[0] != '\0') return true;
    for (size_t b = 0; b < sizeof beside / sizeof beside[0]; b++) {
        bool are_named = false;
        for (int i = 1; i < count; i++) are_named |= names_claim(words[i], beside[b].letter);
        if (are_named && !add_beside(beside[b].file)) return false;
    }
    return true;
}

bool hyp_plugins_take(int *count, char **words) {
    static const char option[] = "--plugin=";
    int kept = 0;
    for (int i = 0; i < *count; i++) {
        const char *path = NULL;
        if (strcmp(words[i], "--plugin") == 0) {
            path = i + 1 < *count ? words[++i] : "";
        } else if (strncmp(words[i], option, strlen(option)) == 0) {
            path = words[i] + strlen(option);
        } else {
            words[kept++] = words[i];
        }
        if (path != NULL && !add_path(path)) return false;
    }
    *count = kept;
    return add_claims_beside(kept, words);
}

/* ---- one plugin ------------------------------------------------------------------------------ */

/* dlerror() without the path it begins with. */
static const char *loader_words(const char *path) {
    const char *words = dlerror();
    if (words == NULL) return "the loader gives no reason";
    size_t length = strlen(path);
    return strncmp(words, path, length) == 0 && strncmp(words + length, ": ", 2) == 0
               ? words + length + 2
               : words;
}

/* Whether a library was built against these headers. false: hyp_error(). */
static bool plugins_fits(const char *path, void *library) {
    const struct hyp_plugin *plugin = dlsym(library, "tollens_plugin");
    if (plugin == NULL) {
        return hyp_fail("%s is not a plugin: it has no HYP_PLUGIN, which plugin.h describes", path);
    }
    if (plugin->abi == HYP_PLUGIN_ABI && plugin->layout == HYP_PLUGIN_LAYOUT) return true;
    return hyp_fail("the plugin %s was built for version %u.%08x of the harness, and this is "
                    "%u.%08x: rebuild it with this version's headers",
                    path, plugin->abi, plugin->layout, HYP_PLUGIN_ABI, HYP_PLUGIN_LAYOUT);
}

/* Loads a library and returns its declaration. NULL: hyp_error(). */
static const struct hyp_plugin *open_plugin(const char *path) {
    if (!hyp_plugin_file_is_whole(path)) return NULL;
    /* A worker's process may end: the run that started it is not ended by that. */
    if (getenv("TOLLENS_ATTACK_PIPE") == NULL && !hyp_plugin_file_lets_load(path)) return NULL;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library != NULL && plugins_fits(path, library)) return dlsym(library, "tollens_plugin");
    if (library == NULL) {
        hyp_fail("the plugin %s cannot be loaded: %s", path, loader_words(path));
        /* A plugin for another version may lack functions; its version is the better message. */
        library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
        if (library != NULL) plugins_fits(path, library);
    }
    if (library != NULL) dlclose(library);
    return NULL;
}

static bool add_claim(const struct hyp_plugin_claim *declared, const char *words) {
    struct hyp_claim claim = {.threshold = declared->threshold,
                              .tolerance = declared->tolerance,
                              .direction = declared->direction,
                              .title = declared->title,
                              .unit = declared->unit,
                              .source = declared->source,
                              .words = &declared->words,
                              .plugin = words,
                              .shares_device = declared->shares_device,
                              .saboteurs = declared->saboteurs,
                              .ladders = declared->ladders};
    snprintf(claim.id, sizeof claim.id, "%s", declared->id);
    while (declared->saboteurs[claim.saboteur_count].name != NULL) claim.saboteur_count++;
    while (claim.ladders != NULL && claim.ladders[claim.ladder_count] != NULL) claim.ladder_count++;
    return hyp_claim_add(&claim) != NULL ||
           hyp_fail("plugins can add at most %d claims", HYP_GUESTS_MAX);
}

static bool add_attacks(const struct hyp_plugin *plugin) {
    for (const struct hyp_plugin_attack *const *at = plugin->attacks; at != plugin->attacks_end;
         at++) {
        if (attack_count == HYP_PLUGIN_ATTACKS_MAX) {
            return hyp_fail("plugins can add at most %d attacks", HYP_PLUGIN_ATTACKS_MAX);
        }
        attacks[attack_count++] = *at;
    }
    return true;
}

static bool plugins_load(const char *path) {
    const struct hyp_plugin *plugin = open_plugin(path);
    char why[1024];
    if (plugin == NULL) return false;
    if (info_count == HYP_PLUGINS_MAX) {
        return hyp_fail("at most %d plugins can be loaded", HYP_PLUGINS_MAX);
    }
    struct hyp_plugin_info *info = &infos[info_count];
    const char *slash = strrchr(path, '/');
    *info = (struct hyp_plugin_info){.plugin = plugin};
    snprintf(info->file, sizeof info->file, "%s", slash != NULL ? slash + 1 : path);
    bool ok = hyp_plugin_is_whole(plugin);
    if (ok) snprintf(info->words, sizeof info->words, "%s %s", plugin->name, plugin->version);
    for (const struct hyp_fault *f = plugin->faults; ok && f != NULL && f->name != NULL; f++) {
        ok = hyp_sabotage_add(f);
    }
    for (const struct hyp_plugin_claim *c = plugin->claims; ok && c->id != NULL; c++) {
        ok = hyp_plugin_claim_is_whole(plugin, c) && add_claim(c, info->words);
    }
    if (ok && add_attacks(plugin)) {
        info_count++;
        return true;
    }
    snprintf(why, sizeof why, "%s", hyp_error());
    return hyp_fail("the plugin %s: %s", path, why);
}

bool hyp_plugins_load(void) {
    static bool is_done;
    const char *paths = getenv("TOLLENS_PLUGIN");
    if (is_done || paths == NULL || paths[0] == '\0') return true;
    is_done = true;
    char *copy = strdup(paths), *rest = copy;
    bool ok = copy != NULL || hyp_fail("out of memory");
    for (const char *path; ok && (path = strsep(&rest, ":")) != NULL;) {
        if (path[0] == '\0') continue;
        /* The loader searches the system for a name without a slash. */
        char *whole = realpath(path, NULL);
        ok = whole != NULL ? plugins_load(whole) : hyp_fail("the plugin %s does not exist", path);
        free(whole);
    }
    free(copy);
    return ok;
}

/* ---- what there is --------------------------------------------------------------------------- */

size_t hyp_plugin_count(void) {
    return info_count;
}

const struct hyp_plugin_info *hyp_plugin_at(size_t index) {
    return index < info_count ? &infos[index] : NULL;
}

const struct hyp_plugin_attack *hyp_plugin_attack_at(size_t index) {
    return index < attack_count ? attacks[index] : NULL;
}

const char *hyp_plugin_no_claim(const char *name) {
    static char sentence[400];
    size_t length = (size_t)snprintf(sentence, sizeof sentence,
                                     "unknown claim '%.40s': the claims are H1 to H%zu", name,
                                     hyp_claim_own_count());
    for (size_t i = hyp_claim_own_count(); i < hyp_claim_count(); i++) {
        length += (size_t)snprintf(sentence + length, sizeof sentence - length, "%s %s",
                                   i + 1 == hyp_claim_count() ? " and" : ",", hyp_claims()[i].id);
    }
    return sentence;
}
