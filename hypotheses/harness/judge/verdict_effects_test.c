/*
 * Verdicts of timed claims: what follows from effects, of one process or of six.
 */
#include "verdict_judge.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct hyp_words words = {.number = 4, .is_timed = true};
static struct hyp_claim claim;
static struct hyp_verdict verdict;

static void begin(void) {
    claim = *hyp_claim_find("H4");
    claim.words = &words;
}
static void end(void) {
    hyp_verdict_end(&verdict);
}
TestSuite(verdict_effects, .init = begin, .fini = end);

/* One attack in this many processes, each with one sample and no effects yet. */
static void begin_verdict(unsigned processes) {
    memset(&verdict, 0, sizeof verdict);
    verdict.processes = processes;
    verdict.outcome_count = processes;
    verdict.outcomes = calloc(processes, sizeof *verdict.outcomes);
    for (unsigned i = 0; i < processes; i++) {
        struct hyp_outcome *outcome = &verdict.outcomes[i];
        snprintf(outcome->name, sizeof outcome->name, "attack");
        outcome->process = i + 1;
        outcome->ending = HYP_PASSED;
        outcome->has_record = true;
        outcome->record.samples = 50;
    }
}

static struct hyp_effect *add(unsigned process, const char *name, double low, double median,
                              double high) {
    struct hyp_record *record = &verdict.outcomes[process].record;
    struct hyp_effect *effect = &record->effects[record->effect_count++];
    *effect = (struct hyp_effect){
        .rule = {.threshold = claim.threshold, .direction = claim.direction, .family = 1},
        .blocks = 50,
        .effect = {.median = median, .low = low, .high = high}};
    snprintf(effect->name, sizeof effect->name, "%s", name);
    effect->decision = hyp_decide(&effect->rule, &effect->effect);
    if (effect->decision == HYP_UNDECIDED) snprintf(effect->code, 32, "undecided");
    if (effect->decision == HYP_FALLS) verdict.outcomes[process].ending = HYP_FAILED;
    return effect;
}

static void expect(enum hyp_verdict_kind kind, const char *code) {
    hyp_verdict_judge(&claim, 0, &verdict);
    cr_assert(verdict.kind == kind, "%s, %s: %s", hyp_verdict_name(verdict.kind), verdict.code,
              verdict.reason);
    cr_assert_str_eq(verdict.code, code);
    cr_assert((verdict.reason[0] == '\0') == (kind == HYP_SURVIVED), "%s", verdict.reason);
}

Test(verdict_effects, one_process_is_judged_by_its_interval) {
    begin_verdict(1);
    add(0, "launch", 0.01, 0.02, 0.03);
    expect(HYP_SURVIVED, "");
    cr_assert(verdict.has_interval && verdict.effect == 0.02 && verdict.low == 0.01 &&
              verdict.high == 0.03);
    cr_assert(!verdict.broken && verdict.samples == 50);
}

Test(verdict_effects, any_effect_that_falls_fells_the_claim) {
    begin_verdict(1);
    add(0, "first", 0.01, 0.02, 0.03);
    add(0, "second", 2.5, 3, 3.5);
    add(0, "third", 1.5, 2, 2.5);
    expect(HYP_FALSIFIED, "");
    cr_assert(verdict.effect == 3 && strstr(verdict.reason, "second") != NULL, "%s",
              verdict.reason);
    cr_assert(!verdict.broken, "a test that failed by its effect is no broken one");
}

Test(verdict_effects, any_that_is_open_leaves_it_open) {
    begin_verdict(1);
    add(0, "first", 0.01, 0.02, 0.03);
    add(0, "second", 1.5, 1.9, 2.5);
    expect(HYP_INCONCLUSIVE, "undecided");
    cr_assert(hyp_verdict_could_not_tell(&verdict));
}

Test(verdict_effects, what_is_nearest_to_falling_is_told) {
    begin_verdict(1);
    add(0, "first", 0.01, 0.02, 0.03);
    add(0, "second", 0.1, 0.2, 0.3);
    add(0, "third", 0.02, 0.03, 0.04);
    expect(HYP_SURVIVED, "");
    cr_assert(verdict.effect == 0.2, "%g", verdict.effect);
}

Test(verdict_effects, what_is_only_recorded_fells_nothing) {
    begin_verdict(1);
    add(0, "launch", 0.01, 0.02, 0.03);
    add(0, "copies", 5, 6, 7)->recorded_only = true;
    verdict.outcomes[0].ending = HYP_PASSED;
    expect(HYP_SURVIVED, "");
    end();
    begin_verdict(1);
    add(0, "copies", 0.01, 0.02, 0.03)->recorded_only = true;
    expect(HYP_INCONCLUSIVE, "no_record");
}

