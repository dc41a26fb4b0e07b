/*
 * Counts findings by kind.
 */
#include "soft_report.h"

#include "record/record.h"
#include "tollens/plain_text.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static const char *report_text_of(const json_t *object, const char *name) {
    const char *text = json_string_value(json_object_get(object, name));
    return text != NULL ? text : "";
}

static uint64_t report_number_of(const json_t *object, const char *name) {
    const json_int_t number = json_integer_value(json_object_get(object, name));
    return number > 0 ? (uint64_t)number : 0;
}

static void count_kind(struct hyp_soft_report *report, const char *name) {
    size_t i = 0;
    while (i < report->kind_count && strcmp(report->kinds[i].name, name) != 0) i++;
    if (i == HYP_SOFT_KINDS) i--; /* too many: the last one counts the others */
    if (i == HYP_SOFT_KINDS - 1) name = "other";
    if (i >= report->kind_count) report->kind_count = i + 1;
    snprintf(report->kinds[i].name, sizeof report->kinds[i].name, "%s", name);
    report->kinds[i].count++;
}

/* Findings at one instruction or source line are one mistake, however often it happens. */
static void report_count_place(struct hyp_soft_report *report, const json_t *line) {
    char place[512];
    const char *source = report_text_of(line, "source");
    snprintf(place, sizeof place, "%s|%s|%s|%s|%llu", report_text_of(line, "kind"),
             report_text_of(line, "kernel"), source, report_text_of(line, "inlined_at"),
             source[0] == '\0' ? (unsigned long long)report_number_of(line, "ptx_line") : 0ull);
    if (json_object_get(report->places, place) != NULL) return;
    if (json_object_set_new(report->places, place, json_true()) == 0) report->place_count++;
}

static void take_finding(struct hyp_soft_report *report, const json_t *line) {
    const json_t *block = json_object_get(line, "block"), *thread = json_object_get(line, "thread");
    const char *kernel = report_text_of(line, "kernel"), *source = report_text_of(line, "source");
    char place[400] = "";
    if (strcmp(report_text_of(line, "severity"), "suppressed") == 0) {
        report->suppressed++;
        return;
    }
    if (strcmp(report_text_of(line, "severity"), "note") == 0) {
        report->notes++;
        return;
    }
    report->findings++;
    count_kind(report, report_text_of(line, "kind"));
    report_count_place(report, line);
    if (report->first[0] != '\0') return;
    if (kernel[0] != '\0') {
        snprintf(place, sizeof place,
                 " in kernel %.100s, block (%lld,%lld,%lld), thread "
                 "(%lld,%lld,%lld), at %s%.120s",
                 kernel, json_integer_value(json_array_get(block, 0)),
                 json_integer_value(json_array_get(block, 1)),
                 json_integer_value(json_array_get(block, 2)),
                 json_integer_value(json_array_get(thread, 0)),
                 json_integer_value(json_array_get(thread, 1)),
                 json_integer_value(json_array_get(thread, 2)),
                 source[0] != '\0' ? "" : "PTX line ", source);
        if (source[0] == '\0') {
            const size_t used = strlen(place);
            snprintf(place + used, sizeof place - used, "%llu",
                     (unsigned long long)report_number_of(line, "ptx_line"));
        }
    }
    const char *calls = report_text_of(line, "inlined_at");
    snprintf(report->first, sizeof report->first, "%.60s%s%s%.320s: %.700s",
             report_text_of(line, "kind"), place, calls[0] != '\0' ? ", inlined at " : "", calls,
             report_text_of(line, "detail"));
}

static void take_summary(struct hyp_soft_report *report, const json_t *line) {
    if (json_is_true(json_object_get(line, "begun"))) {
        report->begun++;
        return;
    }
    report->processes++;
    report->kernels += report_number_of(line, "kernels");
    report->launches += report_number_of(line, "launches");
    report->refused += report_number_of(line, "refused");
    if (report->first_refused[0] == '\0') {
        snprintf(report->first_refused, sizeof report->first_refused, "%s",
                 report_text_of(line, "first_refused"));
    }
}

static void each_line(struct hyp_soft_report *report, const char *path, long skip,
                      void (*take)(struct hyp_soft_report *, const json_t *)) {
    FILE *file = fopen(path, "r");
    char *text = NULL;
    size_t room = 0;
    if (file == NULL) return;
    if (fseek(file, skip, SEEK_SET) == 0) {
        while (getline(&text, &room, file) > 0) {
            json_t *line = json_loads(text, 0, NULL);
            if (json_is_object(line)) {
                take(report, line);
            } else {
                report->unreadable++;
            }
            json_decref(line);
        }
    }
    free(text);
    fclose(file);
}

void hyp_soft_report_findings(struct hyp_soft_report *report, const char *path, long skip) {
    report->places = json_object();
    each_line(report, path, skip, take_finding);
    json_decref(report->places);
    report->places = NULL;
}

void hyp_soft_report_summaries(struct hyp_soft_report *report, const char *path) {
    each_line(report, path, 0, take_summary);
    /* A program may do without a call that is not modelled; if no kernel ran, it did not. */
    if (report->launches > 0 || report->refused == 0) return;
    report->findings++;
    count_kind(report, "refused");
    if (report->first[0] != '\0') return;
    snprintf(report->first, sizeof report->first,
             "refused: no kernel ran, and %llu driver function%s refused; the first: %s",
             (unsigned long long)report->refused, report->refused == 1 ? " was" : "s were",
             report->first_refused);
}

