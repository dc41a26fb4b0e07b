/*
 * Runs one worker process: environment, pipe, deadline and ending.
 */
#include "runner.h"

#include "harness/clock.h"
#include "files/atomic_file.h"
#include "judge/verdict_judge.h"
#include "process_await.h"
#include "worker.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ATTACKS_MAX = 64, PIPE_IN_WORKER = 3 };

/* How long the worker may spend on an attack, which it should have ended itself, before it is
 * killed with its process group; and how long between two attacks or before the first. */
static double runner_limit_s(double deadline_s, bool is_between) {
    const double between_s = 60;
    return is_between ? between_s : deadline_s < 250 ? 5 + 1.1 * deadline_s : deadline_s + 30;
}

static volatile sig_atomic_t stop;

static void on_signal(int number) {
    (void)number;
    stop = 1;
}

bool hyp_runner_interrupted(void) {
    static bool installed;
    if (!installed) {
        struct sigaction action = {.sa_handler = on_signal};
        sigaction(SIGINT, &action, NULL);
        sigaction(SIGTERM, &action, NULL);
        sigaction(SIGHUP, &action, NULL);
        installed = true;
    }
    return stop != 0;
}

/* ---- the environment ------------------------------------------------------------------------- */

enum { VARIABLES = 12, PADDING_BYTES_MAX = 4096 };

static const char padding_name[] = "TOLLENS_PADDING=";

struct environment {
    char own[VARIABLES][PATH_MAX + 64]; /* "NAME=value" */
    char padding[sizeof padding_name + PADDING_BYTES_MAX];
    char **entries;
};

/* The size of the environment moves the stack, and with it what shares a line of a cache: programs
 * run some per cent faster or slower by it. So each fresh process has another size, drawn from the
 * seed; a lone process has none to be compared with.
 * Source: Mytkowicz, Diwan, Hauswirth and Sweeney, "Producing wrong data without doing anything
 * obviously wrong", ASPLOS 2009. */
static void runner_pad(uint64_t seed, unsigned process, unsigned processes, char *padding) {
    uint64_t z = (seed * HYP_PROCESSES + process) * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    size_t bytes = processes > 1 ? (size_t)(z >> 33) % PADDING_BYTES_MAX : 0;
    size_t name = sizeof padding_name - 1;
    memcpy(padding, padding_name, name);
    memset(padding + name, 'x', bytes);
    padding[name + bytes] = '\0';
}

static bool runner_is_replaced(const struct environment *environment, const char *entry) {
    for (size_t i = 0; i < VARIABLES; i++) {
        size_t name = strcspn(environment->own[i], "=") + 1;
        if (strncmp(environment->own[i], entry, name) == 0) return true;
    }
    return strncmp(padding_name, entry, sizeof padding_name - 1) == 0;
}

/* The number of fresh processes for a claim's attacks. Differences between processes, such as
 * memory layout, change times by more than the blocks of one process show. For a saboteur one is
 * enough. */
static unsigned processes_for(const struct hyp_task *task) {
    const struct hyp_words *words = task->claim->words;
    bool many = words != NULL && words->is_timed && task->session->full && task->saboteur == NULL;
    return many ? HYP_PROCESSES : 1;
}

/* Copies this process's environment and replaces some variables. false: out of memory. */
static bool runner_make_environment(const struct hyp_task *task, const char *relative,
                                    const struct hyp_outcome *pass,
                                    struct environment *environment) {
    extern char **environ;
    /* An attack may change its working directory. */
    char folder[PATH_MAX];
    if (realpath(relative, folder) == NULL) {
        return hyp_fail("%s cannot be resolved: %s", relative, strerror(errno));
    }
    const struct hyp_session *session = task->session;
    size_t count = 0, kept = 0, room = sizeof environment->own[0];
    snprintf(environment->own[0], room, "TOLLENS_DEVICE=%s:%d", hyp_device_kind_name(session->kind),
             session->ordinal);
    snprintf(environment->own[1], room, "TOLLENS_MODE=%s", session->full ? "full" : "quick");
    snprintf(environment->own[2], room, "TOLLENS_SEED=%llu", (unsigned long long)pass->seed);
    snprintf(environment->own[3], room, "TOLLENS_OUT=%s", folder);
    snprintf(environment->own[4], room, "TOLLENS_SABOTAGE=%s",
             task->saboteur != NULL ? task->saboteur : "");
    snprintf(environment->own[5], room, "TOLLENS_SOFT_REPORT=%s/faults.jsonl", folder);
    snprintf(environment->own[6], room, "TOLLENS_ATTACK_PIPE=%d", PIPE_IN_WORKER);
    snprintf(environment->own[7], room, "TOLLENS_FILTER=%s",
             session->filter != NULL ? session->filter : "");
    snprintf(environment->own[8], room, "TOLLENS_DEADLINE=%.0f", hyp_session_deadline_s(session));
    snprintf(environment->own[9], room, "TOLLENS_PROCESS=%u", pass->process);
    snprintf(environment->own[10], room, "TOLLENS_REPEATED=%d", pass->seed != session->seed);
    snprintf(environment->own[11], room, "TOLLENS_ENOUGH=%d", task->first_is_enough);
    runner_pad(session->seed, pass->process, processes_for(task), environment->padding);
    while (environ[count] != NULL) count++;
    environment->entries = calloc(count + VARIABLES + 2, sizeof *environment->entries);
    if (environment->entries == NULL) return hyp_fail("out of memory for a worker");
    for (size_t i = 0; i < count; i++) {
        if (!runner_is_replaced(environment, environ[i])) environment->entries[kept++] = environ[i];
    }
    for (size_t i = 0; i < VARIABLES; i++) environment->entries[kept++] = environment->own[i];
    environment->entries[kept++] = environment->padding;
    return true;
}

