/*
 * run: the chosen claims are tried, everything is written down, and the exit code is made of the
 * verdicts.
 */
#include "harness/clock.h"
#include "run/command.h"
#include "run/evidence.h"
#include "files/atomic_file.h"
#include "run/repeats.h"
#include "run/runner.h"
#include "run/console.h"
#include "record/timeline.h"
#include "run/schedule.h"
#include "run/run_options.h"
#include "run/worker.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- where the evidence goes ----------------------------------------------------------------- */

/* A folder that is not empty has another run's evidence and is left unchanged. */
static bool check_empty(const char *path) {
    DIR *folder = opendir(path);
    if (folder == NULL) {
        return errno == ENOENT ||
               hyp_fail("%s cannot be used for the evidence: %s", path, strerror(errno));
    }
    size_t entries = 0;
    while (readdir(folder) != NULL) entries++;
    closedir(folder);
    return entries <= 2 || hyp_fail("%s is not empty: evidence is never overwritten", path);
}

static bool run_make_folder(const char *out, char *folder, size_t bytes) {
    char stamp[32];
    struct tm day;
    time_t now = time(NULL);
    if (out != NULL) {
        snprintf(folder, bytes, "%s", out);
        return check_empty(folder) && hyp_directory_make(folder);
    }
    strftime(stamp, sizeof stamp, "%Y%m%dT%H%M%SZ", gmtime_r(&now, &day));
    snprintf(folder, bytes, "evidence/%s", stamp);
    for (int i = 2; !check_empty(folder) && i < 100; i++) {
        snprintf(folder, bytes, "evidence/%s-%d", stamp, i);
    }
    return hyp_directory_make(folder);
}

/* ---- the end --------------------------------------------------------------------------------- */

static bool has_checked_nothing; /* and that is an error */

/* A claim that was not tested may have had attacks, whose mechanics ran. */
static bool run_checked_nothing(const struct hyp_run *run) {
    for (size_t i = 0; i < hyp_claim_count(); i++) {
        const struct hyp_verdict *verdict = &run->verdicts[i];
        if (run->chosen[i] && verdict->kind != HYP_NOT_TESTED) return false;
        for (size_t k = 0; run->chosen[i] && k < verdict->outcome_count; k++) {
            const struct hyp_outcome *outcome = &verdict->outcomes[k];
            if (outcome->has_record && outcome->record.samples > 0) return false;
        }
    }
    return true;
}

static int exit_code(const struct hyp_run *run, const struct hyp_run_options *options) {
    bool broken = false, blind = false, untold = false;
    for (size_t i = 0; i < hyp_claim_count(); i++) {
        const struct hyp_verdict *verdict = &run->verdicts[i];
        broken |= run->chosen[i] && verdict->broken;
        if (!run->chosen[i] || !verdict->has_severity) continue;
        blind |= verdict->caught + verdict->untold < verdict->saboteurs ||
                 verdict->borderline_right < verdict->borderline;
        untold |= verdict->untold > 0;
    }
    if (hyp_run_count(run, HYP_FALSIFIED) > 0) return HYP_EXIT_FALSIFIED;
    if (broken || blind || hyp_runner_interrupted()) return HYP_EXIT_ERROR;
    if (options->require_gpu && hyp_run_count(run, HYP_NOT_TESTED) > 0) return HYP_EXIT_FALSIFIED;
    has_checked_nothing = !options->allow_untested && run_checked_nothing(run);
    if (has_checked_nothing) return HYP_EXIT_ERROR;
    if ((untold || hyp_run_count(run, HYP_INCONCLUSIVE) > 0) && !options->inconclusive_warns) {
        return HYP_EXIT_INCONCLUSIVE;
    }
    return HYP_EXIT_OK;
}

/* run.json comes last: where it is, all the others are. */
static bool run_write_all(const struct hyp_run *run) {
    return hyp_evidence_summary(run) && hyp_evidence_junit(run) && hyp_evidence_results(run) &&
           hyp_evidence_end(run);
}

