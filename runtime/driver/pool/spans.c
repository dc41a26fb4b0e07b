/*
 * Records from chunks, bins by size, and cutting and joining of spans.
 */
#include "spans.h"

#include "core/deep.h"

#include <stdlib.h>
#include <string.h>

static unsigned log2_of(uint64_t value) {
    return 63u - (unsigned)__builtin_clzll(value);
}

/* Bins 0 to 31 hold one size each; above, a power of two is cut into 32. */
static unsigned spans_bin_of(uint64_t bytes) {
    uint64_t granules = bytes / TOL_SPAN_GRANULE;
    if (granules < TOL_SPAN_BIN_STEPS) return (unsigned)granules;
    unsigned high = log2_of(granules);
    unsigned bin = (high - 4) * TOL_SPAN_BIN_STEPS +
                   (unsigned)(granules >> (high - 5) & (TOL_SPAN_BIN_STEPS - 1));
    return bin < TOL_SPAN_BINS ? bin : TOL_SPAN_BINS - 1;
}

static void bin_add(struct tol_spans *spans, struct tol_span *span) {
    unsigned bin = spans_bin_of(span->bytes);
    span->bin_before = NULL;
    span->bin_after = spans->bins[bin];
    if (span->bin_after != NULL) span->bin_after->bin_before = span;
    spans->bins[bin] = span;
    spans->words[bin / 64] |= (uint64_t)1 << bin % 64;
    spans->free_bytes += span->bytes;
    spans->free_count++;
}

static void bin_remove(struct tol_spans *spans, struct tol_span *span) {
    unsigned bin = spans_bin_of(span->bytes);
    if (span->bin_before != NULL) {
        span->bin_before->bin_after = span->bin_after;
    } else {
        spans->bins[bin] = span->bin_after;
        if (span->bin_after == NULL) spans->words[bin / 64] &= ~((uint64_t)1 << bin % 64);
    }
    if (span->bin_after != NULL) span->bin_after->bin_before = span->bin_before;
    spans->free_bytes -= span->bytes;
    spans->free_count--;
}

/* Changes the state of a record; one that was live gets a new generation, so its old name is
 * recognised. */
static void rename_to(struct tol_span *span, enum tol_span_state state) {
    uint64_t name = atomic_load_explicit(&span->name, memory_order_relaxed);
    uint64_t generation = name >> 8;
    if (state != TOL_SPAN_LIVE) generation++;
    atomic_store_explicit(&span->name, generation << 8 | state, memory_order_release);
}

static bool spans_is_free(const struct tol_span *span) {
    return span != NULL &&
           tol_span_state_of(atomic_load_explicit(&span->name, memory_order_relaxed)) ==
               TOL_SPAN_FREE;
}

/* ---- what is always true ---- */

#ifndef NDEBUG

static bool spans_is_used(const struct tol_span *span) {
    const enum tol_span_state state =
        tol_span_state_of(atomic_load_explicit(&span->name, memory_order_relaxed));
    return state > TOL_SPAN_FREE && state <= TOL_SPAN_BLOCKED;
}

static bool is_in_its_bin(const struct tol_spans *spans, const struct tol_span *span) {
    const unsigned bin = spans_bin_of(span->bytes);
    const struct tol_span *before = span->bin_before, *after = span->bin_after;
    return (spans->words[bin / 64] >> bin % 64 & 1) != 0 &&
           (before != NULL ? before->bin_after : spans->bins[bin]) == span &&
           (after == NULL || after->bin_before == span);
}

bool tol_span_is_valid(const struct tol_spans *spans, const struct tol_span *span) {
    const struct tol_span *before = span->before, *after = span->after;
    const uint64_t end = span->begin + span->bytes;
    if (!spans_is_used(span) && !spans_is_free(span)) return false;
    if (span->bytes == 0 || span->bytes % TOL_SPAN_GRANULE != 0) return false;
    if (before != NULL && (before->after != span || before->begin + before->bytes != span->begin)) {
        return false;
    }
    if (after != NULL && (after->before != span || after->begin != end)) return false;
    if (span->wait_streams != 0 && (span->wait_begin < span->begin ||
                                    span->wait_begin >= span->wait_end || span->wait_end > end)) {
        return false;
    }
    return !spans_is_free(span) ||
           (!spans_is_free(before) && !spans_is_free(after) && is_in_its_bin(spans, span));
}

