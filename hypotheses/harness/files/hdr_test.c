/*
 * HDR histograms: the layout's arithmetic, percentiles, and an encoding that survives.
 */
#include "hdr_encode.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static struct tol_hdr *new_hdr(void) {
    struct tol_hdr *hdr = NULL;
    cr_assert(tol_hdr_new_latency(&hdr) == TOL_HDR_OK);
    return hdr;
}

Test(hdr, every_value_lies_in_its_bucket_and_buckets_are_narrow) {
    struct tol_hdr *hdr = new_hdr();
    for (int64_t value = 0; value < 3600000000000; value += 1 + value / 257) {
        int32_t index = tol_hdr_index(hdr, value);
        int64_t low = tol_hdr_lowest_at(hdr, index), high = tol_hdr_highest_at(hdr, index);
        cr_assert(low <= value && value <= high, "%lld in [%lld, %lld]", (long long)value,
                  (long long)low, (long long)high);
        cr_assert((high - low) * 1000 <= value, "%lld: the bucket is %lld wide", (long long)value,
                  (long long)(high - low));
    }
    tol_hdr_free(hdr);
}

Test(hdr, buckets_follow_each_other_without_gaps) {
    struct tol_hdr *hdr = new_hdr();
    for (int32_t i = 1; i < hdr->count_of_counts; i++) {
        cr_assert(tol_hdr_lowest_at(hdr, i) == tol_hdr_highest_at(hdr, i - 1) + 1, "at %d", i);
    }
    cr_assert(hdr->count_of_counts == 33792, "%d", hdr->count_of_counts);
    tol_hdr_free(hdr);
}

Test(hdr, percentiles_of_a_ramp) {
    struct tol_hdr *hdr = new_hdr();
    cr_assert(tol_hdr_percentile(hdr, 50) == 0 && tol_hdr_min(hdr) == 0 && tol_hdr_max(hdr) == 0);
    for (int64_t value = 1; value <= 1000; value++) cr_assert(tol_hdr_record(hdr, value));
    cr_assert(tol_hdr_percentile(hdr, 50) == 500, "%lld", (long long)tol_hdr_percentile(hdr, 50));
    cr_assert(tol_hdr_percentile(hdr, 99) == 990);
    cr_assert(tol_hdr_percentile(hdr, 100) == 1000);
    cr_assert(tol_hdr_percentile(hdr, 0) == 1 && tol_hdr_percentile(hdr, -5) == 1);
    cr_assert(tol_hdr_record_many(hdr, 123456, 9000));
    int64_t high = tol_hdr_highest_at(hdr, tol_hdr_index(hdr, 123456));
    cr_assert(tol_hdr_percentile(hdr, 50) == high && high > 123456, "the upper end of a bucket");
    cr_assert(tol_hdr_subtract(hdr, hdr) == TOL_HDR_OK && hdr->total == 0);
    for (int64_t value = 1; value <= 1000; value++) cr_assert(tol_hdr_record(hdr, value));
    cr_assert(tol_hdr_min(hdr) == 1 && tol_hdr_max(hdr) == 1000);
    double mean = tol_hdr_mean(hdr), deviation = tol_hdr_deviation(hdr);
    cr_assert(mean > 500 && mean < 501, "%f", mean);
    cr_assert(deviation > 288 && deviation < 289, "%f", deviation);
    tol_hdr_free(hdr);
}

/* A double has 53 bits, and a count may have 63. */
Test(hdr, percentiles_of_counts_that_no_double_holds) {
    struct tol_hdr *hdr = NULL;
    cr_assert(tol_hdr_new(1, 1 << 20, 3, &hdr) == TOL_HDR_OK);
    cr_assert(tol_hdr_record_many(hdr, 10, (int64_t)1 << 54));
    cr_assert(tol_hdr_record_many(hdr, 1000, 1));
    cr_assert_eq(tol_hdr_percentile(hdr, 50), 10);
    cr_assert_eq(tol_hdr_percentile(hdr, 100), 1000);
    cr_assert(tol_hdr_record_many(hdr, 10, INT64_MAX - hdr->total));
    cr_assert_eq(tol_hdr_percentile(hdr, 99), 10);
    cr_assert_eq(tol_hdr_percentile(hdr, 100), 1000);
    tol_hdr_free(hdr);
}