/* What would run, and nothing of it. */
static int list_chosen(const struct hyp_run *run) {
    enum { NAMES_MAX = 64 };
    json_t *attacks = json_array();
    for (size_t i = 0; i < hyp_claim_count(); i++) {
        const char *names[NAMES_MAX];
        const struct hyp_claim *claim = &hyp_claims()[i];
        if (!run->chosen[i]) continue;
        size_t count = hyp_worker_list(claim->suite, run->session.filter, names, NAMES_MAX);
        if (count == 0) hyp_command_say("%-*sno attack yet\n", hyp_claim_width(), claim->id);
        for (size_t k = 0; k < count && k < NAMES_MAX; k++) {
            hyp_command_say("%-*s%s\n", hyp_claim_width(), claim->id, names[k]);
            json_array_append_new(attacks,
                                  json_pack("{s:s, s:s}", "claim", claim->id, "name", names[k]));
        }
    }
    json_t *document = json_pack("{s:o}", "attacks", attacks);
    if (hyp_command_is_json()) return hyp_command_answer("run", document, HYP_EXIT_OK);
    json_decref(document);
    return HYP_EXIT_OK;
}

/* Tries every chosen claim and writes all of it into run->folder, which exists. false:
 * hyp_error(). */
static bool run_once(struct hyp_run *run, const struct hyp_run_options *options) {
    uint64_t begin_ns = hyp_clock_ns();
    bool ok =
        hyp_machine_write(&run->machine, run->folder) && hyp_schedule_run(run, options->verbose);
    run->duration_s = (double)(hyp_clock_ns() - begin_ns) * 1e-9;
    run->exit_code = exit_code(run, options);
    ok = ok && run_write_all(run);
    if (ok) hyp_console_end(run, options);
    return ok;
}

static void end_verdicts(struct hyp_run *run) {
    for (size_t i = 0; i < hyp_claim_count(); i++) hyp_verdict_end(&run->verdicts[i]);
}

/* Runs everything repeatedly, each time in its own folder. */
static bool run_repeatedly(struct hyp_run *run, const struct hyp_run_options *options, int *code) {
    static struct hyp_repeats repeats;
    char folder[1000];
    const char *top = run->folder;
    repeats.wanted = (unsigned)options->repeats;
    bool ok = true;
    while (ok && repeats.done < repeats.wanted && !hyp_runner_interrupted()) {
        snprintf(folder, sizeof folder, "%s/repeat%u", top, repeats.done + 1);
        hyp_console_say("%sRun %u of %u\n", repeats.done > 0 ? "\n" : "", repeats.done + 1,
                        repeats.wanted);
        run->folder = folder;
        run->machine.begin_s = hyp_clock_day_s();
        ok = hyp_directory_make(folder) && run_once(run, options);
        if (ok) {
            hyp_repeats_count(&repeats, run);
            ok = hyp_repeats_write(&repeats, run, top);
        }
        end_verdicts(run);
    }
    run->folder = top;
    if (ok) hyp_repeats_print(&repeats, run, hyp_command_is_json() ? stderr : stdout);
    *code = repeats.worst;
    return ok;
}

/* A plugin's claim brings what it needs. */
static bool needs_fixtures(const struct hyp_run *run) {
    bool any = false;
    for (size_t i = 0; i < hyp_claim_own_count(); i++) any |= run->chosen[i];
    return any;
}

/* The file that says most about what was done, and where it and the others are. */
static int run_answer(const struct hyp_run *run, const struct hyp_run_options *options) {
    const char *name = options->repeats > 0 ? "repeats" : "results";
    char path[1000];
    json_error_t error;
    snprintf(path, sizeof path, "%s/%s.json", run->folder, name);
    json_t *written = json_load_file(path, 0, &error);
    if (written == NULL) return hyp_command_complain("%s: %s", path, error.text);
    return hyp_command_answer("run",
                              json_pack("{s:s, s:i, s:o}", "evidence", run->folder, "exit_code",
                                        run->exit_code, name, written),
                              run->exit_code);
}

