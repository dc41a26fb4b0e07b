/*
 * The JSON files of a run.
 */
#include "evidence.h"

#include "files/atomic_file.h"
#include "files/manifest.h"
#include "harness/plugin.h"
#include "harness/sabotage.h"
#include "plugin/plugins.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t hyp_run_count(const struct hyp_run *run, enum hyp_verdict_kind kind) {
    size_t count = 0;
    for (size_t i = 0; i < hyp_claim_count(); i++)
        count += run->chosen[i] && run->verdicts[i].kind == kind;
    return count;
}

size_t hyp_run_left_out(const struct hyp_run *run) {
    size_t count = 0;
    for (size_t i = 0; i < hyp_claim_count(); i++) count += !run->chosen[i];
    return count;
}

const char *hyp_run_seeds(const struct hyp_run *run, char *text, size_t bytes) {
    const unsigned long long first = run->session.seed;
    if (run->seeds > 1) {
        snprintf(text, bytes, "seeds %llu to %llu", first, first + run->seeds - 1);
    } else {
        snprintf(text, bytes, "seed %llu", first);
    }
    return text;
}

/* The loaded plugins, for results.json. */
static json_t *evidence_plugins(void) {
    json_t *all = json_array();
    for (size_t i = 0; i < hyp_plugin_count(); i++) {
        const struct hyp_plugin_info *info = hyp_plugin_at(i);
        json_array_append_new(
            all, json_pack("{s:o, s:o, s:o, s:i}", "name", hyp_record_text(info->plugin->name),
                           "version", hyp_record_text(info->plugin->version), "file",
                           hyp_record_text(info->file), "abi", (int)info->plugin->abi));
    }
    return all;
}

/* A text, or null if it is empty. */
static json_t *text_or_null(const char *text) {
    return text[0] != '\0' ? hyp_record_text(text) : json_null();
}

/* Writes an object as FOLDER/NAME and releases it. */
static bool write_object(json_t *object, const char *folder, const char *name) {
    char path[1100];
    char *text =
        object != NULL ? json_dumps(object, JSON_INDENT(2) | JSON_REAL_PRECISION(15)) : NULL;
    json_decref(object);
    if (text == NULL) return hyp_fail("out of memory for %s", name);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    bool ok = hyp_file_write(path, text);
    free(text);
    return ok;
}

static json_t *evidence_severity(const struct hyp_verdict *verdict) {
    if (!verdict->has_severity) return json_null();
    return json_pack("{s:i, s:i, s:i}", "caught", (int)verdict->caught, "of",
                     (int)verdict->saboteurs, "untold", (int)verdict->untold);
}

/* The results of a timed claim's borderline pair. */
static json_t *evidence_borderline(const struct hyp_verdict *verdict) {
    if (!verdict->has_severity || verdict->borderline == 0) return json_null();
    return json_pack("{s:i, s:i}", "right", (int)verdict->borderline_right, "of",
                     (int)verdict->borderline);
}

/* A step of a ladder; null if there is none. */
static json_t *step_or_null(const char *saboteur) {
    char words[200];
    if (saboteur[0] == '\0') return json_null();
    return json_pack("{s:s, s:s}", "saboteur", saboteur, "words",
                     hyp_sabotage_words(saboteur, words, sizeof words));
}

/* The smallest faults that were noticed, and beside each the largest that was not. */
static json_t *detection_limits(const struct hyp_verdict *verdict) {
    if (!verdict->has_limits) return json_null();
    json_t *limits = json_array();
    for (size_t i = 0; i < verdict->limit_count; i++) {
        const struct hyp_limit *limit = &verdict->limits[i];
        json_array_append_new(limits, json_pack("{s:s, s:o, s:o}", "fault", limit->fault, "noticed",
                                                step_or_null(limit->noticed), "missed",
                                                step_or_null(limit->missed)));
    }
    return limits;
}

