/*
 * Ladders are read; anything else is rejected with a sentence.
 */
#include "files/atomic_file.h"
#include "harness/claim.h"
#include "ladder.h"

#include <criterion/criterion.h>
#include <string.h>

Test(ladder, steps_go_from_gross_to_fine) {
    struct hyp_ladder ladder;
    cr_assert(hyp_ladder_read("launch_drop_one_in=10,1000,100000", &ladder), "%s", hyp_error());
    cr_assert(ladder.count == 3);
    cr_assert_str_eq(ladder.fault, "launch_drop_one_in");
    cr_assert_str_eq(ladder.steps[0], "launch_drop_one_in=10");
    cr_assert_str_eq(ladder.steps[2], "launch_drop_one_in=100000");
    cr_assert(hyp_ladder_read("launch_delay_us=4,2.5,2", &ladder), "%s", hyp_error());
    cr_assert_str_eq(ladder.steps[1], "launch_delay_us=2.5");
    cr_assert(hyp_ladder_read("copy_truncate", &ladder) && ladder.count == 1, "%s", hyp_error());
    cr_assert_str_eq(ladder.steps[0], "copy_truncate");
}

Test(ladder, what_is_none_is_refused_with_a_sentence) {
    static const struct {
        const char *text, *words;
    } rows[] = {{"", "is not a ladder"},
                {"=1,2", "is not a ladder"},
                {"nobody=1,2", "no saboteur named"},
                {"nobody", "no saboteur named"},
                {"launch_drop_one_in", "requires an amount"},
                {"launch_drop_one_in=", "requires an amount"},
                {"launch_drop_one_in=10,", "requires an amount"},
                {"launch_drop_one_in=10,,100", "requires an amount"},
                {"launch_drop_one_in=10,many", "requires an amount"},
                {"launch_drop_one_in=10;100", "requires an amount"},
                {"launch_drop_one_in=0.1,10", "once in 1 or more"},
                {"launch_drop=1,2", "takes no amount"},
                {"launch_drop_one_in=100,10", "from gross to fine"},
                {"launch_drop_one_in=100,100", "from gross to fine"},
                {"launch_delay_us=2,4", "from gross to fine"},
                {"launch_drop_one_in=1,2,3,4,5,6,7,8,9", "more than 8 steps"},
                {"launch_drop_one_in=10000000000000000000000000000000000000000000000", "too long"},
                {"a_name_that_is_so_long_that_no_fault_could_ever_be_called_by_it_and_more=1",
                 "is not a ladder"}};
    struct hyp_ladder ladder;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cr_assert(!hyp_ladder_read(rows[i].text, &ladder), "%s", rows[i].text);
        cr_assert(strstr(hyp_error(), rows[i].words) != NULL, "%s: %s", rows[i].text, hyp_error());
    }
}

Test(ladder, every_claim_has_ladders_of_its_own) {
    for (size_t i = 0; i < hyp_claim_own_count(); i++) {
        const char *const *ladders = NULL;
        const struct hyp_claim *claim = &hyp_claims()[i];
        const size_t count = hyp_claim_ladders(claim, &ladders);
        cr_assert(count > 0 && count <= HYP_CLAIM_LADDERS_MAX, "%s has %zu", claim->id, count);
        for (size_t k = 0; k < count; k++) {
            struct hyp_ladder ladder;
            cr_assert(hyp_ladder_read(ladders[k], &ladder), "%s: %s", claim->id, hyp_error());
        }
    }
    const char *const *first = NULL, *const *second = NULL;
    cr_assert(hyp_claim_ladders(hyp_claim_find("H2"), &first) == 3);
    cr_assert(strncmp(first[0], "launch_drop_one_in=", 19) == 0, "%s", first[0]);
    cr_assert(hyp_claim_ladders(hyp_claim_find("H3"), &second) == 2 && second == first + 3);
}
