/*
 * Marks: moments that other parts of the runtime, and programs, put into the trace. They are rare,
 * so one lock and separate allocations suffice.
 */
#include "core/monotonic.h"
#include "trace_state.h"

#include <stdlib.h>
#include <string.h>

enum { MARKS_MAX = 65536 };

static struct {
    pthread_mutex_t lock;
    struct tol_trace_moment *first, **end;
    size_t count, lost;
} marks = {.lock = PTHREAD_MUTEX_INITIALIZER, .end = &marks.first};

void tol_trace_mark(const char *name, const char *arguments) {
    if (!tol_trace.is_on || name == NULL) return;
    struct tol_trace_moment *moment = calloc(1, sizeof *moment);
    char *copy = strdup(name), *more = strdup(arguments != NULL ? arguments : "{}");
    pthread_mutex_lock(&marks.lock);
    if (moment == NULL || copy == NULL || more == NULL || marks.count == MARKS_MAX) {
        marks.lost++;
        free(moment);
        free(copy);
        free(more);
    } else {
        *moment = (struct tol_trace_moment){
            .at_ns = tol_now_ns(), .thread = tol_trace_thread(), .name = copy, .arguments = more};
        *marks.end = moment;
        marks.end = &moment->next;
        marks.count++;
    }
    pthread_mutex_unlock(&marks.lock);
}

size_t tol_trace_each_mark(void (*use)(const struct tol_trace_moment *moment, void *user),
                           void *user) {
    pthread_mutex_lock(&marks.lock);
    for (const struct tol_trace_moment *m = marks.first; m != NULL; m = m->next) use(m, user);
    const size_t lost = marks.lost;
    pthread_mutex_unlock(&marks.lock);
    return lost;
}

void tol_trace_clear_marks(void) {
    pthread_mutex_lock(&marks.lock);
    while (marks.first != NULL) {
        struct tol_trace_moment *moment = marks.first;
        marks.first = moment->next;
        free(moment->name);
        free(moment->arguments);
        free(moment);
    }
    marks.end = &marks.first;
    marks.count = marks.lost = 0;
    pthread_mutex_unlock(&marks.lock);
}
