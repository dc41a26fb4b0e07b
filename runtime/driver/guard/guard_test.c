/*
 * A guard and real processes: what each failure of a worker leads to, one at a time.
 */
#include "test/test_device.h"

#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ANSWERS_MAX = 300 };

/* What was delivered and noted. */
struct heard {
    size_t answers;
    uint64_t job[ANSWERS_MAX];
    bool is_failed[ANSWERS_MAX];
    char text[ANSWERS_MAX][200];
    char notes[16384];
};

static struct heard heard;

static tol_status deliver(void *user, const struct tol_guard_answer *answer) {
    struct heard *h = user;
    cr_assert(h->answers < ANSWERS_MAX);
    h->job[h->answers] = answer->job;
    h->is_failed[h->answers] = answer->is_failed;
    snprintf(h->text[h->answers++], sizeof h->text[0], "%s", (const char *)answer->bytes);
    return TOL_OK;
}

static void note(void *user, const struct tol_guard_note *note) {
    struct heard *h = user;
    const size_t at = strlen(h->notes);
    snprintf(h->notes + at, sizeof h->notes - at, "%s: %s -- %s --> %s %s\n", note->device,
             note->from, note->event, note->to, note->reason);
}

static bool noted(const char *text) {
    return strstr(heard.notes, text) != NULL;
}

static const char *client_path(void) {
    static char path[4096];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 32);
    path[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(path, '/');
    strcpy(slash != NULL ? slash + 1 : path, "guard-client");
    return path;
}

static const char *const two[] = {"a", "b"};

/* A guard over two devices whose deadlines are short. */
static struct tol_guard_options options_of(const char *const *program) {
    heard = (struct heard){.answers = 0};
    return (struct tol_guard_options){.program = program,
                                      .devices = two,
                                      .device_count = 2,
                                      .beat_ms = 2000,
                                      .job_ms = 20000,
                                      .rest_ms = 1,
                                      .user = &heard,
                                      .deliver = deliver,
                                      .note = note};
}

static void submit(struct tol_guard *guard, int first, int last) {
    for (int n = first; n <= last; n++) {
        char text[16];
        uint64_t job = 0;
        const int length = snprintf(text, sizeof text, "%d", n);
        MUST(tol_guard_submit(guard, text, (size_t)length, &job));
        cr_assert(job > 0);
    }
}

/* Each number from 1 to count has the answer of guard-client, once. */
static void check_answers(size_t count) {
    bool seen[ANSWERS_MAX] = {false};
    cr_assert(heard.answers == count, "%zu answers of %zu", heard.answers, count);
    for (size_t i = 0; i < count; i++) {
        const uint64_t job = heard.job[i];
        cr_assert(job >= 1 && job <= count && !seen[job - 1], "job %llu", (unsigned long long)job);
        seen[job - 1] = true;
        cr_assert(!heard.is_failed[i] && strtoull(heard.text[i], NULL, 10) == job * job + 1,
                  "job %llu: %s", (unsigned long long)job, heard.text[i]);
    }
}

static size_t open_files(void) {
    DIR *folder = opendir("/proc/self/fd");
    size_t count = 0;
    while (readdir(folder) != NULL) count++;
    closedir(folder);
    return count;
}

static size_t files_before;
static void begin(void) {
    files_before = open_files();
}

/* After each test: no child is left, not even a dead one, and no descriptor. */
static void end(void) {
    cr_assert(waitpid(-1, NULL, WNOHANG) == -1, "a child is left");
    cr_assert(open_files() == files_before, "%zu descriptors, before %zu", open_files(),
              files_before);
}
TestSuite(guard, .init = begin, .fini = end);

Test(guard, all_devices_work_and_end_in_good_order) {
    const char *const program[] = {client_path(), NULL};
    struct tol_guard_options options = options_of(program);
    struct tol_guard *guard = NULL;
    struct tol_guard_stats stats;
    MUST(tol_guard_open(&options, &guard));
    submit(guard, 1, 200);
    MUST(tol_guard_run(guard));
    check_answers(200);
    submit(guard, 201, 220); /* and once more */
    MUST(tol_guard_run(guard));
    check_answers(220);
    tol_guard_stats(guard, &stats);
    cr_assert(stats.workers == 4 && stats.begun == 220);
    cr_assert(stats.faults + stats.late + stats.garbage + stats.gone == 0);
    for (size_t i = 0; i < 2; i++) {
        const char *name, *state, *reason;
        cr_assert(tol_guard_device(guard, i, &name, &state, &reason));
        cr_assert_str_eq(state, "closed");
        cr_assert_str_eq(reason, "");
    }
    cr_assert(noted("ready -- job --> busy") && noted("closing -- gone at the end --> closed"));
    tol_guard_close(guard);
}

