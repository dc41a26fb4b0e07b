/*
 * A block in two halves, so that the queue that calls fill is emptied between them.
 */
#include "single_calls.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { HALF_MAX = 2 * HYP_CALLS_MAX };

struct half {
    unsigned char sides[HALF_MAX]; /* in the order of the calls */
    double ns[HALF_MAX];
};

/* The same number of both sides, each order equally likely: Fisher and Yates. */
static void draw_order(unsigned char *sides, unsigned calls, uint64_t (*random)(void *user),
                       void *user) {
    for (unsigned i = 0; i < 2 * calls; i++) sides[i] = i < calls ? HYP_BASELINE : HYP_SUBJECT;
    for (unsigned i = 2 * calls - 1; i > 0; i--) {
        unsigned other = (unsigned)(random(user) % (i + 1));
        unsigned char side = sides[i];
        sides[i] = sides[other];
        sides[other] = side;
    }
}

static bool single_calls_settle(const struct hyp_pair *pair) {
    return pair->settle == NULL || pair->settle(pair->user);
}

static bool run_half(const struct hyp_pair *pair, bool control, struct half *half) {
    bool ok = true;
    for (unsigned i = 0; ok && i < 2 * pair->calls; i++) {
        enum hyp_side side = control ? HYP_BASELINE : (enum hyp_side)half->sides[i];
        half->ns[i] = pair->call(pair->user, side);
        ok = half->ns[i] >= 0;
    }
    return single_calls_settle(pair) && ok;
}

static int single_calls_compare(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* The longest that a call of this block may take. */
static double single_calls_longest(const struct half halves[2], unsigned calls) {
    double sorted[2 * HALF_MAX];
    const size_t half = 2 * (size_t)calls;
    memcpy(sorted, halves[0].ns, half * sizeof *sorted);
    memcpy(sorted + half, halves[1].ns, half * sizeof *sorted);
    qsort(sorted, 2 * half, sizeof *sorted, single_calls_compare);
    return HYP_CALLS_DISTURBED * sorted[half];
}

/* The time of one side's calls in one half, without the discarded ones and with them. */
static double single_calls_sum_of(const struct half *half, unsigned calls, enum hyp_side side,
                                  double longest_ns, double *with_all, unsigned *discarded) {
    double kept_ns = 0, all_ns = 0;
    unsigned kept = 0;
    for (unsigned i = 0; i < 2 * calls; i++) {
        if (half->sides[i] != side) continue;
        all_ns += half->ns[i];
        if (!(half->ns[i] <= longest_ns)) continue;
        kept_ns += half->ns[i];
        kept++;
    }
    *with_all = all_ns;
    if (2 * kept < calls) return all_ns;
    *discarded += calls - kept;
    return kept_ns / kept * calls;
}

bool hyp_calls_block(const struct hyp_pair *pair, bool control, uint64_t (*random)(void *user),
                     void *user, struct hyp_calls *block) {
    struct half halves[2];
    const unsigned calls = pair->calls;
    assert(calls > 0 && calls <= HYP_CALLS_MAX);
    memset(block, 0, sizeof *block);
    for (int i = 0; i < 2; i++) {
        draw_order(halves[i].sides, calls, random, user);
        if (!run_half(pair, control, &halves[i])) return false;
    }
    const double longest_ns = single_calls_longest(halves, calls);
    for (int i = 0; i < 4; i++) {
        enum hyp_side side = i == 0 || i == 3 ? HYP_BASELINE : HYP_SUBJECT;
        block->ns[i] = single_calls_sum_of(&halves[i / 2], calls, side, longest_ns,
                                           &block->all_ns[i], &block->discarded[side]);
    }
    return true;
}

bool hyp_calls_warm(const struct hyp_pair *pair, unsigned calls) {
    bool ok = true;
    for (unsigned i = 0; ok && i < calls; i++) {
        ok = pair->call(pair->user, HYP_BASELINE) >= 0 && pair->call(pair->user, HYP_SUBJECT) >= 0;
        if (ok && (i + 1) % pair->calls == 0) ok = single_calls_settle(pair);
    }
    return single_calls_settle(pair) && ok;
}
