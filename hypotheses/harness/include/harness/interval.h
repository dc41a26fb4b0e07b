/*
 * Interval: the median of measured values, and how far off it may be, without assuming anything of
 * how they are distributed.
 *
 * Of n independent values, each lies below the true median with probability one half, so how many
 * do is binomial, and the rank of a value bounds the median with a known chance of being wrong.
 * Source: Le Boudec, Performance Evaluation of Computer and Communication Systems, section 2.2;
 * MEASURING.md section 5.
 */
#ifndef HYP_INTERVAL_H
#define HYP_INTERVAL_H

#include <stdbool.h>
#include <stddef.h>

struct hyp_interval {
    double median, low, high; /* low and high are infinite where the values are too few */
    double spread;            /* between the quartiles */
};

/* The largest rank, from 1, whose value of count is above the true median with a chance of at most
 * alpha; 0 where count is too small for any. */
size_t hyp_interval_rank(size_t count, double alpha);

/* The interval of count values: its low end is above the true median with a chance of at most
 * alpha_low, its high end below it with at most alpha_high. false: no values, one that is no
 * number, or no memory. */
bool hyp_interval_of(const double *values, size_t count, double alpha_low, double alpha_high,
                     struct hyp_interval *interval);

#endif
