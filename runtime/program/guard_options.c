/*
 * Words, devices and the probe of a device.
 *
 * Separate processes count the devices and probe each of them: the guard itself opens no
 * driver, so that no fault of a device can reach it.
 */
#include "guard_options.h"

#include "files/atomic_file.h"
#include "guard_probe.h"
#include "harness/session.h"
#include "run/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { NAME_BYTES = 24, SECONDS_MAX = 1000000 };

static const char usage[] =
    "usage: tollens guard [options] -- PROGRAM ARGUMENTS < jobs > answers\n"
    "\n"
    "Runs PROGRAM once per device and hands it jobs, one per line. If a worker's device fails, or "
    "if\n"
    "the worker hangs or dies, the guard ends it and gives its job to another device. It then "
    "probes\n"
    "the device, and uses it again or fences it with the reason. Each job is answered exactly "
    "once.\n"
    "\n"
    "    tollens guard --lines -- ./worker < jobs.txt > answers.txt\n"
    "    tollens guard --journal j --results r -- ./worker < jobs.txt    # survives SIGKILL\n"
    "    tollens guard -- tollens model run m.gguf --guarded < prompts\n"
    "\n"
    "  --lines           one line in, one line out, for any program; answers in the order of jobs\n"
    "  --jobs FILE       the jobs; default: stdin\n"
    "  --results FILE    append answers to FILE, after those that it has; default: stdout\n"
    "  --journal FILE    record jobs and answers in FILE; after any end, the same command "
    "continues\n"
    "                    with it. Requires --results\n"
    "  --sync            flush the journal to the disk for each record, for power failures\n"
    "  --order           answers in the order of jobs; default: in the order of completion\n"
    "  --devices LIST    cuda:0,cuda:1 or soft:0,soft:1 or any names; default: all devices\n"
    "  --probe P         auto: a kernel on the device (default), none, or a command for the shell\n"
    "  --job-time S      seconds from job to answer, or between two parts; default 60\n"
    "  --hello-time S    from start to hello; default 30\n"
    "  --beat-time S     between two heartbeats; default 10\n"
    "  --probe-time S    of a probe; default 30\n"
    "  --end-time S      from SIGKILL, or from the end of input, to the end of a worker; default "
    "10\n"
    "  --failures N      failures in a row after which a device is fenced; default 3\n"
    "  --attempts N      workers that a job may end before it fails; default 3\n"
    "  --verbose         report every change of a device's state, not only failures\n"
    "  --json            print the summary as one JSON object, on stderr\n"
    "  --states          print the table of states, and run nothing\n"
    "\n"
    "runtime/driver/guard/README.md describes what a worker must read and write; programs in C "
    "call\n"
    "tol_guard_worker_open and related functions. Exit codes: 0 every job is done, 1 a job "
    "failed,\n"
    "2 jobs are left (every device is fenced, or the journal is full) or an option is wrong, 130\n"
    "interrupted.\n";

/* ---- words ---- */

static const char *guard_options_value_of(const char *name, int count, char **words, int *at) {
    const size_t length = strlen(name);
    if (strcmp(words[*at], name) == 0) return *at + 1 < count ? words[++*at] : "";
    const bool fits = strncmp(words[*at], name, length) == 0 && words[*at][length] == '=';
    return fits ? words[*at] + length + 1 : NULL;
}

static bool read_times(struct hyp_guard_options *o, int count, char **words, int *at, bool *found) {
    const struct {
        const char *name;
        unsigned *ms, *number;
    } options[] = {
        {"--job-time", &o->guard.job_ms, NULL},   {"--hello-time", &o->guard.hello_ms, NULL},
        {"--beat-time", &o->guard.beat_ms, NULL}, {"--probe-time", &o->guard.probe_ms, NULL},
        {"--end-time", &o->guard.end_ms, NULL},   {"--failures", NULL, &o->guard.failures},
        {"--attempts", NULL, &o->guard.attempts}};
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        const char *value = guard_options_value_of(options[i].name, count, words, at);
        char *end = NULL;
        if (value == NULL) continue;
        *found = true;
        const double number = strtod(value, &end);
        const double least = options[i].ms != NULL ? 0.001 : 1;
        if (end == value || *end != '\0' || !(number >= least && number <= SECONDS_MAX)) {
            return hyp_fail("guard: %s must be a number from %g to %d, not '%s'", options[i].name,
                            least, SECONDS_MAX, value);
        }
        if (options[i].ms != NULL) *options[i].ms = (unsigned)(number * 1000 + 0.5);
        if (options[i].number != NULL) *options[i].number = (unsigned)number;
    }
    return true;
}

static bool guard_options_read_flag(struct hyp_guard_options *o, const char *word) {
    const struct {
        const char *name;
        bool *flag;
    } flags[] = {{"--lines", &o->is_lines},
                 {"--sync", &o->guard.is_synced},
                 {"--order", &o->guard.in_order},
                 {"--verbose", &o->is_verbose},
                 {"--json", &o->is_json}};
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        if (strcmp(word, flags[i].name) == 0) return *flags[i].flag = true;
    }
    return false;
}

