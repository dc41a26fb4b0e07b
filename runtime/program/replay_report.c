/*
 * The same numbers in three forms.
 */
#include "replay_report.h"

#include "files/atomic_file.h"
#include "files/hlog.h"
#include "harness/claim.h"
#include "harness/session.h"

#include <stdlib.h>
#include <string.h>

typedef unsigned long long number;

static const char *const call_names[TOL_POOL_CALLS] = {"allocate", "free"};
static const double percents[] = {50, 90, 99, 99.9, 100};
static const char *const percent_names[] = {"p50", "p90", "p99", "p999", "max"};
enum { PERCENTS = sizeof percents / sizeof percents[0] };

bool hyp_replay_row_fill(struct hyp_replay_row *row) {
    struct tol_pool *pool = row->replay.pool;
    bool ok = tol_pool_stats(pool, &row->stats) == TOL_OK;
    for (int call = 0; call < TOL_POOL_CALLS && ok; call++) {
        ok = tol_pool_times(pool, (enum tol_pool_call)call, &row->times[call]) == TOL_OK;
    }
    return ok || hyp_fail("%s", hyp_session_message());
}

void hyp_replay_row_free(struct hyp_replay_row *row) {
    for (int call = 0; call < TOL_POOL_CALLS; call++) tol_hdr_free(row->times[call]);
}

static bool replay_is_better(const struct hyp_replay_row *a, const struct hyp_replay_row *b) {
    /* 0 is unknown, which is the worst. */
    const uint64_t limit_a = a->least_limit - 1, limit_b = b->least_limit - 1;
    if (a->replay.unserved != b->replay.unserved) return a->replay.unserved < b->replay.unserved;
    if (a->least_unserved != b->least_unserved) return a->least_unserved < b->least_unserved;
    if (limit_a != limit_b) return limit_a < limit_b;
    return a->replay.held_peak < b->replay.held_peak;
}

size_t hyp_replay_best(const struct hyp_replay_row *rows, size_t count) {
    size_t best = 0;
    for (size_t i = 1; i < count; i++) {
        if (replay_is_better(&rows[i], &rows[best])) best = i;
    }
    return best;
}

/* ---- text ------------------------------------------------------------------------------------ */

void hyp_replay_print_trace(const struct hyp_replay_setting *setting) {
    const struct hyp_trace *trace = setting->trace;
    printf("%s, %s: %zu event%s of %u thread%s and %u stream%s: %zu allocation%s, %zu free%s, %zu "
           "trim%s\n",
           setting->path, trace->format, trace->count, hyp_plural(trace->count), trace->threads,
           hyp_plural(trace->threads), trace->streams, hyp_plural(trace->streams),
           trace->allocations, hyp_plural(trace->allocations), trace->frees,
           hyp_plural(trace->frees), trace->trims, hyp_plural(trace->trims));
    for (enum hyp_trace_note note = 0; note < HYP_TRACE_NOTES; note++) {
        const char *words = hyp_trace_note(trace, note);
        if (words != NULL) printf("%s\n", words);
    }
    printf("requested at most %llu bytes", (number)trace->peak);
    if (trace->recorded_peak > 0) {
        printf("; the traced allocator held at most %llu bytes, %.4f times as many",
               (number)trace->recorded_peak, (double)trace->recorded_peak / (double)trace->peak);
    }
    printf("\n");
}

static void replay_print_unserved(const struct hyp_replay_setting *setting,
                                  const struct hyp_replay_row *row) {
    const struct hyp_replay *replay = &row->replay;
    const struct hyp_trace_event *first = &setting->trace->events[replay->first_unserved.index];
    const uint64_t begin_ns = setting->trace->events[0].time_ns;
    printf("%llu of %zu allocations failed; %llu of these succeeded in the trace, and %llu that "
           "failed in the trace succeeded here\n",
           (number)replay->unserved, setting->trace->allocations + setting->trace->refusals,
           (number)replay->refused, (number)replay->granted);
    printf("the first one: %s %llu, at %.6f s, %llu bytes on stream ", setting->trace->unit,
           (number)first->number,
           first->time_ns > begin_ns ? (double)(first->time_ns - begin_ns) / 1e9 : 0.0,
           (number)first->bytes);
    /* A small number, or a pointer. */
    printf(first->stream_name <= UINT16_MAX ? "%llu" : "%#llx", (number)first->stream_name);
    printf(", while %llu bytes were live and %llu held; at most %llu bytes would have fit\n",
           (number)replay->first_unserved.requested, (number)replay->first_unserved.held,
           (number)row->fits);
    if (row->least_limit == 0) return;
    printf("a limit of %llu bytes serves all", (number)row->least_limit);
    if (row->least_unserved > 0) {
        printf(" but %llu, which this device cannot serve", (number)row->least_unserved);
    }
    printf("\n");
}

