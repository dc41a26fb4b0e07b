/*
 * PyTorch's allocator as PyTorch sees it: blocks by address, streams in order, recorded streams,
 * out of memory, several devices, statistics. On the soft device its checks of the order of streams
 * are on.
 */
#include "torch_scene.h"

#include <dlfcn.h>
#include <jansson.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

TestSuite(torch, .timeout = 60, .fini = test_end);

enum { BYTES = 300 * TORCH_KIB, WRITES = 40, LARGE_WRITES = 16 };

static void fill(CUdeviceptr at, unsigned char value, size_t bytes, CUstream stream) {
    cr_assert_eq(torch_scene_driver()->cuMemsetD8Async(at, value, bytes, stream), CUDA_SUCCESS);
}

/* Many successive writes of one value, so that a stream has work for a while. */
static void fill_long(CUdeviceptr at, unsigned char value, size_t bytes, CUstream stream) {
    const int writes = bytes > TORCH_MIB ? LARGE_WRITES : WRITES;
    for (int i = 0; i < writes; i++) fill(at, value, bytes, stream);
}

static void wait_for(void *opened) {
    while (!atomic_load((atomic_bool *)opened)) usleep(100);
}

static unsigned char byte_at(CUdeviceptr at) {
    unsigned char byte = 0;
    cr_assert_eq(torch_scene_driver()->cuMemcpyDtoH_v2(&byte, at, 1), CUDA_SUCCESS);
    return byte;
}

static void settle(CUstream stream) {
    cr_assert_eq(torch_scene_driver()->cuStreamSynchronize(stream), CUDA_SUCCESS);
}

/* Attaching: PyTorch's context is used, and nothing is created before its first use. */
Test(torch, nothing_is_opened_before_the_first_allocation) {
    char text[200];
    const struct torch_library *torch = torch_scene_open(1);
    torch->init(1);
    torch->empty_cache();
    torch->statistics(text, sizeof text);
    cr_assert_str_eq(text, "{\"devices\": []}");
    CUcontext current = NULL, before = NULL;
    const struct tol_driver_table *driver = tol_driver_functions(test_driver());
    driver->cuCtxGetCurrent(&before);
    cr_assert(before == NULL);
    torch_scene_free(torch_scene_block(BYTES, NULL), BYTES, NULL);
    driver->cuCtxGetCurrent(&current);
    cr_assert(current == NULL, "the thread's context changed");
    torch_scene_driver();
    driver->cuCtxGetCurrent(&before);
    fill(torch_scene_block(BYTES, NULL), 1, BYTES, NULL);
    driver->cuCtxGetCurrent(&current);
    cr_assert(current == before && current != NULL);
    torch_scene_must_be_clean();
}

Test(torch, blocks_are_apart_and_are_found_by_address) {
    static const size_t sizes[] = {1, 255, 256, 257, 4000, BYTES, 3 * TORCH_MIB, 40 * TORCH_MIB};
    enum { COUNT = sizeof sizes / sizeof sizes[0] };
    CUdeviceptr at[COUNT];
    size_t bytes = 0;
    const struct torch_library *torch = torch_scene_open(1);
    for (int i = 0; i < COUNT; i++) {
        at[i] = torch_scene_block(sizes[i], NULL);
        cr_assert_eq(at[i] % 256, 0);
        fill(at[i], (unsigned char)(i + 1), sizes[i], NULL);
    }
    for (int i = 0; i < COUNT; i++) {
        cr_assert_eq(byte_at(at[i]), i + 1);
        cr_assert_eq(byte_at(at[i] + sizes[i] - 1), i + 1);
        const uintptr_t last = (uintptr_t)at[i] + sizes[i] - 1;
        cr_assert((CUdeviceptr)(uintptr_t)torch->base((void *)last, &bytes) == at[i] &&
                  bytes == sizes[i]);
    }
    for (int i = 0; i < COUNT; i++) torch_scene_free(at[i], sizes[i], NULL);
    cr_assert(torch->base((void *)(uintptr_t)at[0], &bytes) == (void *)(uintptr_t)at[0]);
    cr_assert_eq(bytes, 0);
    cr_assert_eq(torch_scene_number(0, "allocated"), 0);
    cr_assert_eq(torch_scene_number(0, "blocks"), 0);
    torch_scene_must_be_clean();
}