static bool guard_options_read_word(struct hyp_guard_options *o, int count, char **words, int *at,
                                    const char **devices) {
    const char *value = NULL;
    bool found = false;
    if (!read_times(o, count, words, at, &found)) return false;
    if (found || guard_options_read_flag(o, words[*at])) return true;
    if ((value = guard_options_value_of("--jobs", count, words, at)) != NULL) {
        o->jobs = value;
    } else if ((value = guard_options_value_of("--results", count, words, at)) != NULL) {
        o->results = value;
    } else if ((value = guard_options_value_of("--journal", count, words, at)) != NULL) {
        o->guard.journal = value;
    } else if ((value = guard_options_value_of("--probe", count, words, at)) != NULL) {
        o->probe_word = value;
    } else if ((value = guard_options_value_of("--devices", count, words, at)) != NULL) {
        *devices = value;
    } else {
        return hyp_fail("guard: %s is not an option; the program follows --%s", words[*at],
                        hyp_command_meant(words[*at]));
    }
    return value[0] != '\0' || hyp_fail("guard: %s requires a value", words[*at]);
}

/* ---- devices ---- */

/* "cuda:0,cuda:1", as another process counts them. Free it. */
static char *guard_options_count_devices(void) {
    char command[4200], line[4096] = "";
    snprintf(command, sizeof command, "'%s' guard --count-devices", hyp_session_program());
    FILE *pipe = popen(command, "re");
    if (pipe == NULL) return NULL;
    const bool is_there = fgets(line, sizeof line, pipe) != NULL;
    const int code = pclose(pipe);
    line[strcspn(line, "\n")] = '\0';
    if (!is_there || code != 0) {
        hyp_fail("guard: no device was found: %s", line);
        return NULL;
    }
    return strdup(line);
}

static bool list_devices(struct hyp_guard_options *o, const char *list) {
    size_t count = 1;
    o->names = list != NULL ? strdup(list) : guard_options_count_devices();
    if (o->names == NULL) return false;
    for (const char *c = o->names; *c != '\0'; c++) count += *c == ',';
    o->devices = calloc(count, sizeof *o->devices);
    if (o->devices == NULL) return hyp_fail("guard: out of memory");
    char *rest = o->names;
    for (size_t i = 0; i < count; i++) o->devices[i] = strsep(&rest, ",");
    o->guard.devices = o->devices;
    o->guard.device_count = count;
    return true;
}

static void choose_probe(struct hyp_guard_options *o) {
    const char *word = o->probe_word != NULL ? o->probe_word : "auto";
    const bool has_driver =
        strncmp(o->devices[0], "cuda:", 5) == 0 || strncmp(o->devices[0], "soft:", 5) == 0;
    if (strcmp(word, "none") == 0 || (strcmp(word, "auto") == 0 && !has_driver)) return;
    const bool is_own = strcmp(word, "auto") == 0;
    o->probe[0] = is_own ? hyp_session_program() : "sh";
    o->probe[1] = is_own ? "guard" : "-c";
    o->probe[2] = is_own ? "--probe-device" : word;
    o->guard.probe = o->probe;
}

/* ---- all ---- */

static void guard_options_print_row(void *user, const char *from, const char *event, const char *to,
                                    uint64_t count) {
    (void)count; /* nothing ran */
    fprintf(user, "%-9s  %-14s  %s\n", from, event, to);
}

/* Words that ask for something else than a run. */
static int read_alone(const char *word) {
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
        fputs(usage, stdout);
    } else if (strcmp(word, "--states") == 0) {
        tol_guard_moves(guard_options_print_row, stdout);
    } else if (strcmp(word, "--probe-device") == 0) {
        return hyp_guard_probe();
    } else if (strcmp(word, "--count-devices") == 0) {
        return hyp_guard_count();
    } else {
        return HYP_GUARD_RUNS;
    }
    return HYP_EXIT_OK;
}

int hyp_guard_options_read(struct hyp_guard_options *o, int count, char **words) {
    const char *devices = NULL;
    int at = 0;
    *o = (struct hyp_guard_options){.jobs = NULL};
    hyp_command_has_help(usage, strlen(usage));
    const int alone = count > 0 ? read_alone(words[0]) : HYP_GUARD_RUNS;
    if (alone != HYP_GUARD_RUNS) return alone;
    for (; at < count && strcmp(words[at], "--") != 0; at++) {
        if (!guard_options_read_word(o, count, words, &at, &devices)) {
            return hyp_command_complain("%s", hyp_error());
        }
    }
    if (at + 1 >= count) {
        return hyp_command_complain("guard requires a program: tollens guard -- PROGRAM ARGUMENTS");
    }
    if (o->guard.journal != NULL && o->results == NULL) {
        return hyp_command_complain("guard: --journal requires --results FILE, which records the "
                                    "answers for a later start; stdout cannot");
    }
    /* Words are the program's own strings, and an array of them is what a guard takes. */
    const char **program = calloc((size_t)(count - at), sizeof *program);
    if (program == NULL) return hyp_command_complain("guard: out of memory");
    for (int i = at + 1; i < count; i++) program[i - at - 1] = words[i];
    o->guard.program = program;
    if (!list_devices(o, devices)) return hyp_command_complain("%s", hyp_error());
    choose_probe(o);
    o->guard.talk = o->is_lines ? TOL_GUARD_LINES : TOL_GUARD_FRAMES;
    o->guard.in_order |= o->is_lines;
    return HYP_GUARD_RUNS;
}

void hyp_guard_options_clear(struct hyp_guard_options *o) {
    free((void *)(uintptr_t)o->guard.program);
    free(o->names);
    free(o->devices);
    *o = (struct hyp_guard_options){.jobs = NULL};
}
