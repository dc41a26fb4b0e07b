/*
 * Loading that fails: each of its driver calls refused in turn leaves nothing allocated; bytes that
 * change on their way, and memory that is not the device's own, are noticed.
 */
#include "engine_scene.h"

#include "test/test_scenarios.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

TestSuite(load, .fini = test_end);

static struct {
    struct test_refusal refusal;
    bool is_armed, flips, moves;
} staged;

static void before(struct tol_interpose_call *call, void *user) {
    (void)user;
    if (staged.is_armed) test_refuse(call, &staged.refusal);
    /* A bit of what a copy brings to the device changes: in the pinned block, before it. */
    if (staged.flips && call->index == TOL_DRIVER_INDEX_cuMemcpyHtoDAsync_v2) {
        const size_t bytes = *(const size_t *)call->arguments[2];
        if (bytes > 64) (*(unsigned char **)call->arguments[1])[bytes / 2] ^= 1;
    }
}

/* Says of all memory that it is the host's. */
static void after(struct tol_interpose_call *call, void *user) {
    (void)user;
    if (staged.is_armed) test_refuse_after(call, &staged.refusal);
    if (!staged.moves || call->index != TOL_DRIVER_INDEX_cuPointerGetAttribute) return;
    if (*(const CUpointer_attribute *)call->arguments[1] == CU_POINTER_ATTRIBUTE_MEMORY_TYPE) {
        **(unsigned **)call->arguments[0] = CU_MEMORYTYPE_HOST;
    }
}

static size_t free_bytes(void) {
    size_t bytes = 0;
    MUST(tol_context_memory(test_context(), &bytes, NULL));
    return bytes;
}

static void held(size_t *buffers, size_t *pinned) {
    struct tol_health health;
    MUST(tol_health_check(test_context(), NULL, &health));
    *buffers = health.held[TOL_HELD_BUFFER].bytes;
    *pinned = health.held[TOL_HELD_PINNED].bytes;
}

struct files {
    struct gguf_maker maker;
    struct tol_model *model;
};

static struct files open_files(void) {
    struct files f = {.model = NULL};
    staged.is_armed = staged.flips = staged.moves = false;
    MUST(tol_interpose_install(test_driver(),
                               &(struct tol_interpose_options){.before = before, .after = after}));
    tiny_model_write(&stage_base, &f.maker);
    MUST(tol_model_open(f.maker.path, &f.model));
    return f;
}

static void close_files(struct files *f) {
    tol_model_close(f->model);
    maker_end(&f->maker);
    tol_interpose_remove(test_driver());
}

/* One thread reads, so that scenario n has the same nth call each time. */
Test(load, a_call_that_is_refused_leaves_nothing) {
    struct files f = open_files();
    const struct tol_load_options options = {.chunk_bytes = 8192, .threads = 1, .sessions = 2};
    struct tol_loaded *loaded = NULL;
    size_t buffers = 0, pinned = 0, buffers_now = 0, pinned_now = 0, failed = 0;
    bool came = true;
    MUST(tol_model_load(f.model, test_context(), &options, &loaded));
    tol_model_unload(loaded);
    const size_t before_bytes = free_bytes();
    held(&buffers, &pinned);
    for (uint64_t n = test_next_scenario(0); came; n = test_next_scenario(n)) {
        loaded = NULL;
        staged.refusal = (struct test_refusal){
            .nth = n, .result = CUDA_ERROR_OUT_OF_MEMORY, .refused = TOL_DRIVER_FUNCTIONS};
        staged.is_armed = true;
        const tol_status status = tol_model_load(f.model, test_context(), &options, &loaded);
        came = staged.refusal.refused != TOL_DRIVER_FUNCTIONS;
        staged.is_armed = false;
        cr_assert((status == TOL_OK) == (loaded != NULL), "scenario %llu: %s",
                  (unsigned long long)n, tol_status_name(status));
        failed += status != TOL_OK;
        tol_model_unload(loaded);
        held(&buffers_now, &pinned_now);
        cr_assert(
            buffers_now == buffers && pinned_now == pinned,
            "scenario %llu, in which a call was refused: %zu bytes of buffers, %zu pinned, and "
            "%zu and %zu before",
            (unsigned long long)n, buffers_now, pinned_now, buffers, pinned);
        cr_assert(test_on_gpu() || free_bytes() == before_bytes, "scenario %llu",
                  (unsigned long long)n);
    }
    cr_assert(failed > 0);
    close_files(&f);
}

