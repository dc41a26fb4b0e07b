/*
 * Records as JSON, series as histogram logs.
 */
#include "record.h"

#include "files/atomic_file.h"
#include "files/hlog.h"
#include "files/text_copy.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static bool write_series(const struct hyp_record *record, const char *folder) {
    char path[1024], tag[128];
    struct hyp_hlog log;
    if (record->series_count == 0) return true;
    snprintf(path, sizeof path, "%s/%s.hlog", folder, record->name);
    if (!hyp_hlog_begin(&log, path, record->begin_s)) return false;
    for (size_t i = 0; i < record->series_count; i++) {
        snprintf(tag, sizeof tag, "%.60s", record->series[i].name);
        if (!hyp_hlog_add(&log, tag, 0, record->duration_s, record->series[i].hdr)) {
            hyp_file_drop(&log.file);
            return false;
        }
    }
    return hyp_hlog_end(&log);
}

json_t *hyp_record_text(const char *text) {
    json_t *value = json_string(text);
    if (value != NULL) return value;
    char clean[HYP_EXAMPLE_BYTES];
    snprintf(clean, sizeof clean, "%s", text);
    for (char *c = clean; *c != '\0'; c++) {
        if ((unsigned char)*c > '~') *c = '?';
    }
    return json_string(clean);
}

const struct hyp_effect *hyp_record_fallen(const struct hyp_record *record) {
    for (size_t i = 0; i < record->effect_count; i++) {
        const struct hyp_effect *effect = &record->effects[i];
        if (effect->decision == HYP_FALLS && effect->code[0] == '\0' && !effect->recorded_only) {
            return effect;
        }
    }
    return NULL;
}

static void add_measures(json_t *object, const struct hyp_record *record) {
    json_t *measures = json_array();
    for (size_t i = 0; i < record->measure_count; i++) {
        const struct hyp_measure *measure = &record->measures[i];
        json_t *value = isfinite(measure->value) ? json_real(measure->value) : json_null();
        json_array_append_new(measures,
                              json_pack("{s:s, s:o, s:b}", "name", measure->name, "value", value,
                                        "recorded_only", (int)measure->recorded_only));
    }
    json_object_set_new(object, "measures", measures);
    json_object_set_new(object, "label", json_string(record->label));
}

/* false: one of them is invalid. */
static bool read_measures(const json_t *measures, struct hyp_record *record) {
    for (size_t i = 0; i < json_array_size(measures) && i < HYP_MEASURES_MAX; i++) {
        struct hyp_measure *measure = &record->measures[record->measure_count++];
        const char *name = NULL;
        json_t *value = NULL;
        int recorded_only = 0;
        if (json_unpack(json_array_get(measures, i), "{s:s, s:o, s:b}", "name", &name, "value",
                        &value, "recorded_only", &recorded_only) != 0) {
            return false;
        }
        hyp_text_copy(measure->name, sizeof measure->name, name);
        measure->value = json_is_number(value) ? json_number_value(value) : NAN;
        measure->recorded_only = recorded_only != 0;
    }
    return true;
}

/* What was compared, and under which conditions. */
static void add_effects(json_t *object, const struct hyp_record *record) {
    json_t *effects = json_array();
    for (size_t i = 0; i < record->effect_count; i++) {
        json_array_append_new(effects, hyp_effect_pack(&record->effects[i]));
    }
    json_object_set_new(object, "effects", effects);
    json_t *notes = json_array();
    for (size_t i = 0; i < record->note_count; i++) {
        json_array_append_new(notes, hyp_record_text(record->notes[i]));
    }
    json_object_set_new(object, "notes", notes);
    if (record->effect_count == 0) return;
    json_object_set_new(object, "conditions",
                        json_pack("{s:o, s:o}", "before", hyp_conditions_pack(&record->before),
                                  "after", hyp_conditions_pack(&record->after)));
}