static json_t *worst_seed(const struct hyp_verdict *verdict) {
    return verdict->has_worst_seed ? json_integer((json_int_t)verdict->worst_seed) : json_null();
}

/* JSON has no infinity: an unknown end is null. */
static json_t *end_of_interval(const struct hyp_verdict *verdict, double end) {
    return verdict->has_interval && isfinite(end) ? json_real(end) : json_null();
}

/* A claim's row in results.json. */
static json_t *evidence_result(const struct hyp_claim *claim, const struct hyp_verdict *verdict) {
    json_t *effect = verdict->has_effect ? json_real(verdict->effect) : json_null();
    return json_pack(
        "{s:s, s:s, s:s, s:o, s:o, s:o, s:s, s:o, s:o, s:o, s:f, s:s, s:I, s:i, s:i, s:o, s:I, "
        "s:o, s:o, s:o, s:f}",
        "id", claim->id, "title", claim->title, "verdict", hyp_verdict_name(verdict->kind),
        "reason", text_or_null(verdict->reason), "code", text_or_null(verdict->code), "effect",
        effect, "unit", claim->unit, "label", text_or_null(verdict->label), "low",
        end_of_interval(verdict, verdict->low), "high", end_of_interval(verdict, verdict->high),
        "threshold", claim->threshold, "direction", hyp_direction_name(claim->direction), "samples",
        (json_int_t)verdict->samples, "processes", (int)verdict->processes, "seeds",
        (int)verdict->seeds, "worst_seed", worst_seed(verdict), "left_out",
        (json_int_t)verdict->left_out, "severity", evidence_severity(verdict), "borderline",
        evidence_borderline(verdict), "detection_limits", detection_limits(verdict), "duration_s",
        verdict->duration_s);
}

bool hyp_evidence_claim(const struct hyp_run *run, const struct hyp_claim *claim) {
    static const char *const endings[] = {"never_ran", "passed",  "failed",
                                          "skipped",   "crashed", "overdue"};
    char folder[1100];
    const struct hyp_words *words = claim->words;
    const struct hyp_verdict *verdict = &run->verdicts[claim->number - 1];
    snprintf(folder, sizeof folder, "%s/%s", run->folder, claim->id);
    if (!hyp_directory_make(folder)) return false;
    json_t *object =
        json_pack("{s:i, s:s, s:s, s:f, s:s, s:s, s:s}", "schema", 1, "id", claim->id, "title",
                  claim->title, "threshold", claim->threshold, "unit", claim->unit, "direction",
                  hyp_direction_name(claim->direction), "source", claim->source);
    if (object != NULL && claim->plugin != NULL) {
        json_object_set_new(object, "plugin", hyp_record_text(claim->plugin));
    }
    if (object != NULL && words != NULL) {
        json_t *more =
            json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "claim", words->claim, "prediction",
                      words->prediction, "falsified_if", words->falsified_if, "method",
                      words->method, "control", words->control, "confounders", words->confounders);
        json_object_update(object, more);
        json_decref(more);
    }
    if (!write_object(object, folder, "claim.json")) return false;

    json_t *attacks = json_array();
    for (size_t i = 0; i < verdict->outcome_count; i++) {
        const struct hyp_outcome *outcome = &verdict->outcomes[i];
        json_array_append_new(
            attacks,
            json_pack("{s:s, s:i, s:I, s:s, s:s, s:o, s:I, s:I, s:f}", "name", outcome->name,
                      "process", (int)outcome->process, "seed", (json_int_t)outcome->seed, "folder",
                      outcome->folder, "ending", endings[outcome->ending], "detail",
                      text_or_null(outcome->detail), "samples", (json_int_t)outcome->record.samples,
                      "violations", (json_int_t)outcome->record.violations, "duration_s",
                      outcome->record.duration_s));
    }
    object = evidence_result(claim, verdict);
    if (object != NULL) json_object_set_new(object, "attacks", attacks);
    return write_object(object, folder, "verdict.json");
}

