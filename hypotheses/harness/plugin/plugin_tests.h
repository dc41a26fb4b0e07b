/*
 * Plugin tests: adds the attacks of plugins to Criterion's tests. Criterion itself finds only the
 * attacks of this program.
 */
#ifndef HYP_PLUGIN_TESTS_H
#define HYP_PLUGIN_TESTS_H

struct criterion_test_set;

/* Adds the attacks of all plugins to a set of tests. */
void hyp_plugin_tests_enter(struct criterion_test_set *tests);

#endif