/* ---- the process ----------------------------------------------------------------------------- */

struct worker {
    pid_t process;
    int pipe;
    const char *folder;           /* of its evidence */
    struct hyp_outcome *outcomes; /* its part of the verdict's outcomes, one and more */
    size_t count;
    struct hyp_outcome *running;
    bool is_enough;    /* the claim is falsified, and no more attacks are needed */
    bool is_late;      /* the task's time is over */
    bool is_stuck;     /* it was killed and has not ended */
    uint64_t begin_ns; /* when the running attack began, or the last one ended */
    char text[4096];   /* input that is not yet a complete line */
    size_t length;
};

static bool runner_start(const struct hyp_task *task, struct worker *worker) {
    char log[1100];
    char *arguments[] = {"tollens", "attack", (char *)task->claim->suite, NULL};
    int ends[2];
    struct environment environment;
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    snprintf(log, sizeof log, "%s/attacks.log", worker->folder);
    if (!runner_make_environment(task, worker->folder, worker->outcomes, &environment))
        return false;
    if (pipe2(ends, O_CLOEXEC) != 0) {
        free(environment.entries);
        return hyp_fail("a pipe for a worker could not be created: %s", strerror(errno));
    }
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log, O_WRONLY | O_CREAT | O_APPEND,
                                     0666);
    posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
    posix_spawn_file_actions_adddup2(&actions, ends[1], PIPE_IN_WORKER);
    /* A process group of its own, so that one kill ends it and the processes of its attacks. */
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setpgroup(&attributes, 0);
    int error = posix_spawn(&worker->process, hyp_session_program(), &actions, &attributes,
                            arguments, environment.entries);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    free(environment.entries);
    close(ends[1]);
    worker->pipe = ends[0];
    if (error == 0) return true;
    close(ends[0]);
    return hyp_fail("a worker for %s could not be started: %s", task->claim->id, strerror(error));
}

static struct hyp_outcome *runner_find(const struct worker *worker, const char *name) {
    for (size_t i = 0; i < worker->count; i++) {
        if (strcmp(worker->outcomes[i].name, name) == 0) return &worker->outcomes[i];
    }
    return NULL;
}

static const char *const endings[] = {[HYP_PASSED] = "passed",
                                      [HYP_FAILED] = "failed",
                                      [HYP_SKIPPED] = "skipped",
                                      [HYP_CRASHED] = "crashed",
                                      [HYP_OVERDUE] = "overdue"};

/* Whether the violations of one attack falsify the claim, whatever others would find. */
static bool falls_by(const struct hyp_task *task, const struct worker *worker,
                     const struct hyp_outcome *outcome) {
    struct hyp_outcome alone = *outcome;
    struct hyp_verdict verdict = {.outcomes = &alone, .outcome_count = 1, .processes = 1};
    alone.has_record = hyp_record_read(worker->folder, alone.name, &alone.record);
    if (!alone.has_record || alone.record.violations == 0) return false;
    hyp_verdict_judge(task->claim, 0, &verdict);
    return verdict.kind == HYP_FALSIFIED;
}

