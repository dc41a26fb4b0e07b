/*
 * Compares two rows of results.
 */
#include "gate.h"

#include "files/atomic_file.h"

#include <stdio.h>
#include <string.h>

const char *hyp_change_words(enum hyp_change change) {
    static const char *const words[] = {"same",       "better",      "new",
                                        "not tested", "cannot tell", "WORSE"};
    return words[change];
}

/* The interval of an effect, negated if needed so that more is worse. */
struct span {
    double low, high;
};

static struct span gate_span_of(const struct hyp_result *row) {
    double low = row->has_interval ? row->low : row->effect,
           high = row->has_interval ? row->high : row->effect;
    return row->claim->direction == HYP_ABOVE ? (struct span){-high, -low}
                                              : (struct span){low, high};
}

static enum hyp_change compare_effects(const struct hyp_result *now,
                                       const struct hyp_result *before, char *sentence,
                                       size_t bytes) {
    const struct hyp_claim *claim = now->claim;
    const struct span here = gate_span_of(now), there = gate_span_of(before);
    const double tolerance = claim->tolerance;
    snprintf(sentence, bytes, "%.4g now, %.4g before; tolerance %.4g %s", now->effect,
             before->effect, tolerance, claim->unit);
    if (here.low > there.high + tolerance) return HYP_WORSE;
    if (here.high < there.low - tolerance) return HYP_BETTER;
    /* The worst end is within the tolerance of the baseline's best end. */
    if (here.high <= there.low + tolerance) return HYP_SAME;
    snprintf(sentence, bytes,
             "%.4g to %.4g now, %.4g to %.4g before: too wide for a tolerance of %.4g %s", now->low,
             now->high, before->low, before->high, tolerance, claim->unit);
    return HYP_CANNOT_TELL;
}

/* Whether the attacks notice fewer saboteurs; a saboteur that was undecided is not a miss. */
static bool notices_less(const struct hyp_result *now, const struct hyp_result *before) {
    if (!now->has_severity || !before->has_severity || now->saboteurs == 0) return false;
    return (long long)(now->caught + now->untold) * before->saboteurs <
           (long long)before->caught * now->saboteurs;
}

enum hyp_change hyp_gate_compare(const struct hyp_result *now, const struct hyp_result *before,
                                 char *sentence, size_t bytes) {
    sentence[0] = '\0';
    bool was_tested = before != NULL && before->kind != HYP_NOT_TESTED;
    if (now == NULL || now->kind == HYP_NOT_TESTED) {
        if (!was_tested) return HYP_IDLE;
        snprintf(sentence, bytes, "tested before, %s now", now == NULL ? "missing" : "not tested");
        return HYP_CANNOT_TELL;
    }
    if (now->kind == HYP_FALSIFIED) {
        snprintf(sentence, bytes, "falsified%s: %.200s",
                 was_tested && before->kind == HYP_FALSIFIED ? ", as before" : "", now->reason);
        return HYP_WORSE;
    }
    if (now->kind == HYP_INCONCLUSIVE) {
        snprintf(sentence, bytes, "inconclusive: %.200s", now->reason);
        return HYP_CANNOT_TELL;
    }
    if (before != NULL && notices_less(now, before)) {
        snprintf(sentence, bytes, "the attacks noticed %d of %d saboteurs now, %d of %d before",
                 now->caught, now->saboteurs, before->caught, before->saboteurs);
        return HYP_WORSE;
    }
    if (!was_tested) return HYP_NEW;
    if (before->kind == HYP_FALSIFIED) {
        snprintf(sentence, bytes, "falsified before, survived now");
        return HYP_BETTER;
    }
    if (!now->has_effect || !before->has_effect) {
        snprintf(sentence, bytes, "there is no effect to compare");
        return HYP_CANNOT_TELL;
    }
    if (now->has_interval != before->has_interval) {
        snprintf(sentence, bytes, "one of the two runs has no interval");
        return HYP_CANNOT_TELL;
    }
    return compare_effects(now, before, sentence, bytes);
}

bool hyp_gate_comparable(const struct hyp_results *now, const struct hyp_results *before) {
    if (now->under[0] != '\0' || before->under[0] != '\0') {
        return hyp_fail("the %s was measured under the saboteur %s",
                        now->under[0] != '\0' ? "evidence" : "baseline",
                        now->under[0] != '\0' ? now->under : before->under);
    }
    if (strcmp(now->device_kind, before->device_kind) != 0 ||
        strcmp(now->device_name, before->device_name) != 0) {
        return hyp_fail("the evidence is from another device (%s, %s) than the baseline (%s, %s)",
                        now->device_name, now->device_kind, before->device_name,
                        before->device_kind);
    }
    if (strcmp(now->mode, before->mode) != 0) {
        return hyp_fail("the evidence is from a %s run and the baseline from a %s run", now->mode,
                        before->mode);
    }
    for (size_t i = 0; i < now->count; i++) {
        const struct hyp_claim *claim = now->rows[i].claim;
        const struct hyp_result *other = hyp_results_find(before, claim);
        if (other != NULL && now->rows[i].threshold != other->threshold) {
            return hyp_fail("%s was judged by a threshold of %g %s, in the baseline by %g",
                            claim->id, now->rows[i].threshold, claim->unit, other->threshold);
        }
    }
    return true;
}