/* Whether each bin has its bit and only free spans, free_count in all. */
static bool are_bins_valid(const struct tol_spans *spans, size_t free_count) {
    size_t found = 0;
    for (unsigned bin = 0; bin < TOL_SPAN_BINS; bin++) {
        const struct tol_span *span = spans->bins[bin];
        if ((span != NULL) != (spans->words[bin / 64] >> bin % 64 & 1)) return false;
        for (; span != NULL && found <= free_count; span = span->bin_after, found++) {
            if (!spans_is_free(span) || spans_bin_of(span->bytes) != bin) return false;
        }
    }
    return found == free_count;
}

bool tol_spans_is_valid(const struct tol_spans *spans) {
    size_t unused = 0, listed = 0, free_count = 0, used = 0;
    uint64_t free_bytes = 0;
    for (size_t i = 0; i < spans->chunk_count * TOL_SPAN_CHUNK; i++) {
        const struct tol_span *span = tol_spans_at(spans, (uint32_t)i);
        const uint64_t name = atomic_load_explicit(&span->name, memory_order_relaxed);
        if (span->index != i) return false;
        if (tol_span_state_of(name) == TOL_SPAN_UNUSED) {
            unused++;
            continue;
        }
        if (!tol_span_is_valid(spans, span)) return false;
        free_count += spans_is_free(span);
        free_bytes += spans_is_free(span) ? span->bytes : 0;
        used += !spans_is_free(span);
    }
    for (const struct tol_span *span = spans->unused; span != NULL && listed <= unused;
         span = span->after) {
        listed++;
    }
    return listed == unused && unused == spans->unused_count && used == spans->used_count &&
           free_count == spans->free_count && free_bytes == spans->free_bytes &&
           are_bins_valid(spans, free_count);
}

#endif

/* ---- records ---- */

static bool more_records(struct tol_spans *spans) {
    if (spans->chunk_count == TOL_SPAN_CHUNKS) return false;
    /* Two cache lines each, so that blocks of different threads share none. */
    _Static_assert(sizeof(struct tol_span) == 128, "a record fills two lines of the cache");
    struct tol_span *chunk = aligned_alloc(128, TOL_SPAN_CHUNK * sizeof *chunk);
    if (chunk == NULL) return false;
    memset((void *)chunk, 0, TOL_SPAN_CHUNK * sizeof *chunk);
    for (size_t i = TOL_SPAN_CHUNK; i-- > 0;) {
        chunk[i].index = (uint32_t)(spans->chunk_count * TOL_SPAN_CHUNK + i);
        chunk[i].after = spans->unused;
        spans->unused = &chunk[i];
    }
    spans->unused_count += TOL_SPAN_CHUNK;
    atomic_store_explicit(&spans->chunks[spans->chunk_count++], chunk, memory_order_release);
    return true;
}

bool tol_spans_reserve(struct tol_spans *spans, size_t records) {
    while (spans->unused_count < records) {
        if (!more_records(spans)) return false;
    }
    return true;
}

/* With two records available, the rest cannot fail. */
static bool have_records(struct tol_spans *spans) {
    return tol_spans_reserve(spans, 2);
}

static struct tol_span *new_record(struct tol_spans *spans) {
    struct tol_span *span = spans->unused;
    spans->unused = span->after;
    spans->unused_count--;
    span->before = span->after = NULL;
    span->wait_begin = span->wait_end = span->wait_streams = span->wait_ticket = 0;
    span->owner = NULL;
    return span;
}

static void drop_record(struct tol_spans *spans, struct tol_span *span) {
    rename_to(span, TOL_SPAN_UNUSED);
    span->after = spans->unused;
    spans->unused = span;
    spans->unused_count++;
}

void tol_spans_clear(struct tol_spans *spans) {
    for (size_t i = 0; i < spans->chunk_count; i++) free(spans->chunks[i]);
    *spans = (struct tol_spans){0};
}

struct tol_span *tol_spans_add(struct tol_spans *spans, uint64_t begin, uint64_t bytes) {
    if (!tol_spans_reserve(spans, 1)) return NULL;
    struct tol_span *span = new_record(spans);
    span->begin = begin;
    span->bytes = bytes;
    rename_to(span, TOL_SPAN_FREE);
    bin_add(spans, span);
    if (spans->first == NULL) spans->first = span;
    assert(tol_span_is_valid(spans, span));
    TOL_DEEP_ASSERT(tol_spans_is_valid(spans));
    return span;
}