Test(load, a_bit_that_changes_on_its_way_is_found_if_sums_are_compared) {
    struct files f = open_files();
    struct tol_loaded *loaded = NULL;
    struct tol_load_options options = {.verify = true};
    const size_t before_bytes = free_bytes();
    MUST(tol_model_load(f.model, test_context(), &options, &loaded));
    tol_model_unload(loaded);
    loaded = NULL;
    staged.flips = true;
    MUST_FAIL(tol_model_load(f.model, test_context(), &options, &loaded), TOL_MISMATCH,
              "on the device");
    staged.flips = false;
    cr_assert(loaded == NULL && (test_on_gpu() || free_bytes() == before_bytes));
    close_files(&f);
}

Test(load, memory_that_is_not_the_devices_is_refused) {
    struct files f = open_files();
    struct tol_loaded *loaded = NULL;
    const size_t before_bytes = free_bytes();
    staged.moves = true;
    MUST_FAIL(tol_model_load(f.model, test_context(), NULL, &loaded), TOL_NOT_RESIDENT,
              "not in the device's own memory");
    staged.moves = false;
    cr_assert(loaded == NULL && (test_on_gpu() || free_bytes() == before_bytes));
    close_files(&f);
}

/* ---- threads ---- */

struct told {
    uint64_t last, total;
    unsigned calls, cancels_at; /* the call that is answered with false; 0: none */
};

static bool tell(void *user, uint64_t done, uint64_t total) {
    struct told *told = user;
    cr_assert(done >= told->last && done <= total);
    told->last = done;
    told->total = total;
    return ++told->calls != told->cancels_at;
}

Test(load, many_threads_bring_all_of_it_and_a_cancel_leaves_nothing) {
    struct files f = open_files();
    struct tol_loaded *loaded = NULL;
    size_t buffers = 0, pinned = 0, buffers_now = 0, pinned_now = 0;
    held(&buffers, &pinned);
    for (unsigned cancels_at = 0; cancels_at < 3; cancels_at++) {
        for (unsigned threads = 0; threads < 20; threads += 5) {
            struct told told = {.cancels_at = cancels_at};
            const struct tol_load_options options = {.chunk_bytes = 4096,
                                                     .threads = threads,
                                                     .verify = true,
                                                     .progress = tell,
                                                     .user = &told};
            const tol_status status = tol_model_load(f.model, test_context(), &options, &loaded);
            /* Where all was copied before the first call there is no second one. */
            const bool is_cancelled = told.calls == cancels_at;
            cr_assert(status == (is_cancelled ? TOL_CANCELLED : TOL_OK), "%s", tol_message());
            cr_assert(told.calls > 0 && (cancels_at != 1 || is_cancelled));
            cr_assert(is_cancelled || told.last == told.total);
            tol_model_unload(loaded);
            loaded = NULL;
            held(&buffers_now, &pinned_now);
            cr_assert(buffers_now == buffers && pinned_now == pinned, "%zu, %zu", buffers_now,
                      pinned_now);
        }
    }
    close_files(&f);
}

static struct {
    atomic_int waits; /* that began */
    atomic_bool hangs;
} hanging;

static void pause_ms(long ms) {
    const struct timespec pause = {.tv_nsec = ms * 1000000};
    nanosleep(&pause, NULL);
}

/* The second wait of a load does not come back before it is let go. */
static void hang(struct tol_interpose_call *call, void *user) {
    (void)user;
    if (call->index != TOL_DRIVER_INDEX_cuEventSynchronize || !hanging.hangs) return;
    if (atomic_fetch_add(&hanging.waits, 1) != 1) return;
    while (hanging.hangs) pause_ms(1);
}

Test(load, a_thread_that_hangs_in_the_driver_is_left_behind_with_its_blocks) {
    enum { DEADLINE_MS = 150 };
    struct tol_loaded *loaded = NULL;
    size_t buffers = 0, pinned = 0, buffers_now = 0, pinned_now = 1;
    struct files f = open_files();
    tol_interpose_remove(test_driver());
    MUST(tol_interpose_install(test_driver(), &(struct tol_interpose_options){.before = hang}));
    const struct tol_load_options options = {
        .chunk_bytes = 4096, .threads = 3, .deadline_ms = DEADLINE_MS};
    held(&buffers, &pinned);
    hanging.hangs = true;
    MUST_FAIL(tol_model_load(f.model, test_context(), &options, &loaded), TOL_TIMEOUT,
              "has not ended after 150 ms");
    held(&buffers_now, &pinned_now);
    cr_assert(loaded == NULL && buffers_now == buffers, "%zu", buffers_now);
    cr_assert(pinned_now > pinned && pinned_now <= pinned + 2 * 4096, "%zu", pinned_now);
    hanging.hangs = false;
    for (int i = 0; i < 5000 && pinned_now != pinned; i++) {
        pause_ms(1);
        held(&buffers_now, &pinned_now);
    }
    cr_assert(pinned_now == pinned, "%zu", pinned_now);
    MUST(tol_model_load(f.model, test_context(), &options, &loaded));
    tol_model_unload(loaded);
    close_files(&f);
}
