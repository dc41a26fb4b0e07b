/*
 * replay: a recorded trace of a pool, done again with any profile, and what came of it.
 */
#include "harness/claim.h"
#include "harness/clock.h"
#include "run/command.h"
#include "files/hlog.h"
#include "trace_replay.h"
#include "harness/session.h"
#include "files/walk_csv.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long number;

static void driver_profile(const struct tol_device *device, struct tol_pool_options *options) {
    (void)device;
    *options = (struct tol_pool_options){.source = TOL_POOL_DRIVER, .time_one_in = 1};
}

static const struct profile {
    const char *name;
    void (*options)(const struct tol_device *device, struct tol_pool_options *options);
} profiles[] = {{"default", tol_pool_default},
                {"tight", tol_pool_tight},
                {"latency", tol_pool_latency},
                {"driver", driver_profile}};

struct replay_options {
    const char *path, *out;
    const struct profile *profile;
    uint64_t limit, floor;
    bool has_floor;
    enum hyp_device_kind kind;
    int ordinal;
};

static bool read_profile(const char *name, const struct profile **profile) {
    for (size_t i = 0; i < sizeof profiles / sizeof profiles[0]; i++) {
        if (strcmp(profiles[i].name, name) != 0) continue;
        *profile = &profiles[i];
        return true;
    }
    return hyp_fail("unknown profile '%s': it must be default, tight, latency or driver", name);
}

static bool replay_read_bytes(const char *option, const char *text, uint64_t *bytes) {
    return hyp_session_number(text, INT64_MAX, bytes) ||
           hyp_fail("%s must be a number of bytes, not '%s'", option, text);
}

/* The value of an option, as "--name VALUE" or "--name=VALUE". NULL: it is another word. */
static const char *replay_value_of(const char *name, int count, char **words, int *at) {
    size_t length = strlen(name);
    if (strcmp(words[*at], name) == 0) return *at + 1 < count ? words[++*at] : "";
    bool fits = strncmp(words[*at], name, length) == 0 && words[*at][length] == '=';
    return fits ? words[*at] + length + 1 : NULL;
}

static bool replay_read_words(int count, char **words, struct replay_options *options) {
    const char *value = NULL;
    *options = (struct replay_options){.profile = &profiles[0]};
    if (!hyp_session_device(getenv("TOLLENS_DEVICE"), &options->kind, &options->ordinal))
        return false;
    for (int i = 0; i < count; i++) {
        if ((value = replay_value_of("--profile", count, words, &i)) != NULL) {
            if (!read_profile(value, &options->profile)) return false;
        } else if ((value = replay_value_of("--device", count, words, &i)) != NULL) {
            if (!hyp_session_device(value, &options->kind, &options->ordinal)) return false;
        } else if ((value = replay_value_of("--limit", count, words, &i)) != NULL) {
            if (!replay_read_bytes("--limit", value, &options->limit)) return false;
        } else if ((value = replay_value_of("--floor", count, words, &i)) != NULL) {
            if (!replay_read_bytes("--floor", value, &options->floor)) return false;
            options->has_floor = true;
        } else if ((value = replay_value_of("--out", count, words, &i)) != NULL) {
            if (value[0] == '\0') return hyp_fail("--out requires a folder");
            options->out = value;
        } else if (words[i][0] == '-') {
            return hyp_command_no_option("replay", words[i]);
        } else if (options->path != NULL) {
            return hyp_fail("replay takes one trace; %s is a second one", words[i]);
        } else {
            options->path = words[i];
        }
    }
    if (options->path == NULL) return hyp_fail("replay requires a trace written by tol_pool_trace");
    if (options->limit != 0 && options->profile->options == driver_profile) {
        return hyp_fail("the driver's own pool has no limit");
    }
    return true;
}

/* ---- the report ------------------------------------------------------------------------------ */

struct replay_report {
    const struct replay_options *options;
    const struct hyp_replay *replay;
    const struct tol_device *device;
    struct tol_pool_stats stats;
    struct tol_hdr *times[TOL_POOL_CALLS];
    double begin_s, length_s;
};

static const char *const call_names[TOL_POOL_CALLS] = {"allocate", "free"};
static const double percents[] = {50, 90, 99, 99.9, 100};
static const char *const percent_names[] = {"p50", "p90", "p99", "p999", "max"};
enum { PERCENTS = sizeof percents / sizeof percents[0] };

