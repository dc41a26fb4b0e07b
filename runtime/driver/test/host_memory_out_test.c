/*
 * The host has no memory left: each call that needs memory returns a status for it, and the process
 * works again when there is memory.
 */
#include "test_device.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static tol_status fill_none(void *user, unsigned long long index, void *data) {
    return index == *(const unsigned *)user && data != NULL ? TOL_NOT_FOUND : TOL_OK;
}

static tol_status work_none(void *user, struct tol_stream *on,
                            const struct tol_pipeline_block *block) {
    return user != NULL && on != NULL && block != NULL ? TOL_OK : TOL_INVALID_ARGUMENT;
}

static tol_status take_none(void *user, unsigned long long index, const void *data) {
    return user != NULL && index < 2 && data != NULL ? TOL_OK : TOL_INVALID_ARGUMENT;
}

/* Takes all that the allocator has, down to its smallest blocks, in a process
 * that gets no more. The blocks form a list, which takes no memory of its own.
 */
static void *take_all(void) {
    const struct rlimit none = {0, RLIM_INFINITY};
    void *list = NULL;
    struct rlimit limit;
    cr_assert_eq(getrlimit(RLIMIT_AS, &limit), 0);
    cr_assert_eq(setrlimit(RLIMIT_AS, &(struct rlimit){none.rlim_cur, limit.rlim_max}), 0);
    for (size_t bytes = (size_t)1 << 20; bytes >= 8; bytes = bytes > 1024 ? bytes / 2 : bytes - 8) {
        for (void **block = malloc(bytes); block != NULL; block = malloc(bytes)) {
            *block = list;
            list = block;
        }
    }
    return list;
}

static void give_all(void *list) {
    struct rlimit limit;
    getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_AS, &limit);
    while (list != NULL) {
        void *next = *(void **)list;
        free(list);
        list = next;
    }
}

/* The first block that each of them asks for, where that comes before the driver's. */
Test(host_memory_out, is_a_status_of_its_own, .fini = test_end) {
    enum { CALLS = 11 };
    tol_status statuses[CALLS];
    char messages[CALLS][160];
    int count = 0;
    unsigned number = 2;
    const struct tol_pipeline_options pipes = {.input_bytes = 64,
                                               .fill = fill_none,
                                               .work = work_none,
                                               .take = take_none,
                                               .user = &number};
    union {
        struct tol_stream *stream;
        struct tol_event *event;
        struct tol_buffer *buffer;
        struct tol_pinned *pinned;
        struct tol_batch *batch;
        struct tol_stream_pool *streams;
        struct tol_pipeline *pipeline;
        struct tol_pool *pool;
        struct tol_transfer *transfer;
        struct tol_vram_context *vram;
        struct tol_health_mark *mark;
    } made = {NULL};
    if (test_on_gpu()) cr_skip_test("a GPU's driver has threads that need memory as well");
    struct mallinfo2 info = mallinfo2();
    struct tol_context *context = test_context();
    if (info.uordblks == 0) cr_skip_test("a sanitizer's allocator ends the process instead");
    void *all = take_all();
#define TRY(call)                                                                                  \
    do {                                                                                           \
        statuses[count] = (call);                                                                  \
        snprintf(messages[count++], sizeof messages[0], "%s: %s", #call, tol_message());           \
    } while (0)
    TRY(tol_stream_create(context, NULL, &made.stream));
    TRY(tol_event_create(context, false, &made.event));
    TRY(tol_buffer_create(context, 4, 4, &made.buffer));
    TRY(tol_pinned_create(context, 64, &made.pinned));
    TRY(tol_batch_create(context, NULL, &made.batch));
    TRY(tol_stream_pool_create(context, NULL, &made.streams));
    TRY(tol_pipeline_create(context, &pipes, &made.pipeline));
    TRY(tol_pool_create(context, NULL, &made.pool));
    TRY(tol_transfer_create(context, NULL, &made.transfer));
    TRY(tol_vram_context_create(context, 1 << 20, &made.vram));
    TRY(tol_health_mark_create(context, &made.mark));
    give_all(all);
    cr_assert_eq(count, CALLS);
    for (int i = 0; i < CALLS; i++) {
        cr_assert_eq(statuses[i], TOL_OUT_OF_HOST_MEMORY, "%s: %s", messages[i],
                     tol_status_name(statuses[i]));
        cr_assert(strstr(messages[i], "host memory") != NULL, "%s", messages[i]);
    }
    cr_assert_null(made.stream);
    MUST(tol_stream_create(context, NULL, &made.stream)); /* and with memory all works again */
    tol_stream_destroy(made.stream);
}