void tol_spans_remove(struct tol_spans *spans, struct tol_span *region) {
    assert(tol_span_is_valid(spans, region));
    assert(spans_is_free(region) && region->before == NULL && region->after == NULL);
    if (spans->first == region) spans->first = NULL;
    bin_remove(spans, region);
    drop_record(spans, region);
    TOL_DEEP_ASSERT(tol_spans_is_valid(spans));
}

/* The first bin from this one on that is not empty; TOL_SPAN_BINS: all are. */
static unsigned next_bin(const struct tol_spans *spans, unsigned bin) {
    unsigned word = bin / 64;
    if (bin >= TOL_SPAN_BINS) return TOL_SPAN_BINS;
    uint64_t bits = spans->words[word] & ~(uint64_t)0 << bin % 64;
    while (bits == 0) {
        if (++word == TOL_SPAN_BIN_WORDS) return TOL_SPAN_BINS;
        bits = spans->words[word];
    }
    return word * 64 + (unsigned)__builtin_ctzll(bits);
}

struct tol_span *tol_spans_next(const struct tol_spans *spans, uint64_t bytes,
                                struct tol_span_search *search) {
    if (!search->has_begun) {
        search->has_begun = true;
        search->bin = spans_bin_of(bytes);
    }
    for (;;) {
        while (search->next == NULL) {
            unsigned bin = next_bin(spans, search->bin);
            if (bin >= TOL_SPAN_BINS) return NULL;
            search->next = spans->bins[bin];
            search->bin = bin + 1;
        }
        struct tol_span *span = search->next;
        search->next = span->bin_after;
        if (span->bytes >= bytes) return span;
    }
}

size_t tol_spans_fitting(const struct tol_spans *spans, uint64_t bytes, struct tol_span **found,
                         size_t max) {
    struct tol_span_search search = {0};
    size_t count = 0;
    while (count < max && (found[count] = tol_spans_next(spans, bytes, &search)) != NULL) count++;
    return count;
}

struct tol_span *tol_spans_largest(const struct tol_spans *spans) {
    struct tol_span *largest = NULL;
    for (unsigned word = TOL_SPAN_BIN_WORDS; word-- > 0 && largest == NULL;) {
        if (spans->words[word] == 0) continue;
        struct tol_span *span = spans->bins[word * 64 + log2_of(spans->words[word])];
        for (; span != NULL; span = span->bin_after) {
            if (largest == NULL || span->bytes > largest->bytes) largest = span;
        }
    }
    return largest;
}

/* The part of the hole's wait that falls into a span cut from it. */
static void cut_wait(struct tol_span *span, const struct tol_span *hole) {
    uint64_t end = span->begin + span->bytes;
    span->wait_begin = hole->wait_begin > span->begin ? hole->wait_begin : span->begin;
    span->wait_end = hole->wait_end < end ? hole->wait_end : end;
    bool any = span->wait_begin < span->wait_end;
    span->wait_streams = any ? hole->wait_streams : 0;
    span->wait_ticket = any ? hole->wait_ticket : 0;
    if (!any) span->wait_begin = span->wait_end = 0;
}

struct tol_span *tol_spans_take(struct tol_spans *spans, struct tol_span *hole, uint64_t begin,
                                uint64_t bytes) {
    assert(spans_is_free(hole) && begin >= hole->begin && bytes <= hole->bytes &&
           begin - hole->begin <= hole->bytes - bytes);
    if (!have_records(spans)) return NULL;
    const struct tol_span whole = *hole;
    struct tol_span *span = hole;
    const uint64_t end = begin + bytes, hole_end = whole.begin + whole.bytes;
    bin_remove(spans, hole);
    if (begin > whole.begin) {
        span = new_record(spans);
        span->before = hole;
        span->after = hole->after;
        if (hole->after != NULL) hole->after->before = span;
        hole->after = span;
        hole->bytes = begin - whole.begin;
        cut_wait(hole, &whole);
        bin_add(spans, hole);
    }
    if (end < hole_end) {
        struct tol_span *rest = new_record(spans);
        rest->begin = end;
        rest->bytes = hole_end - end;
        rest->before = span;
        rest->after = span->after;
        if (rest->after != NULL) rest->after->before = rest;
        span->after = rest;
        cut_wait(rest, &whole);
        rename_to(rest, TOL_SPAN_FREE);
        bin_add(spans, rest);
    }
    span->begin = begin;
    span->bytes = bytes;
    cut_wait(span, &whole);
    rename_to(span, TOL_SPAN_LIVE);
    spans->used_count++;
    assert(tol_span_is_valid(spans, span));
    TOL_DEEP_ASSERT(tol_spans_is_valid(spans));
    return span;
}

