/*
 * Buckets: powers of two, each divided into equal parts. The first bucket covers its whole range,
 * each later one adds its upper half, so a bucket has sub_count / 2 counts of its own.
 */
#include "tollens/hdr.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *tol_hdr_sentence(tol_hdr_error error) {
    switch (error) {
    case TOL_HDR_OK:
        return "no error";
    case TOL_HDR_BAD_RANGE:
        return "a histogram needs 1 <= lowest, 2 * lowest <= highest and 1 to 5 digits";
    case TOL_HDR_NO_MEMORY:
        return "no host memory for a histogram";
    case TOL_HDR_TOO_LARGE:
        return "a value is above the highest of the histogram";
    case TOL_HDR_MISMATCH:
        return "the histograms have different shapes";
    case TOL_HDR_BAD_DATA:
        return "the data is not an HdrHistogram V2 encoding, or is truncated";
    }
    return "unknown histogram error";
}

static int floor_log2(int64_t value) {
    return 63 - __builtin_clzll((unsigned long long)value);
}

tol_hdr_error tol_hdr_new(int64_t lowest, int64_t highest, int digits, struct tol_hdr **result) {
    *result = NULL;
    if (lowest < 1 || digits < 1 || digits > 5 || lowest > INT64_MAX / 2 || highest < 2 * lowest) {
        return TOL_HDR_BAD_RANGE;
    }
    /* The first power of two at or above twice 10^digits: up to there single units are
     * distinguished. */
    int64_t resolved = 2;
    for (int i = 0; i < digits; i++) resolved *= 10;
    int magnitude = floor_log2(resolved - 1) + 1;
    int unit = floor_log2(lowest);
    if (unit + magnitude - 1 > 61) return TOL_HDR_BAD_RANGE;

    struct tol_hdr *hdr = calloc(1, sizeof *hdr);
    if (hdr == NULL) return TOL_HDR_NO_MEMORY;
    hdr->lowest = lowest;
    hdr->highest = highest;
    hdr->digits = digits;
    hdr->unit_magnitude = unit;
    hdr->half_magnitude = magnitude - 1;
    hdr->sub_count = 1 << magnitude;
    hdr->half_count = hdr->sub_count / 2;
    hdr->sub_mask = ((int64_t)hdr->sub_count - 1) << unit;
    hdr->bucket_count = 1;
    int64_t smallest_outside = (int64_t)hdr->sub_count << unit;
    while (smallest_outside <= highest) {
        hdr->bucket_count++;
        if (smallest_outside > INT64_MAX / 2) break;
        smallest_outside <<= 1;
    }
    hdr->count_of_counts = (hdr->bucket_count + 1) * hdr->half_count;
    hdr->counts = calloc((size_t)hdr->count_of_counts, sizeof *hdr->counts);
    hdr->min = INT64_MAX;
    if (hdr->counts == NULL) {
        free(hdr);
        return TOL_HDR_NO_MEMORY;
    }
    *result = hdr;
    return TOL_HDR_OK;
}

tol_hdr_error tol_hdr_new_latency(struct tol_hdr **hdr) {
    return tol_hdr_new(1, 3600ll * 1000 * 1000 * 1000, 3, hdr);
}

void tol_hdr_free(struct tol_hdr *hdr) {
    if (hdr == NULL) return;
    free(hdr->counts);
    free(hdr);
}

int32_t tol_hdr_index(const struct tol_hdr *hdr, int64_t value) {
    int bucket = floor_log2(value | hdr->sub_mask) - hdr->unit_magnitude - hdr->half_magnitude;
    int32_t sub = (int32_t)(value >> (bucket + hdr->unit_magnitude));
    return ((bucket + 1) << hdr->half_magnitude) + sub - hdr->half_count;
}

static int hdr_bucket_of(const struct tol_hdr *hdr, int32_t index) {
    int bucket = (index >> hdr->half_magnitude) - 1;
    return bucket < 0 ? 0 : bucket;
}

int64_t tol_hdr_lowest_at(const struct tol_hdr *hdr, int32_t index) {
    int32_t sub = index & (hdr->half_count - 1);
    if (index >> hdr->half_magnitude > 0) sub += hdr->half_count;
    return (int64_t)sub << (hdr_bucket_of(hdr, index) + hdr->unit_magnitude);
}

int64_t tol_hdr_highest_at(const struct tol_hdr *hdr, int32_t index) {
    int64_t width = (int64_t)1 << (hdr_bucket_of(hdr, index) + hdr->unit_magnitude);
    return tol_hdr_lowest_at(hdr, index) + (width - 1);
}

bool tol_hdr_record_many(struct tol_hdr *hdr, int64_t value, int64_t count) {
    if (value < 0) return false;
    int32_t index = tol_hdr_index(hdr, value);
    if (index >= hdr->count_of_counts) return false;
    hdr->counts[index] += count;
    hdr->total += count;
    if (value < hdr->min) hdr->min = value;
    if (value > hdr->max) hdr->max = value;
    return true;
}