/* A device is shared by a few at most: each process has a context there, and buffers. A trace of
 * several at once would show when each waited for the others. */
static unsigned default_jobs(const struct hyp_run *run, const struct hyp_run_options *options) {
    const uint64_t most = 8, each_bytes = 8ull << 30;
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t jobs = processors > 0 ? (uint64_t)processors : 1;
    if (options->trace != NULL) return 1;
    if (run->machine.kind != HYP_DEVICE_SOFT) {
        const uint64_t room = run->machine.device.memory_bytes / each_bytes;
        if (room < jobs) jobs = room > 0 ? room : 1;
    }
    return (unsigned)(jobs < most ? jobs : most);
}

/* What is wrong with the combination of options; NULL: nothing. */
static const char *run_contradiction(const struct hyp_run *run,
                                     const struct hyp_run_options *options) {
    if (options->require_gpu && run->session.kind == HYP_DEVICE_SOFT) {
        return "--require-gpu and --device soft cannot be combined";
    }
    if (run->under != NULL && run->sabotage) {
        return "--under and --sabotage cannot be combined: one applies one saboteur, the other all "
               "of them";
    }
    if (run->under != NULL && run->limits) {
        return "--under and --limits cannot be combined: one applies one saboteur, the other many";
    }
    return NULL;
}

int hyp_command_run(int count, char **words) {
    static struct hyp_run run;
    struct hyp_run_options options = {0};
    char folder[900];
    if (!hyp_run_options_read(count, words, &run, &options)) {
        return hyp_command_complain("%s", hyp_error());
    }
    if (access("/proc/self/maps", R_OK) != 0) {
        hyp_command_next("mount -t proc proc /proc, in the container or the chroot");
        return hyp_command_complain("/proc is not mounted: without it no attack can be found");
    }
    if (options.list) return list_chosen(&run);
    const char *why = run_contradiction(&run, &options);
    if (why != NULL) return hyp_command_complain("%s", why);
    hyp_command_next("%s doctor", hyp_command_program());
    if (options.require_gpu) run.session.kind = HYP_DEVICE_CUDA;
    if (needs_fixtures(&run) && hyp_session_root() == NULL) {
        return hyp_command_complain("%s", hyp_error());
    }
    if (hyp_machine_read(&run.session, &run.machine) != TOL_OK) {
        return hyp_command_complain("no %s device: %s", hyp_device_kind_name(run.session.kind),
                                    hyp_session_message());
    }
    run.session.kind = run.machine.kind;
    if (run.jobs == 0) run.jobs = default_jobs(&run, &options);
    char *command = hyp_run_options_command(count, words);
    if (command == NULL) return hyp_command_complain("out of memory");
    run.command = command;
    run.folder = folder;
    (void)hyp_runner_interrupted();

    hyp_command_next("%s run --out DIR, with an empty folder of a disk that has room",
                     hyp_command_program());
    bool ok =
        run_make_folder(options.out, folder, sizeof folder) &&
        (options.trace == NULL || hyp_timeline_begin(options.trace, (unsigned)options.trace_every,
                                                     (unsigned)options.trace_share));
    if (ok) {
        hyp_console_begin(&run);
        ok = options.repeats > 0 ? run_repeatedly(&run, &options, &run.exit_code)
                                 : run_once(&run, &options);
    }
    end_verdicts(&run);
    ok = hyp_timeline_end() && ok;
    if (!ok) {
        free(command);
        return hyp_command_complain("%s", hyp_error());
    }
    if (hyp_runner_interrupted()) {
        hyp_command_complain("interrupted; the results so far are in %s", folder);
        hyp_command_next("%s", run.command);
    }
    if (has_checked_nothing) {
        hyp_command_complain("no attack checked anything, so nothing is known");
        hyp_command_next("%s --allow-untested, if that is no failure", run.command);
    }
    if (hyp_command_is_json()) run.exit_code = run_answer(&run, &options);
    free(command);
    return run.exit_code;
}
