/*
 * Verdicts as lines.
 */
#include "console.h"

#include "command.h"
#include "harness/sabotage.h"
#include "progress.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Under --json stdout has the document alone. */
static FILE *console_out(void) {
    return hyp_command_is_json() ? stderr : stdout;
}

void hyp_console_say(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vfprintf(console_out(), format, arguments);
    va_end(arguments);
    fflush(console_out());
}

void hyp_console_begin(const struct hyp_run *run) {
    const char *filter = run->session.filter;
    char seeds[64];
    hyp_console_say("%s run on %s (%s), %s%s%s%s%s\n", run->session.full ? "Full" : "Quick",
                    run->machine.device.name, hyp_device_kind_name(run->machine.kind),
                    hyp_run_seeds(run, seeds, sizeof seeds),
                    filter != NULL ? ", attacks matching " : "", filter != NULL ? filter : "",
                    run->under != NULL ? ", under the saboteur " : "",
                    run->under != NULL ? run->under : "");
}

static void console_put_limits(const struct hyp_claim *claim, const struct hyp_verdict *verdict) {
    for (size_t i = 0; verdict->has_limits && i < verdict->limit_count; i++) {
        char words[200];
        const struct hyp_limit *limit = &verdict->limits[i];
        const bool noticed = limit->noticed[0] != '\0';
        hyp_console_say(
            "%-*swould %shave noticed: %s\n", hyp_claim_width(), claim->id, noticed ? "" : "not ",
            hyp_sabotage_words(noticed ? limit->noticed : limit->missed, words, sizeof words));
        if (noticed && limit->missed[0] != '\0') {
            hyp_console_say("%-*snot noticed: %s\n", hyp_claim_width() + 2, "",
                            hyp_sabotage_words(limit->missed, words, sizeof words));
        }
    }
}

/* ---- the way to look closer ------------------------------------------------------------------ */

/* The attack that decided the verdict; NULL: none did alone. */
static const struct hyp_outcome *console_deciding(const struct hyp_verdict *verdict) {
    for (size_t i = 0; i < verdict->outcome_count; i++) {
        const struct hyp_outcome *outcome = &verdict->outcomes[i];
        const bool is_trouble = outcome->ending == HYP_FAILED || outcome->ending == HYP_CRASHED ||
                                outcome->ending == HYP_OVERDUE;
        if (verdict->kind == HYP_FALSIFIED ? outcome->record.violations > 0 : is_trouble) {
            return outcome;
        }
    }
    return NULL;
}

/* "tollens run H3 --filter copies --seed 2 --device soft:0": what repeats the verdict, and no more.
 * Words that a shell would change are quoted. */
static void put_command(const struct hyp_run *run, const struct hyp_claim *claim,
                        const struct hyp_outcome *outcome) {
    hyp_console_say("%s run %s", hyp_command_program(), claim->id);
    const char *plugins = getenv("TOLLENS_PLUGIN");
    while (claim->plugin != NULL && plugins != NULL && *plugins != '\0') {
        const int length = (int)strcspn(plugins, ":");
        if (length > 0) hyp_console_say(" --plugin %.*s", length, plugins);
        plugins += length + (plugins[length] == ':');
    }
    if (outcome != NULL) {
        hyp_console_say(" --filter %s --seed %llu", outcome->name,
                        (unsigned long long)outcome->seed);
    } else if (run->session.filter != NULL) {
        hyp_console_say(" --filter '%s'", run->session.filter);
    }
    hyp_console_say(" --device %s", hyp_device_kind_name(run->machine.kind));
    if (run->session.ordinal > 0) hyp_console_say(":%d", run->session.ordinal);
    if (run->session.full) hyp_console_say(" --full");
    if (run->under != NULL) hyp_console_say(" --under '%s'", run->under);
    /* What no attack decides alone is about times or several attacks: once is not enough. */
    if (outcome == NULL) hyp_console_say(" --repeat 5");
}

/* Below a line that is red: the command that repeats what was seen, and what was written down. */
static void put_way(const struct hyp_run *run, const struct hyp_claim *claim,
                    const struct hyp_verdict *verdict) {
    const struct hyp_outcome *outcome = console_deciding(verdict);
    const int indent = hyp_claim_width();
    hyp_console_say("%*slook closer: ", indent, "");
    put_command(run, claim, outcome);
    hyp_console_say("\n%*s             %s/%s/%s%s", indent, "", run->folder, claim->id,
                    outcome != NULL ? outcome->folder : "",
                    outcome != NULL && outcome->folder[0] != '\0' ? "/" : "");
    if (outcome != NULL && outcome->has_record) {
        hyp_console_say("attacks/%s.json\n", outcome->name);
    } else {
        hyp_console_say("attacks.log\n");
    }
}

