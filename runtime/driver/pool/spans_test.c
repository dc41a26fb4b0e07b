/*
 * Spans against a map of granules: whatever is taken and given, nothing overlaps, nothing is lost,
 * and neighbours that are free are one.
 */
#include "spans.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

enum { GRANULES = 4096, BASE = 1 << 20 };

static uint64_t state = 88172645463325252u;

static uint64_t draw(uint64_t below) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % below;
}

static uint64_t bytes_of(uint64_t granules) {
    return granules * TOL_SPAN_GRANULE;
}

/* The free runs of the map must be the free spans, each in one piece. */
static void check(const struct tol_spans *spans, const bool *used) {
    uint64_t free_bytes = 0;
    size_t runs = 0;
    for (size_t i = 0; i < GRANULES; i++) {
        free_bytes += used[i] ? 0 : TOL_SPAN_GRANULE;
        runs += !used[i] && (i == 0 || used[i - 1]);
    }
    cr_assert(spans->free_bytes == free_bytes && spans->free_count == runs, "%llu and %llu, %zu",
              (unsigned long long)spans->free_bytes, (unsigned long long)free_bytes, runs);
}

Test(spans, what_is_cut_and_joined_stays_whole) {
    static struct tol_spans spans;
    static bool used[GRANULES];
    struct tol_span *live[GRANULES] = {NULL};
    size_t count = 0;
    cr_assert(tol_spans_add(&spans, BASE, bytes_of(GRANULES)));
    for (int step = 0; step < 20000; step++) {
        struct tol_span *holes[4];
        uint64_t want = bytes_of(1 + draw(1 << draw(9)));
        size_t found = draw(100) < 52 ? tol_spans_fitting(&spans, want, holes, 4) : 0;
        if (found > 0) {
            struct tol_span *hole = holes[draw(found)];
            cr_assert(hole->bytes >= want);
            uint64_t begin = hole->begin + bytes_of(draw((hole->bytes - want) / 256 + 1));
            struct tol_span *span = tol_spans_take(&spans, hole, begin, want);
            cr_assert(span != NULL && span->begin == begin && span->bytes == want);
            for (uint64_t g = 0; g < want / 256; g++) {
                bool *at = &used[(begin - BASE) / 256 + g];
                cr_assert(!*at, "given twice");
                *at = true;
            }
            live[count++] = span;
        } else if (count > 0) {
            size_t i = draw(count);
            struct tol_span *span = live[i];
            memset(&used[(span->begin - BASE) / 256], 0, span->bytes / 256);
            cr_assert_not_null(tol_spans_give(&spans, span, 0, 0));
            live[i] = live[--count];
        }
        if (step % 100 == 0) check(&spans, used);
    }
    while (count > 0) tol_spans_give(&spans, live[--count], 0, 0);
    cr_assert(spans.free_count == 1 && spans.free_bytes == bytes_of(GRANULES));
    cr_assert(spans.used_count == 0);
    tol_spans_clear(&spans);
}

Test(spans, a_name_of_the_past_is_known_for_one) {
    static struct tol_spans spans;
    struct tol_span *hole = NULL;
    cr_assert(tol_spans_add(&spans, BASE, bytes_of(8)));
    cr_assert_eq(tol_spans_fitting(&spans, 512, &hole, 1), 1);
    struct tol_span *span = tol_spans_take(&spans, hole, hole->begin, 512);
    uint64_t name = span->name;
    cr_assert_eq(tol_span_state_of(name), TOL_SPAN_LIVE);
    cr_assert_eq(tol_spans_at(&spans, span->index), span);
    cr_assert_null(tol_spans_at(&spans, TOL_SPAN_CHUNK + 1));
    tol_spans_give(&spans, span, 0, 0);
    cr_assert_eq(tol_spans_fitting(&spans, 512, &hole, 1), 1);
    struct tol_span *again = tol_spans_take(&spans, hole, hole->begin, 512);
    cr_assert(again == span && again->name != name, "%llx", (unsigned long long)name);
    tol_spans_clear(&spans);
}

/* Goal: what has to be waited for keeps to the part that it is about. */
Test(spans, a_wait_stays_with_its_part) {
    static struct tol_spans spans;
    struct tol_span *hole = NULL;
    cr_assert(tol_spans_add(&spans, BASE, bytes_of(100)));
    cr_assert_eq(tol_spans_fitting(&spans, 256, &hole, 1), 1);
    struct tol_span *a = tol_spans_take(&spans, hole, BASE + bytes_of(10), bytes_of(10));
    struct tol_span *whole = tol_spans_give(&spans, a, 4, 77);
    cr_assert(whole->bytes == bytes_of(100) && whole->wait_streams == 4 &&
              whole->wait_ticket == 77);
    cr_assert(whole->wait_begin == BASE + bytes_of(10) && whole->wait_end == BASE + bytes_of(20));
    struct tol_span *clean = tol_spans_take(&spans, whole, BASE + bytes_of(50), bytes_of(5));
    cr_assert(clean->wait_streams == 0);
    cr_assert_eq(tol_spans_fitting(&spans, bytes_of(46), &hole, 1), 1);
    struct tol_span *waits = tol_spans_take(&spans, hole, hole->begin + bytes_of(15), bytes_of(10));
    cr_assert(waits->wait_streams == 4 && waits->wait_begin == BASE + bytes_of(15) &&
              waits->wait_end == BASE + bytes_of(20));
    /* Two waits become one, about the smallest part that holds both. */
    whole = tol_spans_give(&spans, waits, 2, 80);
    cr_assert(whole->wait_streams == 6 && whole->wait_ticket == 80);
    cr_assert(whole->wait_begin == BASE + bytes_of(10) && whole->wait_end == BASE + bytes_of(25));
    tol_spans_clear(&spans);
}