Test(torch, a_stream_has_its_memory_again_at_once) {
    torch_scene_open(1);
    CUstream stream = torch_scene_stream();
    CUdeviceptr at = torch_scene_block(BYTES, stream);
    fill_long(at, 1, BYTES, stream);
    torch_scene_free(at, BYTES, stream);
    CUdeviceptr again = torch_scene_block(BYTES, stream);
    cr_assert_eq(again, at);
    fill(again, 2, BYTES, stream);
    settle(stream);
    cr_assert_eq(byte_at(again), 2);
    torch_scene_must_be_clean();
}

/* Only one block fits: the second stream gets that of the first, after its work. */
Test(torch, another_stream_is_ordered_after_the_work_before_the_free) {
    setenv("TOLLENS_TORCH_LIMIT", "32m", 1);
    torch_scene_open(1);
    CUstream one = torch_scene_stream(), two = torch_scene_stream();
    CUdeviceptr at = torch_scene_block(20 * TORCH_MIB, one);
    fill_long(at, 1, 20 * TORCH_MIB, one);
    torch_scene_free(at, 20 * TORCH_MIB, one);
    CUdeviceptr other = torch_scene_block(20 * TORCH_MIB, two);
    fill(other, 2, 20 * TORCH_MIB, two);
    settle(two);
    settle(one);
    cr_assert_eq(byte_at(other), 2, "the first stream's work came after");
    torch_scene_must_be_clean();
}

/* The goal of record_stream: a block that B uses is not A's again while B's work is queued. */
Test(torch, a_recorded_stream_is_waited_for) {
    const struct torch_library *torch = torch_scene_open(1);
    CUstream one = torch_scene_stream(), two = torch_scene_stream();
    CUdeviceptr at = torch_scene_block(BYTES, one);
    atomic_bool opened = false;
    cr_assert_eq(torch_scene_driver()->cuLaunchHostFunc(two, wait_for, &opened), CUDA_SUCCESS);
    fill(at, 1, BYTES, two);
    torch->record_stream((void *)(uintptr_t)at, two);
    torch->record_stream((void *)(uintptr_t)at, two);
    torch->record_stream((void *)(uintptr_t)at, one);
    torch_scene_free(at, BYTES, one);
    cr_assert_eq(torch_scene_number(0, "waiting"), 1);
    CUdeviceptr other = torch_scene_block(BYTES, one);
    cr_assert_neq(other, at, "it is in use");
    cr_assert_eq(torch_scene_number(0, "waiting"), 1);
    fill(other, 2, BYTES, one);
    atomic_store(&opened, true);
    settle(two);
    CUdeviceptr third = torch_scene_block(BYTES, one);
    cr_assert_eq(third, at, "the work is done, and the block is free");
    cr_assert_eq(torch_scene_number(0, "waiting"), 0);
    cr_assert_eq(torch_scene_number(0, "recorded_frees"), 1);
    fill(third, 3, BYTES, one);
    settle(one);
    cr_assert_eq(byte_at(other), 2);
    cr_assert_eq(byte_at(third), 3);
    torch_scene_must_be_clean();
}

/* Before memory is out, what waits for another stream is waited for. */
Test(torch, memory_is_not_out_while_a_recorded_stream_has_it) {
    setenv("TOLLENS_TORCH_LIMIT", "32m", 1);
    const struct torch_library *torch = torch_scene_open(1);
    CUstream one = torch_scene_stream(), two = torch_scene_stream();
    CUdeviceptr at = torch_scene_block(20 * TORCH_MIB, one);
    fill_long(at, 1, 20 * TORCH_MIB, two);
    torch->record_stream((void *)(uintptr_t)at, two);
    torch_scene_free(at, 20 * TORCH_MIB, one);
    CUdeviceptr other = torch_scene_block(20 * TORCH_MIB, one);
    fill(other, 2, 20 * TORCH_MIB, one);
    settle(one);
    cr_assert_eq(byte_at(other), 2);
    torch_scene_must_be_clean();
}

