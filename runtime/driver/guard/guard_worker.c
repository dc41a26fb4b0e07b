/*
 * The worker's side: the same frames, read from stdin and written under a lock.
 */
#include "tollens/guard_worker.h"

#include "core/check.h"
#include "guard/guard_frame.h"
#include "tollens/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { WHY_BYTES = 400 };

struct tol_guard_worker {
    int out; /* what was stdout */
    struct guard_input input;
    struct guard_output output;
    char *parts; /* of the job that is being read or worked at */
    size_t parts_count;
    pthread_mutex_t lock; /* of out and output */
    pthread_cond_t ends;
    pthread_t beats;
    unsigned beat_ms;
    bool has_beats, is_ending;
};

/* ---- writing ---- */

static tol_status guard_worker_send(struct tol_guard_worker *w, enum guard_word word,
                                    uint64_t number, const void *bytes, size_t count) {
    tol_status status = TOL_OK;
    bool is_there = false;
    TOL_CHECK(count <= TOL_GUARD_BYTES_MAX, TOL_OVER_LIMIT, "%zu bytes for the guard; at most %d",
              count, TOL_GUARD_BYTES_MAX);
    pthread_mutex_lock(&w->lock);
    status = guard_output_frame(&w->output, &(struct guard_frame){word, number, bytes, count});
    if (status == TOL_OK) is_there = guard_output_write(&w->output, w->out);
    pthread_mutex_unlock(&w->lock);
    TOL_TRY(status);
    TOL_CHECK(is_there, TOL_UNWRITABLE, "the guard is gone: %s", strerror(errno));
out:
    return status;
}

