/*
 * The word that was meant.
 */
#include "nearest.h"

#include <criterion/criterion.h>

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
