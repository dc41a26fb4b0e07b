/*
 * guard: runs a worker program on each device and hands it jobs, each answered exactly once.
 *
 *     tollens guard [options] -- PROGRAM ARGUMENTS... < jobs > answers
 *
 * Jobs are lines. tol_guard does the work (runtime/driver/guard); this reads words and jobs, writes
 * answers, and says at the end what happened. guard_results.c has the file of answers.
 */
#include "guard_options.h"
#include "guard_results.h"
#include "files/atomic_file.h"
#include "harness/session.h"
#include "run/command.h"
#include "tollens/plain_text.h"

#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_INTERRUPTED = 130, FAILED_JOBS = 1 };

struct guard_run {
    struct hyp_guard_options options;
    struct hyp_guard_results results;
    struct tol_guard *guard;
};

static struct tol_guard *running; /* for the handler of signals */

static void guard_stop(int number) {
    (void)number;
    tol_guard_stop(running);
}

/* ---- jobs in, answers out ---- */

static tol_status guard_deliver(void *user, const struct tol_guard_answer *answer) {
    struct guard_run *run = user;
    return hyp_guard_results_add(&run->results, answer) ? TOL_OK : TOL_UNWRITABLE;
}

static void note(void *user, const struct tol_guard_note *note) {
    const struct guard_run *run = user;
    const bool is_usual = note->reason[0] == '\0';
    if (!run->options.is_verbose && is_usual) return;
    tol_plain_print(stderr, "guard: %s: %s -- %s --> %s%s%s\n", note->device, note->from,
                    note->event, note->to, is_usual ? "" : ": ", note->reason);
}

static bool submit_all(struct guard_run *run) {
    FILE *file = run->options.jobs != NULL ? fopen(run->options.jobs, "r") : stdin;
    char *line = NULL;
    size_t room = 0;
    ssize_t length = 0;
    tol_status status = TOL_OK;
    if (file == NULL) return hyp_fail("%s: %s", run->options.jobs, strerror(errno));
    while (status == TOL_OK && (length = getline(&line, &room, file)) >= 0) {
        if (length > 0 && line[length - 1] == '\n') length--;
        status = tol_guard_submit(run->guard, line, (size_t)length, NULL);
    }
    const bool is_read = !ferror(file);
    free(line);
    if (file != stdin) fclose(file);
    if (status != TOL_OK) return hyp_fail("%s", hyp_session_message());
    return is_read || hyp_fail("the jobs cannot be read: %s", strerror(errno));
}

/* ---- what happened ---- */

static json_t *times_of(const struct tol_hdr *hdr) {
    return json_pack("{s:I, s:f, s:f, s:f}", "count", (json_int_t)hdr->total, "p50_ms",
                     (double)tol_hdr_percentile(hdr, 50) / 1e6, "p99_ms",
                     (double)tol_hdr_percentile(hdr, 99) / 1e6, "max_ms",
                     (double)tol_hdr_max(hdr) / 1e6);
}

static json_t *devices_of(const struct tol_guard *guard) {
    const char *name, *state, *reason;
    json_t *devices = json_array();
    for (size_t i = 0; tol_guard_device(guard, i, &name, &state, &reason); i++) {
        json_array_append_new(devices, json_pack("{s:s, s:s, s:s}", "device", name, "state", state,
                                                 "reason", reason));
    }
    return devices;
}

static void guard_print_json(const struct guard_run *run, int code) {
    struct tol_guard_stats s;
    tol_guard_stats(run->guard, &s);
    json_t *object = json_pack(
        "{s:i, s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o}",
        "schema", 1, "exit_code", code, "jobs", (json_int_t)s.jobs, "answered",
        (json_int_t)s.answered, "failed", (json_int_t)s.failed, "begun", (json_int_t)s.begun,
        "restored", (json_int_t)s.restored, "workers", (json_int_t)s.workers, "probes",
        (json_int_t)s.probes, "faults", (json_int_t)s.faults, "late", (json_int_t)s.late, "garbage",
        (json_int_t)s.garbage, "gone", (json_int_t)s.gone, "fenced", (json_int_t)s.fenced,
        "handovers", times_of(tol_guard_handovers(run->guard)), "recoveries",
        times_of(tol_guard_recoveries(run->guard)), "devices", devices_of(run->guard));
    char *text = object != NULL ? json_dumps(object, JSON_REAL_PRECISION(6)) : NULL;
    if (text != NULL) tol_plain_print(stderr, "%s\n", text);
    free(text);
    json_decref(object);
}

