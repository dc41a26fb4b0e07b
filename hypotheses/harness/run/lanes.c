/*
 * Threads that fetch numbers. Whoever ends a job takes all that are ready, in their order.
 */
#include "lanes.h"

#include "files/atomic_file.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct state {
    const struct hyp_lanes *lanes;
    pthread_mutex_t lock;
    size_t next;  /* the job to begin */
    size_t taken; /* all before it were */
    bool *ended;  /* by job */
    bool failed;
    char error[2048];
};

/* Keeps the message of the first failure; each thread has its own hyp_error(). */
static void lanes_fail(struct state *state) {
    if (!state->failed) snprintf(state->error, sizeof state->error, "%s", hyp_error());
    state->failed = true;
}

/* The lock is held. */
static void take_ready(struct state *state) {
    const struct hyp_lanes *lanes = state->lanes;
    while (!state->failed && state->taken < lanes->jobs && state->ended[state->taken]) {
        if (!lanes->take(lanes->user, state->taken++)) lanes_fail(state);
    }
}

static void *lanes_follow(void *argument) {
    struct state *state = argument;
    pthread_mutex_lock(&state->lock);
    while (!state->failed && state->next < state->lanes->jobs) {
        const size_t job = state->next++;
        pthread_mutex_unlock(&state->lock);
        const bool ok = state->lanes->run(state->lanes->user, job);
        pthread_mutex_lock(&state->lock);
        state->ended[job] = ok;
        if (!ok) lanes_fail(state);
        take_ready(state);
    }
    pthread_mutex_unlock(&state->lock);
    return NULL;
}

bool hyp_lanes_run(const struct hyp_lanes *lanes) {
    struct state state = {.lanes = lanes, .lock = PTHREAD_MUTEX_INITIALIZER};
    pthread_t threads[HYP_LANES_MAX];
    unsigned count = 0, wanted = lanes->lanes < HYP_LANES_MAX ? lanes->lanes : HYP_LANES_MAX;
    if (wanted > lanes->jobs) wanted = (unsigned)lanes->jobs;
    state.ended = calloc(lanes->jobs + 1, sizeof *state.ended);
    if (state.ended == NULL) return hyp_fail("out of memory for %zu jobs", lanes->jobs);
    /* This thread is a lane too: without others, the jobs run one after another. */
    while (count + 1 < wanted && pthread_create(&threads[count], NULL, lanes_follow, &state) == 0) {
        count++;
    }
    (void)lanes_follow(&state);
    while (count > 0) pthread_join(threads[--count], NULL);
    free(state.ended);
    return !state.failed || hyp_fail("%s", state.error);
}