Test(torch, out_of_memory_is_null_with_a_reason_and_nothing_is_lost) {
    setenv("TOLLENS_TORCH_LIMIT", "64m", 1);
    const struct torch_library *torch = torch_scene_open(1);
    CUdeviceptr at = torch_scene_block(40 * TORCH_MIB, NULL);
    for (int i = 0; i < 5; i++) {
        cr_assert(torch->allocate(40 * TORCH_MIB, 0, NULL) == NULL);
        cr_assert(strstr(torch->last_error(), "CUDA out of memory: 41943040 bytes on device 0") !=
                      NULL,
                  "%s", torch->last_error());
    }
    cr_assert(torch->allocate(SIZE_MAX - 5, 0, NULL) == NULL);
    cr_assert_eq(torch_scene_number(0, "refused"), 6);
    torch_scene_free(at, 40 * TORCH_MIB, NULL);
    torch_scene_block(60 * TORCH_MIB, NULL);
    cr_assert(torch->allocate(0, 0, NULL) == NULL);
    torch->free(NULL, 0, 0, NULL);
    torch_scene_must_be_clean();
}

/* PyTorch does not look for NULL: it would write there. */
Test(torch, out_of_memory_is_thrown_where_nobody_looks_for_null) {
    setenv("TOLLENS_TORCH_LIMIT", "4m", 1);
    const struct torch_library *torch = torch_scene_open(1);
    cr_assert(torch->allocate_or_throw(TORCH_MIB, 0, NULL) != NULL);
    cr_assert(torch->allocate_or_throw(0, 0, NULL) == NULL);
    const pid_t child = fork();
    if (child == 0) {
        (void)dlopen("libstdc++.so.6", RTLD_NOW | RTLD_GLOBAL);
        (void)torch->allocate_or_throw(40 * TORCH_MIB, 0, NULL);
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "nobody catches it: %x", status);
}

Test(torch, what_is_no_block_is_reported_and_changes_nothing) {
    const struct torch_library *torch = torch_scene_open(1);
    CUdeviceptr at = torch_scene_block(BYTES, NULL);
    torch_scene_free(at, BYTES, NULL);
    torch_scene_free(at, BYTES, NULL);
    cr_assert(strstr(torch->last_error(), "freed before") != NULL, "%s", torch->last_error());
    torch_scene_free(at + 256, BYTES, NULL);
    torch->record_stream((void *)(uintptr_t)at, NULL);
    cr_assert(strstr(torch->last_error(), "cannot be recorded") != NULL, "%s", torch->last_error());
    cr_assert_eq(torch_scene_number(0, "blocks"), 0);
    cr_assert(torch->allocate(1, 63, NULL) == NULL);
    torch->init(1);
    cr_assert(torch->allocate(1, 1, NULL) == NULL);
    cr_assert(strstr(torch->last_error(), "there is no device 1") != NULL, "%s",
              torch->last_error());
    cr_assert(torch->allocate(1, -1, NULL) == NULL);
    cr_assert(strstr(torch->last_error(), "device -1") != NULL, "%s", torch->last_error());
}

Test(torch, a_setting_that_means_nothing_is_refused_in_words) {
    const struct torch_library *torch = torch_scene_open(1);
    static const struct {
        const char *name, *value;
    } wrong[] = {{"TOLLENS_TORCH_LIMIT", "12x"},          {"TOLLENS_TORCH_LIMIT", "-1"},
                 {"TOLLENS_TORCH_LIMIT", "99999999999g"}, {"TOLLENS_TORCH_STITCH_ABOVE", "0.5"},
                 {"TOLLENS_TORCH_WAIT_ABOVE", "-1"},      {"TOLLENS_TORCH_WAIT_ABOVE", "1.001"},
                 {"TOLLENS_TORCH_STITCH_ABOVE", "1.02x"}, {"TOLLENS_TORCH_PROFILE", "fast"}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        setenv(wrong[i].name, wrong[i].value, 1);
        cr_assert(torch->allocate(1, 0, NULL) == NULL);
        cr_assert(strstr(torch->last_error(), wrong[i].value) != NULL, "%s", torch->last_error());
        unsetenv(wrong[i].name);
    }
    setenv("TOLLENS_TORCH_PROFILE", "latency", 1);
    torch_scene_block(1, NULL);
}