void hyp_console_verdict(const struct hyp_run *run, const struct hyp_claim *claim,
                         const char *left) {
    static const char *const colours[] = {"\033[32m", "\033[1;31m", "\033[33m", "\033[2m"};
    const struct hyp_verdict *verdict = &run->verdicts[claim->number - 1];
    char effect[96] = "", text[HYP_UNIT_BYTES];
    const char *unit = hyp_unit_of(verdict->effect, claim->unit, text);
    const bool colour = hyp_progress_has_colour(console_out());
    if (verdict->has_interval) {
        snprintf(effect, sizeof effect, "%.4g %s (%.4g to %.4g)%s", verdict->effect, unit,
                 verdict->low, verdict->high, verdict->processes == 1 ? ", one process" : "");
    } else if (verdict->has_effect) {
        char seed[40] = "";
        if (verdict->seeds > 1 && verdict->has_worst_seed) {
            snprintf(seed, sizeof seed, ", worst seed %llu",
                     (unsigned long long)verdict->worst_seed);
        }
        snprintf(effect, sizeof effect, "%.4g %s in %llu%s%s%s", verdict->effect, unit,
                 (unsigned long long)verdict->samples, verdict->label[0] != '\0' ? ", " : "",
                 verdict->label, seed);
    }
    /* The verdict comes first for readers in a hurry; titles differ in length and come last. */
    hyp_console_say("%-*s%s%-12s%s  ", hyp_claim_width(), claim->id,
                    colour ? colours[verdict->kind] : "", hyp_verdict_words(verdict->kind),
                    colour ? "\033[0m" : "");
    if (verdict->kind == HYP_NOT_TESTED) {
        hyp_console_say("%-46s  %s%s\n", verdict->reason, claim->title, left);
    } else {
        hyp_console_say("%-46s  %s%s\n", effect, claim->title, left);
    }
    if (verdict->kind == HYP_FALSIFIED || verdict->kind == HYP_INCONCLUSIVE) {
        put_way(run, claim, verdict);
    }
}

void hyp_console_limits(const struct hyp_run *run, const struct hyp_claim *claim) {
    console_put_limits(claim, &run->verdicts[claim->number - 1]);
}

void hyp_console_severity(const struct hyp_run *run, const struct hyp_claim *claim,
                          const char *left) {
    const struct hyp_verdict *verdict = &run->verdicts[claim->number - 1];
    if (verdict->has_severity) {
        const double share =
            verdict->saboteurs > 0 ? 100.0 * verdict->caught / verdict->saboteurs : 0;
        hyp_console_say("%-*sseverity %.0f %% (%u of %u)", hyp_claim_width(), claim->id, share,
                        verdict->caught, verdict->saboteurs);
        if (verdict->untold > 0) hyp_console_say(", %u not decided", verdict->untold);
        if (verdict->borderline > 0) {
            hyp_console_say("; %u of %u borderline faults judged rightly",
                            verdict->borderline_right, verdict->borderline);
        }
        hyp_console_say("%s\n", left);
    }
}

static void put_reasons(const struct hyp_run *run) {
    for (size_t i = 0; i < hyp_claim_count(); i++) {
        const struct hyp_verdict *verdict = &run->verdicts[i];
        if (!run->chosen[i] || verdict->kind == HYP_NOT_TESTED || verdict->reason[0] == '\0') {
            continue;
        }
        hyp_console_say("\n%s %s: %s\n", hyp_claims()[i].id, hyp_verdict_words(verdict->kind),
                        verdict->reason);
    }
}

void hyp_console_end(const struct hyp_run *run, const struct hyp_run_options *options) {
    put_reasons(run);
    size_t idle = hyp_run_count(run, HYP_NOT_TESTED);
    hyp_console_say("\n%zu survived, %zu falsified, %zu inconclusive, %zu not tested%s",
                    hyp_run_count(run, HYP_SURVIVED), hyp_run_count(run, HYP_FALSIFIED),
                    hyp_run_count(run, HYP_INCONCLUSIVE), idle,
                    options->require_gpu && idle > 0 ? " (not allowed by --require-gpu)" : "");
    if (hyp_run_left_out(run) > 0) hyp_console_say(", %zu not chosen", hyp_run_left_out(run));
    hyp_console_say(". Evidence: %s\n", run->folder);
}
