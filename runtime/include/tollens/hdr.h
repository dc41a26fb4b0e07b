/*
 * HDR histogram: counts of values over many orders of magnitude at a fixed relative precision.
 *
 * A value lands in a bucket whose width is at most value / 10^digits, so percentiles are known to
 * that precision however long the tail is; recording is an index and an increment. Values are
 * nanoseconds by custom, and any non-negative 64-bit number by right.
 *
 * The layout of the counts is HdrHistogram's, so that its encoding, which is the harness's
 * (hdr_encode.h), needs no conversion. Source: HdrHistogram by Gil Tene, the Java library.
 *
 * Threads: one at a time for a histogram.
 */
#ifndef TOLLENS_HDR_H
#define TOLLENS_HDR_H

#include "status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tol_hdr {
    int64_t lowest, highest; /* as created: the range that is resolved and the largest value */
    int digits;              /* 1 to 5 significant decimal digits */
    int unit_magnitude, half_magnitude;
    int32_t sub_count, half_count, bucket_count;
    int64_t sub_mask;
    int32_t count_of_counts;
    int64_t *counts;
    int64_t total;
    int64_t min, max; /* of what was recorded; min INT64_MAX and max 0 when nothing was */
};

/* What can go wrong; the sentence is for people. */
typedef enum tol_hdr_error {
    TOL_HDR_OK,
    TOL_HDR_BAD_RANGE, /* lowest < 1, highest < 2 * lowest, or digits not 1 to 5 */
    TOL_HDR_NO_MEMORY,
    TOL_HDR_TOO_LARGE, /* a value above the highest */
    TOL_HDR_MISMATCH,  /* two histograms of different shape, or a count that would go below zero */
    TOL_HDR_BAD_DATA   /* an encoding that is none, or is cut off */
} tol_hdr_error;
TOL_API const char *tol_hdr_sentence(tol_hdr_error error);

/* Creates an empty histogram of values from lowest (>= 1) to highest at so many digits. The caller
 * ends it with tol_hdr_free; on failure *hdr is NULL. */
TOL_API tol_hdr_error tol_hdr_new(int64_t lowest, int64_t highest, int digits,
                                  struct tol_hdr **hdr);
TOL_API void tol_hdr_free(struct tol_hdr *hdr);

/* One nanosecond to an hour at three digits: what latencies are recorded with. */
TOL_API tol_hdr_error tol_hdr_new_latency(struct tol_hdr **hdr);

/* Where a value is counted, and the range of values that are counted there. */
TOL_API int32_t tol_hdr_index(const struct tol_hdr *hdr, int64_t value);
TOL_API int64_t tol_hdr_lowest_at(const struct tol_hdr *hdr, int32_t index);
TOL_API int64_t tol_hdr_highest_at(const struct tol_hdr *hdr, int32_t index);

/* Counts a value, or count of them. false: it is negative or above the
 * highest; nothing is counted. */
TOL_API bool tol_hdr_record(struct tol_hdr *hdr, int64_t value);
TOL_API bool tol_hdr_record_many(struct tol_hdr *hdr, int64_t value, int64_t count);

/* For rate claims only: a value longer than the interval at which measurements were due also stands
 * for the ones it held up, value - interval, value - 2 interval, ... (coordinated omission). */
TOL_API bool tol_hdr_record_corrected(struct tol_hdr *hdr, int64_t value, int64_t interval);

/* Adds or takes away another histogram's counts. The shapes may differ when adding, as long as
 * every value fits. On failure nothing is changed. */
TOL_API tol_hdr_error tol_hdr_add(struct tol_hdr *hdr, const struct tol_hdr *other);
TOL_API tol_hdr_error tol_hdr_subtract(struct tol_hdr *hdr, const struct tol_hdr *other);

/* The value that percent of all values do not exceed, as the upper end of its bucket, but as the
 * lower one for 0 percent, which is the least of all; 0 when empty. As HdrHistogram's C and Python
 * libraries have it: the count is rounded; Java rounds up, and may give the bucket behind. */
TOL_API int64_t tol_hdr_percentile(const struct tol_hdr *hdr, double percent);
TOL_API double tol_hdr_mean(const struct tol_hdr *hdr);
TOL_API double tol_hdr_deviation(const struct tol_hdr *hdr);
TOL_API int64_t tol_hdr_min(const struct tol_hdr *hdr); /* 0 when empty */
TOL_API int64_t tol_hdr_max(const struct tol_hdr *hdr);

#ifdef __cplusplus
}
#endif
#endif
