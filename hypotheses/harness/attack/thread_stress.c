/*
 * The threads of the stress test. Each counts its own checks, so that no lock here orders them.
 */
#include "thread_stress.h"

#include "harness/clock.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LANES = 32, NAMES = 8, GUARD = 4, LIVE = 8, BATCH = 4, PATIENCE_S = 60, PAUSE = 16 };

/* A number for a slot by the first lane, and one for the total by each lane. "plain" is what "mark"
 * would be if the total were not atomic: under a saboteur it is used instead. */
static const char head[] = ".version 6.4\n.target sm_70\n.address_size 64\n",
                  kernel_text[] = ".visible .entry %s_%u(.param .u64 slot, .param .u64 total, "
                                  ".param .u32 value)\n{\n"
                                  "  .reg .u64 %%s, %%t; .reg .u32 %%v, %%i; .reg .pred %%p;\n"
                                  "  ld.param.u64 %%s, [slot]; ld.param.u64 %%t, [total];\n"
                                  "  ld.param.u32 %%v, [value];\n"
                                  "  mov.u32 %%i, %%tid.x; setp.eq.u32 %%p, %%i, 0;\n"
                                  "  @%%p red.global.add.u32 [%%s], %%v;\n%s  ret;\n}\n",
                  atomic[] = "  red.global.add.u32 [%t], 1;\n",
                  plain[] = "  ld.global.u32 %v, [%t]; add.u32 %v, %v, 1; "
                            "st.global.u32 [%t], %v;\n";

enum { TEXT_BYTES = NAMES * 2 * (sizeof kernel_text + sizeof plain + 16) + sizeof head + 32 };

/* The text of all kernels; a number makes it another text of the same. */
static size_t thread_stress_write_text(char text[TEXT_BYTES], unsigned number) {
    size_t used = (size_t)snprintf(text, TEXT_BYTES, "%s// %u\n", head, number);
    for (unsigned i = 0; i < 2 * NAMES; i++) {
        used += (size_t)snprintf(text + used, TEXT_BYTES - used, kernel_text,
                                 i % 2 == 0 ? "mark" : "plain", i / 2, i % 2 == 0 ? atomic : plain);
    }
    return used;
}

struct stress_piece {
    struct tol_block block;
    unsigned words, value;
};

struct member {
    struct scene *scene;
    unsigned number;
    uint64_t random;
    struct tol_stream *stream;
    struct tol_batch *batch;
    struct stress_piece pieces[LIVE];
    struct hyp_thread_stress account;
    struct tol_kernel *found[NAMES];
};

struct scene {
    struct tol_context *context;
    struct hyp_thread_stress_options options;
    struct tol_pool *pool;
    struct tol_buffer *slots; /* of thread 0, a guard, of thread 1, a guard, ..., the total */
    struct tol_module *module;
    pthread_barrier_t meeting;
    sem_t held_up, go_on;
    struct member members[HYP_THREAD_STRESS_THREADS_MAX];
};

static bool thread_stress_check(struct member *m, bool holds, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static bool thread_stress_check(struct member *m, bool holds, const char *format, ...) {
    struct hyp_thread_stress *account = &m->account;
    account->checks++;
    if (holds) return true;
    if (account->violations++ < HYP_THREAD_STRESS_TROUBLES_MAX) {
        char *text = account->troubles[account->violations - 1];
        int used = snprintf(text, sizeof account->troubles[0], "thread %u of %u: ", m->number + 1,
                            m->scene->options.threads);
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(text + used, sizeof account->troubles[0] - (size_t)used, format, arguments);
        va_end(arguments);
    }
    return false;
}

#define OK(m, call) thread_stress_check(m, (call) == TOL_OK, "%.60s: %.160s", #call, tol_message())

static unsigned thread_stress_draw(struct member *m, unsigned limit) {
    m->random = m->random * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)((m->random >> 33) % limit);
}

static size_t slots_before(const struct scene *scene, unsigned member) {
    return (size_t)member * (scene->options.launches + GUARD);
}

static CUdeviceptr thread_stress_slot_of(const struct member *m, unsigned launch) {
    size_t index = slots_before(m->scene, m->number) + launch;
    return tol_buffer_address(m->scene->slots) + 4 * (CUdeviceptr)index;
}

static CUdeviceptr total_of(const struct scene *scene) {
    return tol_buffer_address(scene->slots) +
           4 * (CUdeviceptr)slots_before(scene, scene->options.threads);
}

/* Never 0, never a neighbour's, and twice it is no other's. */
static unsigned thread_stress_value_of(const struct member *m, unsigned launch) {
    return ((m->number + 1) << 20 | launch) * 2 + 1;
}

