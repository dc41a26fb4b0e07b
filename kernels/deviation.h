/*
 * Deviation: how far values are from their oracle. The project's only comparison of numbers.
 *
 * A value passes when |value - oracle| <= absolute + relative * |oracle|, asked so that a NaN never
 * passes. NaN and infinities are counted apart: where the oracle has one, the value must have the
 * same (a NaN for a NaN, the infinity of the same sign), and then nothing deviates; where only the
 * value has one, it fails by an infinite amount. Pure; thread-safe.
 */
#ifndef KN_DEVIATION_H
#define KN_DEVIATION_H

#include "number.h"

struct kn_tolerance {
    double absolute, relative;
};

enum { KN_NOWHERE = -1, KN_OCTAVES = 24 };

struct kn_deviation {
    size_t count;            /* of values */
    size_t failed;           /* of those, not within the tolerance */
    size_t nan, infinite;    /* of those that failed, with a NaN or an infinity on one side */
    size_t exact;            /* equal to the oracle, rounded to the type */
    double absolute;         /* the largest |value - oracle|; infinite where a class differs */
    double relative;         /* the largest |value - oracle| / |oracle|, where that is not 0 */
    double ulp;              /* the largest distance in units in the last place of the type */
    double normalised;       /* the largest share of what the tolerance allows: above 1 fails */
    double root_mean_square; /* of value - oracle, of those of the same class */
    /* The distribution: octaves[i] values deviate by more than 2^-(i + 1) of what is allowed and by
     * 2^-i of it at most; the last has all below that, and those above 1 are in failed. */
    size_t octaves[KN_OCTAVES];
    int64_t first; /* index of the first that failed; KN_NOWHERE */
    int64_t worst; /* of the one with the largest normalised; KN_NOWHERE if count is 0 */
    double worst_value, worst_oracle;
};

/* Compares elements of a type with doubles; tolerances may be given for each element by allowed
 * (NULL: the tolerance for all). With allowed, |value - oracle| <= allowed[i]. */
TOL_API struct kn_deviation kn_deviation_of(enum kn_type type, const void *elements,
                                            const double *oracle, size_t count,
                                            struct kn_tolerance tolerance, const double *allowed);

/* Puts two together, of which the second comes behind the first. */
TOL_API struct kn_deviation kn_deviation_join(struct kn_deviation a, struct kn_deviation b);

/* "3 of 4096 fail, the first at 17; the worst at 99: 1.5 and not 1.25 (absolute 0.25, ...)". Cut to
 * bytes, always terminated. Returns text. */
TOL_API const char *kn_deviation_text(const struct kn_deviation *deviation, char *text,
                                      size_t bytes);

#endif