static void *guard_worker_beat(void *user) {
    struct tol_guard_worker *w = user;
    pthread_mutex_lock(&w->lock);
    while (!w->is_ending) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += w->beat_ms / 1000;
        until.tv_nsec += (long)(w->beat_ms % 1000) * 1000000;
        if (until.tv_nsec >= 1000000000) {
            until.tv_sec++;
            until.tv_nsec -= 1000000000;
        }
        if (pthread_cond_timedwait(&w->ends, &w->lock, &until) != ETIMEDOUT) continue;
        pthread_mutex_unlock(&w->lock);
        const tol_status status = guard_worker_send(w, GUARD_BEAT, 0, NULL, 0);
        pthread_mutex_lock(&w->lock);
        if (status != TOL_OK) break; /* the guard is gone */
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* ---- the worker ---- */

/* From here on stdout goes to stderr. */
static tol_status move_stdout(struct tol_guard_worker *w) {
    tol_status status = TOL_OK;
    w->out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    TOL_CHECK(w->out >= 0, TOL_UNWRITABLE, "stdout: %s", strerror(errno));
    TOL_CHECK(dup2(STDERR_FILENO, STDOUT_FILENO) >= 0, TOL_UNWRITABLE, "stderr: %s",
              strerror(errno));
out:
    return status;
}

static void make_lock(struct tol_guard_worker *w) {
    pthread_condattr_t monotonic;
    pthread_mutex_init(&w->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&w->ends, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

static tol_status begin_beats(struct tol_guard_worker *w, const char *beat_ms) {
    tol_status status = TOL_OK;
    w->beat_ms = (unsigned)strtoul(beat_ms, NULL, 10);
    if (w->beat_ms == 0) goto out;
    TOL_CHECK(pthread_create(&w->beats, NULL, guard_worker_beat, w) == 0, TOL_OUT_OF_HOST_MEMORY,
              "a thread for signs of life");
    w->has_beats = true;
out:
    return status;
}

tol_status tol_guard_worker_open(const char *kind, struct tol_guard_worker **worker) {
    tol_status status = TOL_OK;
    const char *beat_ms = getenv("TOLLENS_GUARD_BEAT_MS");
    struct tol_guard_worker *w = NULL;
    TOL_CHECK(kind != NULL && worker != NULL, TOL_INVALID_ARGUMENT,
              "a guard's worker must not be NULL");
    TOL_CHECK(beat_ms != NULL, TOL_UNSUPPORTED,
              "TOLLENS_GUARD_BEAT_MS is not set: this program is started by a guard, such as "
              "tollens guard");
    w = calloc(1, sizeof *w);
    TOL_CHECK(w != NULL, TOL_OUT_OF_HOST_MEMORY, "a guard's worker");
    w->out = -1;
    make_lock(w);
    TOL_TRY(move_stdout(w));
    TOL_TRY(guard_worker_send(w, GUARD_HELLO, 1, kind, strlen(kind)));
    TOL_TRY(begin_beats(w, beat_ms));
    *worker = w;
    w = NULL;
out:
    tol_guard_worker_close(w);
    return status;
}

void tol_guard_worker_close(struct tol_guard_worker *w) {
    if (w == NULL) return;
    if (w->has_beats) {
        pthread_mutex_lock(&w->lock);
        w->is_ending = true;
        pthread_cond_signal(&w->ends);
        pthread_mutex_unlock(&w->lock);
        pthread_join(w->beats, NULL);
    }
    pthread_cond_destroy(&w->ends);
    pthread_mutex_destroy(&w->lock);
    if (w->out >= 0) close(w->out);
    guard_input_clear(&w->input);
    guard_output_clear(&w->output);
    free(w->parts);
    free(w);
}

/* ---- jobs ---- */

static tol_status take_parts(struct tol_guard_worker *w, const struct guard_frame *frame) {
    tol_status status = TOL_OK;
    char *made = realloc(w->parts, w->parts_count + frame->count + 1);
    TOL_CHECK(made != NULL, TOL_OUT_OF_HOST_MEMORY, "parts of a job");
    w->parts = made;
    memcpy(made + w->parts_count, frame->bytes, frame->count);
    w->parts_count += frame->count;
    made[w->parts_count] = '\0';
out:
    return status;
}

tol_status tol_guard_worker_next(struct tol_guard_worker *w, struct tol_guard_work *work) {
    tol_status status = TOL_OK;
    char why[120];
    struct guard_frame frame;
    TOL_CHECK(w != NULL && work != NULL, TOL_INVALID_ARGUMENT, "a guard's worker must not be NULL");
    *work = (struct tol_guard_work){.number = 0};
    w->parts_count = 0;
    for (;;) {
        const enum guard_found found = guard_frame_next(&w->input, &frame, why, sizeof why);
        TOL_CHECK(found != GUARD_BROKEN, TOL_INVALID_FILE, "from the guard: %s", why);
        if (found == GUARD_NOTHING_YET) {
            if (w->input.is_over) goto out;
            TOL_TRY(guard_input_read(&w->input, STDIN_FILENO));
        } else if (frame.word == GUARD_KEEP) {
            TOL_TRY(take_parts(w, &frame));
        } else {
            TOL_CHECK(frame.word == GUARD_WORK, TOL_INVALID_FILE, "from the guard: no job");
            *work = (struct tol_guard_work){frame.number, frame.bytes, frame.count,
                                            w->parts_count > 0 ? w->parts : "", w->parts_count};
            goto out;
        }
    }
out:
    return status;
}

static tol_status guard_worker_check(const struct tol_guard_worker *w,
                                     const struct tol_guard_work *work, const void *bytes,
                                     size_t count) {
    tol_status status = TOL_OK;
    TOL_CHECK(w != NULL && work != NULL && (bytes != NULL || count == 0), TOL_INVALID_ARGUMENT,
              "a guard's worker, its work and its bytes must not be NULL");
    TOL_CHECK(work->number != 0, TOL_INVALID_ARGUMENT, "there is no job to answer");
out:
    return status;
}

tol_status tol_guard_worker_keep(struct tol_guard_worker *w, const struct tol_guard_work *work,
                                 const void *bytes, size_t count) {
    tol_status status = TOL_OK;
    TOL_TRY(guard_worker_check(w, work, bytes, count));
    status = guard_worker_send(w, GUARD_KEEP, work->number, bytes, count);
out:
    return status;
}

tol_status tol_guard_worker_done(struct tol_guard_worker *w, const struct tol_guard_work *work,
                                 const void *bytes, size_t count) {
    tol_status status = TOL_OK;
    TOL_TRY(guard_worker_check(w, work, bytes, count));
    status = guard_worker_send(w, GUARD_OK, work->number, bytes, count);
out:
    return status;
}

static bool is_of_device(tol_status failure) {
    return failure == TOL_POISONED || failure == TOL_TIMEOUT || failure == TOL_DRIVER_ERROR ||
           failure == TOL_NO_DEVICE;
}

tol_status tol_guard_worker_failed(struct tol_guard_worker *w, const struct tol_guard_work *work,
                                   tol_status failure) {
    tol_status status = TOL_OK;
    TOL_TRY(guard_worker_check(w, work, NULL, 0));
    const char *why = tol_message()[0] != '\0' ? tol_message() : tol_status_sentence(failure);
    status = guard_worker_send(w, is_of_device(failure) ? GUARD_BAD : GUARD_NO, work->number, why,
                               strnlen(why, WHY_BYTES));
out:
    return status;
}