static void replay_print(const struct replay_report *report) {
    const struct hyp_replay *replay = report->replay;
    const struct hyp_trace *trace = replay->trace;
    printf("%s: %zu event%s of %u thread%s and %u stream%s: %zu allocation%s, %zu free%s, %zu "
           "trim%s\n",
           report->options->path, trace->count, hyp_plural(trace->count), trace->threads,
           hyp_plural(trace->threads), trace->streams, hyp_plural(trace->streams),
           trace->allocations, hyp_plural(trace->allocations), trace->frees,
           hyp_plural(trace->frees), trace->trims, hyp_plural(trace->trims));
    if (trace->joined > 0) {
        printf("%u of the threads took the place of one that had been silent: at most %d at once\n",
               trace->joined, HYP_TRACE_THREADS_MAX);
    }
    if (trace->lost > 0) {
        printf("%llu earlier events were lost, and %llu frees of their blocks are left out\n",
               (number)trace->lost, (number)trace->skipped);
    }
    printf("on %s, profile %s\n", report->device->name, report->options->profile->name);
    if (replay->refused > 0 || replay->granted > 0) {
        printf("%llu allocations failed here and succeeded in the trace; %llu succeeded here and "
               "failed in the trace\n",
               (number)replay->refused, (number)replay->granted);
    }
    printf("held / requested: final %.4f (%llu / %llu bytes); worst %.4f, at event %llu, among "
           "moments with at least %llu bytes live\n",
           replay->final, (number)replay->held, (number)replay->requested, replay->worst,
           (number)replay->worst_event, (number)replay->floor);
    printf("driver calls: %llu, of which %llu allocated memory and %llu freed it\n",
           (number)report->stats.driver_calls, (number)report->stats.driver_allocations,
           (number)report->stats.driver_frees);
    printf("%-10s %9s %9s %9s %9s %9s %9s  ns\n", "", "calls", "p50", "p90", "p99", "p99.9", "max");
    for (int call = 0; call < TOL_POOL_CALLS; call++) {
        printf("%-10s %9lld", call_names[call], (long long)report->times[call]->total);
        for (int i = 0; i < PERCENTS; i++) {
            printf(" %9lld", (long long)tol_hdr_percentile(report->times[call], percents[i]));
        }
        printf("\n");
    }
}

static json_t *result_of(const struct replay_report *report) {
    const struct hyp_replay *replay = report->replay;
    const struct tol_pool_stats *s = &report->stats;
    return json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:I, s:I, s:I, s:I, s:I}", "events",
        (json_int_t)replay->trace->count, "refused", (json_int_t)replay->refused, "granted",
        (json_int_t)replay->granted, "requested", (json_int_t)replay->requested, "requested_peak",
        (json_int_t)replay->requested_peak, "held", (json_int_t)replay->held, "held_peak",
        (json_int_t)replay->held_peak, "final", replay->final, "worst", replay->worst,
        "worst_event", (json_int_t)replay->worst_event, "driver_calls", (json_int_t)s->driver_calls,
        "driver_allocations", (json_int_t)s->driver_allocations, "driver_frees",
        (json_int_t)s->driver_frees, "magazine_hits", (json_int_t)s->magazine_hits);
}

static json_t *summary_of(const struct replay_report *report) {
    json_t *times = json_object();
    for (int call = 0; call < TOL_POOL_CALLS; call++) {
        json_t *one = json_pack("{s:I}", "count", (json_int_t)report->times[call]->total);
        for (int i = 0; i < PERCENTS; i++) {
            json_int_t ns = tol_hdr_percentile(report->times[call], percents[i]);
            json_object_set_new(one, percent_names[i], json_integer(ns));
        }
        json_object_set_new(times, call_names[call], one);
    }
    return json_pack("{s:i, s:s, s:s, s:s, s:I, s:I, s:o, s:o}", "schema", 1, "trace",
                     report->options->path, "device", report->device->name, "profile",
                     report->options->profile->name, "limit", (json_int_t)report->options->limit,
                     "floor", (json_int_t)report->replay->floor, "result", result_of(report),
                     "times_ns", times);
}

static bool write_summary(const struct replay_report *report) {
    char path[1100];
    json_t *all = summary_of(report);
    char *text = all != NULL ? json_dumps(all, JSON_INDENT(2) | JSON_REAL_PRECISION(15)) : NULL;
    json_decref(all);
    if (text == NULL) return hyp_fail("out of memory");
    snprintf(path, sizeof path, "%s/replay.json", report->options->out);
    bool ok = hyp_file_write(path, text);
    free(text);
    return ok;
}

static bool replay_write_text(const struct replay_report *report, const char *name,
                              tol_status (*make)(struct tol_pool *pool, char **text)) {
    char path[1100], *text = NULL;
    if (make(report->replay->pool, &text) != TOL_OK) return hyp_fail("%s", hyp_session_message());
    snprintf(path, sizeof path, "%s/%s", report->options->out, name);
    bool ok = hyp_file_write(path, text);
    free(text);
    return ok;
}

