/*
 * Sampler: compares two ways of doing the same thing alternately in one process.
 *
 * A block is either
 *   four batches, baseline-subject-subject-baseline or the reverse, chosen at random, so that slow
 *   drift affects both sides alike; or
 *   single calls of both sides in random order, each timed on its own. What slows the
 *   machine for some calls then affects both sides alike too, and calls that an interrupt or
 *   another process disturbed are discarded by one rule for both sides (measure/single_calls.h).
 * The effect of a block is one value: calls are not independent of each other, blocks nearly are.
 * After each block comes the A/A control, a block with the baseline on both sides, whose true
 * effect is 0. If the control measures an effect, the machine cannot decide, and there is no
 * verdict.
 *
 * The sampler reads no clock: each batch, or call, returns its own duration.
 * Source: MEASURING.md section 5; Abedi and Brecht, ICPE 2017 (interleaved trials).
 */
#ifndef HYP_SAMPLER_H
#define HYP_SAMPLER_H

#include "comparison.h"

#include <stdint.h>

struct hyp_block {
    bool swapped; /* subject first; with .call always false */
    double ns[4]; /* the batches, in the order they ran; with .call the sums of hyp_calls_block */
    double control_ns[4]; /* the batches of the control, likewise */
    double waited_ns[4];  /* of the batches, not of the control: see hyp_sampler_waited */
    double all_ns[4];     /* with .call: the same with the discarded calls */
    unsigned discarded[2], control_discarded; /* disturbed calls, by side, and of the control */
};

struct hyp_sample {
    size_t count;
    struct hyp_block blocks[HYP_BLOCKS_MAX];
    struct hyp_interval effect, control;
    struct hyp_interval own;        /* the effect without the time spent waiting for a processor */
    struct hyp_interval whole;      /* with .call: the effect with the discarded calls */
    double baseline_ns, subject_ns; /* per call, the median of the blocks */
    double batch_ns_min;            /* the shortest of all batches */
    uint64_t discarded[2], control_discarded; /* the sums of the blocks */
    enum hyp_decision decision;
    bool is_steady;     /* the control found nothing, the blocks agree, few calls were disturbed */
    char code[32];      /* why it is not steady or undecided: "unfit_control"; otherwise "" */
    char sentence[256]; /* the same for people */
};

/* The effect of a block, or of its control; NaN if a batch failed. */
double hyp_block_effect(const struct hyp_pair *pair, const struct hyp_block *block, bool control);

/* The effect of a block without the time spent waiting for a processor. If a batch reports that it
 * waited for its whole duration or longer, the waiting time is not subtracted. */
double hyp_block_own_effect(const struct hyp_pair *pair, const struct hyp_block *block);

/* Called by a batch before it returns, to report how long the thread waited for a processor that
 * other processes had. Without the call, the batch did not wait. Single calls (.call) do not report
 * it: a call during which another process had the processor is discarded. */
void hyp_sampler_waited(double ns);

/*
 * Samples until the rule decides and the control finds nothing, for at most HYP_BLOCKS_MAX blocks.
 *
 * On a shared processor blocks include time that other processes had it, so they disagree, or are
 * all prolonged. The blocks are therefore also steady if they agree without that time. But the
 * subject itself may cause the loss of the processor, so the rule must reach the same decision with
 * that time and without it.
 *
 * random draws the order of the batches; progress (may be NULL) receives the share done. false: a
 * call failed or memory ran out; the sample has the blocks so far, with a code.
 */
bool hyp_sampler_run(const struct hyp_pair *pair, uint64_t (*random)(void *user),
                     void (*progress)(void *user, double share), void *user,
                     struct hyp_sample *sample);

#endif
