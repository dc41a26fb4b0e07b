/*
 * No call waits forever: with a kernel that never ends, every call returns and names the kernel and
 * the stream, and the process can write its results and exit. And objects that are created and
 * destroyed many times leak nothing.
 */
#include "test_scenarios.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

TestSuite(deadlock, .fini = test_end);

enum { PATIENCE_MS = 60 };

#define EXPECT(call, expected)                                                                     \
    do {                                                                                           \
        if ((call) != (expected)) return #call;                                                    \
    } while (0)

/* In a process of its own, since the device is lost to it. What went wrong, or NULL. */
static const char *live_with_it(bool blocking, FILE *evidence) {
    tol_auto_buffer struct tol_buffer *buffer = NULL;
    tol_auto_event struct tol_event *event = NULL;
    tol_auto_pinned struct tol_pinned *words = NULL, *other = NULL;
    tol_auto_stream struct tol_stream *stream = NULL, *free_one = NULL;
    struct tol_context *context = test_context();
    struct tol_kernel *spin = test_kernel("spin");
    void *stop = NULL;
    char byte = 0;
    tol_context_set_patience(context, PATIENCE_MS);
    const struct tol_stream_options options = {.blocking = blocking};
    EXPECT(tol_stream_create(context, &options, &stream), TOL_OK);
    EXPECT(tol_stream_create(context, NULL, &free_one), TOL_OK);
    EXPECT(tol_pinned_create(context, 64, &words), TOL_OK);
    EXPECT(tol_pinned_create(context, 64, &other), TOL_OK);
    EXPECT(tol_buffer_create(context, 64, 1, &buffer), TOL_OK);
    EXPECT(tol_event_create(context, false, &event), TOL_OK);
    EXPECT(tol_pinned_access(words, &stop), TOL_OK);
    *(volatile unsigned *)stop = 0;
    EXPECT(tol_launch(stream, spin, tol_launch_linear(1, 1),
                      TOL_ARGUMENTS((CUdeviceptr)(uintptr_t)stop)),
           TOL_OK);
    EXPECT(tol_event_record(event, stream), TOL_OK);
    EXPECT(tol_stream_synchronize_for(stream, PATIENCE_MS), TOL_TIMEOUT);
    if (strstr(tol_message(), "spin") == NULL || strstr(tol_message(), "stream 1") == NULL) {
        return "the message names neither kernel nor stream";
    }
    EXPECT(tol_event_synchronize_for(event, PATIENCE_MS), TOL_TIMEOUT);
    EXPECT(tol_context_synchronize(context, PATIENCE_MS), TOL_TIMEOUT);
    /* Work that does not depend on it continues; a call that would wait for it reports that. */
    EXPECT(tol_copy_to_device(free_one, buffer, 0, other, 0, 64), TOL_OK);
    EXPECT(tol_buffer_write_at(buffer, 0, &byte, 1), blocking ? TOL_TIMEOUT : TOL_OK);
    EXPECT(tol_buffer_read_at(buffer, 0, &byte, 1), blocking ? TOL_TIMEOUT : TOL_OK);
    EXPECT(tol_buffer_fill_at(buffer, 0, 0, 1, 8), blocking ? TOL_TIMEOUT : TOL_OK);
    return fputs("evidence\n", evidence) < 0 || fflush(evidence) != 0 ? "no evidence" : NULL;
}

