/*
 * Repeats: what does not always come is seen, and the worst exit code is kept.
 */
#include "repeats.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

/* A run of H4 alone. */
static struct hyp_run made(enum hyp_verdict_kind kind, int exit_code) {
    struct hyp_run run = {.exit_code = exit_code};
    run.chosen[3] = true;
    run.verdicts[3].kind = kind;
    return run;
}

static struct hyp_repeats count(const struct hyp_run *runs, size_t number) {
    struct hyp_repeats repeats = {.wanted = (unsigned)number};
    for (size_t i = 0; i < number; i++) hyp_repeats_count(&repeats, &runs[i]);
    return repeats;
}

Test(repeats, a_verdict_that_comes_once_is_a_difference) {
    const struct hyp_run runs[] = {made(HYP_SURVIVED, 0), made(HYP_SURVIVED, 0),
                                   made(HYP_INCONCLUSIVE, 3)};
    struct hyp_repeats repeats = count(runs, 2);
    cr_assert(hyp_repeats_agree(&repeats, hyp_claim_find("H4")));
    repeats = count(runs, 3);
    cr_assert(!hyp_repeats_agree(&repeats, hyp_claim_find("H4")));
    cr_assert(hyp_repeats_agree(&repeats, hyp_claim_find("H3")), "it was not chosen");
    cr_assert(repeats.counts[3][HYP_SURVIVED] == 2 && repeats.counts[3][HYP_INCONCLUSIVE] == 1);
    cr_assert(repeats.done == 3 && repeats.counts[2][HYP_SURVIVED] == 0);
}

Test(repeats, claims_that_differ_are_counted_in_the_table) {
    const struct hyp_run runs[] = {made(HYP_SURVIVED, 0), made(HYP_INCONCLUSIVE, 3)};
    for (size_t number = 1; number <= 2; number++) {
        const struct hyp_repeats repeats = count(runs, number);
        char text[2000] = "";
        FILE *out = fmemopen(text, sizeof text, "w");
        cr_assert(out != NULL);
        hyp_repeats_print(&repeats, &runs[0], out);
        fclose(out);
        const bool says = strstr(text, "Claims with differing verdicts: 1. Evidence:") != NULL;
        cr_assert(says == (number == 2), "%s", text);
        cr_assert((strstr(text, "not always the same") != NULL) == (number == 2), "%s", text);
    }
}

Test(repeats, the_worst_exit_code_stays) {
    const struct hyp_run runs[] = {made(HYP_SURVIVED, 0), made(HYP_INCONCLUSIVE, 3),
                                   made(HYP_INCONCLUSIVE, 2), made(HYP_FALSIFIED, 1),
                                   made(HYP_SURVIVED, 0)};
    static const int worst[] = {0, 3, 2, 1, 1};
    for (size_t i = 0; i < 5; i++) cr_assert_eq(count(runs, i + 1).worst, worst[i], "%zu", i);
}