static bool write_times(const struct replay_report *report) {
    char path[1100];
    struct hyp_hlog log;
    snprintf(path, sizeof path, "%s/times.hlog", report->options->out);
    if (!hyp_hlog_begin(&log, path, report->begin_s)) return false;
    bool ok = true;
    for (int call = 0; call < TOL_POOL_CALLS && ok; call++) {
        ok = hyp_hlog_add(&log, call_names[call], 0, report->length_s, report->times[call]);
    }
    return hyp_hlog_end(&log) && ok;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static bool write_report(struct replay_report *report) {
    const struct hyp_replay *replay = report->replay;
    bool ok = tol_pool_stats(replay->pool, &report->stats) == TOL_OK;
    for (int call = 0; call < TOL_POOL_CALLS && ok; call++) {
        ok = tol_pool_times(replay->pool, (enum tol_pool_call)call, &report->times[call]) == TOL_OK;
    }
    if (!ok) hyp_fail("%s", hyp_session_message());
    if (ok && hyp_command_is_json()) {
        ok = hyp_command_answer("replay", summary_of(report), HYP_EXIT_OK) == HYP_EXIT_OK ||
             hyp_fail("out of memory");
    } else if (ok) {
        replay_print(report);
    }
    if (ok && report->options->out != NULL) {
        ok = write_summary(report) &&
             replay_write_text(report, "snapshot.json", tol_pool_snapshot) &&
             replay_write_text(report, "timeline.json", tol_pool_chrome_trace) &&
             write_times(report);
    }
    for (int call = 0; call < TOL_POOL_CALLS; call++) tol_hdr_free(report->times[call]);
    return ok;
}

/* With the evidence's table, where there is to be one. */
static bool run_and_report(const struct replay_options *options, struct hyp_replay *replay) {
    char path[1100];
    struct replay_report report = {
        .options = options, .replay = replay, .begin_s = hyp_clock_day_s()};
    report.device = tol_context_device(replay->context);
    if (options->out != NULL) {
        snprintf(path, sizeof path, "%s/fragmentation.csv", options->out);
        if (!hyp_directory_make(options->out) || !hyp_walk_csv_begin(&replay->csv, path))
            return false;
        replay->has_csv = true;
    }
    bool ok = hyp_replay_run(replay);
    report.length_s = hyp_clock_day_s() - report.begin_s;
    if (options->out != NULL && !ok) hyp_file_drop(&replay->csv);
    if (options->out != NULL && ok) ok = hyp_file_keep(&replay->csv);
    return ok && write_report(&report);
}

/* *unserved: the allocations that failed, also those that had failed in the trace. */
static bool replay_on_device(struct replay_options *options, const struct hyp_trace *trace,
                             uint64_t *unserved) {
    struct tol_driver *driver = NULL;
    struct tol_pool_options pool_options;
    struct hyp_replay replay = {.trace = trace, .floor = trace->peak / 4};
    if (options->has_floor) replay.floor = options->floor;
    /* None of it is touched. */
    setenv("TOLLENS_SOFT_MEMORY", "40G", 0);
    bool ok = hyp_session_open(&options->kind, &driver) == TOL_OK &&
              tol_context_create(driver, options->ordinal, &replay.context) == TOL_OK;
    if (ok) {
        options->profile->options(tol_context_device(replay.context), &pool_options);
        pool_options.limit_bytes = (size_t)options->limit;
        pool_options.time_one_in = 1;
        if (options->out != NULL) pool_options.trace_events = 2 * trace->count + 64;
        ok = tol_pool_create(replay.context, &pool_options, &replay.pool) == TOL_OK;
    }
    if (!ok) hyp_fail("%s", hyp_session_message());
    ok = ok && run_and_report(options, &replay);
    *unserved = replay.refused + trace->refusals - replay.granted;
    tol_pool_destroy(replay.pool);
    tol_context_destroy(replay.context);
    tol_driver_close(driver);
    return ok;
}

int hyp_command_replay(int count, char **words) {
    struct replay_options options;
    struct hyp_trace trace = {.events = NULL};
    uint64_t unserved = 0;
    bool ok = replay_read_words(count, words, &options) && hyp_trace_read(options.path, &trace) &&
              replay_on_device(&options, &trace, &unserved);
    hyp_trace_free(&trace);
    if (!ok) return hyp_command_complain("%s", hyp_error());
    return unserved == 0 ? HYP_EXIT_OK : HYP_EXIT_FALSIFIED;
}
