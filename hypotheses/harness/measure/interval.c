/*
 * Ranks from the binomial distribution, and values at ranks.
 */
#include "harness/interval.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

size_t hyp_interval_rank(size_t count, double alpha) {
    /* P(at most k of count coins show heads), a term at a time; in logarithms, since 2^-count is
     * no double for large counts. */
    double log_term = -(double)count * log(2), sum = 0;
    for (size_t k = 0; k < count; k++) {
        sum += exp(log_term);
        if (sum > alpha) return k;
        log_term += log((double)(count - k) / (double)(k + 1));
    }
    return count;
}

static int interval_compare(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* The value below which a share of the sorted values lie. */
static double interval_quantile(const double *sorted, size_t count, double share) {
    double place = share * (double)(count - 1);
    size_t below = (size_t)place;
    if (below + 1 >= count) return sorted[count - 1];
    return sorted[below] + (place - (double)below) * (sorted[below + 1] - sorted[below]);
}

bool hyp_interval_of(const double *values, size_t count, double alpha_low, double alpha_high,
                     struct hyp_interval *interval) {
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(values[i])) return false;
    }
    double *sorted = count > 0 ? malloc(count * sizeof *sorted) : NULL;
    if (sorted == NULL) return false;
    memcpy(sorted, values, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, interval_compare);
    size_t low = hyp_interval_rank(count, alpha_low), high = hyp_interval_rank(count, alpha_high);
    interval->median = interval_quantile(sorted, count, 0.5);
    interval->low = low > 0 ? sorted[low - 1] : -INFINITY;
    interval->high = high > 0 ? sorted[count - high] : INFINITY;
    interval->spread =
        interval_quantile(sorted, count, 0.75) - interval_quantile(sorted, count, 0.25);
    free(sorted);
    return true;
}