Test(hdr, what_is_out_of_range_is_refused_and_not_counted) {
    struct tol_hdr *hdr = new_hdr();
    cr_assert(!tol_hdr_record(hdr, -1));
    cr_assert(!tol_hdr_record(hdr, INT64_MAX));
    cr_assert(hdr->total == 0);
    tol_hdr_free(hdr);
    static const struct {
        int64_t lowest, highest;
        int digits;
    } bad[] = {{0, 100, 3}, {1, 1, 3}, {100, 150, 3}, {1, 1000, 0}, {1, 1000, 6}, {-5, 100, 3}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        hdr = (struct tol_hdr *)&bad;
        cr_assert(tol_hdr_new(bad[i].lowest, bad[i].highest, bad[i].digits, &hdr) ==
                      TOL_HDR_BAD_RANGE,
                  "%zu", i);
        cr_assert(hdr == NULL);
    }
    /* The least range that has two powers of two. */
    cr_assert_eq(tol_hdr_new(10, 20, 1, &hdr), TOL_HDR_OK);
    tol_hdr_free(hdr);
}

/* Bytes after the counts are not counts. */
Test(hdr, only_its_counts_count) {
    struct tol_hdr *hdr = new_hdr();
    for (int64_t value = 1; value < 2000; value += 7) cr_assert(tol_hdr_record(hdr, value));
    const double mean = tol_hdr_mean(hdr), deviation = tol_hdr_deviation(hdr);
    const size_t count = (size_t)hdr->count_of_counts;
    int64_t *own = hdr->counts, *longer = calloc(count + 1, sizeof *longer);
    cr_assert_not_null(longer);
    memcpy(longer, own, count * sizeof *longer);
    longer[count] = 1 << 20;
    hdr->counts = longer;
    cr_assert(tol_hdr_mean(hdr) == mean && tol_hdr_deviation(hdr) == deviation);
    hdr->counts = own;
    free(longer);
    tol_hdr_free(hdr);
}

Test(hdr, a_long_value_stands_for_those_it_held_up) {
    struct tol_hdr *hdr = new_hdr();
    cr_assert(tol_hdr_record_corrected(hdr, 1000, 250));
    cr_assert(hdr->total == 4, "%lld", (long long)hdr->total); /* 1000, 750, 500, 250 */
    cr_assert(tol_hdr_min(hdr) == 250);
    tol_hdr_free(hdr);
}

/* Goal: taking a bucket's worth at once counts what one by one would. */
Test(hdr, those_held_up_are_counted_one_by_one) {
    static const int64_t cases[][2] = {
        {1000000, 7}, {1000000, 999999}, {1000000, 1000000}, {5000, 2500},
        {4097, 2048}, {123456789, 1001}, {3000000, 1},       {2, 1},
        {1, 1},       {1000, 0},         {1000, -5}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tol_hdr *fast = new_hdr(), *slow = new_hdr();
        const int64_t value = cases[i][0], interval = cases[i][1];
        cr_assert(tol_hdr_record_corrected(fast, value, interval));
        tol_hdr_record(slow, value);
        for (int64_t left = value - interval; interval > 0 && left >= interval; left -= interval) {
            tol_hdr_record(slow, left);
        }
        cr_assert(fast->total == slow->total && fast->min == slow->min && fast->max == slow->max,
                  "%lld by %lld: %lld and %lld", (long long)value, (long long)interval,
                  (long long)fast->total, (long long)slow->total);
        size_t bytes = (size_t)fast->count_of_counts * sizeof *fast->counts;
        cr_assert(memcmp(fast->counts, slow->counts, bytes) == 0, "%lld by %lld", (long long)value,
                  (long long)interval);
        tol_hdr_free(fast);
        tol_hdr_free(slow);
    }
    struct tol_hdr *hour = new_hdr();
    cr_assert(tol_hdr_record_corrected(hour, 3600000000000, 1) && hour->total == 3600000000000);
    tol_hdr_free(hour);
}

Test(hdr, adding_and_taking_away_undo_each_other) {
    struct tol_hdr *a = new_hdr(), *b = new_hdr();
    for (int64_t i = 1; i < 100; i++) {
        tol_hdr_record(a, i * i);
        tol_hdr_record(b, i * i * i);
    }
    cr_assert(tol_hdr_add(a, b) == TOL_HDR_OK && a->total == 198);
    cr_assert(tol_hdr_subtract(a, b) == TOL_HDR_OK && a->total == 99);
    cr_assert(tol_hdr_subtract(a, b) == TOL_HDR_MISMATCH && a->total == 99);
    tol_hdr_free(a);
    tol_hdr_free(b);
}