#define MARK(m, launch)                                                                            \
    tol_launch_linear(LANES, LANES),                                                               \
        TOL_ARGUMENTS(thread_stress_slot_of(m, launch), total_of((m)->scene),                      \
                      thread_stress_value_of(m, launch))

/* A block of the pool in the place of another, which must have kept its words. */
static void thread_stress_swap_block(struct member *m, struct stress_piece *piece) {
    struct tol_pool *pool = m->scene->pool;
    const struct tol_driver_table *driver = tol_context_functions(m->scene->context);
    CUstream handle = tol_stream_handle(m->stream);
    if (piece->words > 0) {
        unsigned ends[2] = {0};
        CUdeviceptr at = tol_pool_address(pool, piece->block);
        bool read = driver->cuMemcpyDtoHAsync_v2(&ends[0], at, 4, handle) == CUDA_SUCCESS &&
                    driver->cuMemcpyDtoHAsync_v2(&ends[1], at + 4 * (CUdeviceptr)(piece->words - 1),
                                                 4, handle) == CUDA_SUCCESS;
        if (OK(m, tol_stream_synchronize(m->stream))) {
            thread_stress_check(m, read && ends[0] == piece->value && ends[1] == piece->value,
                                "a block of %u words of %08x contains %08x and %08x", piece->words,
                                piece->value, ends[0], ends[1]);
        }
        OK(m, tol_pool_free(pool, piece->block, m->stream));
        piece->words = 0;
    }
    unsigned words = 1 + thread_stress_draw(m, 20000);
    if (!OK(m, tol_pool_allocate(pool, 4 * (size_t)words, m->stream, &piece->block))) return;
    piece->words = words;
    piece->value = (m->number + 1) << 24 | thread_stress_draw(m, 1 << 24);
    thread_stress_check(m,
                        driver->cuMemsetD32Async(tol_pool_address(pool, piece->block), piece->value,
                                                 words, handle) == CUDA_SUCCESS,
                        "a fill of %u words failed", words);
}

/* Everything that threads do beside launching, once. */
static void do_all_else(struct member *m, unsigned launch) {
    struct tol_module *module = NULL;
    struct tol_kernel *kernel = NULL;
    struct tol_event *event = NULL;
    char name[16], text[TEXT_BYTES];
    /* Two texts in turns, so that modules come and go as well as are shared. */
    size_t bytes = thread_stress_write_text(text, launch / m->scene->options.pause % 2);
    snprintf(name, sizeof name, "mark_%u", thread_stress_draw(m, NAMES));
    if (OK(m, tol_module_load(m->scene->context, text, bytes, NULL, &module))) {
        OK(m, tol_module_kernel(module, name, &kernel));
    }
    if (OK(m, tol_event_create(m->scene->context, thread_stress_draw(m, 2) == 0, &event))) {
        OK(m, tol_event_record(event, m->stream));
        OK(m, tol_event_synchronize(event));
    }
    tol_event_destroy(event);
    tol_module_destroy(module);
    thread_stress_swap_block(m, &m->pieces[thread_stress_draw(m, LIVE)]);
}

static void launch_batch(struct member *m, const struct tol_kernel *kernel, unsigned launch) {
    OK(m, tol_batch_clear(m->batch));
    for (unsigned i = 0; i < BATCH; i++) {
        OK(m, tol_batch_add(m->batch, kernel, MARK(m, launch + i)));
    }
    OK(m, tol_batch_launch(m->batch, m->stream));
}

static void check_slots(struct member *m) {
    const unsigned launches = m->scene->options.launches;
    unsigned *words = malloc((launches + GUARD) * sizeof *words);
    size_t at = 4 * slots_before(m->scene, m->number);
    if (thread_stress_check(m, words != NULL, "no memory") &&
        OK(m, tol_buffer_read_at(m->scene->slots, at, words, (launches + GUARD) * 4))) {
        for (unsigned i = 0; i < launches + GUARD; i++) {
            unsigned wanted = i < launches ? thread_stress_value_of(m, i) : 0;
            thread_stress_check(m, words[i] == wanted, "slot %u contains %08x, expected %08x", i,
                                words[i], wanted);
        }
    }
    free(words);
}

