/*
 * Judges a timed claim by the effects of its attacks, in one process or several.
 *
 * One process is judged by its own interval. With several, each is one value, and they must agree
 * (decide.h). Any effect can falsify the claim; to survive, all must.
 */
#include "verdict_effects.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PROCESSES_MAX = 64 };

/* One effect, from all processes. */
struct joint {
    const struct hyp_effect *first; /* NULL: not measured */
    const char *attack;
    double medians[PROCESSES_MAX];
    size_t count;
    double effect, low, high;
    enum hyp_decision decision;
    const struct hyp_effect *doubtful; /* the first whose decision does not count */
};

static void join_one(const char *name, const struct hyp_verdict *verdict, struct joint *joint) {
    for (size_t i = 0; i < verdict->outcome_count; i++) {
        const struct hyp_outcome *outcome = &verdict->outcomes[i];
        if (!outcome->has_record || strcmp(outcome->name, joint->attack) != 0) continue;
        for (size_t k = 0; k < outcome->record.effect_count; k++) {
            const struct hyp_effect *effect = &outcome->record.effects[k];
            if (strcmp(effect->name, name) != 0 || joint->count == PROCESSES_MAX) continue;
            if (joint->first == NULL) joint->first = effect;
            joint->medians[joint->count++] = effect->effect.median;
            /* With several processes, a single one need not decide. */
            bool counts = effect->code[0] == '\0' ||
                          (verdict->processes > 1 && strcmp(effect->code, "undecided") == 0);
            if (!counts && joint->doubtful == NULL) joint->doubtful = effect;
        }
    }
}

static struct joint verdict_effects_join(const char *attack, const char *name,
                                         const struct hyp_verdict *verdict) {
    struct joint joint = {.attack = attack};
    struct hyp_interval interval;
    join_one(name, verdict, &joint);
    if (verdict->processes <= 1) {
        joint.effect = joint.first->effect.median;
        joint.low = joint.first->effect.low;
        joint.high = joint.first->effect.high;
        joint.decision = joint.first->decision;
        return joint;
    }
    if (hyp_interval_of(joint.medians, joint.count, 0.5, 0.5, &interval)) {
        joint.effect = interval.median;
    }
    joint.low = INFINITY;
    joint.high = -INFINITY;
    for (size_t i = 0; i < joint.count; i++) {
        joint.low = fmin(joint.low, joint.medians[i]);
        joint.high = fmax(joint.high, joint.medians[i]);
    }
    joint.decision = hyp_decide_processes(&joint.first->rule, joint.medians, joint.count);
    return joint;
}

/* The distance of an effect beyond its threshold; negative before it. */
static double verdict_effects_nearness(const struct joint *joint) {
    const struct hyp_rule *rule = &joint->first->rule;
    return rule->direction == HYP_ABOVE ? rule->threshold - joint->low
                                        : joint->high - rule->threshold;
}

static void verdict_effects_conclude(const struct hyp_claim *claim, const struct joint *joint,
                                     struct hyp_verdict *verdict) {
    const char *name = joint->first->name;
    char text[HYP_UNIT_BYTES];
    if (joint->doubtful != NULL) {
        hyp_verdict_set(verdict, HYP_INCONCLUSIVE, joint->doubtful->code, "%s: %s", name,
                        joint->doubtful->sentence);
    } else if (joint->count < verdict->processes) {
        verdict->broken = true;
        hyp_verdict_set(verdict, HYP_INCONCLUSIVE, "no_record",
                        "%s was measured in %zu of %u process%s", name, joint->count,
                        verdict->processes, verdict->processes == 1 ? "" : "es");
    } else if (joint->decision == HYP_FALLS) {
        hyp_verdict_set(verdict, HYP_FALSIFIED, "", "%s: %.4g %s (%.4g to %.4g), expected %s %.4g",
                        name, joint->effect, hyp_unit_of(joint->effect, claim->unit, text),
                        joint->low, joint->high, hyp_direction_words(claim->direction),
                        claim->threshold);
    } else if (joint->decision == HYP_HOLDS) {
        hyp_verdict_set(verdict, HYP_SURVIVED, "", "%s", "");
    } else {
        hyp_verdict_set(verdict, HYP_INCONCLUSIVE,
                        verdict->processes > 1 ? "processes_differ" : "undecided",
                        "%s: the threshold %.4g lies between %.4g and %.4g %s", name,
                        claim->threshold, joint->low, joint->high, claim->unit);
    }
}

/* Falsified outweighs inconclusive, which outweighs survived. */
static int verdict_effects_weight(enum hyp_verdict_kind kind) {
    return kind == HYP_FALSIFIED ? 3 : kind == HYP_INCONCLUSIVE ? 2 : 1;
}

void hyp_verdict_judge_effects(const struct hyp_claim *claim, struct hyp_verdict *verdict) {
    double nearest = -INFINITY;
    int heaviest = 0;
    verdict->has_effect = false;
    hyp_verdict_set(verdict, HYP_INCONCLUSIVE, "no_record", "nothing was measured");
    for (size_t i = 0; i < verdict->outcome_count; i++) {
        const struct hyp_outcome *outcome = &verdict->outcomes[i];
        if (outcome->process > 1) continue;
        for (size_t k = 0; k < outcome->record.effect_count; k++) {
            if (outcome->record.effects[k].recorded_only) continue;
            struct joint joint =
                verdict_effects_join(outcome->name, outcome->record.effects[k].name, verdict);
            struct hyp_verdict own = *verdict;
            verdict_effects_conclude(claim, &joint, &own);
            int heavy = verdict_effects_weight(own.kind);
            /* Report the effect that decided; among equals, the one closest to being falsified. */
            if (heavy < heaviest ||
                (heavy == heaviest && !(verdict_effects_nearness(&joint) > nearest)))
                continue;
            heaviest = heavy;
            nearest = verdict_effects_nearness(&joint);
            own.has_effect = own.has_interval = true;
            own.effect = joint.effect;
            own.low = joint.low;
            own.high = joint.high;
            *verdict = own;
        }
    }
    if (heaviest == 0) verdict->broken = verdict->left_out == 0;
}
