/*
 * Criterion as a library: its hooks run in this process and write to the pipe.
 */
#include "worker.h"

#include "plugin/plugin_tests.h"
#include "judge/verdict.h"

#include <criterion/criterion.h>
#include <criterion/hooks.h>
#include <criterion/internal/ordered-set.h>
#include <criterion/logging.h>
#include <criterion/options.h>
#include <fnmatch.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static int events = -1;
static char assertion[400]; /* the first that failed in the test now running */

/* One line in one write, so that it arrives whole. */
static void send_event(const char *event, const char *name, const char *ending,
                       const char *detail) {
    char line[1024];
    if (events < 0) return;
    int length = snprintf(line, sizeof line - 1, "%s %s%s%s %s", event, name,
                          ending[0] != '\0' ? " " : "", ending, detail);
    if (length < 0) return;
    if ((size_t)length > sizeof line - 2) length = (int)sizeof line - 2;
    for (int i = 0; i < length; i++) {
        if (line[i] == '\n' || line[i] == '\r') line[i] = ' ';
    }
    line[length] = '\n';
    ssize_t written = write(events, line, (size_t)length + 1);
    (void)written; /* the parent process has ended: nobody reads it */
}

ReportHook(PRE_TEST)(struct criterion_test *test) {
    assertion[0] = '\0';
    send_event("begin", test->name, "", "");
}

ReportHook(ASSERT)(struct criterion_assert_stats *stats) {
    if (stats->passed || assertion[0] != '\0') return;
    snprintf(assertion, sizeof assertion, "%s", stats->message != NULL ? stats->message : "");
}

static void send_end(const struct criterion_test_stats *stats) {
    char detail[256] = "its process ended early";
    const char *name = stats->test->name;
    if (stats->timed_out) {
        send_event("end", name, "overdue", "it did not end before its deadline");
    } else if (stats->crashed) {
        if (stats->signal != 0) {
            snprintf(detail, sizeof detail, "its process was killed by signal %d (%s)",
                     stats->signal, strsignal(stats->signal));
        }
        send_event("end", name, "crashed", detail);
    } else if (stats->test_status == CR_STATUS_SKIPPED) {
        send_event("end", name, "skipped", "");
    } else {
        bool failed = stats->test_status == CR_STATUS_FAILED;
        send_event("end", name, failed ? "failed" : "passed", failed ? assertion : "");
    }
}

/* A test that crashes has no POST_FINI; one that ends has no TEST_CRASH. */
ReportHook(POST_FINI)(struct criterion_test_stats *stats) {
    send_end(stats);
}
ReportHook(TEST_CRASH)(struct criterion_test_stats *stats) {
    send_end(stats);
}

static struct criterion_test_set *test_set(void) {
    static struct criterion_test_set *set;
    if (set == NULL) {
        struct sigaction own;
        sigaction(SIGTERM, NULL, &own);
        set = criterion_initialize();
        /* Criterion's answer to SIGTERM is to exit; a run that is stopped writes what it has. */
        sigaction(SIGTERM, &own, NULL);
        hyp_plugin_tests_enter(set);
    }
    return set;
}

bool hyp_worker_chooses(const char *filter, const char *suite, const char *attack) {
    char whole[160];
    const struct hyp_claim *claim = hyp_claim_of_suite(suite);
    if (filter == NULL) return true;
    snprintf(whole, sizeof whole, "%s/%s", claim != NULL ? claim->id : suite, attack);
    return fnmatch(filter, attack, FNM_CASEFOLD) == 0 || fnmatch(filter, whole, FNM_CASEFOLD) == 0;
}

size_t hyp_worker_list(const char *suite, const char *filter, const char **names, size_t room) {
    size_t count = 0;
    FOREACH_SET(struct criterion_suite_set * found, test_set()->suites) {
        if (strcmp(found->suite.name, suite) != 0 || found->tests == NULL) continue;
        FOREACH_SET(struct criterion_test * test, found->tests) {
            if (!hyp_worker_chooses(filter, suite, test->name)) continue;
            if (count < room) names[count] = test->name;
            count++;
        }
    }
    return count;
}

/* Criterion's own patterns know no "H3/", so the others are disabled before it looks at its own. */
static void disable_others(struct criterion_test_set *tests, const char *suite,
                           const char *filter) {
    FOREACH_SET(struct criterion_suite_set * found, tests->suites) {
        if (strcmp(found->suite.name, suite) != 0 || found->tests == NULL) continue;
        FOREACH_SET(struct criterion_test * test, found->tests) {
            if (!hyp_worker_chooses(filter, suite, test->name)) test->data->disabled = true;
        }
    }
}

int hyp_worker_run(const char *suite, const char *filter, int pipe, double deadline_s) {
    static char pattern[32];
    events = pipe;
    /* Without the run that started it nobody would listen. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    struct criterion_test_set *tests = test_set();
    disable_others(tests, suite, filter);
    snprintf(pattern, sizeof pattern, "%s/*", suite);
    criterion_options.pattern = pattern;
    criterion_options.jobs = 1; /* attacks that are timed do not run beside others */
    criterion_options.timeout = deadline_s;
    criterion_options.color = false;
    criterion_options.logging_threshold = CRITERION_IMPORTANT;
    criterion_options.always_succeed = true; /* failures were reported */
    int succeeded = criterion_run_all_tests(tests);
    criterion_finalize(tests);
    return succeeded ? 0 : 2;
}
