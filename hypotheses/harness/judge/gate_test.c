/*
 * The gate's rule: what is certain is said, and what is not is not.
 */
#include "files/atomic_file.h"
#include "gate.h"

#include <criterion/criterion.h>
#include <string.h>

static char sentence[512];

static struct hyp_result survived(const char *id, double low, double effect, double high) {
    return (struct hyp_result){.claim = hyp_claim_find(id),
                               .kind = HYP_SURVIVED,
                               .has_effect = true,
                               .has_interval = true,
                               .low = low,
                               .effect = effect,
                               .high = high,
                               .threshold = hyp_claim_find(id)->threshold};
}

static enum hyp_change compare(struct hyp_result now, struct hyp_result before) {
    return hyp_gate_compare(&now, &before, sentence, sizeof sentence);
}

/* H11's tolerance is 0.025, and less is better; H10's is 0.1, and more is. */
Test(gate, a_change_beyond_the_tolerance_has_its_direction) {
    cr_assert(hyp_claim_find("H11")->tolerance == 0.025 && hyp_claim_find("H10")->tolerance == 0.1);
    struct hyp_result base = survived("H11", 1.000, 1.001, 1.002);
    cr_assert_eq(compare(base, base), HYP_SAME, "%s", sentence);
    cr_assert_eq(compare(survived("H11", 1.015, 1.020, 1.024), base), HYP_SAME, "%s", sentence);
    cr_assert_eq(compare(survived("H11", 1.028, 1.029, 1.030), base), HYP_WORSE, "%s", sentence);
    cr_assert_eq(compare(survived("H11", 0.965, 0.970, 0.974), base), HYP_BETTER, "%s", sentence);
    base = survived("H10", 1.90, 1.91, 1.92);
    cr_assert_eq(compare(survived("H10", 1.70, 1.71, 1.75), base), HYP_WORSE, "%s", sentence);
    cr_assert_eq(compare(survived("H10", 2.10, 2.11, 2.15), base), HYP_BETTER, "%s", sentence);
    cr_assert_eq(compare(survived("H10", 1.85, 1.86, 1.87), base), HYP_SAME, "%s", sentence);
}

/* Three full runs of the same code on one H200 (reports/published): the gate must have nothing to
 * say about any two of them, and about one with itself. */
Test(gate, runs_of_the_same_code_are_the_same) {
    const struct hyp_result runs[2][3] = {
        {survived("H4", -0.02666, 0.01713, 0.02689), survived("H4", -0.004098, 0.01379, 0.05292),
         survived("H4", -0.01547, 0.004711, 0.04688)},
        {survived("H11", 1.002, 1.005, 1.009), survived("H11", 0.9912, 1.001, 1.014),
         survived("H11", 1.004, 1.006, 1.012)}};
    for (size_t claim = 0; claim < 2; claim++) {
        for (size_t i = 0; i < 9; i++) {
            cr_assert_eq(compare(runs[claim][i / 3], runs[claim][i % 3]), HYP_SAME, "%zu: %s", i,
                         sentence);
        }
    }
}

Test(gate, an_interval_across_the_tolerance_cannot_tell) {
    struct hyp_result base = survived("H11", 1.000, 1.001, 1.002);
    cr_assert_eq(compare(survived("H11", 1.000, 1.026, 1.060), base), HYP_CANNOT_TELL);
    cr_assert_eq(compare(base, survived("H11", 0.900, 1.001, 1.100)), HYP_CANNOT_TELL);
    cr_assert(strstr(sentence, "too wide") != NULL, "%s", sentence);
    base.has_interval = false;
    cr_assert_eq(compare(survived("H11", 1.000, 1.001, 1.002), base), HYP_CANNOT_TELL);
    base.has_effect = false;
    cr_assert_eq(compare(base, base), HYP_CANNOT_TELL);
}

Test(gate, counts_are_exact) {
    struct hyp_result base = survived("H8", 0, 4, 0), now = base;
    base.has_interval = now.has_interval = false;
    for (int i = 0; i <= 9; i++) {
        now.effect = i;
        enum hyp_change expected = i < 3 ? HYP_BETTER : i <= 5 ? HYP_SAME : HYP_WORSE;
        cr_assert_eq(compare(now, base), expected, "%d: %s", i, sentence);
    }
}

Test(gate, what_fell_is_worse_and_what_was_lost_is_not_the_same) {
    struct hyp_result base = survived("H4", 0.01, 0.02, 0.03), now = base;
    now.kind = HYP_FALSIFIED;
    cr_assert_eq(compare(now, base), HYP_WORSE);
    cr_assert_eq(compare(now, now), HYP_WORSE, "falsified as before is no pass");
    cr_assert_eq(compare(base, now), HYP_BETTER);
    cr_assert_eq(hyp_gate_compare(&now, NULL, sentence, sizeof sentence), HYP_WORSE);
    now.kind = HYP_INCONCLUSIVE;
    cr_assert_eq(compare(now, base), HYP_CANNOT_TELL);
    now.kind = HYP_NOT_TESTED;
    cr_assert_eq(compare(now, base), HYP_CANNOT_TELL);
    cr_assert_eq(hyp_gate_compare(NULL, &base, sentence, sizeof sentence), HYP_CANNOT_TELL);
    cr_assert_eq(compare(now, now), HYP_IDLE);
    cr_assert_eq(compare(base, now), HYP_NEW);
    cr_assert_eq(hyp_gate_compare(&base, NULL, sentence, sizeof sentence), HYP_NEW);
}

Test(gate, attacks_that_notice_less_are_worse) {
    struct hyp_result base = survived("H4", 0.01, 0.02, 0.03), now = base;
    base.has_severity = now.has_severity = true;
    base.saboteurs = now.saboteurs = 2;
    base.caught = 2;
    now.caught = 1;
    cr_assert_eq(compare(now, base), HYP_WORSE);
    now.untold = 1;
    cr_assert_eq(compare(now, base), HYP_SAME, "what the machine could not tell is no miss");
    /* Products of what a file may say do not fit an int. */
    base.saboteurs = now.saboteurs = base.caught = 50000;
    now.caught = 40000;
    now.untold = 0;
    cr_assert_eq(compare(now, base), HYP_WORSE);
    cr_assert_eq(compare(base, base), HYP_SAME);
}

Test(gate, other_devices_modes_and_thresholds_are_refused) {
    static struct hyp_results now, before;
    strcpy(now.device_kind, "soft");
    strcpy(now.device_name, "A");
    strcpy(now.mode, "quick");
    now.rows[now.count++] = survived("H4", 0.01, 0.02, 0.03);
    before = now;
    cr_assert(hyp_gate_comparable(&now, &before));
    strcpy(before.device_name, "B");
    cr_assert(!hyp_gate_comparable(&now, &before) && strstr(hyp_error(), "device") != NULL);
    before = now;
    strcpy(before.mode, "full");
    cr_assert(!hyp_gate_comparable(&now, &before) && strstr(hyp_error(), "full") != NULL);
    before = now;
    before.rows[0].threshold = 3;
    cr_assert(!hyp_gate_comparable(&now, &before) && strstr(hyp_error(), "judged by") != NULL);
    before = now;
    strcpy(before.under, "launch_drop");
    cr_assert(!hyp_gate_comparable(&now, &before) && strstr(hyp_error(), "launch_drop") != NULL);
}
