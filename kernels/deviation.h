/*
 * Deviation: how far values are from their oracle. The project's only comparison of numbers.
 *
 * A value passes if |value - oracle| <= absolute + relative * |oracle|. The comparison is written
 * so that a NaN never passes. NaN and infinities are judged by class: if the oracle has one, the
 * value must have the same (a NaN for a NaN, an infinity of the same sign), and then deviates by 0;
 * if only the value has one, it fails with an infinite deviation. Pure; thread-safe.
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
    size_t failed;           /* of these, not within the tolerance */
    size_t nan, infinite;    /* of the failed ones, with a NaN or an infinity on one side */
    size_t exact;            /* equal to the oracle, rounded to the type */
    double absolute;         /* the largest |value - oracle|; infinite if a class differs */
    double relative;         /* the largest |value - oracle| / |oracle|, of oracles other than 0 */
    double ulp;              /* the largest distance in units in the last place of the type */
    double normalised;       /* the largest share of the allowed deviation; above 1 fails */
    double root_mean_square; /* of value - oracle, of finite pairs */
    /* The distribution. octaves[i] counts values that deviate by more than 2^-(i + 1) and at most
     * 2^-i of what is allowed; the last counts all smaller ones. failed counts those above 1. */
    size_t octaves[KN_OCTAVES];
    int64_t first; /* index of the first value that failed, or KN_NOWHERE */
    int64_t worst; /* index of the largest normalised deviation; KN_NOWHERE if count is 0 */
    double worst_value, worst_oracle;
};

/* Compares elements of a type with doubles. allowed, if not NULL, replaces the tolerance by a bound
 * for each element: |value - oracle| <= allowed[i]. */
TOL_API struct kn_deviation kn_deviation_of(enum kn_type type, const void *elements,
                                            const double *oracle, size_t count,
                                            struct kn_tolerance tolerance, const double *allowed);

/* Joins the deviations of two ranges; b follows a. */
TOL_API struct kn_deviation kn_deviation_join(struct kn_deviation a, struct kn_deviation b);

/* "3 of 4096 fail, the first at 17; the worst at 99: 1.5 and not 1.25 (absolute 0.25, ...)".
 * Truncated to bytes, always terminated. Returns text. */
TOL_API const char *kn_deviation_text(const struct kn_deviation *deviation, char *text,
                                      size_t bytes);

#endif