static void print_times(const char *what, const struct tol_hdr *hdr) {
    if (hdr->total == 0) return;
    tol_plain_print(stderr, "guard: %s: %lld, p50 %.1f ms, p99 %.1f ms, max %.1f ms\n", what,
                    (long long)hdr->total, (double)tol_hdr_percentile(hdr, 50) / 1e6,
                    (double)tol_hdr_percentile(hdr, 99) / 1e6, (double)tol_hdr_max(hdr) / 1e6);
}

static void guard_print_text(const struct guard_run *run) {
    struct tol_guard_stats s;
    const char *name, *state, *reason;
    tol_guard_stats(run->guard, &s);
    fprintf(stderr,
            "guard: %llu jobs, %llu answered (%llu of them failed, %llu by an earlier guard); %llu "
            "workers, of which %llu reported a fault, %llu were late, %llu broke the protocol, "
            "%llu ended\n",
            (unsigned long long)s.jobs, (unsigned long long)s.answered,
            (unsigned long long)s.failed, (unsigned long long)s.restored,
            (unsigned long long)s.workers, (unsigned long long)s.faults, (unsigned long long)s.late,
            (unsigned long long)s.garbage, (unsigned long long)s.gone);
    print_times("from a failure to the job's next worker", tol_guard_handovers(run->guard));
    print_times("from a failure to the device's next worker", tol_guard_recoveries(run->guard));
    for (size_t i = 0; tol_guard_device(run->guard, i, &name, &state, &reason); i++) {
        if (strcmp(state, "fenced") == 0)
            tol_plain_print(stderr, "guard: %s is fenced: %s\n", name, reason);
    }
}

static int guard_judge(const struct guard_run *run, tol_status status) {
    struct tol_guard_stats stats;
    tol_guard_stats(run->guard, &stats);
    if (status == TOL_CANCELLED) {
        hyp_command_complain("%s", hyp_session_message());
        return EXIT_INTERRUPTED;
    }
    if (status != TOL_OK) {
        const bool is_ours = run->results.error[0] != '\0';
        return hyp_command_complain("%s", is_ours ? run->results.error : hyp_session_message());
    }
    return stats.failed > 0 ? FAILED_JOBS : HYP_EXIT_OK;
}

static int guard_supervise(struct guard_run *run) {
    struct tol_guard_options options = run->options.guard;
    options.user = run;
    options.deliver = guard_deliver;
    options.note = note;
    if (!hyp_guard_results_open(&run->results, run->options.results, run->options.is_lines,
                                &options.delivered)) {
        return hyp_command_complain("%s", hyp_error());
    }
    if (tol_guard_open(&options, &run->guard) != TOL_OK) {
        return hyp_command_complain("%s", hyp_session_message());
    }
    if (!submit_all(run)) return hyp_command_complain("%s", hyp_error());
    running = run->guard;
    sigaction(SIGINT, &(struct sigaction){.sa_handler = guard_stop}, NULL);
    sigaction(SIGTERM, &(struct sigaction){.sa_handler = guard_stop}, NULL);
    const tol_status status = tol_guard_run(run->guard);
    const int code = guard_judge(run, status);
    if (run->options.is_json) {
        guard_print_json(run, code);
    } else {
        guard_print_text(run);
    }
    return code;
}

int hyp_command_guard(int count, char **words) {
    struct guard_run run = {.guard = NULL};
    int code = hyp_guard_options_read(&run.options, count, words);
    if (code == HYP_GUARD_RUNS) code = guard_supervise(&run);
    running = NULL;
    tol_guard_close(run.guard);
    if (!hyp_guard_results_close(&run.results) && code != HYP_EXIT_ERROR) {
        code = hyp_command_complain("%s", hyp_error());
    }
    hyp_guard_options_clear(&run.options);
    return code;
}
