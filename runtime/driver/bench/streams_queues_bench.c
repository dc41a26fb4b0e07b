/*
 * bench-streams: which streams wait while a host function blocks another stream.
 *
 * A device has fewer hardware queues than a program may have streams. Work that waits in a queue
 * delays the work of other streams after it in the same queue, so it matters whether something is
 * queued after the host function. The same with the driver's own calls shows whether the runtime
 * causes a delay. Each stream has its own launching thread: when one thread launched on one stream
 * after the other, none waited.
 */
#include "streams_bench.h"

#include "core/check.h"
#include "tollens/host_function.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>

enum { ROUNDS = 25, STREAMS = 16, BEHIND = 4, PATIENCE_NS = 40 * 1000 * 1000 };

struct launcher {
    struct queues *queues;
    unsigned index;
    tol_status status;
};

struct queues {
    struct bench *bench;
    struct tol_stream *streams[STREAMS]; /* the runtime's */
    CUstream handles[STREAMS];           /* those, or the driver's own */
    bool is_raw, is_after;
    sem_t held_up, go_on;
    pthread_barrier_t start;
    struct launcher launchers[STREAMS];
};

static void streams_bench_wait_for(sem_t *semaphore) {
    while (sem_wait(semaphore) != 0) continue; /* a signal came */
}

static void CUDAAPI streams_bench_hold_up(void *user) {
    struct queues *q = user;
    sem_post(&q->held_up);
    streams_bench_wait_for(&q->go_on);
}

static tol_status hold_up_call(void *user, char *reason, size_t bytes) {
    (void)reason, (void)bytes;
    streams_bench_hold_up(user);
    return TOL_OK;
}

static tol_status open_streams(struct queues *q) {
    tol_status status = TOL_OK;
    const struct tol_driver_table *raw = q->bench->raw;
    for (unsigned i = 0; i < STREAMS; i++) {
        if (q->is_raw) {
            TOL_CU(raw, cuStreamCreateWithPriority, (&q->handles[i], CU_STREAM_NON_BLOCKING, 0),
                   "stream %u", i);
        } else {
            TOL_TRY(tol_stream_create(q->bench->context, NULL, &q->streams[i]));
            q->handles[i] = tol_stream_handle(q->streams[i]);
        }
    }
out:
    return status;
}

static void close_streams(struct queues *q) {
    for (unsigned i = 0; i < STREAMS; i++) {
        if (q->is_raw && q->handles[i] != NULL) q->bench->raw->cuStreamDestroy_v2(q->handles[i]);
        tol_stream_destroy(q->streams[i]);
        q->handles[i] = NULL;
        q->streams[i] = NULL;
    }
}

static tol_status launch_on(struct queues *q, unsigned index) {
    tol_status status = TOL_OK;
    struct bench *b = q->bench;
    CUdeviceptr address = tol_buffer_address(b->buffer);
    for (unsigned i = 0; i < BEHIND; i++) {
        void *values[] = {&address, &i};
        if (q->is_raw) {
            TOL_CU(
                b->raw, cuLaunchKernel,
                (tol_kernel_handle(b->none), 1, 1, 1, 32, 1, 1, 0, q->handles[index], values, NULL),
                "stream %u", index);
        } else {
            TOL_TRY(tol_launch(q->streams[index], b->none, tol_launch_linear(32, 32),
                               TOL_ARGUMENTS(address, i)));
        }
    }
out:
    return status;
}

static void *launch_one(void *user) {
    struct launcher *launcher = user;
    launcher->status = tol_context_bind(launcher->queues->bench->context);
    pthread_barrier_wait(&launcher->queues->start);
    if (launcher->status == TOL_OK) {
        launcher->status = launch_on(launcher->queues, launcher->index);
    }
    return NULL;
}

/* One thread per stream, all at once. */
static tol_status streams_queues_bench_launch_all(struct queues *q) {
    const unsigned first = q->is_after ? 0 : 1;
    pthread_t threads[STREAMS];
    tol_status status = TOL_OK;
    pthread_barrier_init(&q->start, NULL, STREAMS - first);
    for (unsigned i = first; i < STREAMS; i++) {
        q->launchers[i] = (struct launcher){.queues = q, .index = i};
        if (pthread_create(&threads[i], NULL, launch_one, &q->launchers[i]) != 0) abort();
    }
    for (unsigned i = first; i < STREAMS; i++) {
        pthread_join(threads[i], NULL);
        if (q->launchers[i].status != TOL_OK) status = q->launchers[i].status;
    }
    pthread_barrier_destroy(&q->start);
    return status;
}

/* How many of the other streams have not ended after a while. */
static unsigned count_waiting(const struct queues *q) {
    unsigned waiting = 0;
    double until = (double)tol_now_ns() + PATIENCE_NS;
    for (unsigned i = 1; i < STREAMS; i++) {
        CUresult result = CUDA_ERROR_NOT_READY;
        do {
            result = q->bench->raw->cuStreamQuery(q->handles[i]);
        } while (result == CUDA_ERROR_NOT_READY && (double)tol_now_ns() < until);
        waiting += result == CUDA_ERROR_NOT_READY;
    }
    return waiting;
}

/* Streams that are new each time, since a driver hands its queues out when they are made. */
static tol_status hold_one(struct queues *q, unsigned *waiting) {
    tol_status status = TOL_OK;
    bool is_held = false;
    TOL_TRY(tol_context_bind(q->bench->context)); /* the traces had others */
    TOL_TRY(open_streams(q));
    if (q->is_raw) {
        TOL_CU(q->bench->raw, cuLaunchHostFunc, (q->handles[0], streams_bench_hold_up, q),
               "the first stream");
    } else {
        TOL_TRY(tol_stream_call(q->streams[0], hold_up_call, q));
    }
    is_held = true;
    streams_bench_wait_for(&q->held_up);
    TOL_TRY(streams_queues_bench_launch_all(q));
    *waiting += count_waiting(q);
out:
    if (is_held) sem_post(&q->go_on);
    for (unsigned i = 0; i < STREAMS; i++) {
        if (q->handles[i] != NULL) q->bench->raw->cuStreamSynchronize(q->handles[i]);
    }
    close_streams(q);
    return status;
}

tol_status measure_queues(struct bench *b) {
    tol_status status = TOL_OK;
    struct queues q = {.bench = b};
    sem_init(&q.held_up, 0, 0);
    sem_init(&q.go_on, 0, 0);
    b->held_streams = ROUNDS * (STREAMS - 1);
    printf("\n%-34s %12s %12s\n", "streams that wait for one held up", "raw", "runtime");
    for (int after = 0; after < 2; after++) {
        for (int way = 0; way < 2; way++) {
            q.is_raw = way == 0;
            q.is_after = after == 1;
            for (unsigned round = 0; round < ROUNDS; round++) {
                TOL_TRY(hold_one(&q, &b->waiting[after][way]));
            }
        }
        printf("%-34s %12u %12u of %u\n",
               after == 0 ? "nothing queued after the host's" : "kernels queued after it",
               b->waiting[after][0], b->waiting[after][1], b->held_streams);
    }
out:
    sem_destroy(&q.held_up);
    sem_destroy(&q.go_on);
    return status;
}
