/*
 * The chain of a sampler. Candidates are a heap, so that only as many are sorted as stay.
 */
#include "token_sampler.h"

#include "core/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOW = 64, STREAM = 54 };

struct candidate {
    double logit; /* penalised, divided by the temperature; then its weight */
    int token;
};

struct tol_sampler {
    struct tol_sampling sampling;
    size_t vocabulary;
    uint64_t state;
    int *latest;    /* a ring of the window's tokens */
    size_t history; /* tokens accepted so far */
    struct candidate *candidates;
};

/* ---- the generator ---- */

static const uint64_t increment = STREAM << 1 | 1;

static uint32_t generate(uint64_t *state) {
    const uint64_t old = *state;
    *state = old * 6364136223846793005u + increment;
    const uint32_t mixed = (uint32_t)((old >> 18 ^ old) >> 27), turn = (uint32_t)(old >> 59);
    return mixed >> turn | mixed << (-turn & 31);
}

static double generate_unit(uint64_t *state) {
    const uint64_t high = generate(state), low = generate(state);
    return (double)((high << 32 | low) >> 11) * 0x1p-53;
}

static uint64_t seeded(uint64_t seed) {
    uint64_t state = 0;
    generate(&state);
    state += seed;
    generate(&state);
    return state;
}

/* ---- parameters ---- */

bool tol_sampling_is_greedy(const struct tol_sampling *s) {
    return s->temperature == 0 && (s->repetition_penalty == 0 || s->repetition_penalty == 1);
}

static tol_status check(const struct tol_sampling *s) {
    tol_status status = TOL_OK;
    TOL_CHECK(s->temperature >= 0 && s->temperature <= 2, TOL_INVALID_ARGUMENT,
              "the temperature is %g; it must be from 0 to 2", s->temperature);
    TOL_CHECK(s->repetition_penalty >= 0 && s->repetition_penalty <= 10, TOL_INVALID_ARGUMENT,
              "the repetition penalty is %g; it must be from 0 to 10", s->repetition_penalty);
    TOL_CHECK(s->top_p >= 0 && s->top_p <= 1, TOL_INVALID_ARGUMENT,
              "top-p is %g; it must be from 0 to 1", s->top_p);
    TOL_CHECK(s->min_p >= 0 && s->min_p <= 1, TOL_INVALID_ARGUMENT,
              "min-p is %g; it must be from 0 to 1", s->min_p);
    TOL_CHECK(s->repetition_window <= INT32_MAX, TOL_INVALID_ARGUMENT,
              "a repetition window of %zu tokens", s->repetition_window);
out:
    return status;
}

tol_status tol_sampler_create(const struct tol_sampling *sampling, size_t vocabulary,
                              struct tol_sampler **sampler) {
    tol_status status = TOL_OK;
    struct tol_sampler *s = NULL;
    TOL_CHECK(sampling != NULL && sampler != NULL && vocabulary > 0 && vocabulary <= INT32_MAX,
              TOL_INVALID_ARGUMENT, "a sampler needs parameters and a vocabulary");
    TOL_TRY(check(sampling));
    s = calloc(1, sizeof *s);
    TOL_CHECK(s != NULL, TOL_OUT_OF_HOST_MEMORY, "a sampler");
    s->sampling = *sampling;
    if (s->sampling.repetition_window == 0) s->sampling.repetition_window = WINDOW;
    s->vocabulary = vocabulary;
    s->state = seeded(sampling->seed);
    s->latest = calloc(s->sampling.repetition_window, sizeof *s->latest);
    s->candidates = calloc(vocabulary, sizeof *s->candidates);
    TOL_CHECK(s->latest != NULL && s->candidates != NULL, TOL_OUT_OF_HOST_MEMORY,
              "a sampler of %zu tokens", vocabulary);
    *sampler = s;
    s = NULL;
out:
    tol_sampler_destroy(s);
    return status;
}

void tol_sampler_destroy(struct tol_sampler *sampler) {
    if (sampler == NULL) return;
    free(sampler->latest);
    free(sampler->candidates);
    free(sampler);
}

void tol_sampler_accept(struct tol_sampler *s, int token) {
    s->latest[s->history++ % s->sampling.repetition_window] = token;
}

/* ---- the chain ---- */

static void penalise(const struct tol_sampler *s) {
    const size_t window = s->sampling.repetition_window;
    const size_t count = s->history < window ? s->history : window;
    const double penalty = s->sampling.repetition_penalty;
    if (penalty == 0 || penalty == 1) return;
    for (size_t i = 0; i < count; i++) {
        bool is_first = true; /* a token counts once */
        for (size_t j = 0; j < i; j++) is_first &= s->latest[j] != s->latest[i];
        if (!is_first || (size_t)s->latest[i] >= s->vocabulary) continue;
        double *logit = &s->candidates[s->latest[i]].logit;
        *logit = *logit > 0 ? *logit / penalty : *logit * penalty;
    }
}

