/*
 * Effects as JSON, blocks as CSV. JSON has no infinity: an end that is not known is null.
 */
#include "harness/effect.h"

#include "files/atomic_file.h"
#include "files/text_copy.h"

#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

void hyp_effect_fill(struct hyp_effect *effect, const struct hyp_pair *pair,
                     const struct hyp_sample *sample) {
    memset(effect, 0, sizeof *effect);
    snprintf(effect->name, sizeof effect->name, "%s", pair->name);
    effect->recorded_only = pair->recorded_only;
    effect->is_ratio = pair->is_ratio;
    effect->rule = pair->rule;
    effect->blocks = sample->count;
    effect->calls = pair->calls;
    for (int s = 0; s < 2; s++) effect->discarded[s] = (unsigned)sample->discarded[s];
    effect->control_discarded = (unsigned)sample->control_discarded;
    effect->effect = sample->effect;
    effect->control = sample->control;
    effect->baseline_ns = sample->baseline_ns;
    effect->subject_ns = sample->subject_ns;
    effect->decision = sample->decision;
    snprintf(effect->code, sizeof effect->code, "%s", sample->code);
    snprintf(effect->sentence, sizeof effect->sentence, "%s", sample->sentence);
}

bool hyp_effect_write_blocks(const char *folder, const char *attack, const struct hyp_pair *pair,
                             const struct hyp_sample *sample) {
    char path[1024];
    struct hyp_file file;
    snprintf(path, sizeof path, "%.800s/%s.%s.csv", folder, attack, pair->name);
    if (!hyp_file_begin(&file, path)) return false;
    /* One batch a column, in the order they ran; B is the baseline, S the subject. Where the order
     * is drawn for each call ("mixed"), the columns are the sums of B and S in the first half of
     * the block, and of S and B in the second. */
    fprintf(file.stream, "block,order,calls,ns_1,ns_2,ns_3,ns_4,control_ns_1,control_ns_2,"
                         "control_ns_3,control_ns_4,effect,control_effect,"
                         "waited_ns_1,waited_ns_2,waited_ns_3,waited_ns_4,"
                         "discarded_baseline,discarded_subject,discarded_control\n");
    for (size_t i = 0; i < sample->count; i++) {
        const struct hyp_block *block = &sample->blocks[i];
        const char *order = pair->call != NULL ? "mixed" : block->swapped ? "SBBS" : "BSSB";
        fprintf(file.stream, "%zu,%s,%u", i + 1, order, pair->calls);
        for (int k = 0; k < 4; k++) fprintf(file.stream, ",%.0f", block->ns[k]);
        for (int k = 0; k < 4; k++) fprintf(file.stream, ",%.0f", block->control_ns[k]);
        fprintf(file.stream, ",%.9g,%.9g", hyp_block_effect(pair, block, false),
                hyp_block_effect(pair, block, true));
        for (int k = 0; k < 4; k++) fprintf(file.stream, ",%.0f", block->waited_ns[k]);
        fprintf(file.stream, ",%u,%u,%u\n", block->discarded[HYP_BASELINE],
                block->discarded[HYP_SUBJECT], block->control_discarded);
    }
    return hyp_file_keep(&file);
}