/* Whether a process with such a kernel exits by itself, with its evidence, well before alarm. */
static void check_exit(bool blocking) {
    char text[256] = "";
    FILE *evidence = tmpfile();
    int status = 0;
    pid_t child = fork();
    cr_assert(evidence != NULL && child >= 0);
    if (child == 0) {
        alarm(20);
        const char *trouble = live_with_it(blocking, evidence);
        if (trouble != NULL) fprintf(stderr, "deadlock: %s: %s\n", trouble, tol_message());
        test_end(); /* modules, context and driver */
        exit(trouble == NULL ? 0 : 1);
    }
    cr_assert(waitpid(child, &status, 0) == child);
    cr_assert(status == 0, "%s %d", WIFSIGNALED(status) ? "signal" : "exit code",
              WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    rewind(evidence);
    cr_assert(fgets(text, sizeof text, evidence) != NULL && strcmp(text, "evidence\n") == 0);
    fclose(evidence);
}

Test(deadlock, a_kernel_that_never_ends_is_no_end_of_the_process, .timeout = 120) {
    check_exit(false);
}

Test(deadlock, nor_on_a_stream_that_the_legacy_stream_waits_for, .timeout = 120) {
    check_exit(true);
}

static uint64_t freed(void) {
    return tol_interpose_count(TOL_DRIVER_INDEX_cuMemFree_v2);
}

/* Memory whose free had to be put off is freed as soon as that can be. The driver's calls tell, as
 * what a GPU has free changes with other processes. */
Test(deadlock, memory_in_use_is_freed_later, .timeout = 60) {
    struct tol_buffer *buffer = NULL, *next = NULL;
    struct tol_stream *stream = NULL;
    struct tol_pinned *words = NULL;
    void *stop = NULL;
    MUST(tol_interpose_install(test_driver(), NULL));
    struct tol_kernel *spin = test_kernel("spin");
    tol_context_set_patience(test_context(), 20);
    MUST(tol_stream_create(test_context(), NULL, &stream));
    MUST(tol_pinned_create(test_context(), 4, &words));
    MUST(tol_pinned_access(words, &stop));
    *(volatile unsigned *)stop = 0;
    MUST(tol_buffer_create(test_context(), 32 << 20, 1, &buffer));
    MUST(tol_buffer_create(test_context(), 32 << 20, 1, &next));
    MUST(tol_launch(stream, spin, tol_launch_linear(1, 1),
                    TOL_ARGUMENTS((CUdeviceptr)(uintptr_t)stop)));
    tol_buffer_destroy(buffer);
    cr_assert(freed() == 0, "it was freed under a kernel");
    *(volatile unsigned *)stop = 1;
    MUST(tol_stream_synchronize(stream));
    tol_buffer_destroy(next);
    cr_assert(freed() == 2, "%llu of 2 were freed", (unsigned long long)freed());
    tol_stream_destroy(stream);
    tol_pinned_destroy(words);
    test_end();
    tol_interpose_remove(test_driver());
}

/* ---- many times ------------------------------------------------------------------------------ */

/* What is made by one call and unmade by another, and must be even in the end. */
static const struct {
    enum tol_driver_index make, unmake;
} pairs[] = {
    {TOL_DRIVER_INDEX_cuStreamCreateWithPriority, TOL_DRIVER_INDEX_cuStreamDestroy_v2},
    {TOL_DRIVER_INDEX_cuEventCreate, TOL_DRIVER_INDEX_cuEventDestroy_v2},
    {TOL_DRIVER_INDEX_cuMemAlloc_v2, TOL_DRIVER_INDEX_cuMemFree_v2},
    {TOL_DRIVER_INDEX_cuMemHostAlloc, TOL_DRIVER_INDEX_cuMemFreeHost},
    {TOL_DRIVER_INDEX_cuModuleLoadDataEx, TOL_DRIVER_INDEX_cuModuleUnload},
    {TOL_DRIVER_INDEX_cuGraphCreate, TOL_DRIVER_INDEX_cuGraphDestroy},
    {TOL_DRIVER_INDEX_cuGraphInstantiateWithFlags, TOL_DRIVER_INDEX_cuGraphExecDestroy},
};

/* Everything that holds something, once: made, used, ended. */
static void cycle(struct tol_kernel *kernel, bool all) {
    tol_auto_stream struct tol_stream *stream = NULL;
    tol_auto_event struct tol_event *event = NULL;
    tol_auto_buffer struct tol_buffer *buffer = NULL;
    tol_auto_pinned struct tol_pinned *pinned = NULL;
    tol_auto_batch struct tol_batch *batch = NULL;
    MUST(tol_stream_create(test_context(), NULL, &stream));
    MUST(tol_buffer_create(test_context(), 64, 4, &buffer));
    MUST(tol_launch(stream, kernel, tol_launch_linear(64, 64),
                    TOL_ARGUMENTS(tol_buffer_address(buffer), 7u, 64ull)));
    if (all) {
        MUST(tol_event_create(test_context(), true, &event));
        MUST(tol_event_record(event, stream));
        MUST(tol_pinned_create(test_context(), 256, &pinned));
        MUST(tol_copy_to_host(stream, pinned, 0, buffer, 0, 256));
        MUST(tol_batch_create(test_context(), NULL, &batch));
        MUST(tol_batch_add(batch, kernel, tol_launch_linear(64, 64),
                           TOL_ARGUMENTS(tol_buffer_address(buffer), 8u, 64ull)));
        MUST(tol_batch_launch(batch, stream));
    }
    MUST(tol_stream_synchronize(stream));
}

/* So many cycles with a module of their own. */
static void cycle_with_module(const char *ptx, unsigned times, bool all) {
    tol_auto_module struct tol_module *module = NULL;
    struct tol_kernel *kernel = NULL;
    MUST(tol_module_load(test_context(), ptx, strlen(ptx), NULL, &module));
    MUST(tol_module_kernel(module, "fill", &kernel));
    for (unsigned i = 0; i < times; i++) cycle(kernel, all);
}

static void cycle_many(unsigned times, bool all) {
    /* What a driver keeps for the next. Other processes, such as those of other tests, make and end
     * contexts meanwhile, of 500 MB each: a leak is in every part of the cycles, they are not. So
     * where not all rounds are wanted parts are shorter, and not fewer. */
    const unsigned parts = test_on_gpu() ? 10 : 1, each = test_rounds(times / parts);
    const size_t tolerance = test_on_gpu() ? ((size_t)64 << 20) / times * each : 0;
    /* A GPU's driver may take 20 ms for a module, where it cannot keep what it has compiled. */
    const unsigned with_module = test_on_gpu() && times > 1000 ? 10 : 1;
    size_t least = SIZE_MAX;
    char *ptx = test_ptx("kernels/fill.ptx");
    MUST(tol_interpose_install(test_driver(), NULL));
    cycle_with_module(ptx, 1, all); /* the first may make a driver keep something */
    for (unsigned part = 0; part < parts; part++) {
        size_t before = 0, after = 0;
        MUST(tol_context_memory(test_context(), &before, NULL));
        for (unsigned i = 0; i < each; i += with_module) {
            cycle_with_module(ptx, with_module, all);
        }
        MUST(tol_context_memory(test_context(), &after, NULL));
        const size_t lost = before > after ? before - after : 0;
        if (lost < least) least = lost;
    }
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        uint64_t made = tol_interpose_count(pairs[i].make),
                 unmade = tol_interpose_count(pairs[i].unmake);
        cr_assert(made == unmade && (made > each * parts || !all),
                  "%s was called %llu times, %s %llu", tol_driver_function_name(pairs[i].make),
                  (unsigned long long)made, tol_driver_function_name(pairs[i].unmake),
                  (unsigned long long)unmade);
    }
    cr_assert(least <= tolerance, "%zu bytes have not come back in %u cycles", least,
              each);
    free(ptx);
    test_end();
    tol_interpose_remove(test_driver());
}

Test(deadlock, no_leaks_over_1000_iterations, .timeout = 120) {
    cycle_many(1000, true);
}

Test(deadlock, ten_thousand_cycles_of_create_launch_destroy_leak_nothing, .timeout = 300) {
    cycle_many(10000, false);
}