/* How each failure of a worker is noticed, and what is said. */
static const struct {
    const char *how, *event, *reason;
    unsigned job_ms, beat_ms;
} failures[] = {
    {"fault", "busy -- fault --> ending", "unusable, during job 5", 0, 0},
    {"hang", "busy -- late --> ending", "did not answer within 200 ms, during job 5", 200, 0},
    {"kill", "busy -- gone --> resting", "ended by signal 9 (Killed), during job 5", 0, 0},
    {"exit", "busy -- gone --> resting", "ended with exit code 0, during job 5", 0, 0},
    {"garbage", "busy -- garbage --> ending", "is not a frame: \"loading shared library ...\"", 0,
     0},
    {"stop", "busy -- late --> ending", "no sign of life within 300 ms", 0, 300},
    {"mute", "busy -- late --> ending", "closed its output and did not end", 0, 0},
    {"twice", "-- garbage --> ending", "wrote \"done 5\", which is not allowed here", 0, 0},
    {"other", "busy -- garbage --> ending", "wrote \"done 1000000007\", which is not allowed", 0,
     0},
    {"after", "-- gone --> resting", "ended by signal 9", 0, 0},
    {"child", "busy -- gone --> resting", "ended by signal 9", 0, 0},
};

Test(guard, a_worker_that_fails_loses_its_job_to_another_and_comes_back) {
    for (size_t i = 0; i < sizeof failures / sizeof failures[0]; i++) {
        const char *const program[] = {client_path(), "--how", failures[i].how,
                                       "--every",     "5",     NULL};
        struct tol_guard_options options = options_of(program);
        struct tol_guard *guard = NULL;
        struct tol_guard_stats stats;
        /* What was answered first is not begun again; the next one may have been lost instead. */
        const bool is_answered_first =
            strcmp(failures[i].how, "twice") == 0 || strcmp(failures[i].how, "after") == 0;
        /* A second worker could do all the rest meanwhile, and the failure would go unnoticed. */
        if (is_answered_first) options.device_count = 1;
        if (failures[i].job_ms > 0) options.job_ms = failures[i].job_ms;
        if (failures[i].beat_ms > 0) options.beat_ms = failures[i].beat_ms;
        MUST(tol_guard_open(&options, &guard));
        submit(guard, 1, 9);
        MUST(tol_guard_run(guard));
        check_answers(9);
        tol_guard_stats(guard, &stats);
        cr_assert(noted(failures[i].event), "%s:\n%s", failures[i].how, heard.notes);
        cr_assert(noted(failures[i].reason), "%s:\n%s", failures[i].how, heard.notes);
        /* One, but on a machine so busy that a good worker is late. */
        const uint64_t lost = stats.faults + stats.late + stats.garbage + stats.gone;
        cr_assert(lost >= 1 && stats.workers <= 2 + lost, "%s:\n%s", failures[i].how, heard.notes);
        cr_assert(stats.begun >= (is_answered_first ? 9u : 10u) && stats.begun <= 9 + lost, "%s",
                  failures[i].how);
        cr_assert((uint64_t)tol_guard_handovers(guard)->total == stats.begun - 9, "%s",
                  failures[i].how);
        tol_guard_close(guard);
    }
}

static tol_status deliver_slowly(void *user, const struct tol_guard_answer *answer) {
    usleep(20000); /* meanwhile others answer and die, and both are seen at once */
    return deliver(user, answer);
}

/* Each worker answers and dies; none of what was answered is computed again. The job that it was
 * handed between the two is begun elsewhere. */