/* Unfit is never a pass, and never a fall. */
Test(verdict_effects, an_unfit_machine_decides_nothing) {
    static const char *const codes[] = {"unfit_control", "unfit_spread", "unfit_discarded",
                                        "unfit_timer",   "unfit_clock",  "unfit_shared",
                                        "unfit_throttle"};
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        for (int falls = 0; falls < 2; falls++) {
            begin_verdict(1);
            struct hyp_effect *effect = add(0, "launch", falls ? 3 : 1, falls ? 3 : 1, 3);
            effect->decision = falls ? HYP_FALLS : HYP_HOLDS;
            verdict.outcomes[0].ending = HYP_PASSED;
            snprintf(effect->code, sizeof effect->code, "%s", codes[i]);
            snprintf(effect->sentence, sizeof effect->sentence, "why");
            expect(HYP_INCONCLUSIVE, codes[i]);
            cr_assert(hyp_verdict_could_not_tell(&verdict) && !verdict.broken);
            end();
        }
    }
    begin_verdict(1);
    snprintf(add(0, "launch", 1, 1, 1)->code, 32, "samples_lost");
    expect(HYP_INCONCLUSIVE, "samples_lost");
    cr_assert(!hyp_verdict_could_not_tell(&verdict), "a lost sample is not the machine's noise");
}

Test(verdict_effects, a_violation_outweighs_every_effect) {
    begin_verdict(1);
    add(0, "launch", 0.01, 0.02, 0.03);
    verdict.outcomes[0].record.violations = 1;
    verdict.outcomes[0].record.example_count = 1;
    snprintf(verdict.outcomes[0].record.examples[0], 64, "a launch was not made");
    verdict.outcomes[0].ending = HYP_FAILED;
    expect(HYP_FALSIFIED, "");
    cr_assert(!verdict.has_effect, "violations are no microseconds");
}

Test(verdict_effects, six_processes_must_agree) {
    begin_verdict(6);
    for (unsigned p = 0; p < 6; p++) add(p, "launch", 0.01, 0.02 + 0.01 * p, 9);
    /* That none of them could decide alone is no fault. */
    expect(HYP_SURVIVED, "");
    cr_assert(verdict.low == 0.02 && fabs(verdict.high - 0.07) < 1e-12 && verdict.processes == 6);
    verdict.outcomes[3].record.effects[0].effect.median = 2.5;
    expect(HYP_INCONCLUSIVE, "processes_differ");
    for (unsigned p = 0; p < 6; p++) verdict.outcomes[p].record.effects[0].effect.median = 2.5;
    expect(HYP_FALSIFIED, "");
}

Test(verdict_effects, one_unfit_process_of_six_leaves_it_open) {
    begin_verdict(6);
    for (unsigned p = 0; p < 6; p++) add(p, "launch", 0.01, 0.02, 0.03);
    snprintf(verdict.outcomes[4].record.effects[0].code, 32, "unfit_clock");
    snprintf(verdict.outcomes[4].record.effects[0].sentence, 32, "why");
    expect(HYP_INCONCLUSIVE, "unfit_clock");
}

Test(verdict_effects, a_process_that_is_missing_is_no_pass) {
    begin_verdict(6);
    for (unsigned p = 0; p < 5; p++) add(p, "launch", 0.01, 0.02, 0.03);
    expect(HYP_INCONCLUSIVE, "no_record");
    cr_assert(verdict.broken);
    end();
    begin_verdict(6);
    for (unsigned p = 0; p < 6; p++) add(p, "launch", 0.01, 0.02, 0.03);
    verdict.outcomes[2].ending = HYP_CRASHED;
    verdict.outcomes[2].has_record = false;
    expect(HYP_INCONCLUSIVE, "worker_crashed");
}

Test(verdict_effects, without_effects_there_is_no_verdict) {
    begin_verdict(1);
    expect(HYP_INCONCLUSIVE, "no_record");
    cr_assert(verdict.broken);
}

Test(verdict_effects, not_tested_has_the_attacks_reason) {
    begin_verdict(1);
    add(0, "launch", 0.01, 0.02, 0.03)->recorded_only = true;
    struct hyp_record *record = &verdict.outcomes[0].record;
    verdict.outcomes[0].ending = HYP_SKIPPED;
    record->not_tested = true;
    snprintf(record->code, sizeof record->code, "needs_gpu");
    snprintf(record->reason, sizeof record->reason, "only a GPU can tell");
    expect(HYP_NOT_TESTED, "needs_gpu");
}
