/*
 * The word that was meant.
 */
#include "nearest.h"

#include <criterion/criterion.h>
#include <string.h>

Test(nearest, finds_the_word_that_was_meant) {
    static const char *const names[] = {"doctor", "list", "explain", "run", "gate", "replay"};
    static const struct {
        const char *word, *meant;
    } cases[] = {{"rnu", "run"},
                 {"runn", "run"},
                 {"doctr", "doctor"},
                 {"gaet", "gate"},
                 {"repaly", "replay"},
                 {"epxlian", "explain"},
                 {"ls", NULL},
                 {"frobnicate", NULL},
                 {"", NULL},
                 {"r", NULL},
                 {"a_word_of_more_than_thirty_two_letters", NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *found = hyp_nearest(cases[i].word, names, sizeof names / sizeof names[0]);
        if (cases[i].meant == NULL) {
            cr_assert_null(found, "'%s' is near '%s'", cases[i].word, found);
        } else {
            cr_assert_not_null(found, "nothing is near '%s'", cases[i].word);
            cr_assert_str_eq(found, cases[i].meant);
        }
    }
}

Test(nearest, finds_the_option_that_was_meant) {
    static const char help[] = "usage: t FILE [-p TEXT]\n  --temp T  the temperature, --top-k's\n"
                               "  --repeat-last-n N  as long-term (--ctx)\n  --seed S";
    static const struct {
        const char *word, *meant;
    } cases[] = {{"--tmp", "--temp"},
                 {"--tmp=0.5", "--temp"},
                 {"-temp", "--temp"},
                 {"--p", "-p"},
                 {"--top", "--top-k"},
                 {"--repeat-lastn", "--repeat-last-n"},
                 {"--repeat", "--repeat-last-n"},
                 {"--tem", "--temp"},
                 {"-x", ""},
                 {"--", ""},
                 {"--frobnicate", ""},
                 {"--term", "--temp"},
                 {"--sed=1", "--seed"},
                 {"-"
                  "-repeat-last-n-of-all-the-tokens",
                  ""}};
    char option[HYP_OPTION_BYTES];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        hyp_nearest_option(cases[i].word, help, strlen(help), option);
        cr_assert_str_eq(option, cases[i].meant, "%s: %s", cases[i].word, option);
    }
    hyp_nearest_option("--seed", help, strlen(help) - 8, option);
    cr_assert_str_eq(option, "", "%s", option);
}