Test(guard, what_a_worker_wrote_before_it_died_counts) {
    char path[] = "/tmp/tollens_guard_XXXXXX", line[100];
    const char *const program[] = {client_path(), "--how", "after", "--every",
                                   "1",           "--log", path,    NULL};
    struct tol_guard_options options = options_of(program);
    struct tol_guard *guard = NULL;
    unsigned ended = 0;
    const int made = mkstemp(path);
    cr_assert(made >= 0 && close(made) == 0);
    options.deliver = deliver_slowly;
    /* On a busy machine a job can meet several dying workers in a row. */
    options.attempts = 12;
    MUST(tol_guard_open(&options, &guard));
    submit(guard, 1, 12);
    MUST(tol_guard_run(guard));
    check_answers(12);
    tol_guard_close(guard);
    FILE *file = fopen(path, "r");
    while (fgets(line, sizeof line, file) != NULL) ended += strncmp(line, "end ", 4) == 0;
    fclose(file);
    unlink(path);
    cr_assert(ended == 12, "12 jobs were computed %u times", ended);
}

Test(guard, a_job_that_ends_every_worker_is_failed_and_the_others_are_done) {
    static const char *const one[] = {"a"};
    const char *const program[] = {client_path(), "--how", "kill", "--every",
                                   "7",           "--on",  "a",    NULL};
    struct tol_guard_options options = options_of(program);
    struct tol_guard *guard = NULL;
    struct tol_guard_stats stats;
    options.devices = one;
    options.device_count = 1;
    options.failures = 10;
    MUST(tol_guard_open(&options, &guard));
    submit(guard, 1, 10);
    MUST(tol_guard_run(guard));
    cr_assert(heard.answers == 10);
    for (size_t i = 0; i < 10; i++) {
        cr_assert(heard.is_failed[i] == (heard.job[i] == 7));
        if (heard.job[i] == 7) {
            cr_assert(strstr(heard.text[i], "it ended 3 workers; the latest: it was ended by "
                                            "signal 9 (Killed), during job 7") != NULL,
                      "%s", heard.text[i]);
        }
    }
    tol_guard_stats(guard, &stats);
    cr_assert(stats.failed == 1 && stats.gone == 3 && stats.workers == 4 && stats.fenced == 0);
    tol_guard_close(guard);
}

Test(guard, a_device_whose_probe_fails_is_fenced_with_the_probes_words) {
    static const char *const probe[] = {
        "sh", "-c", "test $TOLLENS_GUARD_DEVICE != b || { echo fell off the bus; exit 3; }", NULL};
    const char *const program[] = {client_path(), NULL};
    struct tol_guard_options options = options_of(program);
    struct tol_guard *guard = NULL;
    struct tol_guard_stats stats;
    const char *name, *state, *reason;
    options.probe = probe;
    MUST(tol_guard_open(&options, &guard));
    /* As many jobs as it takes for three probes to fail. */
    for (int last = 0; last < 280;) {
        submit(guard, last + 1, last + 20);
        last += 20;
        MUST(tol_guard_run(guard));
        usleep(20000);
        tol_guard_stats(guard, &stats);
        if (stats.fenced > 0) break;
    }
    if (stats.fenced == 0) { /* it was never asked thrice in one run: then it works alone */
        static const char *const b[] = {"b"};
        tol_guard_close(guard);
        options = options_of(program);
        options.probe = probe;
        options.devices = b;
        options.device_count = 1;
        MUST(tol_guard_open(&options, &guard));
        submit(guard, 1, 1);
        MUST_FAIL(tol_guard_run(guard), TOL_NO_DEVICE, "fell off the bus");
    }
    size_t index = 0;
    while (tol_guard_device(guard, index, &name, &state, &reason) && strcmp(name, "b") != 0) {
        index++;
    }
    cr_assert_str_eq(state, "fenced");
    cr_assert_str_eq(reason, "the probe failed, it ended with exit code 3: fell off the bus");
    tol_guard_close(guard);
}

Test(guard, without_a_device_the_jobs_stay_and_every_reason_is_said) {
    static const char *const program[] = {"/nowhere/worker", NULL};
    struct tol_guard_options options = options_of(program);
    struct tol_guard *guard = NULL;
    MUST(tol_guard_open(&options, &guard));
    submit(guard, 1, 3);
    MUST_FAIL(tol_guard_run(guard), TOL_NO_DEVICE,
              "every device is fenced, and 3 of 3 jobs have no answer; a: /nowhere/worker cannot "
              "be started: No such file or directory; b: ");
    cr_assert(heard.answers == 0 && noted("starting -- gone for good --> fenced"));
    tol_guard_close(guard);
}

