/*
 * Effect: what one comparison in one process came to, as the evidence has it.
 *
 * OUT/ATTACK.NAME.csv has the blocks, a line each; the attack's record has the effect, made of
 * them and of nothing else.
 */
#ifndef HYP_EFFECT_H
#define HYP_EFFECT_H

#include "sampler.h"

enum { HYP_EFFECTS_MAX = 16 };

struct hyp_effect {
    char name[64];
    bool recorded_only; /* the claim does not fall by it */
    bool is_ratio;
    struct hyp_rule rule;
    size_t blocks;
    unsigned calls; /* in a batch */
    struct hyp_interval effect, control;
    double baseline_ns, subject_ns; /* a call */
    enum hyp_decision decision;
    char code[32], sentence[256]; /* why the decision does not count; "" where it does */
};

/* Takes what the evidence needs out of a sample. */
void hyp_effect_fill(struct hyp_effect *effect, const struct hyp_pair *pair,
                     const struct hyp_sample *sample);

/* Writes the blocks of a sample as FOLDER/ATTACK.NAME.csv. false: hyp_error(). */
bool hyp_effect_write_blocks(const char *folder, const char *attack, const struct hyp_pair *pair,
                             const struct hyp_sample *sample);

/* An effect as a JSON object, and back. NULL: no memory. false: it is none. */
struct json_t *hyp_effect_pack(const struct hyp_effect *effect);
bool hyp_effect_unpack(const struct json_t *object, struct hyp_effect *effect);

#endif