bool hyp_evidence_saboteur(const struct hyp_run *run, const struct hyp_claim *claim,
                           const struct hyp_saboteur *saboteur, const struct hyp_verdict *verdict,
                           bool right) {
    char folder[1100];
    snprintf(folder, sizeof folder, "%.900s/%s/sabotage/%.100s", run->folder, claim->id,
             saboteur->name);
    return hyp_directory_make(folder) &&
           write_object(json_pack("{s:i, s:s, s:s, s:s, s:b, s:o, s:o}", "schema", 1, "saboteur",
                                  saboteur->name, "must", hyp_forced_words(saboteur->forced),
                                  "verdict", hyp_verdict_name(verdict->kind), "right", (int)right,
                                  "reason", text_or_null(verdict->reason), "code",
                                  text_or_null(verdict->code)),
                        folder, "verdict.json");
}

bool hyp_evidence_limit(const struct hyp_run *run, const struct hyp_claim *claim,
                        const char *saboteur, uint64_t seed, const struct hyp_verdict *verdict) {
    char folder[1100], name[48];
    snprintf(folder, sizeof folder, "%.900s/%s/limits/%.100s", run->folder, claim->id, saboteur);
    snprintf(name, sizeof name, "seed%llu.json", (unsigned long long)seed);
    return hyp_directory_make(folder) &&
           write_object(
               json_pack("{s:i, s:s, s:I, s:s, s:b, s:o, s:o}", "schema", 1, "saboteur", saboteur,
                         "seed", (json_int_t)seed, "verdict", hyp_verdict_name(verdict->kind),
                         "noticed", (int)(verdict->kind == HYP_FALSIFIED), "reason",
                         text_or_null(verdict->reason), "code", text_or_null(verdict->code)),
               folder, name);
}

bool hyp_evidence_results(const struct hyp_run *run) {
    const struct hyp_machine *machine = &run->machine;
    json_t *claims = json_array();
    for (size_t i = 0; i < hyp_claim_count(); i++) {
        if (run->chosen[i]) {
            json_array_append_new(claims, evidence_result(&hyp_claims()[i], &run->verdicts[i]));
        }
    }
    const char *mode = run->session.full ? "full" : "quick";
    json_t *object =
        json_pack("{s:i, s:{s:s, s:s}, s:s, s:s?, s:s, s:b, s:o, s:o}", "schema", 1, "device",
                  "kind", hyp_device_kind_name(machine->kind), "name", machine->device.name, "mode",
                  mode, "under", run->under, "commit", machine->commit, "dirty",
                  (int)machine->dirty, "plugins", evidence_plugins(), "claims", claims);
    return write_object(object, run->folder, "results.json");
}

bool hyp_evidence_end(const struct hyp_run *run) {
    const struct hyp_machine *machine = &run->machine;
    const char *names[4 + HYP_CLAIMS_MAX] = {"machine.json", "results.json", "junit.xml",
                                             "summary.md"};
    size_t count = 4;
    for (size_t i = 0; i < hyp_claim_count(); i++) {
        if (run->chosen[i]) names[count++] = hyp_claims()[i].id;
    }
    char list_crc[9];
    if (!hyp_manifest_write(run->folder, names, count, list_crc)) return false;
    const char *mode = run->session.full ? "full" : "quick";
    json_t *object = json_pack(
        "{s:i, s:s, s:s, s:I, s:i, s:b, s:b, s:s?, s:s?, s:f, s:f, s:i, s:s}", "schema", 1,
        "command", run->command, "mode", mode, "seed", (json_int_t)run->session.seed, "seeds",
        (int)run->seeds, "sabotage", (int)run->sabotage, "limits", (int)run->limits, "under",
        run->under, "filter", run->session.filter, "begin_s", machine->begin_s, "duration_s",
        run->duration_s, "exit_code", run->exit_code, "list_crc32", list_crc);
    return write_object(object, run->folder, "run.json");
}