/* How long a death takes cannot be chosen, only that it is not at once: a few tries. */
Test(guard, a_process_that_sigkill_does_not_end_is_fenced_off) {
    static const char fenced[] =
        "a: ending -- late --> fenced SIGKILL did not end its process within 1 ms";
    const char *const program[] = {client_path(), "--how", "heavy", "--every",
                                   "1",           "--on",  "a",     NULL};
    for (int tries = 0; tries == 0 || (tries < 5 && !noted(fenced)); tries++) {
        struct tol_guard_options options = options_of(program);
        struct tol_guard *guard = NULL;
        options.job_ms = 1000 << tries; /* to touch its memory */
        options.end_ms = 1;
        MUST(tol_guard_open(&options, &guard));
        submit(guard, 1, 3);
        MUST(tol_guard_run(guard));
        check_answers(3);
        tol_guard_close(guard);
    }
    cr_assert(noted(fenced), "%s", heard.notes);
}

Test(guard, lines_are_for_any_program) {
    static const char *const program[] = {
        "sh", "-c",
        "while read -r line; do echo \"$line $CUDA_VISIBLE_DEVICES $TOLLENS_DEVICE "
        "$TOLLENS_GUARD_DEVICE\"; done",
        NULL};
    static const char *const devices[] = {"cuda:1", "soft:5", "cuda:GPU-0a"};
    static const char *const wanted[] = {"x MIG-7 cuda:0 cuda:1", "x 6,MIG-7 soft:5 soft:5",
                                         "x GPU-0a cuda:0 cuda:GPU-0a"};
    setenv("CUDA_VISIBLE_DEVICES", "6,MIG-7", 1);
    for (size_t i = 0; i < 3; i++) {
        struct tol_guard_options options = options_of(program);
        struct tol_guard *guard = NULL;
        options.talk = TOL_GUARD_LINES;
        options.devices = &devices[i];
        options.device_count = 1;
        options.in_order = true;
        MUST(tol_guard_open(&options, &guard));
        MUST(tol_guard_submit(guard, "x", 1, NULL));
        MUST(tol_guard_submit(guard, "", 0, NULL));
        MUST_FAIL(tol_guard_submit(guard, "a\nb", 3, NULL), TOL_INVALID_ARGUMENT, "line break");
        MUST(tol_guard_run(guard));
        cr_assert(heard.answers == 2 && heard.job[0] == 1 && heard.job[1] == 2);
        cr_assert_str_eq(heard.text[0], wanted[i]);
        tol_guard_close(guard);
    }
}

/* Once the six that do not hang are answered; the other thread delivers. */
static void *stop_soon(void *guard) {
    volatile size_t *answers = &heard.answers;
    for (int i = 0; i < 2000 && *answers < 6; i++) usleep(5000);
    tol_guard_stop(guard);
    return NULL;
}

Test(guard, it_can_be_stopped_and_goes_on_later) {
    const char *const program[] = {client_path(), "--how", "hang", "--every", "4", NULL};
    struct tol_guard_options options = options_of(program);
    struct tol_guard *guard = NULL;
    pthread_t thread;
    MUST(tol_guard_open(&options, &guard));
    submit(guard, 1, 8);
    pthread_create(&thread, NULL, stop_soon, guard);
    MUST_FAIL(tol_guard_run(guard), TOL_CANCELLED, "6 of 8 jobs answered");
    pthread_join(thread, NULL);
    cr_assert(heard.answers == 6);
    cr_assert(noted("busy -- close --> ending") && noted("ending -- gone at the end --> closed"));
    MUST(tol_guard_run(guard)); /* both have said that they were tried */
    check_answers(8);
    tol_guard_close(guard);
}

static tol_status deliver_nothing(void *user, const struct tol_guard_answer *answer) {
    (void)user, (void)answer;
    return TOL_UNREADABLE;
}

/* As where a disk is full: no worker is left, and what they had goes to those that come later. */
Test(guard, an_answer_that_cannot_be_delivered_ends_it_and_it_goes_on_later) {
    const char *const program[] = {client_path(), NULL};
    struct tol_guard_options options = options_of(program);
    struct tol_guard *guard = NULL;
    options.deliver = deliver_nothing;
    MUST(tol_guard_open(&options, &guard));
    submit(guard, 1, 20);
    cr_assert_eq(tol_guard_run(guard), TOL_UNREADABLE);
    cr_assert(waitpid(-1, NULL, WNOHANG) == -1, "a worker is left");
    for (size_t i = 0; i < 2; i++) {
        const char *name, *state, *reason;
        cr_assert(tol_guard_device(guard, i, &name, &state, &reason));
        cr_assert_str_eq(state, "closed");
    }
    tol_guard_close(guard);
}