static void runner_read_line(const struct hyp_task *task, struct worker *worker, char *line) {
    char *rest = line;
    const char *event = strsep(&rest, " "), *name = strsep(&rest, " ");
    struct hyp_outcome *outcome = name != NULL ? runner_find(worker, name) : NULL;
    if (outcome == NULL) return;
    if (strcmp(event, "begin") == 0) {
        worker->running = outcome;
        worker->begin_ns = hyp_clock_ns();
        return;
    }
    const char *ending = strsep(&rest, " ");
    for (enum hyp_ending e = HYP_PASSED; ending != NULL && e <= HYP_OVERDUE; e++) {
        if (strcmp(ending, endings[e]) == 0) outcome->ending = e;
    }
    snprintf(outcome->detail, sizeof outcome->detail, "%s", rest != NULL ? rest : "");
    double seconds = (double)(hyp_clock_ns() - worker->begin_ns) * 1e-9;
    worker->running = NULL;
    worker->begin_ns = hyp_clock_ns();
    if (task->first_is_enough && outcome->ending == HYP_FAILED) {
        worker->is_enough |= falls_by(task, worker, outcome);
    }
    if (task->saboteur == NULL) {
        char text[160];
        const char *folder = outcome->folder;
        snprintf(text, sizeof text, "%s%s%s%s", name, folder[0] != '\0' ? " [" : "", folder,
                 folder[0] != '\0' ? "]" : "");
        hyp_progress_ended(task->watch, task->claim->id, text, ending, seconds);
    }
}

/* Reads from the worker. false: it has closed the pipe. */
static bool listen_to(const struct hyp_task *task, struct worker *worker) {
    const size_t most = sizeof worker->text - 1;
    const size_t room = worker->length < most ? most - worker->length : 0;
    ssize_t count = read(worker->pipe, worker->text + worker->length, room);
    if (count <= 0) return count < 0 && errno == EINTR;
    worker->length += (size_t)count;
    worker->text[worker->length] = '\0';
    char *line = worker->text;
    for (char *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        *end = '\0';
        runner_read_line(task, worker, line);
    }
    worker->length -= (size_t)(line - worker->text);
    memmove(worker->text, line, worker->length);
    if (worker->length == sizeof worker->text - 1) worker->length = 0; /* not our protocol */
    return true;
}

static void runner_show(const struct hyp_task *task, const struct worker *worker) {
    char path[1100], line[160];
    const char *finding = "";
    double share = -1;
    if (worker->running == NULL) return;
    snprintf(path, sizeof path, "%s/progress", worker->folder);
    FILE *file = fopen(path, "r");
    if (file != NULL && fgets(line, sizeof line, file) != NULL) {
        char *end = line;
        share = strtod(line, &end);
        end[strcspn(end, "\n")] = '\0';
        finding = end + (*end == ' ');
    }
    if (file != NULL) fclose(file);
    hyp_progress_running(task->watch, task->claim->id, task->saboteur, worker->running->name, share,
                         finding, (double)(hyp_clock_ns() - worker->begin_ns) * 1e-9);
}

/* Whether the worker has ended, without reaping it. Its children may still run and hold the pipe
 * open, so the pipe alone does not show it. */
static bool runner_has_ended(const struct worker *worker) {
    siginfo_t info = {.si_pid = 0};
    int result = waitid(P_PID, (id_t)worker->process, &info, WEXITED | WNOHANG | WNOWAIT);
    return result == 0 && info.si_pid == worker->process;
}

/* Whether the worker has been silent for too long, or its task's time is over. Marks the current or
 * next attack as overdue. */
static bool is_overdue(const struct hyp_task *task, struct worker *worker, double deadline_s) {
    const uint64_t now_ns = hyp_clock_ns();
    const double seconds = (double)(now_ns - worker->begin_ns) * 1e-9;
    worker->is_late = task->until_ns > 0 && now_ns >= task->until_ns;
    if (!worker->is_late && seconds <= runner_limit_s(deadline_s, worker->running == NULL))
        return false;
    struct hyp_outcome *at = worker->running;
    for (size_t i = 0; at == NULL && i < worker->count; i++) {
        if (worker->outcomes[i].ending == HYP_NEVER_RAN) at = &worker->outcomes[i];
    }
    if (at != NULL) at->ending = HYP_OVERDUE;
    return true;
}

/* Follows the worker until it ends, or kills it. Sets its wait status; false: it was killed and has
 * not ended, as a process that waits for a device in the kernel may not. */
