/*
 * Verdicts as lines on stdout.
 */
#include "console.h"

#include "harness/sabotage.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void hyp_console_begin(const struct hyp_run *run) {
    const char *filter = run->session.filter;
    char seeds[64];
    printf("%s run on %s (%s), %s%s%s%s%s\n", run->session.full ? "Full" : "Quick",
           run->machine.device.name, hyp_device_kind_name(run->machine.kind),
           hyp_run_seeds(run, seeds, sizeof seeds), filter != NULL ? ", attacks matching " : "",
           filter != NULL ? filter : "", run->under != NULL ? ", under the saboteur " : "",
           run->under != NULL ? run->under : "");
    fflush(stdout);
}

void hyp_console_verdict(const struct hyp_claim *claim, const struct hyp_verdict *verdict) {
    static const char *const colours[] = {"\033[32m", "\033[1;31m", "\033[33m", "\033[2m"};
    char effect[96] = "", severity[48] = "", text[HYP_UNIT_BYTES];
    const char *unit = hyp_unit_of(verdict->effect, claim->unit, text);
    bool colour = isatty(STDOUT_FILENO) && getenv("NO_COLOR") == NULL;
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
    if (verdict->has_severity) {
        snprintf(severity, sizeof severity, "severity %.0f %% (%u of %u)",
                 verdict->saboteurs > 0 ? 100.0 * verdict->caught / verdict->saboteurs : 0,
                 verdict->caught, verdict->saboteurs);
    }
    /* What a reader in a hurry looks for stands left; the titles differ in length and come last. */
    printf("%-*s%s%-12s%s  ", hyp_claim_width(), claim->id, colour ? colours[verdict->kind] : "",
           hyp_verdict_words(verdict->kind), colour ? "\033[0m" : "");
    if (verdict->kind == HYP_NOT_TESTED) {
        printf("%-72s  %s\n", verdict->reason, claim->title);
    } else {
        printf("%-46s  %-24s  %s\n", effect, severity, claim->title);
    }
    for (size_t i = 0; verdict->has_limits && i < verdict->limit_count; i++) {
        char words[200];
        const struct hyp_limit *limit = &verdict->limits[i];
        const bool noticed = limit->noticed[0] != '\0';
        printf("%-*swould %shave noticed: %s\n", hyp_claim_width(), claim->id,
               noticed ? "" : "not ",
               hyp_sabotage_words(noticed ? limit->noticed : limit->missed, words, sizeof words));
        if (noticed && limit->missed[0] != '\0') {
            printf("%-*snot noticed: %s\n", hyp_claim_width() + 2, "",
                   hyp_sabotage_words(limit->missed, words, sizeof words));
        }
    }
    fflush(stdout);
}

static void put_reasons(const struct hyp_run *run) {
    for (size_t i = 0; i < hyp_claim_count(); i++) {
        const struct hyp_verdict *verdict = &run->verdicts[i];
        if (!run->chosen[i] || verdict->kind == HYP_NOT_TESTED || verdict->reason[0] == '\0') {
            continue;
        }
        printf("\n%s %s: %s\n", hyp_claims()[i].id, hyp_verdict_words(verdict->kind),
               verdict->reason);
    }
}

void hyp_console_end(const struct hyp_run *run, const struct hyp_run_options *options) {
    put_reasons(run);
    size_t idle = hyp_run_count(run, HYP_NOT_TESTED);
    printf("\n%zu survived, %zu falsified, %zu inconclusive, %zu not tested%s",
           hyp_run_count(run, HYP_SURVIVED), hyp_run_count(run, HYP_FALSIFIED),
           hyp_run_count(run, HYP_INCONCLUSIVE), idle,
           options->require_gpu && idle > 0 ? " (not allowed by --require-gpu)" : "");
    if (hyp_run_left_out(run) > 0) printf(", %zu not chosen", hyp_run_left_out(run));
    printf(". Evidence: %s\n", run->folder);
    fflush(stdout);
}
