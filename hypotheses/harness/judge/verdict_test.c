/*
 * Verdicts: what follows from outcomes, and that nothing else is ever a pass.
 */
#include "verdict_judge.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One attack: how it ended, what its record says. */
struct attack {
    enum hyp_ending ending;
    bool has_record, not_tested;
    unsigned samples, violations;
};

static const struct attack good = {HYP_PASSED, true, false, 10, 0};
static const struct attack bad = {HYP_FAILED, true, false, 10, 3};
static const struct attack crashed = {HYP_CRASHED, false, false, 0, 0};
static const struct attack untested = {HYP_SKIPPED, true, true, 0, 0};

static struct hyp_verdict judge(const struct attack *attacks, size_t count, size_t findings) {
    struct hyp_verdict verdict = {.outcome_count = count};
    verdict.outcomes = calloc(count + 1, sizeof *verdict.outcomes);
    for (size_t i = 0; i < count; i++) {
        struct hyp_outcome *outcome = &verdict.outcomes[i];
        snprintf(outcome->name, sizeof outcome->name, "attack_%zu", i);
        outcome->ending = attacks[i].ending;
        outcome->has_record = attacks[i].has_record;
        outcome->record.samples = attacks[i].samples;
        outcome->record.violations = attacks[i].violations;
        outcome->record.not_tested = attacks[i].not_tested;
        if (attacks[i].violations > 0) {
            outcome->record.example_count = 1;
            snprintf(outcome->record.examples[0], HYP_EXAMPLE_BYTES, "byte 7 differs");
        }
        if (attacks[i].not_tested) snprintf(outcome->record.reason, 64, "no device");
    }
    hyp_verdict_judge(hyp_claim_find("H3"), findings, &verdict);
    return verdict;
}

static void expect(const struct attack *attacks, size_t count, size_t findings,
                   enum hyp_verdict_kind kind, const char *code, bool broken) {
    struct hyp_verdict verdict = judge(attacks, count, findings);
    cr_assert(verdict.kind == kind, "%s: %s", hyp_verdict_name(verdict.kind), verdict.reason);
    cr_assert_str_eq(verdict.code, code);
    cr_assert(verdict.broken == broken);
    hyp_verdict_end(&verdict);
}

/* Goal: one falsified comparison is not red before a fresh run found the same. */
Test(verdict, a_second_run_confirms_or_does_not) {
    struct hyp_verdict verdict = {.kind = HYP_SURVIVED}, second = {.kind = HYP_FALSIFIED};
    hyp_verdict_set(&verdict, HYP_FALSIFIED, "", "2.5 us");
    hyp_verdict_confirm(&verdict, &second);
    cr_assert(verdict.kind == HYP_FALSIFIED &&
                  strstr(verdict.reason, "2.5 us; a fresh run") != NULL,
              "%s", verdict.reason);
    static const enum hyp_verdict_kind others[] = {HYP_SURVIVED, HYP_INCONCLUSIVE, HYP_NOT_TESTED};
    for (size_t i = 0; i < 3; i++) {
        hyp_verdict_set(&verdict, HYP_FALSIFIED, "", "2.5 us");
        verdict.broken = false;
        second.kind = others[i];
        second.broken = others[i] == HYP_INCONCLUSIVE;
        hyp_verdict_confirm(&verdict, &second);
        cr_assert(verdict.kind == HYP_INCONCLUSIVE && strcmp(verdict.code, "unconfirmed") == 0);
        cr_assert(verdict.broken == second.broken, "a second run that crashed is an error");
        cr_assert(strstr(verdict.reason, hyp_verdict_words(others[i])) != NULL, "%s",
                  verdict.reason);
    }
}

Test(verdict, survives_when_every_attack_found_nothing) {
    struct attack attacks[] = {good, good};
    expect(attacks, 2, 0, HYP_SURVIVED, "", false);
}

Test(verdict, one_violation_outweighs_everything) {
    struct attack attacks[] = {good, crashed, untested, bad};
    expect(attacks, 4, 5, HYP_FALSIFIED, "", true);
    struct hyp_verdict verdict = judge(attacks, 4, 0);
    cr_assert(verdict.effect == 3 && verdict.samples == 20);
    cr_assert_str_eq(verdict.reason, "attack_3: byte 7 differs");
    hyp_verdict_end(&verdict);
}

Test(verdict, the_seed_of_the_first_violation_is_named) {
    struct hyp_verdict verdict = {.outcome_count = 3, .seeds = 3};
    verdict.outcomes = calloc(4, sizeof *verdict.outcomes);
    for (size_t i = 0; i < 3; i++) {
        struct hyp_outcome *outcome = &verdict.outcomes[i];
        *outcome = (struct hyp_outcome){.name = "attack", .seed = 7 + i, .has_record = true};
        outcome->ending = i > 0 ? HYP_FAILED : HYP_PASSED;
        outcome->record.samples = 10;
        outcome->record.violations = i > 0;
        outcome->record.example_count = i > 0;
        snprintf(outcome->record.examples[0], HYP_EXAMPLE_BYTES, "byte 7 differs");
    }
    hyp_verdict_judge(hyp_claim_find("H3"), 0, &verdict);
    cr_assert(verdict.kind == HYP_FALSIFIED && verdict.effect == 2);
    cr_assert(verdict.has_worst_seed && verdict.worst_seed == 8, "%llu",
              (unsigned long long)verdict.worst_seed);
    cr_assert_str_eq(verdict.reason, "seed 8: attack: byte 7 differs");
    hyp_verdict_end(&verdict);
}

Test(verdict, a_crash_is_no_pass) {
    struct attack attacks[] = {good, crashed};
    expect(attacks, 2, 0, HYP_INCONCLUSIVE, "worker_crashed", true);
}