static bool runner_follow(const struct hyp_task *task, struct worker *worker, double deadline_s,
                          int *status) {
    const double patience_s = 30;
    uint64_t killed_ns = 0;
    worker->begin_ns = hyp_clock_ns();
    for (bool open = true; open;) {
        struct pollfd wait = {.fd = worker->pipe, .events = POLLIN};
        /* Checked before the pipe is read, which then has all its output. */
        bool ended = runner_has_ended(worker);
        int ready = poll(&wait, 1, 100);
        if (ready > 0) open = listen_to(task, worker);
        if (ready == 0 && ended) break;
        runner_show(task, worker);
        if (killed_ns != 0 && (double)(hyp_clock_ns() - killed_ns) * 1e-9 > patience_s) break;
        if (killed_ns == 0 && (worker->is_enough || hyp_runner_interrupted() ||
                               is_overdue(task, worker, deadline_s))) {
            kill(-worker->process, SIGKILL);
            killed_ns = hyp_clock_ns();
        }
    }
    close(worker->pipe);
    const bool is_over =
        hyp_process_await(worker->process, killed_ns != 0 ? patience_s : 0, status);
    /* Children of a killed worker. */
    kill(-worker->process, SIGKILL);
    return is_over;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static size_t count_lines(const char *folder, const char *name) {
    char path[1100];
    size_t lines = 0;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "r");
    if (file == NULL) return 0;
    for (int c; (c = fgetc(file)) != EOF;) lines += c == '\n';
    fclose(file);
    return lines;
}

/* Explains the attacks that did not report how they ended. */
static void explain_missing(int status, const struct worker *worker) {
    for (size_t i = 0; i < worker->count; i++) {
        struct hyp_outcome *outcome = &worker->outcomes[i];
        if (outcome->detail[0] != '\0') continue;
        size_t room = sizeof outcome->detail;
        if (outcome->ending == HYP_OVERDUE) {
            snprintf(outcome->detail, room, "it did not end before %s deadline%s",
                     worker->is_late ? "the saboteur's" : "its",
                     worker->is_stuck ? ", nor within 30 s of being killed" : "");
        } else if (outcome->ending != HYP_NEVER_RAN) {
            continue;
        } else if (worker->is_enough) {
            snprintf(outcome->detail, room, "it was not needed: the claim was already falsified");
        } else if (hyp_runner_interrupted()) {
            snprintf(outcome->detail, room, "the run was interrupted");
        } else if (WIFSIGNALED(status)) {
            snprintf(outcome->detail, room, "the worker was killed by signal %d (%s)",
                     WTERMSIG(status), strsignal(WTERMSIG(status)));
        } else {
            snprintf(outcome->detail, room, "the worker ended with exit code %d before it ran",
                     WEXITSTATUS(status));
        }
    }
}

/* How often a claim's attacks run, each time in a fresh process: a claim about time in several
 * processes, any other once with each seed. */
static void choose_passes(const struct hyp_task *task, struct hyp_verdict *verdict) {
    const struct hyp_words *words = task->claim->words;
    bool is_timed = words != NULL && words->is_timed;
    verdict->processes = processes_for(task);
    verdict->planned_seeds = is_timed || task->seeds == 0 ? 1 : task->seeds;
}

/* What the outcomes of one pass are of, and where they leave their evidence. */
static void name_outcomes(const struct hyp_task *task, const char *const names[], unsigned pass,
                          const struct hyp_verdict *verdict) {
    const size_t count = verdict->planned_count / hyp_runner_passes(verdict);
    const uint64_t seed = task->session->seed + (verdict->planned_seeds > 1 ? pass : 0);
    for (size_t i = 0; i < count; i++) {
        struct hyp_outcome *outcome = &verdict->outcomes[pass * count + i];
        outcome->process = verdict->planned_seeds > 1 ? 1 : pass + 1;
        outcome->seed = seed;
        snprintf(outcome->name, sizeof outcome->name, "%s", names[i]);
        if (pass > 0 && verdict->planned_seeds > 1) {
            snprintf(outcome->folder, sizeof outcome->folder, "seed%llu", (unsigned long long)seed);
        } else if (pass > 0) {
            snprintf(outcome->folder, sizeof outcome->folder, "process%u", pass + 1);
        }
    }
}

/* Runs all attacks in one process. false: it could not be started. */
static bool run_process(const struct hyp_task *task, struct worker *worker) {
    char path[1100];
    if (!hyp_directory_make(worker->folder) || !runner_start(task, worker)) return false;
    int status = 0;
    worker->is_stuck = !runner_follow(task, worker, hyp_session_deadline_s(task->session), &status);
    explain_missing(status, worker);
    hyp_progress_clear(task->watch);
    snprintf(path, sizeof path, "%s/progress", worker->folder);
    unlink(path);
    snprintf(path, sizeof path, "%s/attacks", worker->folder);
    hyp_directory_sweep(path);
    hyp_directory_sweep(worker->folder);
    for (size_t i = 0; i < worker->count; i++) {
        struct hyp_outcome *outcome = &worker->outcomes[i];
        outcome->has_record = hyp_record_read(worker->folder, outcome->name, &outcome->record);
    }
    return true;
}

