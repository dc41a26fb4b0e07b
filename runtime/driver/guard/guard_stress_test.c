/*
 * Many jobs on eight devices whose workers fail in every way, under a guard that is killed too.
 *
 * The oracle is apart from the guard: answers go to a file that only `deliver` appends to,
 * workers log what they begin and end, and hold a lock while they have a job. At the end each job
 * must have one answer, the right one, and no two workers may ever have had a job at once.
 *
 *     TOLLENS_TEST_GUARD_JOBS=10000 build/test-runtime --filter 'guard_stress/...'
 */
#include "guard/guard_jobs.h"
#include "test/test_device.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DEVICES = 8, JOBS = 800, PATH_BYTES = 4200 };

static char folder[64], log_path[96], answers_path[96], journal_path[96];

static void begin(void) {
    strcpy(folder, "/tmp/tollens_stress_XXXXXX");
    cr_assert(mkdtemp(folder) != NULL);
    snprintf(log_path, sizeof log_path, "%s/log", folder);
    snprintf(answers_path, sizeof answers_path, "%s/answers", folder);
    snprintf(journal_path, sizeof journal_path, "%s/journal", folder);
}

static void end(void) {
    unlink(log_path);
    unlink(answers_path);
    unlink(journal_path);
    rmdir(folder);
}
TestSuite(guard_stress, .init = begin, .fini = end, .timeout = 580);

/* Tools that slow everything down have more time, and fewer jobs. */
static unsigned patience(void) {
    return getenv("TOLLENS_TEST_ONE_IN") != NULL ? 4 : 1;
}

static size_t jobs_wanted(size_t usual) {
    const char *text = getenv("TOLLENS_TEST_GUARD_JOBS");
    return text != NULL ? (size_t)strtoul(text, NULL, 10) : usual / patience();
}

/* ---- the guard, in a process of its own ---- */

struct run {
    size_t jobs;
    const char *seed; /* of the chaos */
    bool uses_device;
    rlim_t journal_max; /* bytes of any file; 0: no limit */
};

static uint64_t count_lines(const char *path) {
    FILE *file = fopen(path, "r");
    uint64_t lines = 0;
    for (int c; file != NULL && (c = getc(file)) != EOF;) lines += c == '\n';
    if (file != NULL) fclose(file);
    return lines;
}

/* A line in one write, so that a death leaves whole lines. */
static tol_status deliver(void *user, const struct tol_guard_answer *answer) {
    char line[300];
    const int length =
        snprintf(line, sizeof line, "%llu %s %.200s\n", (unsigned long long)answer->job,
                 answer->is_failed ? "failed" : "done", (const char *)answer->bytes);
    return write(*(int *)user, line, (size_t)length) == length ? TOL_OK : TOL_UNWRITABLE;
}

static size_t open_files(void) {
    DIR *files = opendir("/proc/self/fd");
    size_t count = 0;
    while (readdir(files) != NULL) count++;
    closedir(files);
    return count;
}

static void print_times(const char *what, const struct tol_hdr *hdr) {
    fprintf(stderr, "    %-10s %6lld times, p50 %.1f ms, p99 %.1f ms, max %.1f ms\n", what,
            (long long)hdr->total, (double)tol_hdr_percentile(hdr, 50) / 1e6,
            (double)tol_hdr_percentile(hdr, 99) / 1e6, (double)tol_hdr_max(hdr) / 1e6);
}

static void print_row(void *user, const char *from, const char *event, const char *to,
                      uint64_t count) {
    unsigned *missing = user;
    if (count > 0) return;
    ++*missing;
    fprintf(stderr, "    not gone through: %s -- %s --> %s\n", from, event, to);
}

static void print(const struct tol_guard *guard) {
    struct tol_guard_stats s;
    unsigned missing = 0;
    tol_guard_stats(guard, &s);
    fprintf(stderr,
            "guard: %llu jobs, %llu begun, %llu answered before; %llu workers, %llu probes; "
            "faults %llu, late %llu, garbage %llu, gone %llu, fenced %llu\n",
            (unsigned long long)s.jobs, (unsigned long long)s.begun, (unsigned long long)s.restored,
            (unsigned long long)s.workers, (unsigned long long)s.probes,
            (unsigned long long)s.faults, (unsigned long long)s.late, (unsigned long long)s.garbage,
            (unsigned long long)s.gone, (unsigned long long)s.fenced);
    print_times("handovers", tol_guard_handovers(guard));
    print_times("recoveries", tol_guard_recoveries(guard));
    tol_guard_moves(print_row, &missing);
}

static const char *client_path(void) {
    static char path[PATH_BYTES];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 32);
    path[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(path, '/');
    strcpy(slash != NULL ? slash + 1 : path, "guard-client");
    return path;
}

