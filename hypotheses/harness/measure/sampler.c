/*
 * Blocks, looks, and when to stop: by what the claim needs, never by how quiet the values look.
 */
#include "harness/sampler.h"

#include "single_calls.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The control must lie this close to no effect, in shares of the margin. */
static const double CONTROL_SHARE = 1.0 / 3;

/* The largest distance between the quartiles of blocks, in shares of the margin, or of the effect
 * if that is large. What slows a whole machine leaves a ratio unchanged and scales a difference: on
 * a processor that three programs share, 1.6 us more per launch become 5 us in every block. The
 * control does not show it, because it scales an effect of 0, but the blocks scatter. */
static const double RATIO_SPREAD = 4, DIFFERENCE_SPREAD = 1, EFFECT_SPREAD = 0.25;

/* Of all calls of a comparison, or of its control, at most this share may be discarded. */
static const double DISCARDED_SHARE = 0.02;

static double spread_max(const struct hyp_pair *pair, double effect) {
    double share = pair->is_ratio ? RATIO_SPREAD : DIFFERENCE_SPREAD;
    return fmax(hyp_pair_margin(pair) * share, fabs(effect - hyp_pair_none(pair)) * EFFECT_SPREAD);
}

static _Thread_local double waited_ns; /* of the batch that runs */

void hyp_sampler_waited(double ns) {
    waited_ns = ns;
}

static double sampler_effect_of(const struct hyp_pair *pair, const struct hyp_block *block,
                                const double ns[4]) {
    double outer = ns[0] + ns[3], inner = ns[1] + ns[2];
    for (int i = 0; i < 4; i++) {
        if (!(ns[i] >= 0)) return NAN;
    }
    double subject = block->swapped ? outer : inner, baseline = block->swapped ? inner : outer;
    if (pair->is_ratio) return baseline > 0 ? subject / baseline : NAN;
    return (subject - baseline) / (2.0 * pair->calls) * pair->scale;
}

double hyp_block_effect(const struct hyp_pair *pair, const struct hyp_block *block, bool control) {
    return sampler_effect_of(pair, block, control ? block->control_ns : block->ns);
}

double hyp_block_own_effect(const struct hyp_pair *pair, const struct hyp_block *block) {
    double ns[4];
    for (int i = 0; i < 4; i++) {
        ns[i] = block->ns[i] - block->waited_ns[i];
        /* The system may count a wait that the batch's clock has not seen: then it is ignored. */
        if (block->waited_ns[i] > 0 && !(ns[i] > 0)) return hyp_block_effect(pair, block, false);
    }
    return sampler_effect_of(pair, block, ns);
}

static double side_ns(const struct hyp_pair *pair, const struct hyp_block *block,
                      enum hyp_side side) {
    bool outer = (side == HYP_SUBJECT) == block->swapped;
    const double *ns = block->ns;
    return (outer ? ns[0] + ns[3] : ns[1] + ns[2]) / (2.0 * pair->calls);
}

/* One block and its control, call by call. false: a call failed. */
static bool run_calls(const struct hyp_pair *pair, uint64_t (*random)(void *user), void *user,
                      struct hyp_block *block) {
    struct hyp_calls calls, control;
    if (!hyp_calls_block(pair, false, random, user, &calls) ||
        !hyp_calls_block(pair, true, random, user, &control)) {
        return false;
    }
    memcpy(block->ns, calls.ns, sizeof block->ns);
    memcpy(block->all_ns, calls.all_ns, sizeof block->all_ns);
    memcpy(block->control_ns, control.ns, sizeof block->control_ns);
    memcpy(block->discarded, calls.discarded, sizeof block->discarded);
    block->control_discarded = control.discarded[0] + control.discarded[1];
    return true;
}

/* One block and its control. false: a call failed. */
static bool run_block(const struct hyp_pair *pair, uint64_t (*random)(void *user), void *user,
                      struct hyp_block *block) {
    if (pair->call != NULL) return run_calls(pair, random, user, block);
    const bool swapped = random(user) % 2 != 0;
    bool ok = true;
    block->swapped = swapped;
    for (int i = 0; i < 4; i++) {
        bool outer = i == 0 || i == 3;
        enum hyp_side side = outer == swapped ? HYP_SUBJECT : HYP_BASELINE;
        hyp_sampler_waited(0);
        block->ns[i] = pair->batch(pair->user, side, pair->calls);
        block->waited_ns[i] = waited_ns;
        ok = ok && block->ns[i] >= 0;
    }
    for (int i = 0; i < 4; i++) {
        block->control_ns[i] = pair->batch(pair->user, HYP_BASELINE, pair->calls);
        ok = ok && block->control_ns[i] >= 0;
    }
    return ok;
}

