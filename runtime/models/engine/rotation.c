/*
 * The frequencies of pairs.
 */
#include "rotation.h"

#include <math.h>

/* The pair that makes this many turns within the original context, as a real number. */
static double pair_of_turns(const struct tol_rotation *r, double turns) {
    const double two_pi = 6.283185307179586;
    return (double)r->rotated * log(r->original_context / (turns * two_pi)) / (2 * log(r->base));
}

/* How much of a pair is left as it is: 1 for the fast ones, 0 for the slow ones. */
static double share_kept(const struct tol_rotation *r, size_t pair) {
    const double last = (double)r->rotated - 1;
    const double low = fmax(0, floor(pair_of_turns(r, r->fast)));
    const double high = fmin(last, ceil(pair_of_turns(r, r->slow)));
    const double share = ((double)pair - low) / fmax(0.001, high - low);
    return 1 - fmin(1, fmax(0, share));
}

/* YaRN lengthens by 1 + 0.1 log(factor), and a model divides that by the same with a multiplier. */
static double rotation_magnitude(const struct tol_rotation *r) {
    if (r->scaling != TOL_ROTATION_YARN || !(r->factor > 1)) return 1;
    return (1 + 0.1 * log(r->factor)) / (1 + 0.1 * r->multiplier * log(r->factor));
}

float tol_rotation_frequencies(const struct tol_rotation *r, float *frequencies) {
    for (size_t i = 0; i < r->rotated / 2; i++) {
        double frequency = pow(r->base, -2.0 * (double)i / (double)r->rotated);
        if (r->divisors != NULL) frequency /= (double)r->divisors[i];
        if (r->scaling == TOL_ROTATION_LINEAR) frequency /= r->factor;
        if (r->scaling == TOL_ROTATION_YARN) {
            const double kept = share_kept(r, i);
            frequency *= kept + (1 - kept) / r->factor;
        }
        frequencies[i] = (float)frequency;
    }
    return (float)(r->attention_factor * rotation_magnitude(r));
}
