/*
 * Comparing in an attack: conditions, blocks, conditions again, and what they come to.
 */
#include "harness/attack.h"

#include "harness/clock.h"
#include "files/atomic_file.h"
#include "gpu_clock.h"
#include "record/record.h"

#include <stdio.h>
#include <string.h>

/* How long the GPU is kept busy before its clock is believed, and to measure it. */
static const uint64_t WAKE_NS = 50000000, CLOCK_NS = 1000000;

struct hyp_rule hyp_attack_rule(const struct hyp_attack *attack, unsigned family) {
    const struct hyp_claim *claim = hyp_claim_of_suite(attack->record->suite);
    cr_assert(claim != NULL, "%s is the suite of no claim", attack->record->suite);
    return (struct hyp_rule){
        .threshold = claim->threshold, .direction = claim->direction, .family = family};
}

static uint64_t draw(void *user) {
    return hyp_random(user);
}

/* What is compared now; its interval is that of the last look. */
static struct hyp_sample sample;

static void report_progress(void *user, double share) {
    char finding[96] = "";
    const struct hyp_interval *effect = &sample.effect;
    if (effect->low < effect->high) {
        snprintf(finding, sizeof finding, "%.4g (%.4g to %.4g)", effect->median, effect->low,
                 effect->high);
    }
    hyp_attack_progress_finding(user, share, finding);
}

const struct hyp_effect *hyp_attack_compare(struct hyp_attack *attack,
                                            const struct hyp_pair *pair) {
    struct hyp_record *record = attack->record;
    struct hyp_conditions before, after;
    const char *gpu =
        attack->kind == HYP_DEVICE_CUDA ? tol_context_device(attack->context)->pci_bus_id : NULL;
    cr_assert(record->effect_count < HYP_EFFECTS_MAX, "%s: too many effects", pair->name);
    hyp_conditions_read(gpu, &before);
    if (gpu != NULL) {
        (void)hyp_gpu_clock_mhz(attack, WAKE_NS);
        before.sm_mhz = hyp_gpu_clock_mhz(attack, CLOCK_NS);
    }
    bool ok = hyp_sampler_run(pair, draw, report_progress, attack, &sample);
    /* The GPU first: it slows down as soon as it has nothing to do. */
    double sm_mhz = gpu != NULL ? hyp_gpu_clock_mhz(attack, CLOCK_NS) : 0;
    hyp_conditions_read(gpu, &after);
    after.sm_mhz = sm_mhz;
    if (attack->session.out != NULL) {
        cr_assert(hyp_effect_write_blocks(attack->session.out, record->name, pair, &sample),
                  "the evidence could not be written: %s", hyp_error());
    }
    struct hyp_conditions judged = after;
    if (pair->is_device_work) judged.pace_ns = before.pace_ns;
    const char *code = ok ? hyp_conditions_judge(&before, &judged, sample.batch_ns_min,
                                                 sample.sentence, sizeof sample.sentence)
                          : NULL;
    if (code != NULL) snprintf(sample.code, sizeof sample.code, "%s", code);

    struct hyp_effect *effect = &record->effects[record->effect_count];
    hyp_effect_fill(effect, pair, &sample);
    if (record->effect_count++ == 0) record->before = before;
    record->after = after;
    if (!pair->recorded_only) record->samples += sample.count;
    if (!ok) HYP_CHECK(attack, false, "%s: %s", pair->name, sample.sentence);
    return effect;
}