static void round_trip(struct tol_hdr *hdr) {
    struct tol_hdr *back = NULL;
    char *text = hyp_hdr_encode(hdr);
    cr_assert(text != NULL && strncmp(text, "HISTFAAA", 8) == 0, "%.20s", text);
    cr_assert(hyp_hdr_decode(text, strlen(text), &back) == TOL_HDR_OK);
    cr_assert(back->total == hdr->total && back->lowest == hdr->lowest &&
              back->digits == hdr->digits);
    for (int32_t i = 0; i < hdr->count_of_counts; i++) cr_assert(back->counts[i] == hdr->counts[i]);
    tol_hdr_free(back);
    free(text);
}

Test(hdr, the_encoding_comes_back_whole) {
    struct tol_hdr *hdr = new_hdr();
    round_trip(hdr);
    tol_hdr_record(hdr, 0);
    round_trip(hdr);
    cr_assert(tol_hdr_record_many(hdr, 77, (int64_t)1 << 40));
    round_trip(hdr);
    for (int64_t value = 1; value < 3600000000000; value = value * 3 / 2 + 1) {
        tol_hdr_record(hdr, value);
    }
    round_trip(hdr);
    tol_hdr_free(hdr);
    for (int digits = 1; digits <= 5; digits++) {
        cr_assert(tol_hdr_new(1000, 1000000000, digits, &hdr) == TOL_HDR_OK);
        for (int64_t value = 1; value < 1000000000; value *= 7) tol_hdr_record(hdr, value);
        round_trip(hdr);
        tol_hdr_free(hdr);
    }
}

static void put(unsigned char *at, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; i++) at[i] = (unsigned char)(value >> 8 * (bytes - 1 - i));
}

/* A histogram that cannot be, well packed: without counts, of a lowest value, a highest one and
 * digits. */
static tol_hdr_error decode_of(int64_t lowest, int64_t highest, int digits) {
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    unsigned char plain[40] = {0}, packed[8 + 200] = {0};
    char text[300];
    struct tol_hdr *back = NULL;
    size_t length = 0;
    uLongf bytes = sizeof packed - 8;
    put(plain, 0x1c849303, 4);
    put(plain + 12, (uint64_t)digits, 4);
    put(plain + 16, (uint64_t)lowest, 8);
    put(plain + 24, (uint64_t)highest, 8);
    put(plain + 32, 0x3ff0000000000000, 8);
    cr_assert(compress(packed + 8, &bytes, plain, sizeof plain) == Z_OK);
    put(packed, 0x1c849304, 4);
    put(packed + 4, bytes, 4);
    const size_t all = 8 + bytes;
    for (size_t at = 0; at < all; at += 3) {
        const unsigned three =
            (unsigned)packed[at] << 16 | (unsigned)packed[at + 1] << 8 | (unsigned)packed[at + 2];
        for (int i = 18; i >= 0; i -= 6) text[length++] = letters[three >> i & 63];
    }
    for (size_t at = all; at % 3 != 0; at++) text[length - (3 - at % 3)] = '=';
    const tol_hdr_error error = hyp_hdr_decode(text, length, &back);
    cr_assert((error == TOL_HDR_OK) == (back != NULL));
    tol_hdr_free(back);
    return error;
}

Test(hdr, an_encoding_of_none_that_can_be_is_bad_data) {
    cr_assert_eq(decode_of(1, 1000000, 3), TOL_HDR_OK);
    cr_assert_eq(decode_of(1, 1000000, 6), TOL_HDR_BAD_DATA);
    cr_assert_eq(decode_of(0, 1000000, 3), TOL_HDR_BAD_DATA);
    cr_assert_eq(decode_of(1000, 1001, 3), TOL_HDR_BAD_DATA);
}

/* Goal: no damaged text is accepted as a histogram or read outside its bounds. */
Test(hdr, a_damaged_encoding_is_refused) {
    struct tol_hdr *hdr = new_hdr(), *back = NULL;
    for (int64_t value = 1; value < 1000000; value += 997) tol_hdr_record(hdr, value);
    char *text = hyp_hdr_encode(hdr);
    size_t length = strlen(text);
    for (size_t cut = 0; cut < length - 4; cut++) {
        cr_assert(hyp_hdr_decode(text, cut, &back) != TOL_HDR_OK, "cut at %zu", cut);
        cr_assert(back == NULL);
    }
    for (size_t at = 0; at < length; at++) {
        char was = text[at];
        text[at] = was == 'A' ? 'B' : 'A';
        if (hyp_hdr_decode(text, length, &back) == TOL_HDR_OK) tol_hdr_free(back);
        text[at] = '!';
        cr_assert(hyp_hdr_decode(text, length, &back) != TOL_HDR_OK, "byte %zu", at);
        text[at] = was;
    }
    free(text);
    tol_hdr_free(hdr);
}
