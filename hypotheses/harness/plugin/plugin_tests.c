/*
 * Criterion runs a test in a fresh process of this program, to which it hands the test's names and
 * the place of its function. No plugin is loaded there yet: so the function is one of the
 * program's, and finds the attack by the names.
 */
#include "plugin_tests.h"

#include "files/atomic_file.h"
#include "harness/plugin.h"
#include "plugins.h"

#include <criterion/criterion.h>
#include <criterion/internal/ordered-set.h>
#include <stdio.h>
#include <string.h>

static void run_plugin_attack(void) {
    const char *suite = criterion_current_test->category, *name = criterion_current_test->name;
    cr_assert(hyp_plugins_load(), "%s", hyp_error());
    for (size_t i = 0; hyp_plugin_attack_at(i) != NULL; i++) {
        const struct hyp_plugin_attack *attack = hyp_plugin_attack_at(i);
        const struct hyp_claim *claim = hyp_claim_of_suite(attack->suite);
        if (strcmp(attack->name, name) != 0 || claim == NULL || strcmp(claim->suite, suite) != 0) {
            continue;
        }
        hyp_attack_run(claim->suite, attack->name, &attack->wants, attack->body);
        return;
    }
    cr_assert_fail("there is no attack %s upon %s in TOLLENS_PLUGIN", name, suite);
}

/* As Criterion's own macro Test has it. */
static void plugin_test(void) {
    criterion_internal_test_setup();
    criterion_internal_test_main(run_plugin_attack);
    criterion_internal_test_teardown();
}

static int compare_tests(void *a, void *b) {
    return strcmp(((struct criterion_test *)a)->name, ((struct criterion_test *)b)->name);
}

void hyp_plugin_tests_enter(struct criterion_test_set *tests) {
    static struct criterion_test_extra_data extras[HYP_PLUGIN_ATTACKS_MAX];
    static char identifiers[HYP_PLUGIN_ATTACKS_MAX][128]; /* Criterion chooses by them */
    for (size_t i = 0; hyp_plugin_attack_at(i) != NULL; i++) {
        const struct hyp_plugin_attack *attack = hyp_plugin_attack_at(i);
        const struct hyp_claim *claim = hyp_claim_of_suite(attack->suite);
        snprintf(identifiers[i], sizeof identifiers[i], "%s/%s", claim->suite, attack->name);
        extras[i] = (struct criterion_test_extra_data){.lang_ = CR_LANG_C,
                                                       .kind_ = CR_TEST_NORMAL,
                                                       .identifier_ = identifiers[i],
                                                       .file_ = "plugin"};
        struct criterion_test test = {.name = attack->name,
                                      .category = claim->suite,
                                      .test = plugin_test,
                                      .data = &extras[i]};
        struct criterion_suite_set suite = {.suite = {.name = claim->suite}};
        struct criterion_suite_set *entered =
            insert_ordered_set(tests->suites, &suite, sizeof suite);
        if (entered->tests == NULL) entered->tests = new_ordered_set(compare_tests, NULL);
        insert_ordered_set(entered->tests, &test, sizeof test);
        tests->tests++;
    }
}
