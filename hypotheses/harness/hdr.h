/*
 * HDR histogram: counts of values over many orders of magnitude at a fixed relative precision.
 *
 * A value lands in a bucket whose width is at most value / 10^digits, so percentiles are known to
 * that precision however long the tail is; recording is an index and an increment. Values are
 * nanoseconds by custom, and any non-negative 64-bit number by right.
 *
 * The layout of the counts and the encodings are HdrHistogram's, so any HdrHistogram tool reads
 * what this writes and this reads what they write. Source: HdrHistogram by Gil Tene, encoding V2 as
 * described in HdrHistogram_py's ENCODING.rst and implemented by the Java library.
 *
 * Threads: one at a time for a histogram.
 */
#ifndef HYP_HDR_H
#define HYP_HDR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hyp_hdr {
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
typedef enum hyp_hdr_error {
    HYP_HDR_OK,
    HYP_HDR_BAD_RANGE, /* lowest < 1, highest < 2 * lowest, or digits not 1 to 5 */
    HYP_HDR_NO_MEMORY,
    HYP_HDR_TOO_LARGE, /* a value above the highest */
    HYP_HDR_MISMATCH,  /* two histograms of different shape, or a count that would go below zero */
    HYP_HDR_BAD_DATA   /* an encoding that is none, or is cut off */
} hyp_hdr_error;
const char *hyp_hdr_sentence(hyp_hdr_error error);

/* Creates an empty histogram of values from lowest (>= 1) to highest at so many digits. The caller
 * ends it with hyp_hdr_free; on failure *hdr is NULL. */
hyp_hdr_error hyp_hdr_new(int64_t lowest, int64_t highest, int digits, struct hyp_hdr **hdr);
void hyp_hdr_free(struct hyp_hdr *hdr);

/* One nanosecond to an hour at three digits: what latencies are recorded with. */
hyp_hdr_error hyp_hdr_new_latency(struct hyp_hdr **hdr);

/* Where a value is counted, and the range of values that are counted there. */
int32_t hyp_hdr_index(const struct hyp_hdr *hdr, int64_t value);
int64_t hyp_hdr_lowest_at(const struct hyp_hdr *hdr, int32_t index);
int64_t hyp_hdr_highest_at(const struct hyp_hdr *hdr, int32_t index);

/* Counts a value, or count of them. false: it is negative or above the
 * highest; nothing is counted. */
bool hyp_hdr_record(struct hyp_hdr *hdr, int64_t value);
bool hyp_hdr_record_many(struct hyp_hdr *hdr, int64_t value, int64_t count);

/* For rate claims only: a value longer than the interval at which measurements were due also stands
 * for the ones it held up, value - interval, value - 2 interval, ... (coordinated omission). */
bool hyp_hdr_record_corrected(struct hyp_hdr *hdr, int64_t value, int64_t interval);

/* Adds or takes away another histogram's counts. The shapes may differ when adding, as long as
 * every value fits. On failure nothing is changed. */
hyp_hdr_error hyp_hdr_add(struct hyp_hdr *hdr, const struct hyp_hdr *other);
hyp_hdr_error hyp_hdr_subtract(struct hyp_hdr *hdr, const struct hyp_hdr *other);

/* The value that percent of all values do not exceed, as the upper end of its bucket, but as the
 * lower one for 0 percent, which is the least of all; 0 when empty. As HdrHistogram's C and Python
 * libraries have it: the count is rounded; Java rounds up, and may give the bucket behind. */
int64_t hyp_hdr_percentile(const struct hyp_hdr *hdr, double percent);
double hyp_hdr_mean(const struct hyp_hdr *hdr);
double hyp_hdr_deviation(const struct hyp_hdr *hdr);
int64_t hyp_hdr_min(const struct hyp_hdr *hdr); /* 0 when empty */
int64_t hyp_hdr_max(const struct hyp_hdr *hdr);

/* The compressed V2 encoding in Base64, NUL-terminated; free it. NULL: no memory. */
char *hyp_hdr_encode(const struct hyp_hdr *hdr);

/* Reads what hyp_hdr_encode or another implementation wrote: V2, compressed. */
hyp_hdr_error hyp_hdr_decode(const char *base64, size_t length, struct hyp_hdr **hdr);

#endif
