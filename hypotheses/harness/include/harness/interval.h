/*
 * Interval: the median of measured values and its confidence interval, for any distribution.
 *
 * Each of n independent values is below the true median with probability one half. The number of
 * values below it is therefore binomial, and a value of given rank bounds the median with a known
 * probability of error.
 * Source: Le Boudec, Performance Evaluation of Computer and Communication Systems, section 2.2;
 * MEASURING.md section 5.
 */
#ifndef HYP_INTERVAL_H
#define HYP_INTERVAL_H

#include <stdbool.h>
#include <stddef.h>

struct hyp_interval {
    double median, low, high; /* low and high are infinite if there are too few values */
    double spread;            /* the distance between the quartiles */
};

/* The largest rank, from 1, of count sorted values that exceeds the true median with probability
 * of at most alpha; 0 if count is too small. */
size_t hyp_interval_rank(size_t count, double alpha);

/* The interval of count values. Its low end is above the true median with probability of at most
 * alpha_low, its high end below it with at most alpha_high. false: there are no values, a value is
 * NaN, or memory ran out. */
bool hyp_interval_of(const double *values, size_t count, double alpha_low, double alpha_high,
                     struct hyp_interval *interval);

#endif
