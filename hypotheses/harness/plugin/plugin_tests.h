/*
 * Guests: the attacks of plugins as tests of Criterion, which knows those of this program alone.
 */
#ifndef HYP_GUESTS_H
#define HYP_GUESTS_H

struct criterion_test_set;

/* Puts the attacks of all plugins into a set of tests. */
void hyp_guests_enter(struct criterion_test_set *tests);

#endif