static void sampler_explain(struct hyp_sample *sample, const char *code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void sampler_explain(struct hyp_sample *sample, const char *code, const char *format, ...) {
    va_list arguments;
    snprintf(sample->code, sizeof sample->code, "%s", code);
    va_start(arguments, format);
    vsnprintf(sample->sentence, sizeof sample->sentence, format, arguments);
    va_end(arguments);
}

/* Computes the intervals of the blocks so far. false: no memory, or a value that is not finite. */
static bool sampler_look(const struct hyp_pair *pair, struct hyp_sample *sample,
                         struct hyp_interval *control_surely) {
    double values[HYP_BLOCKS_MAX] = {0};
    struct hyp_interval side = {0};
    const size_t count = sample->count;
    bool ok = true;
    for (size_t i = 0; i < count; i++) {
        values[i] = hyp_block_effect(pair, &sample->blocks[i], true);
    }
    ok = ok && hyp_decide_control(&pair->rule, values, count, &sample->control, control_surely);
    for (size_t i = 0; i < count; i++) {
        values[i] = hyp_block_effect(pair, &sample->blocks[i], false);
    }
    ok = ok && hyp_decide_interval(&pair->rule, values, count, &sample->effect);
    for (size_t i = 0; i < count; i++) {
        values[i] = hyp_block_own_effect(pair, &sample->blocks[i]);
    }
    ok = ok && hyp_decide_interval(&pair->rule, values, count, &sample->own);
    for (size_t i = 0; i < count && pair->call != NULL; i++) {
        values[i] = sampler_effect_of(pair, &sample->blocks[i], sample->blocks[i].all_ns);
    }
    ok = ok && hyp_decide_interval(&pair->rule, values, count, &sample->whole);
    for (int s = HYP_BASELINE; s <= HYP_SUBJECT; s++) {
        for (size_t i = 0; i < count; i++) {
            values[i] = side_ns(pair, &sample->blocks[i], (enum hyp_side)s);
        }
        ok = ok && hyp_interval_of(values, count, 0.5, 0.5, &side);
        *(s == HYP_BASELINE ? &sample->baseline_ns : &sample->subject_ns) = side.median;
    }
    return ok;
}

/*
 * Whether the control found nothing: its interval lies within the share. After the last block noise
 * alone may have left the interval too wide for that, most likely in one of all the controls of a
 * run, so it is then enough that the median lies within the share, and that the interval that is
 * corrected for all of them (hyp_decide_control) does not exclude that there is no effect.
 */
static bool is_control_silent(const struct hyp_pair *pair, const struct hyp_sample *sample,
                              const struct hyp_interval *surely) {
    const double off = hyp_pair_margin(pair) * CONTROL_SHARE;
    const double low = hyp_pair_none(pair) - off, high = hyp_pair_none(pair) + off;
    const struct hyp_interval *control = &sample->control;
    if (control->low >= low && control->high <= high) return true;
    return sample->count == HYP_BLOCKS_MAX && control->median >= low && control->median <= high &&
           surely->low <= hyp_pair_none(pair) && surely->high >= hyp_pair_none(pair);
}

/*
 * Whether the discarded calls are few, and without consequence: a subject that itself makes calls
 * long in most blocks must not survive because they are discarded. What it does in fewer blocks no
 * median of blocks shows, discarded or not; the evidence has the counts by side.
 */
static bool is_discarding_harmless(const struct hyp_pair *pair, struct hyp_sample *sample) {
    const uint64_t all = sample->discarded[HYP_BASELINE] + sample->discarded[HYP_SUBJECT];
    const double calls = 4.0 * pair->calls * (double)sample->count;
    const double most = DISCARDED_SHARE * calls;
    if (!((double)all <= most && (double)sample->control_discarded <= most)) {
        sampler_explain(
            sample, "unfit_discarded",
            "%llu of %.0f calls were disturbed and discarded, and %llu in the control; at most "
            "%.0f can be",
            (unsigned long long)all, calls, (unsigned long long)sample->control_discarded, most);
        return false;
    }
    if (sample->decision == HYP_HOLDS && hyp_decide(&pair->rule, &sample->whole) == HYP_FALLS) {
        sampler_explain(
            sample, "unfit_discarded",
            "%llu disturbed calls were discarded; with them the effect is %.4g to %.4g, and "
            "the threshold is %.4g",
            (unsigned long long)all, sample->whole.low, sample->whole.high, pair->rule.threshold);
        return false;
    }
    return true;
}

/* Whether the measurements alone show that the machine can decide. */
static void judge_steadiness(const struct hyp_pair *pair, struct hyp_sample *sample,
                             const struct hyp_interval *control_surely) {
    const double off = hyp_pair_margin(pair) * CONTROL_SHARE;
    const double low = hyp_pair_none(pair) - off, high = hyp_pair_none(pair) + off;
    const double spread = spread_max(pair, sample->effect.median);
    const bool agree = sample->effect.spread <= spread ||
                       sample->own.spread <= spread_max(pair, sample->own.median);
    sample->is_steady = false;
    if (!is_control_silent(pair, sample, control_surely)) {
        sampler_explain(
            sample, "unfit_control",
            "the control (baseline against baseline) measured %.4g to %.4g, expected within "
            "%.4g to %.4g",
            sample->control.low, sample->control.high, low, high);
    } else if (!agree) {
        sampler_explain(sample, "unfit_spread",
                        "the middle half of the blocks spans %.4g, and at most %.4g can be judged",
                        sample->effect.spread, spread);
    } else if (pair->call == NULL || is_discarding_harmless(pair, sample)) {
        sample->is_steady = true;
    }
}

static void sampler_conclude(const struct hyp_pair *pair, struct hyp_sample *sample,
                             const struct hyp_interval *control_surely) {
    const struct hyp_interval *effect = &sample->effect, *own = &sample->own;
    const enum hyp_decision decision = hyp_decide(&pair->rule, effect);
    const bool same = decision == hyp_decide(&pair->rule, own);
    sample->decision = same ? decision : HYP_UNDECIDED;
    sample->code[0] = sample->sentence[0] = '\0';
    judge_steadiness(pair, sample, control_surely);
    if (!sample->is_steady || sample->decision != HYP_UNDECIDED) return;
    if (same) {
        sampler_explain(sample, "undecided",
                        "after %zu blocks the threshold %.4g lies between %.4g and %.4g",
                        sample->count, pair->rule.threshold, effect->low, effect->high);
    } else {
        sampler_explain(
            sample, "undecided",
            "after %zu blocks the effect is %.4g to %.4g, and %.4g to %.4g without the time "
            "spent waiting for a processor; the threshold is %.4g",
            sample->count, effect->low, effect->high, own->low, own->high, pair->rule.threshold);
    }
}

/* Calls before the first block, for what happens once. false: a call failed. */
static bool sampler_warm(const struct hyp_pair *pair) {
    if (pair->warm_calls == 0) return true;
    if (pair->call != NULL) return hyp_calls_warm(pair, pair->warm_calls);
    return pair->batch(pair->user, HYP_BASELINE, pair->warm_calls) >= 0 &&
           pair->batch(pair->user, HYP_SUBJECT, pair->warm_calls) >= 0;
}

static void sampler_count_block(const struct hyp_block *block, struct hyp_sample *sample) {
    sample->count++;
    for (int i = 0; i < 4; i++) sample->batch_ns_min = fmin(sample->batch_ns_min, block->ns[i]);
    for (int s = HYP_BASELINE; s <= HYP_SUBJECT; s++) sample->discarded[s] += block->discarded[s];
    sample->control_discarded += block->control_discarded;
}

bool hyp_sampler_run(const struct hyp_pair *pair, uint64_t (*random)(void *user),
                     void (*progress)(void *user, double share), void *user,
                     struct hyp_sample *sample) {
    struct hyp_interval control_surely;
    memset(sample, 0, sizeof *sample);
    sample->batch_ns_min = INFINITY;
    bool ok = sampler_warm(pair);
    for (size_t next = 0; ok && next < HYP_LOOKS; next++) {
        while (ok && sample->count < hyp_looks[next]) {
            struct hyp_block *block = &sample->blocks[sample->count];
            ok = run_block(pair, random, user, block);
            if (!ok) break;
            sampler_count_block(block, sample);
            if (progress != NULL) progress(user, (double)sample->count / HYP_BLOCKS_MAX);
        }
        if (!ok || sample->count < pair->blocks_min) continue;
        ok = sampler_look(pair, sample, &control_surely);
        if (!ok) break;
        sampler_conclude(pair, sample, &control_surely);
        bool is_decided = sample->is_steady && sample->decision != HYP_UNDECIDED;
        if (is_decided || pair->recorded_only) break;
    }
    if (!ok) {
        sample->decision = HYP_UNDECIDED;
        sample->is_steady = false;
        sampler_explain(sample, "samples_lost", "a call failed in block %zu", sample->count + 1);
    }
    if (progress != NULL) progress(user, 1);
    return ok;
}
