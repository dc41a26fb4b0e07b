/*
 * HDR histogram: counts of values over many orders of magnitude with a fixed relative precision.
 *
 * A value is counted in a bucket at most value / 10^digits wide, so percentiles have that precision
 * however long the tail is. Recording is one index computation and one increment. Values are
 * usually nanoseconds, but any non-negative 64-bit number is allowed.
 *
 * The counts have HdrHistogram's layout, so the harness encodes them (hdr_encode.h) without
 * conversion. Source: HdrHistogram by Gil Tene, the Java library.
 *
 * Threads: a histogram may be used by one thread at a time.
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

/* A histogram. Read the fields; change them only through the functions below. */
struct tol_hdr {
    int64_t lowest, highest; /* as created: smallest value resolved, largest value accepted */
    int digits;              /* 1 to 5 significant decimal digits */
    int unit_magnitude, half_magnitude;
    int32_t sub_count, half_count, bucket_count;
    int64_t sub_mask;
    int32_t count_of_counts;
    int64_t *counts;
    int64_t total;
    int64_t min, max; /* of the recorded values; INT64_MAX and 0 if there are none */
};

/* Errors. tol_hdr_sentence returns a description; static. */
typedef enum tol_hdr_error {
    TOL_HDR_OK,
    TOL_HDR_BAD_RANGE, /* lowest < 1, highest < 2 * lowest, or digits not 1 to 5 */
    TOL_HDR_NO_MEMORY,
    TOL_HDR_TOO_LARGE, /* a value above the highest */
    TOL_HDR_MISMATCH,  /* two histograms of different shape, or a count that would go below zero */
    TOL_HDR_BAD_DATA   /* an encoding that is invalid or truncated */
} tol_hdr_error;
TOL_API const char *tol_hdr_sentence(tol_hdr_error error);

/* Creates an empty histogram for values from lowest (>= 1) to highest with digits significant
 * decimal digits. The caller frees it with tol_hdr_free. On failure *hdr is NULL. */
TOL_API tol_hdr_error tol_hdr_new(int64_t lowest, int64_t highest, int digits,
                                  struct tol_hdr **hdr);
TOL_API void tol_hdr_free(struct tol_hdr *hdr);

/* Creates a histogram for latencies: one nanosecond to one hour, three digits. */
TOL_API tol_hdr_error tol_hdr_new_latency(struct tol_hdr **hdr);

/* The index of the count for a value, and the smallest and largest value counted at an index. */
TOL_API int32_t tol_hdr_index(const struct tol_hdr *hdr, int64_t value);
TOL_API int64_t tol_hdr_lowest_at(const struct tol_hdr *hdr, int32_t index);
TOL_API int64_t tol_hdr_highest_at(const struct tol_hdr *hdr, int32_t index);

/* Records a value once, or count times. Returns false and records nothing if value is negative or
 * above highest. */
TOL_API bool tol_hdr_record(struct tol_hdr *hdr, int64_t value);
TOL_API bool tol_hdr_record_many(struct tol_hdr *hdr, int64_t value, int64_t count);

/* Records a value with correction for coordinated omission: if value is longer than the interval at
 * which measurements were due, it also records the delayed ones: value - interval,
 * value - 2 interval, ... For claims about rates only. */
TOL_API bool tol_hdr_record_corrected(struct tol_hdr *hdr, int64_t value, int64_t interval);

/* Add or subtract another histogram's counts. When adding, the two may have different ranges and
 * digits if every value fits. On failure nothing is changed. */
TOL_API tol_hdr_error tol_hdr_add(struct tol_hdr *hdr, const struct tol_hdr *other);
TOL_API tol_hdr_error tol_hdr_subtract(struct tol_hdr *hdr, const struct tol_hdr *other);

/* The value at a percentile (0 to 100): percent of the recorded values are at most this. Returns
 * the upper end of the bucket, but for 0 percent the lower end of the lowest one; 0 if empty. The
 * count is rounded to nearest, as in HdrHistogram's C and Python libraries; Java rounds up and may
 * return the next bucket. */
TOL_API int64_t tol_hdr_percentile(const struct tol_hdr *hdr, double percent);

/* Mean, standard deviation, smallest and largest value. */
TOL_API double tol_hdr_mean(const struct tol_hdr *hdr);
TOL_API double tol_hdr_deviation(const struct tol_hdr *hdr);
TOL_API int64_t tol_hdr_min(const struct tol_hdr *hdr); /* 0 if empty */
TOL_API int64_t tol_hdr_max(const struct tol_hdr *hdr);

#ifdef __cplusplus
}
#endif
#endif