/* A word as a pattern that fits it alone. */
static void report_put_pattern(const char *text, FILE *out) {
    for (; *text != '\0'; text++) {
        if (strchr("*?[\\", *text) != NULL) putc('\\', out);
        putc(*text != ';' ? *text : '?', out);
    }
}

/* The line that suppresses a finding; allocated, "" if it cannot be suppressed. */
static char *report_suppression_of(const json_t *line) {
    const char *kind = report_text_of(line, "kind"), *source = report_text_of(line, "source"),
               *kernel = report_text_of(line, "kernel");
    const uint64_t ptx_line = report_number_of(line, "ptx_line");
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (out == NULL) return NULL;
    const char *severity = report_text_of(line, "severity");
    if (strcmp(severity, "error") != 0 && strcmp(severity, "suppressed") != 0 && kind[0] != '\0') {
        report_put_pattern(kind, out);
        fputs("; ", out);
        report_put_pattern(kernel, out);
        fputs(kernel[0] == '\0' ? "*; " : "; ", out);
        report_put_pattern(source, out);
        if (source[0] == '\0' && ptx_line == 0) putc('*', out);
        if (source[0] == '\0' && ptx_line > 0) {
            fprintf(out, "PTX line %llu", (unsigned long long)ptx_line);
        }
    }
    fclose(out);
    return text;
}

bool hyp_soft_report_suppress(const char *path, long skip, const char *file) {
    FILE *from = fopen(path, "r"), *to = fopen(file, "a");
    json_t *known = json_object();
    char *text = NULL;
    size_t room = 0;
    bool ok = to != NULL;
    while (from != NULL && ok && (ftell(from) >= skip || fseek(from, skip, SEEK_SET) == 0) &&
           getline(&text, &room, from) > 0) {
        json_t *line = json_loads(text, 0, NULL);
        char *words = report_suppression_of(line);
        json_decref(line);
        if (words != NULL && words[0] != '\0' && json_object_get(known, words) == NULL) {
            ok = fprintf(to, "%s\n", words) > 0;
            json_object_set_new(known, words, json_true());
        }
        free(words);
    }
    free(text);
    json_decref(known);
    if (from != NULL) fclose(from);
    if (to != NULL) ok = fclose(to) == 0 && ok;
    return ok;
}

static const char *report_plural(uint64_t count) {
    return count == 1 ? "" : "s";
}

void hyp_soft_report_json(const struct hyp_soft_report *report, const char *checks, int code,
                          FILE *out) {
    json_t *kinds = json_object();
    for (size_t i = 0; i < report->kind_count; i++) {
        json_object_set_new(kinds, report->kinds[i].name,
                            json_integer((json_int_t)report->kinds[i].count));
    }
    json_t *all = json_pack(
        "{s:i, s:s, s:i, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:I}", "schema", 1,
        "command", "soft", "program_exit_code", code, "checks", checks, "begun",
        (json_int_t)report->begun, "processes", (json_int_t)report->processes, "kernels",
        (json_int_t)report->kernels, "launches", (json_int_t)report->launches, "findings",
        (json_int_t)report->findings, "places", (json_int_t)report->place_count, "notes",
        (json_int_t)report->notes, "suppressed", (json_int_t)report->suppressed, "kinds", kinds,
        "first", report->first[0] != '\0' ? hyp_record_text(report->first) : json_null(),
        "unreadable_lines", (json_int_t)report->unreadable);
    char *text = all != NULL ? json_dumps(all, 0) : NULL;
    fprintf(out, "%s\n", text != NULL ? text : "{\"error\": \"out of memory\"}");
    free(text);
    json_decref(all);
}

void hyp_soft_report_print(const struct hyp_soft_report *report, const char *checks, FILE *out) {
    fprintf(out, "tollens soft: ");
    if (report->processes == 0) {
        fprintf(out, "no process used the device%s\n",
                report->begun > 0 ? " and ended by itself" : ": nothing was tested");
    } else {
        fprintf(out, "%llu process%s, %llu kernel%s, %llu launch%s\n",
                (unsigned long long)report->processes, report->processes == 1 ? "" : "es",
                (unsigned long long)report->kernels, report_plural(report->kernels),
                (unsigned long long)report->launches, report->launches == 1 ? "" : "es");
    }
    if (report->begun > report->processes) {
        const uint64_t lost = report->begun - report->processes;
        fprintf(out,
                "tollens soft: %llu process%s used the device and was killed or called _exit: work "
                "still queued then was not checked\n",
                (unsigned long long)lost, lost == 1 ? "" : "es");
    }
    fprintf(out, "tollens soft: %llu finding%s", (unsigned long long)report->findings,
            report_plural(report->findings));
    if (report->place_count > 0 && report->place_count < report->findings) {
        fprintf(out, " at %llu place%s", (unsigned long long)report->place_count,
                report_plural(report->place_count));
    }
    for (size_t i = 0; i < report->kind_count; i++) {
        tol_plain_print(out, "%s%llu %s", i == 0 ? ": " : ", ",
                        (unsigned long long)report->kinds[i].count, report->kinds[i].name);
    }
    if (report->notes > 0) {
        fprintf(out, "; %llu note%s", (unsigned long long)report->notes,
                report_plural(report->notes));
    }
    if (report->suppressed > 0) {
        fprintf(out, "; %llu suppressed", (unsigned long long)report->suppressed);
    }
    fprintf(out, " (checks: %s)\n", checks);
    if (report->first[0] != '\0')
        tol_plain_print(out, "tollens soft: the first: %s\n", report->first);
    if (report->unreadable > 0) {
        fprintf(out, "tollens soft: %llu line%s could not be read, so there may be more\n",
                (unsigned long long)report->unreadable, report_plural(report->unreadable));
    }
}
