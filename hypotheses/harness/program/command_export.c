/*
 * export: a run's results in the forms that other services read, on stdout.
 *
 *     bmf          Bencher Metric Format
 *     gab          github-action-benchmark, "customSmallerIsBetter"
 *     gab-bigger   the same for claims of which more is better, "customBiggerIsBetter"
 *     openmetrics  OpenMetrics 1.0 text, for a scrape
 *     junit        junit.xml, as the run wrote it
 *     github       workflow commands: an annotation for each claim that did not survive
 *
 * Claims without an effect have no number, and are left out; OpenMetrics has the verdict of each.
 */
#include "run/command.h"
#include "files/atomic_file.h"
#include "judge/results.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { JUNIT_BYTES_MAX = 16 << 20 };

/* ---- JSON ------------------------------------------------------------------------------------ */

static bool put_json(json_t *object) {
    char *text =
        object != NULL ? json_dumps(object, JSON_INDENT(2) | JSON_REAL_PRECISION(15)) : NULL;
    json_decref(object);
    if (text == NULL) return hyp_fail("out of memory");
    printf("%s\n", text);
    free(text);
    return true;
}

static void export_name_of(const struct hyp_result *row, char *text, size_t bytes) {
    snprintf(text, bytes, "%s: %s", row->claim->id, row->claim->title);
}

static bool put_bmf(const struct hyp_results *results) {
    json_t *all = json_object();
    for (size_t i = 0; i < results->count; i++) {
        const struct hyp_result *row = &results->rows[i];
        char name[256];
        if (!row->has_effect) continue;
        export_name_of(row, name, sizeof name);
        json_t *number = json_pack("{s:f}", "value", row->effect);
        if (row->has_interval) {
            json_object_set_new(number, "lower_value", json_real(row->low));
            json_object_set_new(number, "upper_value", json_real(row->high));
        }
        json_object_set_new(all, name, json_pack("{s:o}", row->claim->unit, number));
    }
    return put_json(all);
}

static bool put_gab(const struct hyp_results *results, bool bigger) {
    json_t *all = json_array();
    for (size_t i = 0; i < results->count; i++) {
        const struct hyp_result *row = &results->rows[i];
        char name[256], range[64], extra[512];
        if (!row->has_effect || (row->claim->direction == HYP_ABOVE) != bigger) continue;
        export_name_of(row, name, sizeof name);
        snprintf(extra, sizeof extra, "%s; %s %g; %lld samples; %s; %s run of %s",
                 hyp_verdict_words(row->kind), hyp_direction_words(row->claim->direction),
                 row->threshold, row->samples, results->device_name, results->mode,
                 results->commit[0] != '\0' ? results->commit : "unknown commit");
        json_t *entry = json_pack("{s:s, s:s, s:f, s:s}", "name", name, "unit", row->claim->unit,
                                  "value", row->effect, "extra", extra);
        if (row->has_interval && entry != NULL) {
            double off = fmax(row->high - row->effect, row->effect - row->low);
            snprintf(range, sizeof range, "± %.4g", off);
            json_object_set_new(entry, "range", json_string(range));
        }
        json_array_append_new(all, entry);
    }
    return put_json(all);
}

static bool put_smaller(const struct hyp_results *results) {
    return put_gab(results, false);
}

static bool put_bigger(const struct hyp_results *results) {
    return put_gab(results, true);
}

/* ---- OpenMetrics ----------------------------------------------------------------------------- */

/* A label's value, with the three characters escaped that the format names. */
static void export_put_label(const char *name, const char *value) {
    printf("%s=\"", name);
    for (; *value != '\0'; value++) {
        if (*value == '\\' || *value == '"') putchar('\\');
        if (*value == '\n') {
            fputs("\\n", stdout);
        } else {
            putchar(*value);
        }
    }
    putchar('"');
}

static void put_sample(const char *metric, const struct hyp_result *row, double value) {
    printf("%s{", metric);
    export_put_label("claim", row->claim->id);
    putchar(',');
    export_put_label("unit", row->claim->unit);
    printf("} %.15g\n", value);
}

static double export_effect_of(const struct hyp_result *row) {
    return row->has_effect ? row->effect : NAN;
}
static double low_of(const struct hyp_result *row) {
    return row->has_interval ? row->low : NAN;
}
static double high_of(const struct hyp_result *row) {
    return row->has_interval ? row->high : NAN;
}
static double threshold_of(const struct hyp_result *row) {
    return row->threshold;
}
static double samples_of(const struct hyp_result *row) {
    return (double)row->samples;
}
static double severity_of(const struct hyp_result *row) {
    return row->has_severity && row->saboteurs > 0 ? (double)row->caught / row->saboteurs : NAN;
}

static void export_put_verdicts(const struct hyp_results *results) {
    printf("# TYPE tollens_verdict stateset\n# HELP tollens_verdict The verdict of a claim.\n");
    for (size_t i = 0; i < results->count; i++) {
        for (int kind = HYP_SURVIVED; kind <= HYP_NOT_TESTED; kind++) {
            printf("tollens_verdict{");
            export_put_label("claim", results->rows[i].claim->id);
            putchar(',');
            export_put_label("tollens_verdict", hyp_verdict_name((enum hyp_verdict_kind)kind));
            printf("} %d\n", results->rows[i].kind == (enum hyp_verdict_kind)kind);
        }
    }
}