static bool is_before(const struct candidate *a, const struct candidate *b) {
    return a->logit > b->logit || (a->logit == b->logit && a->token < b->token);
}

static void sift(struct candidate *heap, size_t count, size_t at) {
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && is_before(&heap[child + 1], &heap[child])) child++;
        if (!is_before(&heap[child], &heap[at])) return;
        const struct candidate swapped = heap[at];
        heap[at] = heap[child];
        heap[child] = swapped;
    }
}

/* Takes the largest off the heap and puts it behind: the sorted ones grow from the end. */
static const struct candidate *pop(struct candidate *heap, size_t *count) {
    const struct candidate first = heap[0];
    heap[0] = heap[--*count];
    heap[*count] = first;
    sift(heap, *count, 0);
    return &heap[*count];
}

static double weight_of(double logit, double largest) {
    return exp(logit - largest);
}

/* Sorts what stays to the end of the array, the largest last, and returns how many that are. */
static size_t cut(const struct tol_sampler *s, double largest) {
    struct candidate *heap = s->candidates;
    const struct tol_sampling *limits = &s->sampling;
    const size_t all = s->vocabulary;
    const size_t most = limits->top_k > 0 && limits->top_k < all ? limits->top_k : all;
    const double least = limits->min_p > 0 ? largest + log(limits->min_p) : -INFINITY;
    double total = 0, sum = 0;
    size_t left = all, kept = 0;
    for (size_t i = all / 2; i-- > 0;) sift(heap, all, i);
    if (most < all) { /* top-p is a share of what top-k leaves */
        for (size_t i = 0; i < most; i++) total += weight_of(pop(heap, &left)->logit, largest);
    } else {
        for (size_t i = 0; i < all; i++) total += weight_of(heap[i].logit, largest);
    }
    const bool has_share = limits->top_p > 0 && limits->top_p < 1;
    while (kept < most) {
        if (all - left == kept) pop(heap, &left);
        const struct candidate *next = &heap[all - 1 - kept];
        if (kept > 0 && (next->logit < least || (has_share && sum >= limits->top_p * total))) break;
        sum += weight_of(next->logit, largest);
        kept++;
    }
    return kept;
}

static int pick(struct tol_sampler *s, const struct candidate *from, size_t count, bool backwards,
                double largest) {
    double total = 0, sum = 0;
    for (size_t i = 0; i < count; i++) {
        total += weight_of(from[backwards ? count - 1 - i : i].logit, largest);
    }
    const double point = generate_unit(&s->state) * total;
    int last = from[0].token;
    for (size_t i = 0; i < count; i++) {
        const struct candidate *next = &from[backwards ? count - 1 - i : i];
        const double weight = weight_of(next->logit, largest);
        if (weight > 0) last = next->token; /* rounding must not pick what cannot be */
        sum += weight;
        if (sum > point) return next->token;
    }
    return last;
}

tol_status tol_sampler_draw(struct tol_sampler *s, const float *logits, int *token) {
    tol_status status = TOL_OK;
    const struct tol_sampling *limits = &s->sampling;
    int best = 0;
    for (size_t i = 0; i < s->vocabulary; i++) {
        TOL_CHECK(logits[i] < INFINITY, TOL_MISMATCH, "the logit of token %zu is %g", i,
                  (double)logits[i]);
        s->candidates[i] = (struct candidate){(double)logits[i], (int)i};
    }
    penalise(s);
    for (size_t i = 1; i < s->vocabulary; i++) {
        if (s->candidates[i].logit > s->candidates[best].logit) best = (int)i;
    }
    TOL_CHECK(s->candidates[best].logit > -INFINITY, TOL_MISMATCH, "all logits are -infinity");
    if (limits->temperature == 0) {
        *token = best;
        return TOL_OK;
    }
    for (size_t i = 0; i < s->vocabulary; i++) s->candidates[i].logit /= limits->temperature;
    const double largest = s->candidates[best].logit;
    const bool cuts = (limits->top_k > 0 && limits->top_k < s->vocabulary) || limits->min_p > 0 ||
                      (limits->top_p > 0 && limits->top_p < 1);
    const size_t kept = cuts ? cut(s, largest) : s->vocabulary;
    *token = pick(s, s->candidates + s->vocabulary - kept, kept, cuts, largest);
out:
    return status;
}

void tol_sampler_skip(struct tol_sampler *s, size_t draws) {
    if (s->sampling.temperature == 0) return; /* such a draw takes nothing from the generator */
    for (size_t i = 0; i < draws; i++) generate_unit(&s->state);
}
