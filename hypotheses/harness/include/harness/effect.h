/*
 * Effect: the result of one comparison in one process, as it is written to the evidence.
 *
 * OUT/ATTACK.NAME.csv has one line per block. The attack's record has the effect, which is computed
 * from the blocks only.
 */
#ifndef HYP_EFFECT_H
#define HYP_EFFECT_H

#include "sampler.h"

enum { HYP_EFFECTS_MAX = 16 };

/* How calls were timed, and the random choices for the process; all 0 for batches. */
struct hyp_effect_timing {
    bool by_call;           /* each call on its own, in random order */
    bool by_counter;        /* with the time-stamp counter; otherwise the clock */
    double reading_ns;      /* what two readings cost; subtracted from each call */
    bool pinned;            /* the thread had one processor */
    unsigned padding_bytes; /* by which the environment was made larger */
    unsigned stack_bytes;   /* by which the stack was moved */
};

struct hyp_effect {
    char name[64];
    bool recorded_only; /* the claim is not judged by it */
    bool is_ratio;
    struct hyp_rule rule;
    size_t blocks;
    unsigned calls; /* per batch; with single calls, of each side in half a block */
    unsigned discarded[2], control_discarded; /* disturbed calls, by side, and of the control */
    struct hyp_effect_timing timing;          /* for people: reading an effect leaves it 0 */
    struct hyp_interval effect, control;
    double baseline_ns, subject_ns; /* per call */
    enum hyp_decision decision;
    char code[32], sentence[256]; /* why the decision does not count; "" if it does */
};

/* Fills an effect from a sample, all but its timing. */
void hyp_effect_fill(struct hyp_effect *effect, const struct hyp_pair *pair,
                     const struct hyp_sample *sample);

/* Writes the blocks of a sample as FOLDER/ATTACK.NAME.csv. false: hyp_error(). */
bool hyp_effect_write_blocks(const char *folder, const char *attack, const struct hyp_pair *pair,
                             const struct hyp_sample *sample);

/* Converts an effect to a JSON object (NULL: out of memory) and back (false: invalid). */
struct json_t *hyp_effect_pack(const struct hyp_effect *effect);
bool hyp_effect_unpack(const struct json_t *object, struct hyp_effect *effect);

#endif