size_t hyp_runner_steps(const struct hyp_task *task) {
    struct hyp_verdict verdict;
    choose_passes(task, &verdict);
    return hyp_worker_list(task->claim->suite, task->session->filter, NULL, 0) *
           hyp_runner_passes(&verdict);
}

/* The number of attacks of each pass. */
static size_t in_pass(const struct hyp_verdict *verdict) {
    return verdict->planned_count / hyp_runner_passes(verdict);
}

/* Where a pass leaves its evidence. */
static void pass_folder(const struct hyp_task *task, const struct hyp_verdict *verdict,
                        unsigned pass, char *folder, size_t bytes) {
    const char *below = verdict->outcomes[pass * in_pass(verdict)].folder;
    snprintf(folder, bytes, "%.980s%s%s", task->folder, below[0] != '\0' ? "/" : "", below);
}

unsigned hyp_runner_passes(const struct hyp_verdict *verdict) {
    return verdict->processes * verdict->planned_seeds;
}

bool hyp_runner_begin(const struct hyp_task *task, struct hyp_verdict *verdict) {
    const char *names[ATTACKS_MAX];
    memset(verdict, 0, sizeof *verdict);
    choose_passes(task, verdict);
    size_t count = hyp_worker_list(task->claim->suite, task->session->filter, names, ATTACKS_MAX);
    if (count > ATTACKS_MAX)
        return hyp_fail("%s has %zu attacks; at most %d are supported", task->claim->id, count,
                        ATTACKS_MAX);
    if (!hyp_directory_make(task->folder)) return false;
    verdict->left_out = hyp_worker_list(task->claim->suite, NULL, NULL, 0) - count;
    const unsigned passes = hyp_runner_passes(verdict);
    verdict->planned_count = count * passes;
    verdict->outcomes = calloc(verdict->planned_count + 1, sizeof *verdict->outcomes);
    if (verdict->outcomes == NULL) return hyp_fail("out of memory for %zu outcomes", count);
    for (unsigned pass = 0; pass < passes; pass++) name_outcomes(task, names, pass, verdict);
    return true;
}

bool hyp_runner_pass(const struct hyp_task *task, struct hyp_verdict *verdict, unsigned pass) {
    char folder[1024];
    const size_t count = in_pass(verdict);
    struct worker worker = {
        .pipe = -1, .folder = folder, .outcomes = verdict->outcomes + pass * count, .count = count};
    if (count == 0) return true;
    pass_folder(task, verdict, pass, folder, sizeof folder);
    return run_process(task, &worker);
}

void hyp_runner_end(const struct hyp_task *task, unsigned passes, struct hyp_verdict *verdict) {
    char folder[1024];
    size_t findings = 0;
    /* What was judged of fewer passes is judged again. */
    *verdict = (struct hyp_verdict){.processes = verdict->processes,
                                    .seeds = verdict->planned_seeds > 1 ? passes : 1,
                                    .outcomes = verdict->outcomes,
                                    .outcome_count = in_pass(verdict) * passes,
                                    .planned_count = verdict->planned_count,
                                    .planned_seeds = verdict->planned_seeds,
                                    .left_out = verdict->left_out};
    for (unsigned pass = 0; verdict->outcome_count > 0 && pass < passes; pass++) {
        pass_folder(task, verdict, pass, folder, sizeof folder);
        findings += count_lines(folder, "faults.jsonl");
    }
    hyp_verdict_judge(task->claim, findings, verdict);
    if (hyp_runner_interrupted() && verdict->kind == HYP_INCONCLUSIVE && verdict->broken) {
        snprintf(verdict->code, sizeof verdict->code, "interrupted");
    }
}

bool hyp_runner_run(const struct hyp_task *task, struct hyp_verdict *verdict) {
    if (!hyp_runner_begin(task, verdict)) return false;
    for (unsigned pass = 0; pass < hyp_runner_passes(verdict); pass++) {
        if (!hyp_runner_pass(task, verdict, pass)) return false;
    }
    hyp_runner_end(task, hyp_runner_passes(verdict), verdict);
    return true;
}