Test(torch, a_fraction_limits_the_device) {
    const struct torch_library *torch = torch_scene_open(1);
    const size_t all = (size_t)tol_context_device(test_context())->memory_bytes;
    const double share = 100.5 * TORCH_MIB / (double)all;
    torch->set_fraction(2, 0);
    torch->set_fraction(share, 0);
    torch_scene_block(90 * TORCH_MIB, NULL);
    cr_assert(torch->allocate(20 * TORCH_MIB, 0, NULL) == NULL);
    cr_assert(torch_scene_number(0, "reserved_peak") <= 100 * TORCH_MIB);
}

/* The current context is the current device of PyTorch's kernels. */
Test(torch, each_device_has_memory_of_its_own_and_none_becomes_current) {
    const struct torch_library *torch = torch_scene_open(2);
    int count = 0;
    CUcontext before = NULL, after = NULL;
    MUST(tol_device_count(test_driver(), &count));
    if (count < 2) cr_skip_test("there is one device");
    const struct tol_driver_table *driver = torch_scene_driver();
    driver->cuCtxGetCurrent(&before);
    void *one = torch->allocate(BYTES, 0, NULL), *two = torch->allocate(BYTES, 1, NULL);
    driver->cuCtxGetCurrent(&after);
    cr_assert(one != NULL && two != NULL && after == before);
    for (int device = 0; device < 2; device++) {
        cr_assert_eq(torch_scene_number(device, "allocated"), BYTES);
    }
    torch->free(two, BYTES, 1, NULL);
    driver->cuCtxGetCurrent(&after);
    cr_assert(after == before);
    cr_assert_eq(torch_scene_number(1, "allocated"), 0);
    cr_assert_eq(torch_scene_number(0, "allocated"), BYTES);
    torch_scene_must_be_clean();
}

Test(torch, an_empty_cache_holds_nothing) {
    const struct torch_library *torch = torch_scene_open(1);
    CUdeviceptr at = torch_scene_block(90 * TORCH_MIB, NULL);
    torch_scene_free(at, 90 * TORCH_MIB, NULL);
    cr_assert_geq(torch_scene_number(0, "reserved"), 90 * TORCH_MIB, "the profile keeps it");
    torch->empty_cache();
    cr_assert_eq(torch_scene_number(0, "reserved"), 0);
    cr_assert_geq(torch_scene_number(0, "reserved_peak"), 90 * TORCH_MIB);
}

Test(torch, peaks_begin_again_at_what_is_in_use) {
    const struct torch_library *torch = torch_scene_open(1);
    torch->reset_peaks(0); /* nothing has been used */
    CUdeviceptr kept = torch_scene_block(5 * TORCH_MIB, NULL);
    CUdeviceptr freed = torch_scene_block(40 * TORCH_MIB, NULL);
    torch_scene_free(freed, 40 * TORCH_MIB, NULL);
    cr_assert_eq(torch_scene_number(0, "allocated_peak"), 45 * TORCH_MIB);
    torch->empty_cache();
    torch->reset_peaks(0);
    torch->reset_peaks(7);
    cr_assert_eq(torch_scene_number(0, "allocated_peak"), 5 * TORCH_MIB);
    cr_assert_eq(torch_scene_number(0, "reserved_peak"), torch_scene_number(0, "reserved"));
    freed = torch_scene_block(20 * TORCH_MIB, NULL);
    torch_scene_free(freed, 20 * TORCH_MIB, NULL);
    cr_assert_eq(torch_scene_number(0, "allocated_peak"), 25 * TORCH_MIB);
    torch_scene_free(kept, 5 * TORCH_MIB, NULL);
    torch_scene_must_be_clean();
}

Test(torch, statistics_are_written_when_the_process_ends) {
    char path[64];
    json_error_t error;
    snprintf(path, sizeof path, "/tmp/torch-statistics-%d", (int)getpid());
    const pid_t child = fork();
    if (child == 0) {
        setenv("TOLLENS_TORCH_STATISTICS", path, 1);
        torch_scene_open(1);
        torch_scene_block(BYTES, NULL);
        exit(0);
    }
    waitpid(child, NULL, 0);
    json_t *all = json_load_file(path, 0, &error);
    if (test_on_gpu() && all == NULL) cr_skip_test("no GPU");
    cr_assert(all != NULL, "%s", error.text);
    const json_t *device = json_array_get(json_object_get(all, "devices"), 0);
    cr_assert_eq(json_integer_value(json_object_get(device, "allocated_peak")), BYTES);
    json_decref(all);
    unlink(path);
}