bool tol_hdr_record(struct tol_hdr *hdr, int64_t value) {
    return tol_hdr_record_many(hdr, value, 1);
}

bool tol_hdr_record_corrected(struct tol_hdr *hdr, int64_t value, int64_t interval) {
    if (!tol_hdr_record(hdr, value)) return false;
    if (interval <= 0) return true;
    /* Those of one bucket at once: an hour holds up more nanoseconds than anyone can wait for. */
    for (int64_t missing = value - interval; missing >= interval;) {
        int64_t low = tol_hdr_lowest_at(hdr, tol_hdr_index(hdr, missing));
        if (low < interval) low = interval;
        int64_t many = (missing - low) / interval + 1;
        int64_t last = missing - (many - 1) * interval;
        tol_hdr_record_many(hdr, missing, many);
        if (last < hdr->min) hdr->min = last;
        missing = last - interval;
    }
    return true;
}

tol_hdr_error tol_hdr_add(struct tol_hdr *hdr, const struct tol_hdr *other) {
    if (other->total > 0 && tol_hdr_index(hdr, other->max) >= hdr->count_of_counts) {
        return TOL_HDR_TOO_LARGE;
    }
    for (int32_t i = 0; i < other->count_of_counts; i++) {
        if (other->counts[i] == 0) continue;
        tol_hdr_record_many(hdr, tol_hdr_lowest_at(other, i), other->counts[i]);
    }
    if (other->total > 0) {
        /* Corrects the ends, which are known exactly; the buckets above were recorded with their
         * lower ends. */
        if (other->min < hdr->min) hdr->min = other->min;
        if (other->max > hdr->max) hdr->max = other->max;
    }
    return TOL_HDR_OK;
}

static void find_ends(struct tol_hdr *hdr) {
    hdr->min = INT64_MAX;
    hdr->max = 0;
    for (int32_t i = 0; i < hdr->count_of_counts; i++) {
        if (hdr->counts[i] == 0) continue;
        if (hdr->min == INT64_MAX) hdr->min = tol_hdr_lowest_at(hdr, i);
        hdr->max = tol_hdr_highest_at(hdr, i);
    }
}

tol_hdr_error tol_hdr_subtract(struct tol_hdr *hdr, const struct tol_hdr *other) {
    if (hdr->lowest != other->lowest || hdr->highest != other->highest ||
        hdr->digits != other->digits) {
        return TOL_HDR_MISMATCH;
    }
    for (int32_t i = 0; i < hdr->count_of_counts; i++) {
        if (other->counts[i] > hdr->counts[i]) return TOL_HDR_MISMATCH;
    }
    for (int32_t i = 0; i < hdr->count_of_counts; i++) hdr->counts[i] -= other->counts[i];
    hdr->total -= other->total;
    find_ends(hdr);
    return TOL_HDR_OK;
}

int64_t tol_hdr_percentile(const struct tol_hdr *hdr, double percent) {
    if (hdr->total == 0) return 0;
    if (!(percent > 0)) percent = 0;
    if (percent > 100) percent = 100;
    /* Above 2^53 a double is near the total and may be beyond it; all of it is the total itself. */
    const double share = percent / 100 * (double)hdr->total + 0.5;
    const bool all = percent >= 100 || share >= (double)hdr->total;
    int64_t wanted = all ? hdr->total : (int64_t)share, seen = 0;
    if (wanted < 1) wanted = 1;
    for (int32_t i = 0; i < hdr->count_of_counts; i++) {
        seen += hdr->counts[i];
        if (seen < wanted) continue;
        return percent > 0 ? tol_hdr_highest_at(hdr, i) : tol_hdr_lowest_at(hdr, i);
    }
    return tol_hdr_max(hdr);
}

static double middle_at(const struct tol_hdr *hdr, int32_t index) {
    return ((double)tol_hdr_lowest_at(hdr, index) + (double)tol_hdr_highest_at(hdr, index)) / 2;
}

double tol_hdr_mean(const struct tol_hdr *hdr) {
    double sum = 0;
    for (int32_t i = 0; i < hdr->count_of_counts; i++) {
        if (hdr->counts[i] != 0) sum += (double)hdr->counts[i] * middle_at(hdr, i);
    }
    return hdr->total > 0 ? sum / (double)hdr->total : 0;
}

double tol_hdr_deviation(const struct tol_hdr *hdr) {
    double mean = tol_hdr_mean(hdr), sum = 0;
    for (int32_t i = 0; i < hdr->count_of_counts; i++) {
        double off = middle_at(hdr, i) - mean;
        if (hdr->counts[i] != 0) sum += (double)hdr->counts[i] * off * off;
    }
    return hdr->total > 0 ? sqrt(sum / (double)hdr->total) : 0;
}

int64_t tol_hdr_min(const struct tol_hdr *hdr) {
    return hdr->total > 0 ? hdr->min : 0;
}

int64_t tol_hdr_max(const struct tol_hdr *hdr) {
    return hdr->total > 0 ? tol_hdr_highest_at(hdr, tol_hdr_index(hdr, hdr->max)) : 0;
}