bool hyp_record_write(const struct hyp_record *record, const char *folder) {
    char path[1024], attacks[1024];
    snprintf(attacks, sizeof attacks, "%s/attacks", folder);
    snprintf(path, sizeof path, "%.800s/%s.json", attacks, record->name);
    if (!hyp_directory_make(attacks) || !write_series(record, folder)) return false;
    json_t *examples = json_array(), *series = json_array();
    for (size_t i = 0; i < record->example_count; i++) {
        json_array_append_new(examples, hyp_record_text(record->examples[i]));
    }
    for (size_t i = 0; i < record->series_count; i++) {
        const struct tol_hdr *hdr = record->series[i].hdr;
        json_array_append_new(
            series, json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I}", "name", record->series[i].name,
                              "unit", "ns", "count", (json_int_t)hdr->total, "p50",
                              (json_int_t)tol_hdr_percentile(hdr, 50), "p99",
                              (json_int_t)tol_hdr_percentile(hdr, 99), "min",
                              (json_int_t)tol_hdr_min(hdr), "max", (json_int_t)tol_hdr_max(hdr)));
    }
    json_t *object = json_pack(
        "{s:i, s:s, s:s, s:I, s:I, s:o, s:b, s:s, s:o, s:f, s:f, s:I, s:o}", "schema", 1, "suite",
        record->suite, "name", record->name, "samples", (json_int_t)record->samples, "violations",
        (json_int_t)record->violations, "counterexamples", examples, "not_tested",
        (int)record->not_tested, "code", record->code, "reason", hyp_record_text(record->reason),
        "begin_s", record->begin_s, "duration_s", record->duration_s, "seed",
        (json_int_t)record->seed, "series", series);
    if (object != NULL) {
        add_effects(object, record);
        add_measures(object, record);
    }
    char *text = object != NULL ? json_dumps(object, JSON_INDENT(2)) : NULL;
    json_decref(object);
    if (text == NULL) return hyp_fail("out of memory for the record of %s", record->name);
    bool ok = hyp_file_write(path, text);
    free(text);
    return ok;
}

bool hyp_record_read(const char *folder, const char *name, struct hyp_record *record) {
    char path[1024];
    json_error_t error;
    const char *suite = NULL, *code = NULL, *reason = NULL, *own_name = NULL, *label = NULL;
    json_int_t samples = 0, violations = 0, seed = 0;
    json_t *examples = NULL, *effects = NULL, *measures = NULL;
    int not_tested = 0;
    memset(record, 0, sizeof *record);
    snprintf(path, sizeof path, "%.800s/attacks/%s.json", folder, name);
    json_t *object = json_load_file(path, 0, &error);
    if (object == NULL) return hyp_fail("%s cannot be read: %s", path, error.text);
    bool ok = json_unpack_ex(
                  object, &error, 0,
                  "{s:s, s:s, s:I, s:I, s:o, s:b, s:s, s:s, s:F, s:F, s:I, s:o, s:o, s:s}", "suite",
                  &suite, "name", &own_name, "samples", &samples, "violations", &violations,
                  "counterexamples", &examples, "not_tested", &not_tested, "code", &code, "reason",
                  &reason, "begin_s", &record->begin_s, "duration_s", &record->duration_s, "seed",
                  &seed, "effects", &effects, "measures", &measures, "label", &label) == 0;
    for (size_t i = 0; ok && i < json_array_size(effects) && i < HYP_EFFECTS_MAX; i++) {
        ok = hyp_effect_unpack(json_array_get(effects, i), &record->effects[i]);
        record->effect_count = i + 1;
        if (!ok) snprintf(error.text, sizeof error.text, "effect %zu is invalid", i);
    }
    if (ok && !read_measures(measures, record)) {
        ok = false;
        snprintf(error.text, sizeof error.text, "a measure is invalid");
    }
    if (!ok) {
        json_decref(object);
        return hyp_fail("%s is not a valid record of an attack: %s", path, error.text);
    }
    hyp_text_copy(record->suite, sizeof record->suite, suite);
    hyp_text_copy(record->name, sizeof record->name, own_name);
    hyp_text_copy(record->code, sizeof record->code, code);
    hyp_text_copy(record->reason, sizeof record->reason, reason);
    hyp_text_copy(record->label, sizeof record->label, label);
    record->samples = (uint64_t)samples;
    record->violations = (uint64_t)violations;
    record->seed = (uint64_t)seed;
    record->not_tested = not_tested != 0;
    for (size_t i = 0; i < json_array_size(examples) && i < HYP_EXAMPLES_MAX; i++) {
        hyp_text_copy(record->examples[i], HYP_EXAMPLE_BYTES,
                      json_string_value(json_array_get(examples, i)));
        record->example_count = i + 1;
    }
    json_decref(object);
    return true;
}

void hyp_record_end(struct hyp_record *record) {
    for (size_t i = 0; i < record->series_count; i++) tol_hdr_free(record->series[i].hdr);
    record->series_count = 0;
}