static void replay_print_times(const struct hyp_replay_row *row) {
    printf("%-10s %9s %9s %9s %9s %9s %9s  ns\n", "", "calls", "p50", "p90", "p99", "p99.9", "max");
    for (int call = 0; call < TOL_POOL_CALLS; call++) {
        printf("%-10s %9lld", call_names[call], (long long)row->times[call]->total);
        for (int i = 0; i < PERCENTS; i++) {
            printf(" %9lld", (long long)tol_hdr_percentile(row->times[call], percents[i]));
        }
        printf("\n");
    }
}

void hyp_replay_print(const struct hyp_replay_setting *setting, const struct hyp_replay_row *row) {
    const struct hyp_replay *replay = &row->replay;
    printf("on %s, profile %s\n", tol_context_device(setting->context)->name, row->profile->name);
    if (replay->unserved > 0) {
        replay_print_unserved(setting, row);
    } else {
        printf("every allocation was served; %llu of them failed in the trace\n",
               (number)replay->granted);
    }
    printf("held at most %llu bytes, requested at most %llu\n", (number)replay->held_peak,
           (number)replay->requested_peak);
    printf("held / requested: final %.4f (%llu / %llu bytes); worst %.4f, at %s %llu, among "
           "moments with at least %llu bytes live\n",
           replay->final, (number)replay->held, (number)replay->requested, replay->worst,
           setting->trace->unit, (number)replay->worst_event, (number)replay->floor);
    printf("driver calls: %llu, of which %llu allocated memory and %llu freed it\n",
           (number)row->stats.driver_calls, (number)row->stats.driver_allocations,
           (number)row->stats.driver_frees);
    replay_print_times(row);
}

void hyp_replay_print_table(const struct hyp_replay_setting *setting,
                            const struct hyp_replay_row *rows, size_t count) {
    printf("on %s; bytes%s\n", tol_context_device(setting->context)->name,
           setting->limit > 0 ? ", under the limit" : "");
    printf("%-8s %7s %15s %15s %8s %8s %15s %8s\n", "profile", "failed", "held peak", "least limit",
           "worst", "end", "driver calls", "p99 ns");
    for (size_t i = 0; i < count; i++) {
        const struct hyp_replay *replay = &rows[i].replay;
        char limit[24] = "-";
        if (rows[i].least_limit > 0) {
            snprintf(limit, sizeof limit, "%llu", (number)rows[i].least_limit);
        }
        printf("%-8s %7llu %15llu %15s %8.4f %8.4f %15llu %8lld\n", rows[i].profile->name,
               (number)replay->unserved, (number)replay->held_peak, limit, replay->worst,
               replay->final, (number)rows[i].stats.driver_calls,
               (long long)tol_hdr_percentile(rows[i].times[TOL_POOL_CALL_ALLOCATE], 99));
    }
    printf("under the least limit no more allocations fail than without a limit\n");
    printf("best, by failures, then by the least limit, then by what it holds: %s\n",
           rows[hyp_replay_best(rows, count)].profile->name);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *replay_json_first(const struct hyp_replay_setting *setting,
                                 const struct hyp_replay_row *row) {
    const struct hyp_replay *replay = &row->replay;
    if (replay->unserved == 0) return json_null();
    const struct hyp_trace_event *first = &setting->trace->events[replay->first_unserved.index];
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "number", (json_int_t)first->number,
                     "time_ns", (json_int_t)first->time_ns, "size", (json_int_t)first->bytes,
                     "stream", (json_int_t)first->stream_name, "requested",
                     (json_int_t)replay->first_unserved.requested, "held",
                     (json_int_t)replay->first_unserved.held, "fits", (json_int_t)row->fits);
}

static json_t *replay_json_result(const struct hyp_replay_setting *setting,
                                  const struct hyp_replay_row *row) {
    const struct hyp_replay *replay = &row->replay;
    const struct tol_pool_stats *s = &row->stats;
    return json_pack(
        "{s:I, s:I, s:I, s:I, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:I, s:I, s:I, s:I, "
        "s:I}",
        "events", (json_int_t)setting->trace->count, "unserved", (json_int_t)replay->unserved,
        "refused", (json_int_t)replay->refused, "granted", (json_int_t)replay->granted,
        "first_unserved", replay_json_first(setting, row), "least_limit",
        row->least_limit > 0 ? json_integer((json_int_t)row->least_limit) : json_null(),
        "least_limit_unserved", (json_int_t)row->least_unserved, "requested",
        (json_int_t)replay->requested, "requested_peak", (json_int_t)replay->requested_peak, "held",
        (json_int_t)replay->held, "held_peak", (json_int_t)replay->held_peak, "final",
        replay->final, "worst", replay->worst, "worst_event", (json_int_t)replay->worst_event,
        "driver_calls", (json_int_t)s->driver_calls, "driver_allocations",
        (json_int_t)s->driver_allocations, "driver_frees", (json_int_t)s->driver_frees,
        "magazine_hits", (json_int_t)s->magazine_hits);
}