static void *thread_stress_work(void *user) {
    struct member *m = user;
    struct tol_kernel *kernel = NULL;
    const struct hyp_thread_stress_options *options = &m->scene->options;
    bool ok = OK(m, tol_stream_create(m->scene->context, NULL, &m->stream)) &&
              OK(m, tol_module_kernel(m->scene->module, "mark_0", &kernel)) &&
              OK(m, tol_batch_create(m->scene->context, NULL, &m->batch));
    for (unsigned i = 0; ok && i < options->launches;) {
        bool is_batch =
            !options->singly && options->launches - i >= BATCH && thread_stress_draw(m, 4) == 0;
        if (is_batch) {
            launch_batch(m, kernel, i);
        } else {
            OK(m, tol_launch(m->stream, kernel, MARK(m, i)));
        }
        unsigned next = i + (is_batch ? BATCH : 1);
        if (i / options->pause != next / options->pause) do_all_else(m, i);
        i = next;
        ok = m->account.violations < 100; /* more say nothing new */
    }
    for (unsigned i = 0; i < LIVE; i++) {
        if (m->pieces[i].words == 0) continue;
        OK(m, tol_pool_free(m->scene->pool, m->pieces[i].block, m->stream));
    }
    if (m->stream != NULL && OK(m, tol_stream_synchronize(m->stream))) check_slots(m);
    tol_batch_destroy(m->batch);
    tol_stream_destroy(m->stream);
    return NULL;
}

static void *thread_stress_look_up(void *user) {
    struct member *m = user;
    for (unsigned i = 0; i < NAMES; i++) {
        char name[16];
        snprintf(name, sizeof name, "mark_%u", i);
        pthread_barrier_wait(&m->scene->meeting);
        OK(m, tol_module_kernel(m->scene->module, name, &m->found[i]));
    }
    pthread_barrier_wait(&m->scene->meeting);
    for (unsigned i = 0; i < NAMES; i++) {
        thread_stress_check(m, m->found[i] == m->scene->members[0].found[i],
                            "the kernel mark_%u has another handle here than in thread 1", i);
    }
    return NULL;
}

/* Long before an attack's own deadline, so that the message can name the wait. */
enum { HELD_MS = 2000 };

static tol_status thread_stress_hold_up(void *user, char *reason, size_t bytes) {
    struct scene *scene = user;
    (void)reason, (void)bytes;
    sem_post(&scene->held_up);
    while (sem_wait(&scene->go_on) != 0 && errno == EINTR) continue;
    return TOL_OK;
}

static void thread_stress_launch_all(struct member *m, const struct tol_kernel *kernel, bool *ok) {
    for (unsigned i = 0; *ok && i < m->scene->options.launches; i++) {
        *ok = OK(m, tol_launch(m->stream, kernel, MARK(m, i)));
    }
}

/* The thread whose stream is blocked queues nothing more until the others have passed. A driver has
 * fewer queues to a GPU than there may be streams, and work that waits in a queue delays the later
 * work of other streams in the same queue. On GPUs this happens now and then with two streams, with
 * the driver's own calls too (bench-streams shows it); no thread causes it. */
static void *pass_by(void *user) {
    struct member *m = user;
    struct scene *scene = m->scene;
    struct tol_kernel *kernel = NULL;
    bool ok = OK(m, tol_stream_create(scene->context, NULL, &m->stream)) &&
              OK(m, tol_module_kernel(scene->module, "mark_0", &kernel));
    bool holds =
        m->number == 0 && ok && OK(m, tol_stream_call(m->stream, thread_stress_hold_up, scene));
    if (holds) {
        while (sem_wait(&scene->held_up) != 0 && errno == EINTR) continue;
    }
    pthread_barrier_wait(&scene->meeting);
    if (m->number > 0) thread_stress_launch_all(m, kernel, &ok);
    if (ok && m->number > 0) {
        tol_status status = tol_stream_synchronize_for(m->stream, HELD_MS);
        thread_stress_check(m, status == TOL_OK, "its work waits for another thread's work: %.150s",
                            tol_message());
    }
    pthread_barrier_wait(&scene->meeting);
    if (holds) {
        thread_stress_check(m, tol_stream_query(m->stream) == TOL_NOT_READY,
                            "its stream was not blocked");
        thread_stress_launch_all(m, kernel, &ok);
        sem_post(&scene->go_on);
    }
    if (ok && OK(m, tol_stream_synchronize(m->stream))) check_slots(m);
    tol_stream_destroy(m->stream);
    return NULL;
}

/* The accounts of all members, and what is nobody's. */
static void thread_stress_add_up(struct scene *scene, struct hyp_thread_stress *stress,
                                 unsigned members) {
    for (unsigned i = 0; i < members; i++) {
        const struct hyp_thread_stress *account = &scene->members[i].account;
        for (unsigned k = 0; k < HYP_THREAD_STRESS_TROUBLES_MAX && account->troubles[k][0] != '\0';
             k++) {
            for (unsigned at = 0; at < HYP_THREAD_STRESS_TROUBLES_MAX; at++) {
                if (stress->troubles[at][0] != '\0') continue;
                memcpy(stress->troubles[at], account->troubles[k], sizeof stress->troubles[at]);
                break;
            }
        }
        stress->checks += account->checks;
        stress->violations += account->violations;
    }
}

