/*
 * Sampler: compares two ways of doing the same thing, in one process, turn by turn.
 *
 * A block is four batches, baseline-subject-subject-baseline or the other way round, drawn by lot:
 * whatever drifts slowly hits both sides alike. The block's effect is one value; calls inside a
 * batch are not independent of each other, blocks nearly are. Each block is followed by another of
 * the same form in which both sides are the baseline: the A/A control, whose effect is known to be
 * none. Where the control does not find that, the machine cannot tell, and there is no verdict.
 *
 * Nothing here reads a clock: a batch says how long it took, on whatever clock it trusts.
 * Source: MEASURING.md section 5; Abedi and Brecht, ICPE 2017 (interleaved trials).
 */
#ifndef HYP_SAMPLER_H
#define HYP_SAMPLER_H

#include "decide.h"

#include <stdint.h>

enum hyp_side { HYP_BASELINE, HYP_SUBJECT };

struct hyp_pair {
    const char *name; /* "launch_4_arguments" */
    bool is_ratio;    /* the effect is subject / baseline; else subject - baseline, a call */
    double scale;     /* a difference in nanoseconds times this is in the claim's unit */
    struct hyp_rule rule;
    bool recorded_only;  /* the claim does not fall by it */
    bool is_device_work; /* a batch's time is the device's, whatever the processor's pace */
    unsigned calls;      /* in a batch */
    size_t blocks_min;   /* not judged before; 0: at the first look */
    unsigned warm_calls; /* of each side before the first block */
    /* Makes calls through one side. Gives the nanoseconds they took, or a negative number when one
     * failed. */
    double (*batch)(void *user, enum hyp_side side, unsigned calls);
    void *user;
};

struct hyp_block {
    bool swapped;         /* subject first */
    double ns[4];         /* the batches, as they ran */
    double control_ns[4]; /* and those of the control, in the same order */
    double waited_ns[4];  /* of each batch, not of the control's: see hyp_sampler_waited */
};

struct hyp_sample {
    size_t count;
    struct hyp_block blocks[HYP_BLOCKS_MAX];
    struct hyp_interval effect, control;
    struct hyp_interval own; /* the effect without the time that a batch waited for a processor */
    double baseline_ns, subject_ns; /* a call, the median of the blocks */
    double batch_ns_min;            /* the shortest of all batches */
    enum hyp_decision decision;
    bool is_steady;     /* the control found nothing, and blocks agree with each other */
    char code[32];      /* why it is not steady or not decided: "unfit_control"; "" otherwise */
    char sentence[256]; /* the same for people */
};

/* How far the control may be off no effect, and how far apart the quartiles of blocks: shares of
 * the distance between no effect and the threshold. */
double hyp_pair_margin(const struct hyp_pair *pair);

/* The effect of one block, of its pair or of its control; NaN where a batch failed. */
double hyp_block_effect(const struct hyp_pair *pair, const struct hyp_block *block, bool control);

/* The same of its pair, without the time that its batches waited for a processor; with it, where
 * one is said to have waited for all of its time or more. */
double hyp_block_own_effect(const struct hyp_pair *pair, const struct hyp_block *block);

/* For a batch, before it returns: for how much of the time that it gives the thread waited for a
 * processor that others had. One that says nothing waited for none. */
void hyp_sampler_waited(double ns);

/*
 * Samples until the rule decides and the control is content, at most HYP_BLOCKS_MAX blocks.
 *
 * On a processor that others want too, blocks are longer by others' turns, some of them by far: so
 * they disagree, or are stretched alike. Whether the rest is steady is told by the time without
 * those turns, too. But who knows whether it was not the subject that lost its processor by what it
 * does: so the rule must decide the same by the time as it was and by the time without them.
 * random gives the lots; progress (may be NULL) is told the share done. false: a call failed, or
 * there is no memory; the sample holds what there was, with a code.
 */
bool hyp_sampler_run(const struct hyp_pair *pair, uint64_t (*random)(void *user),
                     void (*progress)(void *user, double share), void *user,
                     struct hyp_sample *sample);

#endif
