/*
 * The default deadline is the specification's: sync_deadlock_timeout_ms, spec 004 section 7.2.
 */
#include "test/test_device.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

TestSuite(deadline, .fini = test_end);

static struct tol_stream *held;
static struct tol_event *after;
static struct tol_buffer *buffer;
static atomic_bool is_released;

/* Keeps its stream from going on, without a processor. */
static tol_status hold(void *user, char *reason, size_t bytes) {
    (void)user, (void)reason, (void)bytes;
    while (!atomic_load(&is_released)) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    return TOL_OK;
}

static tol_status wait_for_stream(void) {
    return tol_stream_synchronize(held);
}

static tol_status wait_for_event(void) {
    return tol_event_synchronize(after);
}

/* A synchronous copy, before which the runtime waits for streams that block it. */
static tol_status wait_for_blocking_streams(void) {
    const int word = 1;
    return tol_buffer_write(buffer, &word, sizeof word);
}

struct wait {
    tol_status (*call)(void);
    tol_status status;
    double seconds;
    char message[1024];
};

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void *wait_once(void *argument) {
    struct wait *wait = argument;
    const double begin_s = now_s();
    wait->status = wait->call();
    wait->seconds = now_s() - begin_s;
    strncpy(wait->message, tol_message(), sizeof wait->message - 1);
    return NULL;
}

/* Without a given deadline each wait lasts for the whole default and no longer. How long is
 * read from the message; a busy machine may return later. */
Test(deadline, a_wait_without_one_ends_after_5000_ms, .timeout = 50) {
    struct wait waits[] = {
        {.call = wait_for_stream}, {.call = wait_for_event}, {.call = wait_for_blocking_streams}};
    enum { WAITS = sizeof waits / sizeof waits[0] };
    pthread_t threads[WAITS];
    struct tol_context *context = test_context();
    MUST(tol_buffer_create(context, 1, sizeof(int), &buffer));
    MUST(tol_event_create(context, false, &after));
    MUST(tol_stream_create(context, &(struct tol_stream_options){.blocking = true}, &held));
    MUST(tol_stream_call(held, hold, NULL));
    MUST(tol_event_record(after, held));
    for (int i = 0; i < WAITS; i++) {
        cr_assert_eq(pthread_create(&threads[i], NULL, wait_once, &waits[i]), 0);
    }
    for (int i = 0; i < WAITS; i++) pthread_join(threads[i], NULL);
    atomic_store(&is_released, true);
    for (int i = 0; i < WAITS; i++) {
        cr_assert_eq(waits[i].status, TOL_TIMEOUT, "wait %d: %s", i, waits[i].message);
        cr_assert(strstr(waits[i].message, "after 5000 ms") != NULL, "%s", waits[i].message);
        cr_assert(waits[i].seconds >= 5.0, "wait %d ended after %.3f s", i, waits[i].seconds);
    }
    MUST(tol_stream_synchronize(held));
    tol_event_destroy(after);
    tol_stream_destroy(held);
    tol_buffer_destroy(buffer);
}

Test(deadline, the_header_and_the_options_say_5000_ms) {
    struct tol_transfer_options options;
    cr_assert_eq(TOL_DEADLINE_MS, 5000);
    tol_transfer_default(&options);
    cr_assert_eq(options.deadline_ms, 5000);
}
