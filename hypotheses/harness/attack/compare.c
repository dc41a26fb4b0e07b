/*
 * Comparing in an attack: conditions, blocks, conditions again, and what they come to.
 */
#include "gpu_timer.h"

#include "harness/clock.h"
#include "files/atomic_file.h"
#include "measure/pin.h"
#include "measure/ticks.h"
#include "record/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How long the GPU is kept busy before its clock is believed, and to measure it. */
static const uint64_t WAKE_NS = 50000000, CLOCK_NS = 1000000;

struct hyp_rule hyp_attack_rule(const struct hyp_attack *attack, unsigned family) {
    const struct hyp_claim *claim = hyp_claim_of_suite(attack->record->suite);
    cr_assert(claim != NULL, "%s is the suite of no claim", attack->record->suite);
    return (struct hyp_rule){
        .threshold = claim->threshold, .direction = claim->direction, .family = family};
}

/* The seed of the order of calls, which differs in each of a claim's fresh processes. */
static struct hyp_attack order;

static uint64_t compare_draw(void *user) {
    (void)user;
    return hyp_random(&order);
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

/* Runs the sampler with the stack moved by this many bytes; a write keeps the array. */
static bool run_moved(const struct hyp_pair *pair, struct hyp_attack *attack, size_t bytes) {
    volatile char moved[bytes + 1];
    moved[0] = moved[bytes] = 0;
    return hyp_sampler_run(pair, compare_draw, report_progress, attack, &sample);
}

/* Draws how a comparison call by call is timed, and for each process anew what moves its memory. */
static struct hyp_effect_timing draw_timing(struct hyp_attack *attack,
                                            const struct hyp_pair *pair) {
    enum { STACK_BYTES_MAX = 4096 };
    const char *padding = getenv("TOLLENS_PADDING");
    order.random = hyp_random(attack) + attack->session.process * 0xd1342543de82ef95u;
    if (pair->call == NULL) return (struct hyp_effect_timing){.by_call = false};
    const struct hyp_ticks *ticks = hyp_ticks_ready();
    return (struct hyp_effect_timing){
        .by_call = true,
        .by_counter = ticks->is_counter,
        .reading_ns = ticks->cost_ns,
        .padding_bytes = padding != NULL ? (unsigned)strlen(padding) : 0,
        .stack_bytes = (unsigned)hyp_random_below(&order, STACK_BYTES_MAX)};
}

const struct hyp_effect *hyp_attack_compare(struct hyp_attack *attack,
                                            const struct hyp_pair *pair) {
    struct hyp_record *record = attack->record;
    struct hyp_conditions before, after;
    const char *gpu =
        attack->kind == HYP_DEVICE_CUDA ? tol_context_device(attack->context)->pci_bus_id : NULL;
    cr_assert(record->effect_count < HYP_EFFECTS_MAX, "%s: too many effects", pair->name);
    cr_assert(pair->call == NULL || (pair->calls > 0 && pair->calls <= HYP_CALLS_MAX),
              "%s: %u calls in half a block; 1 to %d are supported", pair->name, pair->calls,
              HYP_CALLS_MAX);
    struct hyp_effect_timing timing = draw_timing(attack, pair);
    /* Not on the soft device: the threads that execute its kernels need the processors too. */
    struct hyp_pin *pin = timing.by_call && gpu != NULL ? hyp_pin_begin() : NULL;
    timing.pinned = pin != NULL;
    hyp_conditions_read(gpu, &before);
    if (gpu != NULL) {
        (void)hyp_gpu_clock_mhz(attack, WAKE_NS);
        before.sm_mhz = hyp_gpu_clock_mhz(attack, CLOCK_NS);
    }
    bool ok = run_moved(pair, attack, timing.stack_bytes);
    /* The GPU first: it slows down as soon as it has nothing to do. */
    double sm_mhz = gpu != NULL ? hyp_gpu_clock_mhz(attack, CLOCK_NS) : 0;
    hyp_conditions_read(gpu, &after);
    after.sm_mhz = sm_mhz;
    hyp_pin_end(pin);
    if (attack->session.out != NULL) {
        cr_assert(hyp_effect_write_blocks(attack->session.out, record->name, pair, &sample),
                  "the evidence could not be written: %s", hyp_error());
    }
    struct hyp_conditions judged = after;
    /* In a comparison call by call another speed of the processor is both sides' alike, in each
     * block; whether the blocks agree is judged in any case. */
    if (pair->is_device_work || timing.by_call) judged.pace_ns = before.pace_ns;
    const char *code = ok ? hyp_conditions_judge(&before, &judged, sample.batch_ns_min,
                                                 sample.sentence, sizeof sample.sentence)
                          : NULL;
    if (code != NULL) snprintf(sample.code, sizeof sample.code, "%s", code);

    struct hyp_effect *effect = &record->effects[record->effect_count];
    hyp_effect_fill(effect, pair, &sample);
    effect->timing = timing;
    if (record->effect_count++ == 0) record->before = before;
    record->after = after;
    if (!pair->recorded_only) record->samples += sample.count;
    if (!ok) HYP_CHECK(attack, false, "%s: %s", pair->name, sample.sentence);
    return effect;
}
