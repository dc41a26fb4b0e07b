/*
 * Fuzz target: any bytes are the record of an attack, or are refused with a sentence. What is read
 * is the same when it is written and read again.
 */
#include "fuzz_input.h"

#include "files/atomic_file.h"
#include "record/record.h"

#include <string.h>

static bool record_same_number(double a, double b) {
    return a == b || (a != a && b != b);
}

static void check_interval(const struct hyp_interval *a, const struct hyp_interval *b) {
    FUZZ_HOLDS(record_same_number(a->median, b->median) && record_same_number(a->low, b->low));
    FUZZ_HOLDS(record_same_number(a->high, b->high) && record_same_number(a->spread, b->spread));
}

static void check_effect(const struct hyp_effect *a, const struct hyp_effect *b) {
    FUZZ_HOLDS(strcmp(a->name, b->name) == 0 && strcmp(a->code, b->code) == 0);
    FUZZ_HOLDS(strcmp(a->sentence, b->sentence) == 0 && a->recorded_only == b->recorded_only);
    FUZZ_HOLDS(a->is_ratio == b->is_ratio && a->blocks == b->blocks && a->calls == b->calls);
    FUZZ_HOLDS(record_same_number(a->rule.threshold, b->rule.threshold));
    FUZZ_HOLDS(a->rule.direction == b->rule.direction && a->rule.family == b->rule.family);
    FUZZ_HOLDS(a->decision == b->decision);
    FUZZ_HOLDS(record_same_number(a->baseline_ns, b->baseline_ns));
    FUZZ_HOLDS(record_same_number(a->subject_ns, b->subject_ns));
    FUZZ_HOLDS(memcmp(a->discarded, b->discarded, sizeof a->discarded) == 0);
    FUZZ_HOLDS(a->control_discarded == b->control_discarded);
    check_interval(&a->effect, &b->effect);
    check_interval(&a->control, &b->control);
}

static void record_check_same(const struct hyp_record *a, const struct hyp_record *b) {
    FUZZ_HOLDS(strcmp(a->suite, b->suite) == 0 && strcmp(a->label, b->label) == 0);
    FUZZ_HOLDS(strcmp(a->code, b->code) == 0 && strcmp(a->reason, b->reason) == 0);
    FUZZ_HOLDS(a->samples == b->samples && a->violations == b->violations && a->seed == b->seed);
    FUZZ_HOLDS(a->not_tested == b->not_tested && record_same_number(a->begin_s, b->begin_s));
    FUZZ_HOLDS(record_same_number(a->duration_s, b->duration_s));
    FUZZ_HOLDS(a->example_count == b->example_count && a->effect_count == b->effect_count);
    FUZZ_HOLDS(a->measure_count == b->measure_count);
    for (size_t i = 0; i < a->example_count; i++) {
        FUZZ_HOLDS(strcmp(a->examples[i], b->examples[i]) == 0);
    }
    for (size_t i = 0; i < a->measure_count; i++) {
        FUZZ_HOLDS(strcmp(a->measures[i].name, b->measures[i].name) == 0);
        FUZZ_HOLDS(record_same_number(a->measures[i].value, b->measures[i].value));
        FUZZ_HOLDS(a->measures[i].recorded_only == b->measures[i].recorded_only);
    }
    for (size_t i = 0; i < a->effect_count; i++) check_effect(&a->effects[i], &b->effects[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct hyp_record record, again;
    fuzz_file("attacks/input.json", data, size);
    if (!hyp_record_read(fuzz_folder(), "input", &record)) {
        FUZZ_HOLDS(hyp_error()[0] != '\0');
        return 0;
    }
    /* The name in the file is nobody's path. */
    snprintf(record.name, sizeof record.name, "again");
    FUZZ_HOLDS(hyp_record_write(&record, fuzz_folder()));
    FUZZ_HOLDS(hyp_record_read(fuzz_folder(), "again", &again));
    record_check_same(&record, &again);
    hyp_record_fallen(&record);
    return 0;
}
