/*
 * A part of threads-check: a watch counts the calls of several threads, while another thread adds
 * and removes blocks, queries them, and loads and unloads modules.
 */
#include "threads_pool_check.h"

#include "tollens/launch.h"
#include "tollens/memory.h"
#include "tollens/module.h"
#include "tollens/stream.h"
#include "tollens/watch.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

enum { CALLERS = 3, TURNS = 400, BYTES = 4096, OTHERS = 200 };

struct watched {
    struct tol_context *context;
    struct tol_watch *watch;
    struct tol_kernel *kernel;
    struct tol_buffer *buffer;
    atomic_bool is_done, has_failed;
};

static const char ptx[] = ".version 6.4\n.target sm_70\n.address_size 64\n"
                          ".visible .entry nothing(.param .u64 at) { ret; }\n";

static const char rules[] = "[[rule]]\nname = \"stay\"\nblocks = \"other*\"\nkind = \"no_copy\"\n"
                            "[[rule]]\nname = \"usual\"\nkind = \"usual\"\n"
                            "[[rule]]\nname = \"known\"\nkind = \"known_modules\"\n";

static void *watch_check_call(void *user) {
    struct watched *all = user;
    struct tol_stream *stream = NULL;
    const unsigned char bytes[BYTES] = {0};
    bool ok = tol_stream_create(all->context, NULL, &stream) == TOL_OK;
    for (int turn = 0; turn < TURNS && ok; turn++) {
        ok = tol_launch(stream, all->kernel, tol_launch_linear(1, 1),
                        TOL_ARGUMENTS(tol_buffer_address(all->buffer))) == TOL_OK &&
             (turn % 8 != 0 || tol_buffer_write(all->buffer, bytes, sizeof bytes) == TOL_OK);
    }
    ok = ok && tol_stream_synchronize(stream) == TOL_OK;
    tol_stream_destroy(stream);
    if (!ok) atomic_store(&all->has_failed, true);
    return NULL;
}

/* At addresses of no allocation. */
static void *watch_check_change(void *user) {
    struct watched *all = user;
    struct tol_watch_block block;
    for (uint64_t i = 0; !atomic_load(&all->is_done); i++) {
        const CUdeviceptr at = 0x1000 + (i % OTHERS) * 0x1000;
        struct tol_module *module = NULL;
        bool ok = tol_watch_add(all->watch, at, 0x1000, "other") == TOL_OK &&
                  tol_watch_find(all->watch, tol_buffer_address(all->buffer), &block) == TOL_OK &&
                  tol_watch_drop(all->watch, at) == TOL_OK;
        if (i % 16 == 0) {
            ok = ok && tol_module_load(all->context, ptx, sizeof ptx, NULL, &module) == TOL_OK;
            tol_module_destroy(module);
        }
        if (!ok) atomic_store(&all->has_failed, true);
    }
    return NULL;
}

static bool watch_check_run(struct watched *all) {
    pthread_t threads[CALLERS], changer;
    struct tol_watch_block block;
    if (pthread_create(&changer, NULL, watch_check_change, all) != 0) return false;
    for (int i = 0; i < CALLERS; i++) {
        if (pthread_create(&threads[i], NULL, watch_check_call, all) != 0) return false;
    }
    for (int i = 0; i < CALLERS; i++) pthread_join(threads[i], NULL);
    atomic_store(&all->is_done, true);
    pthread_join(changer, NULL);
    return !atomic_load(&all->has_failed) && tol_watch_alarms(all->watch) == 0 &&
           tol_watch_find(all->watch, tol_buffer_address(all->buffer), &block) == TOL_OK &&
           block.launches == CALLERS * TURNS && block.copies_in == CALLERS * TURNS / 8 &&
           block.threads == CALLERS;
}

int check_watch(struct tol_driver *driver) {
    struct watched all = {.context = NULL};
    struct tol_module *module = NULL;
    int code = 2;
    if (tol_watch_create(&(struct tol_watch_options){.rules = rules}, &all.watch) == TOL_OK &&
        tol_watch_install(all.watch, driver) == TOL_OK &&
        tol_context_create(driver, 0, &all.context) == TOL_OK &&
        tol_module_load(all.context, ptx, sizeof ptx, NULL, &module) == TOL_OK &&
        tol_module_kernel(module, "nothing", &all.kernel) == TOL_OK &&
        tol_buffer_create(all.context, BYTES, 1, &all.buffer) == TOL_OK &&
        tol_watch_add(all.watch, tol_buffer_address(all.buffer), BYTES, "kv") == TOL_OK) {
        code = watch_check_run(&all) ? 0 : 1;
        if (code != 0) fprintf(stderr, "threads-check: a watch has lost calls\n");
    } else {
        fprintf(stderr, "threads-check: %s\n", tol_message());
    }
    tol_buffer_destroy(all.buffer);
    tol_module_destroy(module);
    tol_context_destroy(all.context);
    tol_interpose_remove(driver);
    tol_watch_destroy(all.watch);
    return code;
}