/* Exit code: 0 all is done, 3 the journal is full, 1 anything else. */
static int supervise(const struct run *run) {
    static const char *const devices[DEVICES] = {"soft:0", "soft:1", "soft:2", "soft:3",
                                                 "soft:4", "soft:5", "soft:6", "soft:7"};
    const char *const program[] = {client_path(), "--log",   log_path,
                                   "--chaos",     run->seed, run->uses_device ? "--device" : NULL,
                                   NULL};
    const char *const probe[] = {client_path(), "--probe", "--chaos", run->seed, NULL};
    int answers = open(answers_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    const struct tol_guard_options options = {.program = program,
                                              .probe = probe,
                                              .devices = devices,
                                              .device_count = DEVICES,
                                              .journal = journal_path,
                                              .delivered = count_lines(answers_path),
                                              .hello_ms = 1500 * patience(),
                                              .beat_ms = 1500 * patience(),
                                              .job_ms =
                                                  (run->uses_device ? 2500 : 600) * patience(),
                                              .probe_ms = 1500 * patience(),
                                              .rest_ms = 1,
                                              .failures = 12,
                                              .user = &answers,
                                              .deliver = deliver};
    struct tol_guard *guard = NULL;
    const size_t files = open_files();
    setenv("TOLLENS_SOFT_DEVICES", "8", 1);
    setenv("TOLLENS_SOFT_WORKERS", "1", 0);
    if (run->journal_max > 0) {
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){run->journal_max, RLIM_INFINITY});
    }
    tol_status status = tol_guard_open(&options, &guard);
    for (size_t i = 1; i <= run->jobs && status == TOL_OK; i++) {
        char text[16];
        status = tol_guard_submit(guard, text, (size_t)sprintf(text, "%zu", i), NULL);
    }
    if (status == TOL_OK) status = tol_guard_run(guard);
    if (status != TOL_OK) fprintf(stderr, "guard: %s\n", tol_message());
    if (status == TOL_OK) print(guard);
    tol_guard_close(guard);
    if (waitpid(-1, NULL, WNOHANG) != -1 || open_files() != files) return 4;
    close(answers);
    if (status == TOL_UNWRITABLE && strstr(tol_message(), "Free space") != NULL) return 3;
    return status != TOL_OK;
}

static pid_t start(const struct run *run) {
    const pid_t id = fork();
    if (id == 0) _exit(supervise(run));
    cr_assert(id > 0);
    return id;
}

