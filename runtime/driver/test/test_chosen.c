/*
 * Lets a test program fail if no test matches --filter, where Criterion succeeds. Each test program
 * links it.
 */
#include <criterion/criterion.h>
#include <criterion/hooks.h>
#include <criterion/internal/ordered-set.h>
#include <stdio.h>
#include <unistd.h>

ReportHook(PRE_ALL)(struct criterion_test_set *tests) {
    FOREACH_SET(struct criterion_suite_set * suite, tests->suites) {
        if (suite->tests == NULL) continue;
        FOREACH_SET(struct criterion_test * test, suite->tests) {
            if (!test->data->disabled) return;
        }
    }
    fputs("no test matches the filter\n", stderr);
    _exit(2);
}