static json_t *effect_number(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *pack_interval(const struct hyp_interval *interval) {
    return json_pack("{s:o, s:o, s:o, s:o}", "median", effect_number(interval->median), "low",
                     effect_number(interval->low), "high", effect_number(interval->high), "spread",
                     effect_number(interval->spread));
}

static const char *const decisions[] = {"undecided", "holds", "falls"};

static json_t *pack_discarded(const struct hyp_effect *effect) {
    return json_pack("{s:i, s:i, s:i}", "baseline", (int)effect->discarded[HYP_BASELINE], "subject",
                     (int)effect->discarded[HYP_SUBJECT], "control",
                     (int)effect->control_discarded);
}

static json_t *pack_timing(const struct hyp_effect_timing *timing) {
    return json_pack("{s:s, s:s, s:f, s:b, s:i, s:i}", "unit", timing->by_call ? "call" : "batch",
                     "timer", timing->by_counter ? "counter" : "clock", "reading_ns",
                     timing->reading_ns, "pinned", (int)timing->pinned, "padding_bytes",
                     (int)timing->padding_bytes, "stack_bytes", (int)timing->stack_bytes);
}

json_t *hyp_effect_pack(const struct hyp_effect *effect) {
    return json_pack("{s:s, s:b, s:b, s:f, s:s, s:i, s:I, s:i, s:o, s:o, s:o, s:o, s:s, s:s, s:s, "
                     "s:o, s:o}",
                     "name", effect->name, "recorded_only", (int)effect->recorded_only, "ratio",
                     (int)effect->is_ratio, "threshold", effect->rule.threshold, "direction",
                     hyp_direction_name(effect->rule.direction), "family", (int)effect->rule.family,
                     "blocks", (json_int_t)effect->blocks, "calls", (int)effect->calls, "effect",
                     pack_interval(&effect->effect), "control", pack_interval(&effect->control),
                     "baseline_ns", effect_number(effect->baseline_ns), "subject_ns",
                     effect_number(effect->subject_ns), "decision", decisions[effect->decision],
                     "code", effect->code, "sentence", effect->sentence, "discarded",
                     pack_discarded(effect), "timing", pack_timing(&effect->timing));
}

/* A number, or the value for an unknown one. */
static double effect_take(const json_t *object, const char *key, double unknown) {
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : unknown;
}

static void unpack_interval(const json_t *object, struct hyp_interval *interval) {
    *interval = (struct hyp_interval){.median = effect_take(object, "median", NAN),
                                      .low = effect_take(object, "low", -INFINITY),
                                      .high = effect_take(object, "high", INFINITY),
                                      .spread = effect_take(object, "spread", INFINITY)};
}

/* A count, as pack_discarded writes it; 0 if there is no valid one. */
static unsigned take_count(const json_t *object, const char *key) {
    const double value = effect_take(object, key, 0);
    return value >= 0 && value <= INT_MAX ? (unsigned)value : 0;
}

/* The position of a text in a list; the list's length if it is not in it. */
static size_t effect_place(const char *text, const char *const *list, size_t length) {
    size_t i = 0;
    while (i < length && strcmp(text, list[i]) != 0) i++;
    return i;
}

bool hyp_effect_unpack(const json_t *object, struct hyp_effect *effect) {
    const char *name = NULL, *direction = NULL, *decision = NULL, *code = NULL, *sentence = NULL;
    json_t *own = NULL, *control = NULL;
    json_int_t blocks = 0;
    int recorded_only = 0, is_ratio = 0, family = 0, calls = 0;
    memset(effect, 0, sizeof *effect);
    if (json_unpack((json_t *)(uintptr_t)object,
                    "{s:s, s:b, s:b, s:F, s:s, s:i, s:I, s:i, s:o, s:o, s:s, s:s, s:s}", "name",
                    &name, "recorded_only", &recorded_only, "ratio", &is_ratio, "threshold",
                    &effect->rule.threshold, "direction", &direction, "family", &family, "blocks",
                    &blocks, "calls", &calls, "effect", &own, "control", &control, "decision",
                    &decision, "code", &code, "sentence", &sentence) != 0) {
        return false;
    }
    const char *const directions[] = {hyp_direction_name(HYP_AT_MOST),
                                      hyp_direction_name(HYP_BELOW), hyp_direction_name(HYP_ABOVE)};
    size_t known_direction = effect_place(direction, directions, 3);
    size_t known_decision = effect_place(decision, decisions, 3);
    if (known_direction == 3 || known_decision == 3 || blocks < 0 || family < 1) return false;
    if (!json_is_object(own) || !json_is_object(control)) return false;
    hyp_text_copy(effect->name, sizeof effect->name, name);
    hyp_text_copy(effect->code, sizeof effect->code, code);
    hyp_text_copy(effect->sentence, sizeof effect->sentence, sentence);
    effect->recorded_only = recorded_only != 0;
    effect->is_ratio = is_ratio != 0;
    effect->rule.direction = (enum hyp_direction)known_direction;
    effect->rule.family = (unsigned)family;
    effect->decision = (enum hyp_decision)known_decision;
    effect->blocks = (size_t)blocks;
    effect->calls = (unsigned)calls;
    unpack_interval(own, &effect->effect);
    unpack_interval(control, &effect->control);
    effect->baseline_ns = effect_take(object, "baseline_ns", NAN);
    effect->subject_ns = effect_take(object, "subject_ns", NAN);
    const json_t *discarded = json_object_get(object, "discarded"); /* since a later version */
    effect->discarded[HYP_BASELINE] = take_count(discarded, "baseline");
    effect->discarded[HYP_SUBJECT] = take_count(discarded, "subject");
    effect->control_discarded = take_count(discarded, "control");
    return true;
}
