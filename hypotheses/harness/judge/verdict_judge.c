/*
 * A violation decides: one counterexample is enough, whatever the other attacks found.
 */
#include "verdict_judge.h"

#include "verdict_effects.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Whether an attack ended without recording what it found. */
static bool is_broken(const struct hyp_outcome *outcome) {
    switch (outcome->ending) {
    case HYP_PASSED:
        return !outcome->has_record || outcome->record.samples == 0;
    case HYP_FAILED:
        return !outcome->has_record ||
               (outcome->record.violations == 0 && hyp_record_fallen(&outcome->record) == NULL);
    case HYP_SKIPPED:
        return !outcome->has_record || !outcome->record.not_tested;
    case HYP_NEVER_RAN:
    case HYP_CRASHED:
    case HYP_OVERDUE:
        return true;
    }
    return true;
}

static const char *broken_code(const struct hyp_outcome *outcome) {
    switch (outcome->ending) {
    case HYP_NEVER_RAN:
        return "worker_missing";
    case HYP_CRASHED:
        return "worker_crashed";
    case HYP_OVERDUE:
        return "deadline";
    case HYP_PASSED:
    case HYP_FAILED:
    case HYP_SKIPPED:
        break;
    }
    return "no_record";
}

/* The attacks that ran found nothing, but some were left out: inconclusive. */
static void set_partial(struct hyp_verdict *verdict) {
    size_t passes = (verdict->processes > 1 ? verdict->processes : 1) *
                    (verdict->seeds > 1 ? verdict->seeds : 1);
    size_t ran = verdict->outcome_count / passes;
    hyp_verdict_set(verdict, HYP_INCONCLUSIVE, "part_not_tested",
                    "the filter selected %zu of %zu attacks, and they found nothing", ran,
                    ran + verdict->left_out);
}

/* Finds the worst measured number and its seed. Returns the number of measurements. */
static size_t find_worst(const struct hyp_claim *claim, const struct hyp_verdict *verdict,
                         double *worst, uint64_t *seed) {
    size_t count = 0;
    for (size_t i = 0; i < verdict->outcome_count; i++) {
        const struct hyp_outcome *outcome = &verdict->outcomes[i];
        for (size_t k = 0; outcome->has_record && k < outcome->record.measure_count; k++) {
            const struct hyp_measure *measure = &outcome->record.measures[k];
            if (measure->recorded_only) continue;
            bool is_worse = claim->direction == HYP_ABOVE ? !(measure->value >= *worst)
                                                          : !(measure->value <= *worst);
            if (count++ > 0 && !is_worse) continue;
            *worst = measure->value;
            *seed = outcome->seed;
        }
    }
    return count;
}

void hyp_verdict_judge(const struct hyp_claim *claim, size_t findings,
                       struct hyp_verdict *verdict) {
    const struct hyp_outcome *violated = NULL, *broken = NULL, *untested = NULL, *tested = NULL;
    uint64_t violations = 0;
    for (size_t i = 0; i < verdict->outcome_count; i++) {
        const struct hyp_outcome *outcome = &verdict->outcomes[i];
        if (outcome->has_record) {
            const struct hyp_record *record = &outcome->record;
            violations += record->violations;
            verdict->samples += record->samples;
            verdict->duration_s += record->duration_s;
            if (record->violations > 0 && violated == NULL) violated = outcome;
            if (record->label[0] != '\0') {
                snprintf(verdict->label, sizeof verdict->label, "%s", record->label);
            }
        }
        if (is_broken(outcome)) {
            if (broken == NULL) broken = outcome;
        } else if (outcome->ending == HYP_SKIPPED) {
            if (untested == NULL) untested = outcome;
        } else {
            tested = outcome;
        }
    }
    verdict->broken = broken != NULL || verdict->outcome_count == 0;
    /* The threshold of a timed or measured claim is about its effect: not one violation is
     * allowed. */
    bool is_timed = claim->words != NULL && claim->words->is_timed;
    bool is_measured = claim->words != NULL && claim->words->is_measured;
    verdict->has_effect = verdict->samples > 0 && !is_timed;
    verdict->effect = (double)violations;
    if (is_measured) {
        size_t measures = find_worst(claim, verdict, &verdict->effect, &verdict->worst_seed);
        verdict->has_effect = measures > 0 && isfinite(verdict->effect);
        verdict->has_worst_seed = verdict->has_effect;
    }
    if (violated != NULL) {
        verdict->has_worst_seed = true;
        verdict->worst_seed = violated->seed;
    }

    if (violated != NULL &&
        (is_timed || is_measured || !hyp_claim_holds(claim, (double)violations))) {
        char seed[40] = "";
        if (verdict->seeds > 1) {
            snprintf(seed, sizeof seed, "seed %llu: ", (unsigned long long)violated->seed);
        }
        hyp_verdict_set(verdict, HYP_FALSIFIED, "", "%s%s: %s", seed, violated->name,
                        violated->record.example_count > 0 ? violated->record.examples[0] : "");
    } else if (verdict->outcome_count == 0) {
        hyp_verdict_set(verdict, HYP_INCONCLUSIVE, "no_attack", "the claim has no attack");
    } else if (broken != NULL) {
        hyp_verdict_set(verdict, HYP_INCONCLUSIVE, broken_code(broken), "%s: %s", broken->name,
                        broken->detail[0] != '\0' ? broken->detail
                                                  : "its process ended without writing a record");
    } else if (tested == NULL) {
        hyp_verdict_set(verdict, HYP_NOT_TESTED,
                        untested->record.code[0] != '\0' ? untested->record.code : "no_device",
                        "%s", untested->record.reason);
    } else if (untested != NULL) {
        hyp_verdict_set(verdict, HYP_INCONCLUSIVE, "part_not_tested", "%s: %s", untested->name,
                        untested->record.reason);
    } else if (findings > 0) {
        hyp_verdict_set(verdict, HYP_INCONCLUSIVE, "device_findings",
                        "the soft device reported %zu invalid access%s: see faults.jsonl", findings,
                        findings == 1 ? "" : "es");
    } else if (is_timed) {
        hyp_verdict_judge_effects(claim, verdict);
        /* An effect that --filter left out is not a failure of the harness. */
        bool none = strcmp(verdict->code, "no_record") == 0 && !verdict->broken;
        if (verdict->left_out > 0 && (verdict->kind == HYP_SURVIVED || none)) set_partial(verdict);
    } else if (verdict->left_out > 0) {
        set_partial(verdict);
    } else if (is_measured && !verdict->has_effect) {
        verdict->broken = true;
        hyp_verdict_set(verdict, HYP_INCONCLUSIVE, "no_record", "nothing was measured");
    } else {
        hyp_verdict_set(verdict, HYP_SURVIVED, "", "%s", "");
    }
}

void hyp_verdict_confirm(struct hyp_verdict *verdict, const struct hyp_verdict *second) {
    char reason[sizeof verdict->reason];
    snprintf(reason, sizeof reason, "%.600s", verdict->reason);
    if (second->kind == HYP_FALSIFIED) {
        hyp_verdict_set(verdict, HYP_FALSIFIED, verdict->code, "%s; a fresh run confirmed it",
                        reason);
        return;
    }
    hyp_verdict_set(verdict, HYP_INCONCLUSIVE, "unconfirmed",
                    "%s; but the verdict of a fresh run was %s", reason,
                    hyp_verdict_words(second->kind));
    verdict->broken |= second->broken;
}