static void check_total(struct scene *scene) {
    struct member *m = &scene->members[0];
    unsigned total = 0, wanted = scene->options.threads * scene->options.launches * LANES;
    size_t at = 4 * slots_before(scene, scene->options.threads);
    if (OK(m, tol_buffer_read_at(scene->slots, at, &total, 4))) {
        thread_stress_check(m, total == wanted, "the total of all threads is %u, expected %u",
                            total, wanted);
    }
}

static bool open_scene(struct scene *scene) {
    struct member *m = &scene->members[0];
    size_t words = slots_before(scene, scene->options.threads) + 1;
    char text[TEXT_BYTES];
    size_t bytes = thread_stress_write_text(text, 2);
    return OK(m, tol_pool_create(scene->context, NULL, &scene->pool)) &&
           OK(m, tol_buffer_create(scene->context, words, 4, &scene->slots)) &&
           OK(m, tol_buffer_fill_at(scene->slots, 0, 0, 4, words)) &&
           OK(m, tol_module_load(scene->context, text, bytes,
                                 &(struct tol_module_options){.unshared = true}, &scene->module));
}

static void close_scene(struct scene *scene) {
    tol_module_destroy(scene->module);
    tol_buffer_destroy(scene->slots);
    tol_pool_destroy(scene->pool);
    pthread_barrier_destroy(&scene->meeting);
    sem_destroy(&scene->held_up);
    sem_destroy(&scene->go_on);
    free(scene);
}

/* Whether all threads ended in time. */
static bool thread_stress_join(pthread_t *threads, unsigned count, unsigned patience_s) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += patience_s;
    for (unsigned i = 0; i < count; i++) {
        if (pthread_timedjoin_np(threads[i], NULL, &until) != 0) return false;
    }
    return true;
}

static bool thread_stress_run(struct tol_context *context,
                              const struct hyp_thread_stress_options *options,
                              struct hyp_thread_stress *stress, void *(*body)(void *),
                              bool counts) {
    pthread_t threads[HYP_THREAD_STRESS_THREADS_MAX];
    struct scene *scene = calloc(1, sizeof *scene);
    unsigned started = 0;
    if (scene == NULL) abort();
    scene->context = context;
    scene->options = *options;
    if (scene->options.pause == 0) scene->options.pause = PAUSE;
    if (scene->options.patience_s == 0) scene->options.patience_s = PATIENCE_S;
    pthread_barrier_init(&scene->meeting, NULL, options->threads);
    sem_init(&scene->held_up, 0, 0);
    sem_init(&scene->go_on, 0, 0);
    for (unsigned i = 0; i < options->threads; i++) {
        scene->members[i] = (struct member){
            .scene = scene, .number = i, .random = options->seed * 0x9e3779b97f4a7c15u + i};
    }
    bool ended = true;
    if (open_scene(scene)) {
        for (; started < options->threads; started++) {
            struct member *m = &scene->members[started];
            if (pthread_create(&threads[started], NULL, body, m) != 0) abort();
        }
        ended = thread_stress_join(threads, started, scene->options.patience_s);
    }
    if (!ended) {
        /* Whoever hangs may still use all of it, and its account as well: nothing is freed. */
        stress->checks++;
        stress->violations++;
        snprintf(stress->troubles[0], sizeof stress->troubles[0],
                 "not all of %u threads ended within %u s", options->threads,
                 scene->options.patience_s);
        return false;
    }
    if (counts && started > 0) check_total(scene);
    thread_stress_add_up(scene, stress, options->threads);
    close_scene(scene);
    return true;
}

bool hyp_thread_stress_run(struct tol_context *context,
                           const struct hyp_thread_stress_options *options,
                           struct hyp_thread_stress *stress) {
    return thread_stress_run(context, options, stress, thread_stress_work, true);
}

bool hyp_thread_stress_look_up(struct tol_context *context,
                               const struct hyp_thread_stress_options *options,
                               struct hyp_thread_stress *stress) {
    return thread_stress_run(context, options, stress, thread_stress_look_up, false);
}

bool hyp_thread_stress_pass_by(struct tol_context *context,
                               const struct hyp_thread_stress_options *options,
                               struct hyp_thread_stress *stress) {
    return thread_stress_run(context, options, stress, pass_by, true);
}