struct tol_span *tol_spans_block(struct tol_spans *spans, struct tol_span *hole, uint64_t begin,
                                 uint64_t bytes) {
    struct tol_span *span = tol_spans_take(spans, hole, begin, bytes);
    if (span != NULL) rename_to(span, TOL_SPAN_BLOCKED);
    return span;
}

/* Joins both waits: the smallest part that contains both. */
static void join_waits(struct tol_span *span, const struct tol_span *other) {
    if (other->wait_streams == 0) return;
    if (span->wait_streams == 0) {
        span->wait_begin = other->wait_begin;
        span->wait_end = other->wait_end;
    } else {
        if (other->wait_begin < span->wait_begin) span->wait_begin = other->wait_begin;
        if (other->wait_end > span->wait_end) span->wait_end = other->wait_end;
    }
    span->wait_streams |= other->wait_streams;
    if (other->wait_ticket > span->wait_ticket) span->wait_ticket = other->wait_ticket;
}

struct tol_span *tol_spans_give(struct tol_spans *spans, struct tol_span *span, uint64_t streams,
                                uint64_t ticket) {
    assert(spans_is_used(span));
    TOL_QUICK_ASSERT(tol_span_is_valid(spans, span));
    span->wait_streams = streams;
    span->wait_ticket = streams != 0 ? ticket : 0;
    span->wait_begin = streams != 0 ? span->begin : 0;
    span->wait_end = streams != 0 ? span->begin + span->bytes : 0;
    rename_to(span, TOL_SPAN_FREE);
    spans->used_count--;
    struct tol_span *after = span->after;
    if (spans_is_free(after)) {
        bin_remove(spans, after);
        span->bytes += after->bytes;
        join_waits(span, after);
        span->after = after->after;
        if (span->after != NULL) span->after->before = span;
        drop_record(spans, after);
    }
    struct tol_span *before = span->before;
    if (spans_is_free(before)) {
        bin_remove(spans, before);
        before->bytes += span->bytes;
        join_waits(before, span);
        before->after = span->after;
        if (before->after != NULL) before->after->before = before;
        drop_record(spans, span);
        span = before;
    }
    bin_add(spans, span);
    assert(tol_span_is_valid(spans, span));
    TOL_DEEP_ASSERT(tol_spans_is_valid(spans));
    return span;
}

struct tol_span *tol_spans_note(struct tol_spans *spans, uint64_t begin, uint64_t bytes) {
    if (!have_records(spans)) return NULL;
    struct tol_span *span = new_record(spans);
    span->begin = begin;
    span->bytes = bytes;
    rename_to(span, TOL_SPAN_LIVE);
    spans->used_count++;
    return span;
}

void tol_spans_forget(struct tol_spans *spans, struct tol_span *span) {
    assert(spans_is_used(span) && span->before == NULL && span->after == NULL);
    spans->used_count--;
    drop_record(spans, span);
    TOL_DEEP_ASSERT(tol_spans_is_valid(spans));
}

struct tol_span *tol_spans_at(const struct tol_spans *spans, uint32_t index) {
    if (index / TOL_SPAN_CHUNK >= TOL_SPAN_CHUNKS) return NULL;
    struct tol_span *chunk =
        atomic_load_explicit(&spans->chunks[index / TOL_SPAN_CHUNK], memory_order_acquire);
    return chunk != NULL ? &chunk[index % TOL_SPAN_CHUNK] : NULL;
}

void tol_spans_each(const struct tol_spans *spans, void (*visit)(void *user, struct tol_span *span),
                    void *user) {
    for (size_t chunk = 0; chunk < spans->chunk_count; chunk++) {
        struct tol_span *records = spans->chunks[chunk];
        for (size_t i = 0; i < TOL_SPAN_CHUNK; i++) {
            uint64_t name = atomic_load_explicit(&records[i].name, memory_order_relaxed);
            if (tol_span_state_of(name) == TOL_SPAN_LIVE) visit(user, &records[i]);
        }
    }
}