static int run_to_the_end(const struct run *run) {
    int status = 0;
    const pid_t id = start(run);
    cr_assert(waitpid(id, &status, 0) == id && WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* ---- the oracle ---- */

struct found {
    size_t missing, repeated, wrong, failed; /* answers */
    size_t unended, ended_again, overlaps;   /* by the workers' log */
    uint64_t files_least, files_most;        /* descriptors of a worker at its start */
};

static void read_answers(size_t jobs, struct found *found) {
    unsigned char *seen = calloc(jobs + 1, 1);
    unsigned long long job, answer;
    char line[400], word[10];
    FILE *file = fopen(answers_path, "r");
    cr_assert(file != NULL && seen != NULL);
    while (fgets(line, sizeof line, file) != NULL) {
        const int got = sscanf(line, "%llu %9s %llu", &job, word, &answer);
        cr_assert(got >= 2 && job >= 1 && job <= jobs, "%s", line);
        found->repeated += seen[job];
        seen[job] = 1;
        if (strcmp(word, "failed") == 0) {
            found->failed++;
        } else {
            found->wrong += got != 3 || answer != job * job + 1;
        }
    }
    for (size_t i = 1; i <= jobs; i++) found->missing += !seen[i];
    fclose(file);
    free(seen);
}

static void read_log(size_t jobs, struct found *found) {
    unsigned char *ended = calloc(jobs + 1, 1);
    unsigned long long number;
    char line[200], word[10];
    FILE *file = fopen(log_path, "r");
    cr_assert(file != NULL && ended != NULL);
    found->files_least = UINT64_MAX;
    while (fgets(line, sizeof line, file) != NULL) {
        cr_assert(sscanf(line, "%9s %llu", word, &number) == 2, "%s", line);
        if (strcmp(word, "overlap") == 0) found->overlaps++;
        if (strcmp(word, "end") == 0 && number <= jobs) {
            found->ended_again += ended[number];
            ended[number] = 1;
        }
        if (strcmp(word, "files") == 0) {
            if (number < found->files_least) found->files_least = number;
            if (number > found->files_most) found->files_most = number;
        }
    }
    for (size_t i = 1; i <= jobs; i++) found->unended += !ended[i];
    fclose(file);
    free(ended);
}

static struct found look(size_t jobs) {
    struct found found = {.missing = 0};
    read_answers(jobs, &found);
    read_log(jobs, &found);
    return found;
}

/* Processes whose arguments name this test's log. */
static size_t count_workers(void) {
    DIR *processes = opendir("/proc");
    size_t count = 0;
    for (struct dirent *entry; (entry = readdir(processes)) != NULL;) {
        char path[300], text[4096];
        snprintf(path, sizeof path, "/proc/%s/cmdline", entry->d_name);
        const int file = open(path, O_RDONLY | O_CLOEXEC);
        const ssize_t length = file >= 0 ? read(file, text, sizeof text) : 0;
        if (file >= 0) close(file);
        count += length > 0 && memmem(text, (size_t)length, log_path, strlen(log_path)) != NULL;
    }
    closedir(processes);
    return count;
}

/* Those of a guard that was killed die a moment later. */
static void check_orphans(void) {
    for (int i = 0; i < 200 && count_workers() > 0; i++) usleep(10000);
    cr_assert(count_workers() == 0, "%zu processes are left", count_workers());
}

static void check(size_t jobs, size_t ended_again_most) {
    const struct found f = look(jobs);
    cr_assert(f.missing == 0 && f.repeated == 0 && f.wrong == 0 && f.failed == 0,
              "of %zu jobs %zu have no answer, %zu answers are second ones, %zu wrong, %zu failed",
              jobs, f.missing, f.repeated, f.wrong, f.failed);
    cr_assert(f.overlaps == 0, "%zu times two workers had one job", f.overlaps);
    cr_assert(f.unended == 0 && f.ended_again <= ended_again_most,
              "%zu jobs were never ended, %zu more than once", f.unended, f.ended_again);
    cr_assert(f.files_least == f.files_most, "workers were started with %llu to %llu descriptors",
              (unsigned long long)f.files_least, (unsigned long long)f.files_most);
}

/* ---- the tests ---- */

/* A worker that answers twice may be given its next job between the two, and compute it: what it
 * says after the second is not believed, and the job is computed again. One job in 275 is such. */
static size_t distrusted_most(size_t jobs) {
    return jobs / 100 + 1;
}

Test(guard_stress, workers_that_fail_in_every_way_lose_no_job_and_do_none_twice) {
    const struct run run = {.jobs = jobs_wanted(JOBS), .seed = "1"};
    cr_assert(run_to_the_end(&run) == 0);
    cr_assert(count_workers() == 0, "%zu processes are left", count_workers());
    check(run.jobs, distrusted_most(run.jobs));
}

Test(guard_stress, kernels_that_fault_or_never_end_take_their_process_alone) {
    const struct run run = {.jobs = jobs_wanted(JOBS) / 10, .seed = "2", .uses_device = true};
    cr_assert(run_to_the_end(&run) == 0);
    cr_assert(count_workers() == 0, "%zu processes are left", count_workers());
    check(run.jobs, distrusted_most(run.jobs));
}

/* What a worker ended and its guard did not live to hear is ended again: once per device and death
 * at most. What was answered is not. */
Test(guard_stress, a_guard_that_is_killed_and_started_again_answers_each_job_once) {
    enum { DEATHS = 6 };
    const struct run run = {.jobs = jobs_wanted(JOBS), .seed = "3"};
    int deaths = 0, status = 0;
    for (; deaths < DEATHS; deaths++) {
        const pid_t id = start(&run);
        const uint64_t enough = run.jobs * (uint64_t)(deaths + 1) / (DEATHS + 2);
        while (count_lines(answers_path) < enough && waitpid(id, &status, WNOHANG) == 0) {
            usleep(1000);
        }
        if (kill(id, 0) != 0) break;
        kill(id, SIGKILL);
        cr_assert(waitpid(id, &status, 0) == id);
        check_orphans();
    }
    cr_assert(run_to_the_end(&run) == 0);
    check_orphans();
    cr_assert(deaths > 0, "it was never killed in time");
    check(run.jobs, (size_t)deaths * DEVICES);
}

Test(guard_stress, a_full_disk_stops_the_guard_and_room_lets_it_go_on) {
    struct run run = {.jobs = jobs_wanted(JOBS) / 4, .seed = "4"};
    int full = 0;
    /* A job takes more than 100 bytes of the journal: the first limits are too low for any. */
    for (run.journal_max = run.jobs * 20;; run.journal_max += run.jobs * 12) {
        const int code = run_to_the_end(&run);
        if (code == 0) break;
        cr_assert(code == 3, "exit code %d", code);
        full++;
    }
    cr_assert(full >= 1);
    check(run.jobs, (size_t)full * DEVICES);
}

/* The oracle must notice each of these, or it proves nothing. */
Test(guard_stress, an_answer_given_twice_and_a_job_that_is_lost_are_noticed) {
    const struct run run = {.jobs = 120, .seed = "5"};
    guard_jobs_planted = 1; /* the guard's process inherits it */
    cr_assert(run_to_the_end(&run) == 0);
    cr_assert(look(run.jobs).repeated == 11, "%zu", look(run.jobs).repeated);
    end();
    begin();
    guard_jobs_planted = 2;
    cr_assert(run_to_the_end(&run) == 0);
    cr_assert(look(run.jobs).missing > 0);
    end();
    begin();
    guard_jobs_planted = 3; /* what is not in the journal is done again by the next guard */
    cr_assert(run_to_the_end(&run) == 0);
    guard_jobs_planted = 0;
    cr_assert(truncate(answers_path, 0) == 0 && run_to_the_end(&run) == 0);
    cr_assert(look(run.jobs).ended_again > 0);
    guard_jobs_planted = 0;
}
