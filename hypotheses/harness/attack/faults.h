/*
 * Faults: the two lists of them, and when a rare fault occurs.
 *
 * A gross fault occurs so often that an attack notices it or is blind to it. A rare one occurs at
 * one call of every N of its kind, where N is the amount in its name: it shows how rare a fault may
 * be and still be noticed. Which of the N calls it is depends on the seed and the attack. The first
 * lies among the first N calls, so an attack that makes fewer may see none.
 */
#ifndef HYP_FAULTS_H
#define HYP_FAULTS_H

#include "harness/sabotage.h"

/* The gross and the rare faults; NULL past the last one. */
const struct hyp_fault *hyp_gross_fault(size_t index);
const struct hyp_fault *hyp_rare_fault(size_t index);

/* Sets the calls between two faults, and the seed and the attack that choose which call it is. The
 * count of calls starts again. Not while hooks run. */
void hyp_rare_begin(double one_in, uint64_t seed, const char *attack);

/* Counts a call of the kind that has the fault. Returns whether the fault occurs in it. Any
 * thread. */
bool hyp_rare_now(void);

/* Counts bytes, of which one in every period has the fault. Returns whether it is among these, and
 * sets *at to the first such byte. Any thread. */
bool hyp_rare_byte(uint64_t bytes, uint64_t period, uint64_t *at);

#endif