static json_t *replay_json_times(const struct hyp_replay_row *row) {
    json_t *times = json_object();
    for (int call = 0; call < TOL_POOL_CALLS; call++) {
        json_t *one = json_pack("{s:I}", "count", (json_int_t)row->times[call]->total);
        for (int i = 0; i < PERCENTS; i++) {
            json_int_t ns = tol_hdr_percentile(row->times[call], percents[i]);
            json_object_set_new(one, percent_names[i], json_integer(ns));
        }
        json_object_set_new(times, call_names[call], one);
    }
    return times;
}

/* What a table and a single replay have in common. */
json_t *hyp_replay_setting_json(const struct hyp_replay_setting *setting) {
    json_t *notes = json_array();
    for (enum hyp_trace_note note = 0; note < HYP_TRACE_NOTES; note++) {
        const char *words = hyp_trace_note(setting->trace, note);
        if (words != NULL) json_array_append_new(notes, json_string(words));
    }
    const uint64_t recorded = setting->trace->recorded_peak;
    return json_pack("{s:i, s:s, s:s, s:o, s:o, s:s, s:I, s:I}", "schema", 1, "trace",
                     setting->path, "format", setting->trace->format, "notes", notes,
                     "recorded_held_peak",
                     recorded > 0 ? json_integer((json_int_t)recorded) : json_null(), "device",
                     tol_context_device(setting->context)->name, "limit",
                     (json_int_t)setting->limit, "floor", (json_int_t)setting->floor);
}

static void replay_json_add_row(json_t *to, const struct hyp_replay_setting *setting,
                                const struct hyp_replay_row *row) {
    json_object_set_new(to, "profile", json_string(row->profile->name));
    json_object_set_new(to, "result", replay_json_result(setting, row));
    json_object_set_new(to, "times_ns", replay_json_times(row));
}

json_t *hyp_replay_json(const struct hyp_replay_setting *setting,
                        const struct hyp_replay_row *row) {
    json_t *all = hyp_replay_setting_json(setting);
    replay_json_add_row(all, setting, row);
    return all;
}

json_t *hyp_replay_table_json(const struct hyp_replay_setting *setting,
                              const struct hyp_replay_row *rows, size_t count) {
    json_t *all = hyp_replay_setting_json(setting), *list = json_array();
    for (size_t i = 0; i < count; i++) {
        json_t *one = json_object();
        replay_json_add_row(one, setting, &rows[i]);
        json_array_append_new(list, one);
    }
    json_object_set_new(all, "profiles", list);
    json_object_set_new(all, "best", json_string(rows[hyp_replay_best(rows, count)].profile->name));
    return all;
}

/* ---- files ----------------------------------------------------------------------------------- */

static bool replay_write_summary(const struct hyp_replay_setting *setting,
                                 const struct hyp_replay_row *row, const char *folder) {
    char path[1100];
    json_t *all = hyp_replay_json(setting, row);
    char *text = all != NULL ? json_dumps(all, JSON_INDENT(2) | JSON_REAL_PRECISION(15)) : NULL;
    json_decref(all);
    if (text == NULL) return hyp_fail("out of memory");
    snprintf(path, sizeof path, "%s/replay.json", folder);
    bool ok = hyp_file_write(path, text);
    free(text);
    return ok;
}

static bool replay_write_text(const struct hyp_replay_row *row, const char *folder,
                              const char *name,
                              tol_status (*make)(struct tol_pool *pool, char **text)) {
    char path[1100], *text = NULL;
    if (make(row->replay.pool, &text) != TOL_OK) return hyp_fail("%s", hyp_session_message());
    snprintf(path, sizeof path, "%s/%s", folder, name);
    bool ok = hyp_file_write(path, text);
    free(text);
    return ok;
}

static bool replay_write_times(const struct hyp_replay_row *row, const char *folder) {
    char path[1100];
    struct hyp_hlog log;
    snprintf(path, sizeof path, "%s/times.hlog", folder);
    if (!hyp_hlog_begin(&log, path, row->begin_s)) return false;
    bool ok = true;
    for (int call = 0; call < TOL_POOL_CALLS && ok; call++) {
        ok = hyp_hlog_add(&log, call_names[call], 0, row->length_s, row->times[call]);
    }
    return hyp_hlog_end(&log) && ok;
}

bool hyp_replay_write_pool(const struct hyp_replay_row *row, const char *folder) {
    return replay_write_text(row, folder, "snapshot.json", tol_pool_snapshot) &&
           replay_write_text(row, folder, "timeline.json", tol_pool_chrome_trace);
}

bool hyp_replay_write(const struct hyp_replay_setting *setting, const struct hyp_replay_row *row,
                      const char *folder) {
    return replay_write_summary(setting, row, folder) && replay_write_times(row, folder);
}
