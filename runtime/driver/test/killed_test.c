/*
 * A process that is killed while it holds device memory: the memory is free again without a call.
 *
 * On a GPU the driver has to notice, and the free bytes that another process sees tell whether it
 * did. The soft device's memory is its process's own, of which others see nothing. There the tests
 * show that the process held host memory for it, and that none of it outlives the process.
 */
#include "test_device.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { FILLED_BYTES = 64 << 20, WAIT_S = 30, CHILD_S = 60, PATIENCE_S = 20 };

/* What a child says once it holds its memory. */
struct holding {
    tol_status status;
    size_t bytes, free_before, free_then;
};

/* Allocates three fifths of what is free, which does not fit twice, and writes to some of it. */
static struct holding take(struct tol_context *context) {
    struct holding holding = {.status = tol_context_memory(context, &holding.free_before, NULL)};
    struct tol_buffer *buffer = NULL;
    holding.bytes = holding.free_before / 5 * 3;
    if (holding.status == TOL_OK) {
        holding.status = tol_buffer_create(context, holding.bytes, 1, &buffer);
    }
    if (holding.status == TOL_OK) {
        holding.status = tol_buffer_fill_at(buffer, 0, 7, 1, FILLED_BYTES);
    }
    if (holding.status == TOL_OK) {
        holding.status = tol_context_memory(context, &holding.free_then, NULL);
    }
    return holding;
}

/* In a child: opens a driver of its own, takes memory, says so, and waits to be killed. */
static void hold(int said) {
    struct tol_driver *driver = NULL;
    struct tol_context *context = NULL;
    struct holding holding = {.status = tol_driver_open(test_library(), &driver)};
    alarm(CHILD_S);
    if (holding.status == TOL_OK) holding.status = tol_context_create(driver, 0, &context);
    if (holding.status == TOL_OK) holding = take(context);
    /* On a GPU another process may take memory between the question and the allocation. */
    for (int s = 0; holding.status == TOL_OUT_OF_DEVICE_MEMORY && s < PATIENCE_S; s++) {
        sleep(1);
        holding = take(context);
    }
    if (write(said, &holding, sizeof holding) != sizeof holding) _exit(1);
    for (;;) pause();
}

/* Starts a child; returns once it has said what it holds. No driver is open in this process yet:
 * a driver does not survive a fork. */
static pid_t start(struct holding *holding) {
    int ends[2];
    cr_assert_eq(pipe(ends), 0);
    const pid_t child = fork();
    cr_assert(child >= 0);
    if (child == 0) {
        close(ends[0]);
        hold(ends[1]);
    }
    close(ends[1]);
    cr_assert_eq(read(ends[0], holding, sizeof *holding), (ssize_t)sizeof *holding);
    close(ends[0]);
    return child;
}

static void end(pid_t child) {
    int how = 0;
    cr_assert_eq(kill(child, SIGKILL), 0);
    cr_assert_eq(waitpid(child, &how, 0), child);
    cr_assert(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL);
}

/* Bytes of host memory in which a process's pages are; 0: there is no such process. */
static size_t resident_bytes(pid_t process) {
    char path[64];
    unsigned long long pages = 0;
    snprintf(path, sizeof path, "/proc/%d/statm", (int)process);
    FILE *file = fopen(path, "r");
    if (file == NULL) return 0;
    if (fscanf(file, "%*u %llu", &pages) != 1) pages = 0;
    fclose(file);
    return (size_t)pages * (size_t)sysconf(_SC_PAGESIZE);
}

static size_t free_bytes_now(void) {
    size_t bytes = 0;
    MUST(tol_context_memory(test_context(), &bytes, NULL));
    return bytes;
}

/* One test at a time takes most of the memory, in all processes that run these tests. The lock ends
 * with the test's process. */
static void wait_for_turn(void) {
    const int program = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    cr_assert(program >= 0 && flock(program, LOCK_EX) == 0);
}

/* Each child takes more than half of what is free, so the next one fails unless all came back. */
Test(killed, the_next_process_gets_the_memory_of_a_killed_one, .timeout = 300) {
    struct holding first = {.status = TOL_OK}, holding;
    wait_for_turn();
    for (int i = 0; i < 3; i++) {
        const pid_t child = start(&holding);
        if (holding.status != TOL_OK) end(child);
        if (holding.status == TOL_NO_LIBRARY || holding.status == TOL_NO_DEVICE) {
            cr_skip_test("no GPU");
        }
        cr_assert_eq(holding.status, TOL_OK, "child %d: %s", i, tol_status_name(holding.status));
        if (i == 0) first = holding;
        cr_assert(holding.bytes >= first.bytes / 10 * 9, "child %d found %zu bytes, not %zu", i,
                  holding.bytes, first.bytes);
        cr_assert(holding.free_then <= holding.free_before - holding.bytes / 2);
        if (!test_on_gpu()) cr_assert(resident_bytes(child) >= FILLED_BYTES);
        end(child);
        cr_assert_eq(resident_bytes(child), 0);
    }
}

/* What another process sees meanwhile: on a GPU less, until the process is dead. */
Test(killed, another_process_sees_the_memory_come_back, .fini = test_end, .timeout = 300) {
    struct holding holding;
    wait_for_turn();
    const pid_t child = start(&holding);
    if (holding.status != TOL_OK) end(child);
    if (holding.status == TOL_NO_LIBRARY || holding.status == TOL_NO_DEVICE) cr_skip_test("no GPU");
    cr_assert_eq(holding.status, TOL_OK, "%s", tol_status_name(holding.status));
    const size_t during = free_bytes_now();
    if (test_on_gpu()) {
        cr_assert(during < holding.free_before - holding.bytes / 2);
    } else {
        cr_assert_eq(during, holding.free_before, "the soft device's memory is shared");
    }
    end(child);
    size_t after = free_bytes_now();
    const size_t expected = test_on_gpu() ? during + holding.bytes / 10 * 9 : during;
    for (int ms = 0; after < expected && ms < WAIT_S * 1000; ms += 10) {
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
        after = free_bytes_now();
    }
    cr_assert(after >= expected, "%zu bytes are free, expected %zu", after, expected);
}