static bool put_openmetrics(const struct hyp_results *results) {
    static const struct {
        const char *name, *help;
        double (*value)(const struct hyp_result *row);
    } metrics[] = {
        {"tollens_effect", "The measured effect, in the claim's unit.", export_effect_of},
        {"tollens_effect_low", "The low end of the effect's interval.", low_of},
        {"tollens_effect_high", "The high end of the effect's interval.", high_of},
        {"tollens_threshold", "The number at which the claim is falsified.", threshold_of},
        {"tollens_samples", "The number of samples of the verdict.", samples_of},
        {"tollens_severity", "The share of saboteurs that were noticed.", severity_of}};
    printf(
        "# TYPE tollens_run info\n# HELP tollens_run The run and its device.\ntollens_run_info{");
    export_put_label("device", results->device_name);
    putchar(',');
    export_put_label("kind", results->device_kind);
    putchar(',');
    export_put_label("mode", results->mode);
    putchar(',');
    export_put_label("commit", results->commit);
    printf("} 1\n");
    export_put_verdicts(results);
    for (size_t m = 0; m < sizeof metrics / sizeof metrics[0]; m++) {
        printf("# TYPE %s gauge\n# HELP %s %s\n", metrics[m].name, metrics[m].name,
               metrics[m].help);
        for (size_t i = 0; i < results->count; i++) {
            double value = metrics[m].value(&results->rows[i]);
            if (isfinite(value)) put_sample(metrics[m].name, &results->rows[i], value);
        }
    }
    printf("# EOF\n");
    return true;
}

/* ---- GitHub ---------------------------------------------------------------------------------- */

/* What a workflow command may not hold is written as a URL has it. */
static void put_command_text(const char *text) {
    for (; *text != '\0'; text++) {
        if (*text == '%' || *text == '\r' || *text == '\n') {
            printf("%%%02X", (unsigned)(unsigned char)*text);
        } else {
            putchar(*text);
        }
    }
}

static bool put_github(const struct hyp_results *results) {
    static const char *const levels[] = {
        [HYP_FALSIFIED] = "error", [HYP_INCONCLUSIVE] = "warning", [HYP_NOT_TESTED] = "notice"};
    for (size_t i = 0; i < results->count; i++) {
        const struct hyp_result *row = &results->rows[i];
        if (row->kind == HYP_SURVIVED) continue;
        /* An id and a verdict have no colon and no comma, which would end the title. */
        printf("::%s title=%s %s::", levels[row->kind], row->claim->id,
               hyp_verdict_words(row->kind));
        put_command_text(row->claim->title);
        printf(": ");
        put_command_text(row->reason);
        putchar('\n');
    }
    return true;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static bool put_junit(const char *folder) {
    char path[1100];
    snprintf(path, sizeof path, "%s/junit.xml", folder);
    char *text = hyp_file_read(path, JUNIT_BYTES_MAX, NULL);
    if (text == NULL) return false;
    fputs(text, stdout);
    free(text);
    return true;
}

/* The three files that a run is described by, as one. */
static int export_put_whole(const char *folder) {
    static const char *const names[] = {"run", "machine", "results"};
    json_t *whole = json_object();
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[1100];
        json_error_t error;
        snprintf(path, sizeof path, "%s/%s.json", folder, names[i]);
        json_t *part = json_load_file(path, 0, &error);
        if (part == NULL) {
            json_decref(whole);
            return hyp_command_complain("%s: %s", path, error.text);
        }
        json_object_set_new(whole, names[i], part);
    }
    return hyp_command_answer("export", whole, HYP_EXIT_OK);
}

int hyp_command_export(int count, char **words) {
    static struct hyp_results results;
    static const struct {
        const char *name;
        bool (*put)(const struct hyp_results *results);
    } formats[] = {{"bmf", put_bmf},           {"gab", put_smaller},
                   {"gab-bigger", put_bigger}, {"openmetrics", put_openmetrics},
                   {"github", put_github},     {"junit", NULL}};
    const char *folder = NULL, *format = NULL;
    for (int i = 0; i < count; i++) {
        if (strcmp(words[i], "--format") == 0 && i + 1 < count) {
            format = words[++i];
        } else if (strncmp(words[i], "--format=", 9) == 0) {
            format = words[i] + 9;
        } else if (words[i][0] != '-' && folder == NULL) {
            folder = words[i];
        } else {
            return hyp_command_complain("unexpected argument '%s' of export", words[i]);
        }
    }
    if (folder == NULL || (format == NULL && !hyp_command_is_json())) {
        return hyp_command_complain(
            "export requires a folder written by tollens run, and --format or --json");
    }
    if (format != NULL && hyp_command_is_json()) {
        return hyp_command_complain("--format and --json cannot be combined: each chooses a form");
    }
    if (!hyp_results_read(folder, &results)) return hyp_command_complain("%s", hyp_error());
    if (format == NULL) return export_put_whole(folder);
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        if (strcmp(formats[i].name, format) != 0) continue;
        bool ok = formats[i].put != NULL ? formats[i].put(&results) : put_junit(folder);
        if (ok && fflush(stdout) != 0) ok = hyp_fail("the output cannot be written");
        return ok ? HYP_EXIT_OK : hyp_command_complain("%s", hyp_error());
    }
    return hyp_command_complain(
        "unknown format '%s': it must be bmf, gab, gab-bigger, openmetrics, github or junit",
        format);
}
