/*
 * Rare turn: the calls in which a rare fault occurs.
 *
 * A rare fault occurs in one of every N calls of its kind, where N is the amount in its name, so it
 * shows how rare a fault may be and still be noticed. The seed and the attack decide which of the N
 * calls it is. The first is among the first N calls, so an attack with fewer calls may see none.
 */
#ifndef HYP_RARE_TURN_H
#define HYP_RARE_TURN_H

#include <stdbool.h>
#include <stdint.h>

/* Sets the calls between two faults, and the seed and the attack that choose the call. The count of
 * calls starts again. Not while hooks run. */
void hyp_rare_begin(double one_in, uint64_t seed, const char *attack);

/* Counts a call of the kind that has the fault. Returns whether the fault occurs in it. Any
 * thread. */
bool hyp_rare_now(void);

/* Counts bytes, of which one in every period has the fault. Returns whether it is among these, and
 * sets *at to the first such byte. Any thread. */
bool hyp_rare_byte(uint64_t bytes, uint64_t period, uint64_t *at);

/* The bit of such a byte that has the fault, 0 to 7: the seed and the attack choose it. */
unsigned hyp_rare_bit(void);

#endif
