/*
 * Reading the words after `tollens run`.
 */
#include "run_options.h"

#include "files/atomic_file.h"
#include "plugin/plugins.h"
#include "harness/sabotage.h"
#include "record/timeline.h"
#include "command.h"
#include "lanes.h"
#include "worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The value of an option, "--out=DIR" or "--out DIR"; NULL where words[*i] is another word. A
 * missing value is "". */
static const char *run_options_option(const char *name, int count, char **words, int *i) {
    size_t length = strlen(name);
    if (strncmp(words[*i], name, length) != 0) return NULL;
    if (words[*i][length] == '=') return words[*i] + length + 1;
    if (words[*i][length] != '\0') return NULL;
    return *i + 1 < count ? words[++*i] : "";
}

/* "H4", or several, with commas between them. */
static bool run_options_choose(const char *names, struct hyp_run *run,
                               struct hyp_run_options *options) {
    while (true) {
        char name[16];
        size_t length = strcspn(names, ",");
        snprintf(name, sizeof name, "%.*s", (int)length, names);
        const struct hyp_claim *claim = length < sizeof name ? hyp_claim_find(name) : NULL;
        if (claim == NULL) return hyp_fail("%s", hyp_plugin_no_claim(name));
        run->chosen[claim->number - 1] = true;
        options->any_claim = true;
        if (names[length] == '\0') return true;
        names += length + 1;
    }
}

static bool run_options_read_number(const char *name, const char *value, int most,
                                    uint64_t *number) {
    bool ok = hyp_session_number(value, (uint64_t)most, number) && *number > 0;
    return ok || hyp_fail("%s must be a number from 1 to %d, not '%s'", name, most, value);
}

/* What is said of a trace must be about one, and go together. */
static bool trace_is_sound(const struct hyp_run_options *options) {
    bool is_said = options->trace_every > 0 || options->trace_share > 0;
    if (is_said && options->trace == NULL) {
        return hyp_fail("--trace-every and --trace-share require --trace FILE");
    }
    return options->trace_every <= 1 || options->trace_share <= 1 ||
           hyp_fail("--trace-every %d cannot be combined with --trace-share %d: it leaves no "
                    "adjacent operations that could share an event",
                    (int)options->trace_every, (int)options->trace_share);
}

/* Who names a seed means that one: it reproduces a run. */
static bool choose_seeds(struct hyp_run *run, const struct hyp_run_options *options) {
    const char *variable = getenv("TOLLENS_SEED");
    bool is_named = options->has_seed || (variable != NULL && variable[0] != '\0');
    run->seeds = options->seeds > 0  ? (unsigned)options->seeds
                 : is_named          ? 1
                 : run->session.full ? HYP_SEEDS_FULL
                                     : HYP_SEEDS_QUICK;
    return run->session.seed <= HYP_SEED_MAX - (run->seeds - 1) ||
           hyp_fail("--seed and --seeds go beyond the largest seed, 2^63 - 1");
}

