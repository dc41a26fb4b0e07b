/*
 * A draw on the host. Candidates are a heap, so that only those that may be kept are sorted.
 */
#include "decode/draw.h"

#include <math.h>
#include <string.h>

struct candidate {
    float value;
    uint32_t token;
};

struct host_draw {
    const struct draw_row *row;
    size_t columns;
    float largest;
    const float *values; /* penalised */
    struct candidate *heap;
};

size_t kn_draw_host_bytes(size_t columns) {
    return columns * (sizeof(float) + sizeof(struct candidate)) + sizeof(struct candidate);
}

static void draw_host_penalise(const struct draw_row *row, const uint32_t *tokens, float *values,
                               size_t columns) {
    for (uint32_t i = 0; i < row->penalised; i++) {
        if (tokens[i] >= columns) continue;
        float *value = &values[tokens[i]];
        *value = *value > 0 ? *value / row->penalty : *value * row->penalty;
    }
}

/* The first of the largest; or DRAW_NONE, or DRAW_BAD. */
static int draw_host_largest_of(const float *values, size_t columns) {
    size_t best = 0;
    for (size_t i = 0; i < columns; i++) {
        if (isnan(values[i])) return DRAW_BAD - (int)i;
        if (values[i] > values[best]) best = i;
    }
    if (values[best] == INFINITY) return DRAW_BAD - (int)best;
    return values[best] == -INFINITY ? DRAW_NONE : (int)best;
}

static bool draw_host_is_before(const struct candidate *a, const struct candidate *b) {
    return a->value > b->value || (a->value == b->value && a->token < b->token);
}

static void draw_host_sift(struct candidate *heap, size_t count, size_t at) {
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && draw_host_is_before(&heap[child + 1], &heap[child])) child++;
        if (!draw_host_is_before(&heap[child], &heap[at])) return;
        const struct candidate swapped = heap[at];
        heap[at] = heap[child];
        heap[child] = swapped;
    }
}

/* Moves the largest from the heap to its end: the sorted ones grow from there. */
static const struct candidate *draw_host_pop(struct candidate *heap, size_t *count) {
    const struct candidate first = heap[0];
    heap[0] = heap[--*count];
    heap[*count] = first;
    draw_host_sift(heap, *count, 0);
    return &heap[*count];
}

/* 0: it is too far below the largest. */
static uint64_t weight_of(const struct host_draw *d, float value) {
    const uint64_t distance = draw_distance(value, d->largest, d->row->scale);
    return distance == DRAW_FAR ? 0 : draw_weight(distance);
}

/* The last that top-k and top-p leave. */
static struct candidate draw_host_last_of(const struct host_draw *d) {
    struct candidate *heap = d->heap;
    size_t all = 0, left = 0;
    uint64_t total = 0, sum = 0;
    for (size_t i = 0; i < d->columns; i++) {
        if (weight_of(d, d->values[i]) == 0) continue;
        heap[all++] = (struct candidate){d->values[i], (uint32_t)i};
    }
    left = all;
    for (size_t i = all / 2; i-- > 0;) draw_host_sift(heap, all, i);
    const bool is_cut = d->row->top_k > 0 && d->row->top_k < all;
    const size_t most = is_cut ? d->row->top_k : all;
    /* top-p is a share of what top-k leaves */
    for (size_t i = 0; is_cut && i < most; i++)
        total += weight_of(d, draw_host_pop(heap, &left)->value);
    for (size_t i = 0; !is_cut && i < all; i++) total += weight_of(d, heap[i].value);
    if (d->row->share == 0 || total == 0) {
        return is_cut ? heap[left] : (struct candidate){-INFINITY, UINT32_MAX};
    }
    const uint64_t wanted = draw_share(total, d->row->share);
    for (size_t kept = 1;; kept++) {
        if (all - left < kept) (void)draw_host_pop(heap, &left);
        const struct candidate *next = &heap[all - kept];
        sum += weight_of(d, next->value);
        if (sum >= wanted || kept == most) return *next;
    }
}

static uint64_t kept_weight(const struct host_draw *d, const struct candidate *last, size_t token) {
    const struct candidate own = {d->values[token], (uint32_t)token};
    const uint64_t weight = weight_of(d, own.value);
    return draw_host_is_before(last, &own) || weight < d->row->least ? 0 : weight;
}

int kn_draw_on_host(const struct draw_row *row, const uint32_t *tokens, const float *logits,
                    size_t columns, void *workspace) {
    struct candidate *heap = workspace;
    float *values = (float *)(void *)(heap + columns);
    uint64_t total = 0, sum = 0;
    memcpy(values, logits, columns * sizeof *values);
    draw_host_penalise(row, tokens, values, columns);
    const int best = draw_host_largest_of(values, columns);
    if (best < 0 || row->top_k == 1) return best;
    const struct host_draw d = {row, columns, values[best], values, heap};
    const bool cuts = row->top_k > 0 || row->share > 0;
    const struct candidate last =
        cuts ? draw_host_last_of(&d) : (struct candidate){-INFINITY, UINT32_MAX};
    for (size_t i = 0; i < columns; i++) total += kept_weight(&d, &last, i);
    const uint64_t point = draw_high(row->random, total);
    for (size_t i = 0; i < columns; i++) {
        sum += kept_weight(&d, &last, i);
        if (sum > point) return (int)i;
    }
    return best; /* by a scale that is no number nothing has a weight */
}
