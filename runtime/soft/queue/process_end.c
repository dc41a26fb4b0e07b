/*
 * At the end of a process: executes what is still queued, reports what was not tested, and writes
 * the counts.
 */
#include "process_end.h"

#include "base/options.h"
#include "base/report.h"
#include "grid/grid.h"
#include "queue.h"
#include "state/contexts.h"
#include "state/driver_state.h"
#include "usage.h"
#include "tollens/plain_text.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { DRAIN_S = 30 };

/* One write, so that lines of processes that share the file are not mixed. */
static void end_write(const char *line, int length) {
    const char *path = soft_options()->summary;
    int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0 || write(file, line, (size_t)length) != length) {
        tol_plain_print(stderr, "tollens-soft: cannot write the summary to %s: %s\n", path,
                        strerror(errno));
    }
    if (file >= 0) close(file);
}

static void *end_wait(void *nothing) {
    soft_queue_wait_device(-1);
    return nothing;
}

/* Executes what is still queued, as a GPU would, but not for ever: a kernel may wait for something
 * that the program would have done. Returns whether all of it ended. */
static bool end_drain(void) {
    pthread_t thread;
    struct timespec until;
    if (pthread_create(&thread, NULL, end_wait, NULL) != 0) return false;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += DRAIN_S;
    return pthread_timedjoin_np(thread, NULL, &until) == 0;
}

/* The queued kernels that have not ended. The caller holds soft_lock. */
static uint64_t end_unfinished(void) {
    uint64_t count = 0;
    for (const struct soft_context *c = soft_contexts(); c != NULL; c = c->next) {
        for (const struct soft_stream *s = c->streams; s != NULL; s = s->next) {
            for (const struct soft_operation *o = s->first; o != NULL; o = o->next) {
                count += o->kind == SOFT_OPERATION_TASK && o->task.kind == SOFT_TASK_KERNEL;
            }
        }
    }
    return count;
}

static void end_report(const char *kind, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void end_report(const char *kind, const char *format, ...) {
    struct soft_report report = {.kind = kind};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(report.detail, sizeof report.detail, format, arguments);
    va_end(arguments);
    soft_report_print(&report);
}

/* Reports what was not tested. Refused calls are for tollens soft to judge, which knows whether a
 * kernel of any process ran: a program may do without such a call. */
static void end_report_gaps(bool drained, uint64_t unfinished) {
    char first[512];
    uint64_t count = soft_refusal_count(SOFT_REFUSED_IMAGE, first, sizeof first);
    if (count > 0) {
        end_report("refused", "%llu image%s with kernels could not be loaded; the first: %s",
                   (unsigned long long)count, count == 1 ? "" : "s", first);
    }
    if (!drained) {
        end_report("not run", "%llu launch%s had not ended %d s after the program",
                   (unsigned long long)unfinished, unfinished == 1 ? "" : "es", DRAIN_S);
    }
}

static void end_at_exit(void) {
    char line[1024], first[512];
    if (soft_state_is_forked()) return; /* the parent writes it */
    const bool drained = end_drain();
    pthread_mutex_lock(&soft_lock);
    const uint64_t unfinished = drained ? 0 : end_unfinished();
    const struct soft_usage usage = soft_usage();
    char table[512];
    const uint64_t tables = soft_refusal_count(SOFT_REFUSED_TABLE, table, sizeof table);
    const uint64_t calls = soft_refusal_count(SOFT_REFUSED_CALL, first, sizeof first);
    const uint64_t refused = calls + (tables > 0 ? 1 : 0);
    if (calls == 0) memcpy(first, table, sizeof first);
    for (char *c = first; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\' || (unsigned char)*c < ' ') *c = '?';
    }
    int length = snprintf(
        line, sizeof line,
        "{\"process\": %ld, \"kernels\": %llu, \"launches\": %llu, "
        "\"instructions\": %llu, \"refused\": %llu, \"first_refused\": \"%s\"}\n",
        (long)getpid(), (unsigned long long)usage.kernels, (unsigned long long)usage.launches,
        (unsigned long long)soft_launch_executed(), (unsigned long long)refused, first);
    pthread_mutex_unlock(&soft_lock);
    end_report_gaps(drained, unfinished);
    end_write(line, length);
}

void soft_process_end_watch(void) {
    static bool watched;
    char line[80];
    const char *path = soft_options()->summary;
    if (path == NULL || path[0] == '\0') return;
    pthread_mutex_lock(&soft_lock);
    const bool is_first = !watched;
    if (!watched) watched = atexit(end_at_exit) == 0;
    pthread_mutex_unlock(&soft_lock);
    if (!is_first) return;
    /* Of a process that is killed or calls _exit, this line alone tells that it used the device. */
    end_write(line,
              snprintf(line, sizeof line, "{\"process\": %ld, \"begun\": true}\n", (long)getpid()));
}