static bool run_options_read_word(int count, char **words, int *i, struct hyp_run *run,
                                  struct hyp_run_options *options) {
    const char *word = words[*i], *value = NULL;
    if (strcmp(word, "--quick") == 0) {
        run->session.full = false;
    } else if (strcmp(word, "--full") == 0) {
        run->session.full = true;
    } else if (strcmp(word, "--sabotage") == 0) {
        run->sabotage = true;
    } else if (strcmp(word, "--limits") == 0) {
        run->limits = true;
    } else if (strcmp(word, "--verbose") == 0) {
        options->verbose = true;
    } else if (strcmp(word, "--require-gpu") == 0) {
        options->require_gpu = true;
    } else if (strcmp(word, "--allow-untested") == 0) {
        options->allow_untested = true;
    } else if ((value = run_options_option("--device", count, words, i)) != NULL) {
        if (value[0] == '\0') return hyp_fail("--device must be auto, cuda, cuda:N or soft");
        return hyp_session_device(value, &run->session.kind, &run->session.ordinal);
    } else if ((value = run_options_option("--out", count, words, i)) != NULL) {
        if (value[0] == '\0') return hyp_fail("--out requires a folder");
        options->out = value;
    } else if ((value = run_options_option("--trace", count, words, i)) != NULL) {
        if (value[0] == '\0') return hyp_fail("--trace requires a file");
        options->trace = value;
    } else if ((value = run_options_option("--trace-every", count, words, i)) != NULL) {
        return run_options_read_number("--trace-every", value, HYP_TRACE_EVERY_MAX,
                                       &options->trace_every);
    } else if ((value = run_options_option("--trace-share", count, words, i)) != NULL) {
        return run_options_read_number("--trace-share", value, TOL_TRACE_SHARE_MAX,
                                       &options->trace_share);
    } else if ((value = run_options_option("--only", count, words, i)) != NULL) {
        return run_options_choose(value, run, options);
    } else if ((value = run_options_option("--filter", count, words, i)) != NULL) {
        if (value[0] == '\0' || strlen(value) > HYP_FILTER_BYTES_MAX) {
            return hyp_fail(
                "--filter must be a glob of attack names, such as 'H4/*' or 'copies_*'");
        }
        run->session.filter = value;
    } else if (strcmp(word, "--list") == 0) {
        options->list = true;
    } else if ((value = run_options_option("--seed", count, words, i)) != NULL) {
        if (!hyp_session_number(value, HYP_SEED_MAX, &run->session.seed)) {
            return hyp_fail("--seed must be a number below 2^63, not '%s'", value);
        }
        options->has_seed = true;
    } else if ((value = run_options_option("--seeds", count, words, i)) != NULL) {
        return run_options_read_number("--seeds", value, HYP_SEEDS_MAX, &options->seeds);
    } else if ((value = run_options_option("--jobs", count, words, i)) != NULL) {
        return run_options_read_number("--jobs", value, HYP_LANES_MAX, &options->jobs);
    } else if ((value = run_options_option("--deadline", count, words, i)) != NULL) {
        uint64_t *deadline_s = &run->session.deadline_s;
        if (!hyp_session_number(value, HYP_DEADLINE_S_MAX, deadline_s) || *deadline_s == 0) {
            return hyp_fail("--deadline must be a number of seconds, not '%s'", value);
        }
    } else if ((value = run_options_option("--saboteur-deadline", count, words, i)) != NULL) {
        return run_options_read_number("--saboteur-deadline", value, HYP_DEADLINE_S_MAX,
                                       &run->saboteur_s);
    } else if ((value = run_options_option("--repeat", count, words, i)) != NULL) {
        return run_options_read_number("--repeat", value, HYP_REPEATS_MAX, &options->repeats);
    } else if ((value = run_options_option("--under", count, words, i)) != NULL) {
        run->under = value;
        return hyp_sabotage_find(value, NULL);
    } else if ((value = run_options_option("--inconclusive", count, words, i)) != NULL) {
        options->inconclusive_warns = strcmp(value, "warn") == 0;
        if (!options->inconclusive_warns && strcmp(value, "fail") != 0) {
            return hyp_fail("--inconclusive must be fail or warn, not '%s'", value);
        }
    } else if (word[0] == '-') {
        return hyp_command_no_option("run", word);
    } else {
        return run_options_choose(word, run, options);
    }
    return true;
}

/* Leaves the claims of which the filter chooses an attack. */
static bool drop_others(struct hyp_run *run) {
    const char *filter = run->session.filter;
    bool any = false;
    for (size_t i = 0; i < hyp_claim_count(); i++) {
        const char *suite = hyp_claims()[i].suite;
        run->chosen[i] &= hyp_worker_list(suite, filter, NULL, 0) > 0;
        any |= run->chosen[i];
    }
    return any ||
           hyp_fail("no attack of the chosen claims matches '%s'; see tollens run --list", filter);
}

bool hyp_run_options_read(int count, char **words, struct hyp_run *run,
                          struct hyp_run_options *options) {
    if (!hyp_session_read(&run->session)) return false;
    for (int i = 0; i < count; i++) {
        if (!run_options_read_word(count, words, &i, run, options)) return false;
    }
    if (!trace_is_sound(options)) return false;
    if (!choose_seeds(run, options)) return false;
    if (run->saboteur_s > 0 && !run->sabotage) {
        return hyp_fail("--saboteur-deadline limits the saboteurs of --sabotage, which is missing");
    }
    run->jobs = (unsigned)options->jobs;
    /* With plugins, the default is their claims. */
    for (size_t i = hyp_plugin_count() > 0 ? hyp_claim_own_count() : 0;
         i < hyp_claim_count() && !options->any_claim; i++) {
        run->chosen[i] = true;
    }
    if (run->session.filter == NULL) return true;
    if (run->sabotage) {
        return hyp_fail(
            "--sabotage needs all attacks of a claim and cannot be combined with --filter; --under "
            "NAME --filter GLOB shows whether some attacks notice one saboteur");
    }
    return drop_others(run);
}

char *hyp_run_options_command(int count, char **words) {
    size_t bytes = sizeof "tollens run";
    for (int i = 0; i < count; i++) bytes += strlen(words[i]) + 1;
    for (size_t i = 0; i < hyp_plugin_count(); i++) {
        bytes += strlen(" --plugin ") + strlen(hyp_plugin_at(i)->file);
    }
    char *text = malloc(bytes), *end = text;
    if (text == NULL) return NULL;
    end = stpcpy(end, "tollens run");
    for (size_t i = 0; i < hyp_plugin_count(); i++) {
        end = stpcpy(stpcpy(end, " --plugin "), hyp_plugin_at(i)->file);
    }
    for (int i = 0; i < count; i++) {
        if (run_options_option("--out", count, words, &i) != NULL) continue;
        if (run_options_option("--trace", count, words, &i) != NULL) continue;
        if (run_options_option("--trace-every", count, words, &i) != NULL) continue;
        if (run_options_option("--trace-share", count, words, &i) != NULL) continue;
        *end++ = ' ';
        end = stpcpy(end, words[i]);
    }
    return text;
}