Test(guard, a_journal_answers_what_it_has_and_refuses_other_jobs) {
    const char *const program[] = {client_path(), NULL};
    char path[] = "/tmp/tollens_guard_XXXXXX";
    struct tol_guard_options options = options_of(program);
    struct tol_guard *guard = NULL;
    struct tol_guard_stats stats;
    const int file = mkstemp(path);
    cr_assert(file >= 0 && close(file) == 0);
    options.journal = path;
    MUST(tol_guard_open(&options, &guard));
    submit(guard, 1, 10);
    MUST(tol_guard_run(guard));
    tol_guard_close(guard);
    heard.answers = 0;
    options.delivered = 4;
    MUST(tol_guard_open(&options, &guard));
    submit(guard, 1, 12);
    MUST(tol_guard_run(guard));
    tol_guard_stats(guard, &stats);
    cr_assert(stats.begun == 2 && stats.restored == 10 && heard.answers == 8);
    tol_guard_close(guard);
    MUST(tol_guard_open(&options, &guard));
    submit(guard, 1, 1);
    MUST_FAIL(tol_guard_submit(guard, "3", 1, NULL), TOL_MISMATCH, "job 2 is not the journal's");
    tol_guard_close(guard);
    options.delivered = 13;
    guard = NULL;
    MUST_FAIL(tol_guard_open(&options, &guard), TOL_MISMATCH, "13 answers are there already");
    cr_assert(guard == NULL);
    unlink(path);
}

Test(guard, what_makes_no_sense_is_refused) {
    static const char *const none[] = {NULL}, *const empty[] = {""};
    const char *const program[] = {client_path(), NULL};
    struct tol_guard *guard = NULL;
    struct tol_guard_options options = options_of(program);
    MUST_FAIL(tol_guard_open(NULL, &guard), TOL_INVALID_ARGUMENT, "NULL");
    MUST_FAIL(tol_guard_open(&options, NULL), TOL_INVALID_ARGUMENT, "NULL");
    options.program = none;
    MUST_FAIL(tol_guard_open(&options, &guard), TOL_INVALID_ARGUMENT, "program");
    options = options_of(program);
    options.probe = none;
    MUST_FAIL(tol_guard_open(&options, &guard), TOL_INVALID_ARGUMENT, "probe");
    options = options_of(program);
    options.device_count = 0;
    MUST_FAIL(tol_guard_open(&options, &guard), TOL_INVALID_ARGUMENT, "devices");
    options = options_of(program);
    options.devices = empty;
    options.device_count = 1;
    MUST_FAIL(tol_guard_open(&options, &guard), TOL_INVALID_ARGUMENT, "name");
    options = options_of(program);
    options.delivered = 1;
    MUST_FAIL(tol_guard_open(&options, &guard), TOL_INVALID_ARGUMENT, "journal");
    options = options_of(program);
    options.deliver = NULL;
    MUST_FAIL(tol_guard_open(&options, &guard), TOL_INVALID_ARGUMENT, "deliver");
    MUST_FAIL(tol_guard_run(NULL), TOL_INVALID_ARGUMENT, "NULL");
    MUST_FAIL(tol_guard_submit(NULL, "", 0, NULL), TOL_INVALID_ARGUMENT, "NULL");
    tol_guard_stop(NULL);
    tol_guard_close(NULL);
    cr_assert(guard == NULL);
}

Test(guard, a_worker_without_a_guard_is_told_so) {
    struct tol_guard_worker *worker = NULL;
    unsetenv("TOLLENS_GUARD_BEAT_MS");
    MUST_FAIL(tol_guard_worker_open("", &worker), TOL_UNSUPPORTED, "started by a guard");
    MUST_FAIL(tol_guard_worker_open(NULL, &worker), TOL_INVALID_ARGUMENT, "NULL");
    MUST_FAIL(tol_guard_worker_next(NULL, NULL), TOL_INVALID_ARGUMENT, "NULL");
    MUST_FAIL(tol_guard_worker_done(NULL, NULL, NULL, 0), TOL_INVALID_ARGUMENT, "NULL");
    tol_guard_worker_close(NULL);
}
