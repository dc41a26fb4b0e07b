/*
 * Several threads with several streams on one device, as PyTorch's autograd and loaders are: each
 * block is written by the stream that has it, some by a second one that is recorded for it. The
 * soft device reports two streams that reach the same byte without an order; on a GPU what was
 * written last must be there.
 */
#include "torch_scene.h"

#include <pthread.h>
#include <stdlib.h>

TestSuite(torch_threads, .timeout = 120, .fini = test_end);

enum { THREADS = 4, STREAMS = 3, LIVE = 24 };

struct live {
    CUdeviceptr at;
    size_t bytes;
    CUstream stream, last; /* that it was allocated for, and that wrote to it last */
    unsigned char value;
};

struct worker {
    const struct torch_library *torch;
    CUstream streams[STREAMS]; /* shared by all threads */
    unsigned seed, steps;
    const char *failure; /* NULL: none; assertions are for the test's own thread */
};

static unsigned draw(struct worker *worker, unsigned below) {
    worker->seed = worker->seed * 1664525u + 1013904223u;
    return (worker->seed >> 8) % below;
}

static void write_block(struct worker *worker, struct live *live) {
    const struct tol_driver_table *driver = torch_scene_driver();
    live->value = (unsigned char)(1 + draw(worker, 200));
    live->last = live->stream;
    if (driver->cuMemsetD8Async(live->at, live->value, live->bytes, live->stream) != CUDA_SUCCESS) {
        worker->failure = "a fill failed";
    }
}

/* A second stream writes after the first, and is recorded. */
static void pass_on(struct worker *worker, struct live *live) {
    const struct tol_driver_table *driver = torch_scene_driver();
    CUstream other = worker->streams[draw(worker, STREAMS)];
    CUevent order = NULL;
    if (other == live->stream) return;
    live->value = (unsigned char)(1 + draw(worker, 200));
    live->last = other;
    if (driver->cuEventCreate(&order, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS ||
        driver->cuEventRecord(order, live->stream) != CUDA_SUCCESS ||
        driver->cuStreamWaitEvent(other, order, 0) != CUDA_SUCCESS ||
        driver->cuMemsetD8Async(live->at, live->value, live->bytes, other) != CUDA_SUCCESS) {
        worker->failure = "passing a block on failed";
    }
    driver->cuEventDestroy_v2(order);
    worker->torch->record_stream((void *)(uintptr_t)live->at, other);
}

static void check_block(struct worker *worker, const struct live *live) {
    const struct tol_driver_table *driver = torch_scene_driver();
    unsigned char ends[2] = {0, 0};
    driver->cuStreamSynchronize(live->last);
    driver->cuMemcpyDtoHAsync_v2(&ends[0], live->at, 1, live->last);
    driver->cuMemcpyDtoHAsync_v2(&ends[1], live->at + live->bytes - 1, 1, live->last);
    driver->cuStreamSynchronize(live->last);
    if (ends[0] != live->value || ends[1] != live->value) worker->failure = "a block was changed";
}

static void *work(void *user) {
    static const size_t sizes[] = {256, 5000, 70000, 600000, 3 * TORCH_MIB};
    struct worker *worker = user;
    struct live live[LIVE] = {{0}};
    for (unsigned i = 0; i < worker->steps && worker->failure == NULL; i++) {
        struct live *one = &live[draw(worker, LIVE)];
        if (one->at != 0) {
            if (draw(worker, 4) == 0) check_block(worker, one);
            torch_scene_free(one->at, one->bytes, one->stream);
            one->at = 0;
            continue;
        }
        one->bytes = sizes[draw(worker, 5)] - draw(worker, 200);
        one->stream = worker->streams[draw(worker, STREAMS)];
        one->at = (CUdeviceptr)(uintptr_t)worker->torch->allocate(one->bytes, 0, one->stream);
        if (one->at == 0) {
            worker->failure = "an allocation failed";
            break;
        }
        write_block(worker, one);
        if (draw(worker, 3) == 0) pass_on(worker, one);
    }
    for (int i = 0; i < LIVE; i++) {
        if (live[i].at != 0) torch_scene_free(live[i].at, live[i].bytes, live[i].stream);
    }
    return NULL;
}

/* Fewer steps where not all trials are taken (test_takes_trial): under ASan 300 take a minute. */
static void run_threads(void) {
    const unsigned steps = getenv("TOLLENS_TEST_ONE_IN") != NULL ? 100 : 300;
    struct worker workers[THREADS] = {{0}};
    pthread_t threads[THREADS];
    const struct torch_library *torch = torch_scene_open(1);
    CUstream streams[STREAMS] = {torch_scene_stream(), torch_scene_stream(), torch_scene_stream()};
    for (int i = 0; i < THREADS; i++) {
        workers[i].torch = torch;
        workers[i].seed = (unsigned)i + 1;
        workers[i].steps = steps;
        for (int k = 0; k < STREAMS; k++) workers[i].streams[k] = streams[k];
        cr_assert_eq(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++) {
        cr_assert(workers[i].failure == NULL, "thread %d: %s", i, workers[i].failure);
    }
    for (int k = 0; k < STREAMS; k++) torch_scene_driver()->cuStreamSynchronize(streams[k]);
    torch->empty_cache();
    cr_assert_eq(torch_scene_number(0, "blocks"), 0);
    cr_assert_eq(torch_scene_number(0, "waiting"), 0);
    cr_assert_eq(torch_scene_number(0, "reserved"), 0);
    torch_scene_must_be_clean();
}

Test(torch_threads, streams_and_threads_never_meet_in_a_block) {
    run_threads();
}

/* There is hardly room: memory passes between the streams all the time. */
Test(torch_threads, nor_do_they_under_a_limit) {
    setenv("TOLLENS_TORCH_LIMIT", "300m", 1);
    run_threads();
}