Test(verdict, no_attack_is_no_pass) {
    expect(NULL, 0, 0, HYP_INCONCLUSIVE, "no_attack", true);
}

Test(verdict, an_attack_that_never_ran_is_no_pass) {
    struct attack attacks[] = {good, {HYP_NEVER_RAN, false, false, 0, 0}};
    expect(attacks, 2, 0, HYP_INCONCLUSIVE, "worker_missing", true);
}

Test(verdict, a_pass_without_a_record_or_a_sample_is_none) {
    struct attack without[] = {{HYP_PASSED, false, false, 0, 0}};
    struct attack empty[] = {{HYP_PASSED, true, false, 0, 0}};
    struct attack failed[] = {{HYP_FAILED, true, false, 5, 0}};
    struct attack skipped[] = {{HYP_SKIPPED, false, false, 0, 0}};
    expect(without, 1, 0, HYP_INCONCLUSIVE, "no_record", true);
    expect(empty, 1, 0, HYP_INCONCLUSIVE, "no_record", true);
    expect(failed, 1, 0, HYP_INCONCLUSIVE, "no_record", true);
    expect(skipped, 1, 0, HYP_INCONCLUSIVE, "no_record", true);
}

Test(verdict, a_deadline_is_no_pass) {
    struct attack attacks[] = {good, {HYP_OVERDUE, false, false, 0, 0}};
    expect(attacks, 2, 0, HYP_INCONCLUSIVE, "deadline", true);
}

Test(verdict, no_device_is_not_tested) {
    struct attack attacks[] = {untested, untested};
    expect(attacks, 2, 0, HYP_NOT_TESTED, "no_device", false);
}

Test(verdict, a_part_that_was_not_tested_leaves_it_open) {
    struct attack attacks[] = {good, untested};
    expect(attacks, 2, 0, HYP_INCONCLUSIVE, "part_not_tested", false);
}

Test(verdict, what_the_soft_device_objected_to_leaves_it_open) {
    struct attack attacks[] = {good};
    expect(attacks, 1, 2, HYP_INCONCLUSIVE, "device_findings", false);
}

/* ---- claims about a number ------------------------------------------------------------------- */

static const struct hyp_words measured = {.number = 12, .is_measured = true};

/* One attack that measured this value, after this many violations; NaN: it measured nothing. */
static struct hyp_verdict judge_measure(double value, unsigned violations) {
    struct hyp_verdict verdict = {.outcome_count = 2};
    hyp_claim_register(&measured);
    verdict.outcomes = calloc(2, sizeof *verdict.outcomes);
    for (int i = 0; i < 2; i++) {
        struct hyp_outcome *outcome = &verdict.outcomes[i];
        outcome->ending = violations > 0 && i == 1 ? HYP_FAILED : HYP_PASSED;
        outcome->has_record = true;
        outcome->record.samples = 4;
        outcome->record.violations = i == 1 ? violations : 0;
        /* What is recorded only is worse, and counts for nothing. */
        outcome->record.measures[0] = (struct hyp_measure){.value = 9, .recorded_only = true};
        outcome->record.measures[1] = (struct hyp_measure){.value = i == 0 ? 1.01 : value};
        outcome->record.measure_count = isnan(value) ? 1 : 2;
    }
    snprintf(verdict.outcomes[1].record.label, sizeof verdict.label, "scaled");
    hyp_verdict_judge(hyp_claim_find("H12"), 0, &verdict);
    return verdict;
}

Test(verdict, a_measured_claim_has_the_worst_of_its_numbers) {
    struct hyp_verdict verdict = judge_measure(1.05, 0);
    cr_assert(verdict.kind == HYP_SURVIVED && verdict.has_effect && verdict.effect == 1.05);
    cr_assert_str_eq(verdict.label, "scaled");
    hyp_verdict_end(&verdict);
}

/* One violation is below a threshold of 1.1, which is no number of violations. */
Test(verdict, the_seed_of_the_worst_number_is_named) {
    static const double values[] = {1.02, 1.07, 1.03};
    struct hyp_verdict verdict = {.outcome_count = 3, .seeds = 3};
    hyp_claim_register(&measured);
    verdict.outcomes = calloc(4, sizeof *verdict.outcomes);
    for (size_t i = 0; i < 3; i++) {
        struct hyp_outcome *outcome = &verdict.outcomes[i];
        *outcome = (struct hyp_outcome){
            .name = "walk", .seed = 1 + i, .has_record = true, .ending = HYP_PASSED};
        outcome->record.samples = outcome->record.measure_count = 1;
        outcome->record.measures[0].value = values[i];
    }
    hyp_verdict_judge(hyp_claim_find("H12"), 0, &verdict);
    cr_assert(verdict.kind == HYP_SURVIVED && verdict.effect == 1.07, "%g", verdict.effect);
    cr_assert(verdict.has_worst_seed && verdict.worst_seed == 2);
    hyp_verdict_end(&verdict);
}

Test(verdict, one_violation_falsifies_a_measured_claim) {
    struct hyp_verdict verdict = judge_measure(1.05, 1);
    cr_assert(verdict.kind == HYP_FALSIFIED && verdict.effect == 1.05);
    hyp_verdict_end(&verdict);
}

Test(verdict, a_measured_claim_that_measured_nothing_is_broken) {
    struct hyp_verdict verdict = judge_measure(NAN, 0);
    cr_assert(verdict.kind == HYP_INCONCLUSIVE && verdict.broken && !verdict.has_effect);
    cr_assert_str_eq(verdict.code, "no_record");
    hyp_verdict_end(&verdict);
}
