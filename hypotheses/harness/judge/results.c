/*
 * Reading results.json, schema 1.
 */
#include "results.h"

#include "files/atomic_file.h"
#include "files/manifest.h"
#include "files/text_copy.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RESULTS_BYTES_MAX = 4 << 20 };

static bool find_kind(const char *name, enum hyp_verdict_kind *kind) {
    for (int k = HYP_SURVIVED; k <= HYP_NOT_TESTED; k++) {
        *kind = (enum hyp_verdict_kind)k;
        if (strcmp(hyp_verdict_name(*kind), name) == 0) return true;
    }
    return false;
}

/* A number, or NaN where there is null. */
static double results_number_of(const json_t *value) {
    return json_is_number(value) ? json_number_value(value) : NAN;
}

static bool read_severity(json_t *object, const char *path, struct hyp_result *row) {
    if (!json_is_object(object)) return true;
    row->has_severity = true;
    if (json_unpack(object, "{s:i, s:i, s?:i}", "caught", &row->caught, "of", &row->saboteurs,
                    "untold", &row->untold) != 0 ||
        row->caught < 0 || row->untold < 0 || row->saboteurs < row->caught ||
        row->saboteurs - row->caught < row->untold) {
        return hyp_fail("%s: the severity of %s is invalid", path, row->claim->id);
    }
    return true;
}

static bool results_read_row(json_t *object, const char *path, struct hyp_result *row) {
    const char *id = NULL, *verdict = NULL, *unit = NULL, *direction = NULL;
    json_t *reason = NULL, *effect = NULL, *low = NULL, *high = NULL, *severity = NULL;
    json_error_t error;
    json_int_t samples = 0;
    memset(row, 0, sizeof *row);
    if (json_unpack_ex(
            object, &error, 0, "{s:s, s:s, s?:o, s:o, s:s, s?:o, s?:o, s:F, s:s, s?:I, s?:i, s?:o}",
            "id", &id, "verdict", &verdict, "reason", &reason, "effect", &effect, "unit", &unit,
            "low", &low, "high", &high, "threshold", &row->threshold, "direction", &direction,
            "samples", &samples, "processes", &row->processes, "severity", &severity) != 0) {
        return hyp_fail("%s: a claim does not match schema 1: %s", path, error.text);
    }
    row->claim = hyp_claim_find(id);
    if (row->claim == NULL) {
        return hyp_fail("%s: unknown claim '%s'; --plugin loads the claims of a plugin", path, id);
    }
    if (!find_kind(verdict, &row->kind)) {
        return hyp_fail("%s: %s has the unknown verdict '%s'", path, id, verdict);
    }
    if (strcmp(unit, row->claim->unit) != 0 ||
        strcmp(direction, hyp_direction_name(row->claim->direction)) != 0) {
        return hyp_fail("%s: %s has the unit and direction %s, %s; thresholds.toml has %s, %s",
                        path, id, unit, direction, row->claim->unit,
                        hyp_direction_name(row->claim->direction));
    }
    hyp_text_copy(row->reason, sizeof row->reason, json_string_value(reason));
    row->samples = samples;
    row->effect = results_number_of(effect);
    row->low = results_number_of(low);
    row->high = results_number_of(high);
    row->has_effect = isfinite(row->effect);
    row->has_interval = isfinite(row->low) && isfinite(row->high);
    if (row->has_interval && !(row->low <= row->effect && row->effect <= row->high)) {
        return hyp_fail("%s: the effect of %s, %g, is not between %g and %g", path, id, row->effect,
                        row->low, row->high);
    }
    return read_severity(severity, path, row);
}

static bool results_read_all(json_t *root, const char *path, struct hyp_results *results) {
    const char *kind = NULL, *name = NULL, *mode = NULL, *commit = NULL;
    json_t *under = NULL, *claims = NULL;
    json_error_t error;
    int schema = 0;
    if (json_unpack_ex(root, &error, 0, "{s:i, s:{s:s, s:s}, s:s, s?:s, s?:o, s:o}", "schema",
                       &schema, "device", "kind", &kind, "name", &name, "mode", &mode, "commit",
                       &commit, "under", &under, "claims", &claims) != 0) {
        return hyp_fail("%s does not match schema 1: %s", path, error.text);
    }
    if (schema != 1) return hyp_fail("%s has schema %d, and only 1 is supported", path, schema);
    hyp_text_copy(results->device_kind, sizeof results->device_kind, kind);
    hyp_text_copy(results->device_name, sizeof results->device_name, name);
    hyp_text_copy(results->mode, sizeof results->mode, mode);
    hyp_text_copy(results->commit, sizeof results->commit, commit);
    hyp_text_copy(results->under, sizeof results->under, json_string_value(under));
    if (!json_is_array(claims) || json_array_size(claims) > HYP_CLAIMS_MAX) {
        return hyp_fail("%s: its claims are not a list of at most %d", path, HYP_CLAIMS_MAX);
    }
    for (size_t i = 0; i < json_array_size(claims); i++) {
        struct hyp_result row;
        if (!results_read_row(json_array_get(claims, i), path, &row)) return false;
        if (hyp_results_find(results, row.claim) != NULL) {
            return hyp_fail("%s: %s occurs twice", path, row.claim->id);
        }
        results->rows[results->count++] = row;
    }
    return true;
}

bool hyp_results_read(const char *folder, struct hyp_results *results) {
    char path[1100];
    json_error_t error;
    memset(results, 0, sizeof *results);
    snprintf(path, sizeof path, "%s/results.json", folder);
    size_t bytes = 0;
    char *text = hyp_file_read(path, RESULTS_BYTES_MAX, &bytes);
    if (text == NULL) return false;
    if (!hyp_manifest_holds(folder, "results.json", text, bytes)) {
        free(text);
        return false;
    }
    json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
    free(text);
    if (root == NULL) return hyp_fail("%s is not valid JSON: %s", path, error.text);
    bool ok = results_read_all(root, path, results);
    json_decref(root);
    return ok;
}

const struct hyp_result *hyp_results_find(const struct hyp_results *results,
                                          const struct hyp_claim *claim) {
    for (size_t i = 0; i < results->count; i++) {
        if (results->rows[i].claim == claim) return &results->rows[i];
    }
    return NULL;
}
