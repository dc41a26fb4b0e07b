/*
 * Inputs: seeded random values of several distributions. A seed gives the same values on every
 * machine, however many values are drawn at once.
 */
#ifndef KN_INPUTS_H
#define KN_INPUTS_H

#include "tollens.h"

enum kn_distribution {
    KN_UNIFORM,  /* from -1 to 1 */
    KN_NORMAL,   /* mean 0, deviation 1 */
    KN_LARGE,    /* 2^u in magnitude, u uniform from 0 to 12, either sign */
    KN_TINY,     /* uniform times 2^-120: products underflow in float */
    KN_DENORMAL, /* subnormal floats; zero in 16 bits */
    KN_SPARSE,   /* uniform, but nine of ten are 0, of either sign */
    KN_CANCEL,   /* pairs of x, -x a step apart, with small differences: sums cancel */
    KN_DISTRIBUTIONS
};

TOL_API const char *kn_distribution_name(enum kn_distribution distribution); /* "uniform" */

/* Whether the signs of values are independent of each other and of all magnitudes, and each is as
 * likely as the other: what probabilistic error bounds need (chance.h). KN_CANCEL alone is not. */
TOL_API bool kn_distribution_has_signs(enum kn_distribution distribution);

/* splitmix64. The state begins as the seed. */
TOL_API uint64_t kn_random(uint64_t *state);
/* In [0, 1), with 53 bits. */
TOL_API double kn_random_unit(uint64_t *state);

/* Draws count values, each times scale. Large counts use all processors. */
TOL_API void kn_inputs_draw(enum kn_distribution distribution, uint64_t *state, double scale,
                            float *values, size_t count);

/* Advances the state as drawing count values does. */
void kn_inputs_skip(enum kn_distribution distribution, uint64_t *state, size_t count);

#endif
