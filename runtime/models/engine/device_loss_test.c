/*
 * Several devices, one of which fails: sessions end with a status by the deadline, and all memory
 * goes back on all of them.
 */
#include "engine_scene.h"
#include "loaded_state.h"

#include "test/test_scenarios.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

TestSuite(device_loss, .fini = test_end, .timeout = 120);

enum { DEVICES = 2, PROMPT = 12, TOKENS = 3 };

struct scene {
    struct gguf_maker maker;
    struct tol_model *model;
    struct tol_context *contexts[DEVICES];
    struct tol_loaded *loaded;
};

static tol_status load(struct scene *s, unsigned deadline_ms) {
    return tol_model_load(s->model, s->contexts[0],
                          &(struct tol_load_options){.context = 64,
                                                     .sessions = 2,
                                                     .prompt_from = PROMPT,
                                                     .peers = s->contexts + 1,
                                                     .peer_count = DEVICES - 1,
                                                     .deadline_ms = deadline_ms},
                          &s->loaded);
}

static void open_contexts(struct scene *s) {
    for (int i = 0; i < DEVICES; i++) {
        MUST(tol_context_create(test_driver(), i, &s->contexts[i]));
    }
}

static void close_contexts(struct scene *s) {
    tol_model_unload(s->loaded);
    s->loaded = NULL;
    for (int i = 0; i < DEVICES; i++) tol_context_destroy(s->contexts[i]);
}

static struct scene begin(void) {
    struct scene s = {.loaded = NULL};
    int there = 0;
    setenv("TOLLENS_SOFT_DEVICES", "2", 1);
    MUST(tol_device_count(test_driver(), &there));
    if (there < DEVICES) cr_skip_test("%d devices are needed, and there are %d", DEVICES, there);
    tiny_model_write(&stage_base, &s.maker);
    MUST(tol_model_open(s.maker.path, &s.model));
    open_contexts(&s);
    return s;
}

static struct scene begin_refusing(void) {
    setenv("TOLLENS_SOFT_DEVICES", "2", 1);
    test_staged_install(test_driver());
    return begin();
}

static void end(struct scene *s) {
    close_contexts(s);
    tol_model_close(s->model);
    maker_end(&s->maker);
}

/* A prompt and steps of a session. */
static tol_status live(const struct scene *s, size_t prompt, int *drawn) {
    struct tol_session *session = NULL;
    int tokens[PROMPT];
    make_tokens(tokens, PROMPT, stage_base.vocabulary, 1);
    tol_status status = tol_session_create(s->loaded, NULL, &session);
    if (status == TOL_OK) status = tol_session_prompt(session, tokens, prompt);
    for (int i = 0; i < TOKENS && status == TOL_OK; i++) {
        status = tol_session_step(session, &drawn[i]);
    }
    tol_session_destroy(session);
    return status;
}

static void check_nothing_is_held(const struct scene *s, uint64_t scenario) {
    for (int i = 0; i < DEVICES; i++) {
        struct tol_health health;
        MUST(tol_health_check(s->contexts[i], NULL, &health));
        for (int kind = 0; kind < TOL_HELD_KINDS; kind++) {
            cr_assert(health.held[kind].count == 0, "scenario %llu: device %d still holds %llu %s",
                      (unsigned long long)scenario, i, (unsigned long long)health.held[kind].count,
                      tol_held_name((unsigned)kind));
        }
    }
}

/* Loading, with call after call refused: it fails or succeeds, and unloading leaves nothing. */
Test(device_loss, a_call_refused_while_loading_leaves_nothing) {
    enum { STRIDE = 151 };
    unsigned refused = 0;
    struct scene s = begin_refusing();
    for (uint64_t nth = 1;; nth += STRIDE) {
        test_staged.refusal = (struct test_refusal){
            .nth = nth, .result = CUDA_ERROR_OUT_OF_MEMORY, .refused = TOL_DRIVER_FUNCTIONS};
        test_staged.is_armed = true;
        const tol_status status = load(&s, 0);
        test_staged.is_armed = false;
        const bool was_refused = test_staged.refusal.refused != TOL_DRIVER_FUNCTIONS;
        cr_assert(was_refused || status == TOL_OK, "%s", tol_message());
        tol_model_unload(s.loaded);
        s.loaded = NULL;
        if (tol_context_check(s.contexts[0]) == TOL_OK &&
            tol_context_check(s.contexts[1]) == TOL_OK) {
            check_nothing_is_held(&s, nth);
        }
        refused += was_refused && status != TOL_OK;
        if (!was_refused) break;
    }
    cr_assert(refused > 1, "%u loads failed", refused);
    end(&s);
    tol_interpose_remove(test_driver());
}

/* Sessions, with a call refused: the next one gets the right tokens, or an error that says to load
 * again. */
Test(device_loss, a_call_refused_in_a_pass_ends_the_session_and_nothing_else) {
    enum { STRIDE = 97 };
    int expected[TOKENS] = {0}, drawn[TOKENS] = {0};
    unsigned refused = 0;
    struct scene s = begin_refusing();
    MUST(load(&s, 0));
    MUST(live(&s, PROMPT, expected));
    for (uint64_t nth = 1;; nth += STRIDE) {
        test_staged.refusal = (struct test_refusal){
            .nth = nth, .result = CUDA_ERROR_INVALID_VALUE, .refused = TOL_DRIVER_FUNCTIONS};
        test_staged.is_armed = true;
        const tol_status status = live(&s, PROMPT, drawn);
        test_staged.is_armed = false;
        const bool was_refused = test_staged.refusal.refused != TOL_DRIVER_FUNCTIONS;
        cr_assert(was_refused || status == TOL_OK, "%s", tol_message());
        refused += status != TOL_OK;
        if (!was_refused) break;
        tol_status next = live(&s, PROMPT, drawn);
        if (next == TOL_POISONED) { /* a wait itself was refused: what came of it is not known */
            close_contexts(&s);
            open_contexts(&s);
            MUST(load(&s, 0));
            next = live(&s, PROMPT, drawn);
        }
        cr_assert(next == TOL_OK && memcmp(drawn, expected, sizeof drawn) == 0,
                  "after call %llu: %s", (unsigned long long)nth, tol_message());
    }
    cr_assert(refused > 3, "%u sessions failed", refused);
    tol_model_unload(s.loaded);
    s.loaded = NULL;
    check_nothing_is_held(&s, 0);
    end(&s);
    tol_interpose_remove(test_driver());
}

/* Holds a stream until the test lets go, or for a minute. */
static tol_status hold(void *user, char *reason, size_t bytes) {
    const struct timespec pause = {.tv_nsec = 5000000};
    (void)reason, (void)bytes;
    for (int i = 0; i < 12000 && !atomic_load((atomic_bool *)user); i++) nanosleep(&pause, NULL);
    return TOL_OK;
}

Test(device_loss, a_device_that_hangs_ends_sessions_by_the_deadline) {
    struct scene s = begin();
    struct tol_session *session = NULL;
    int token = 1, drawn[TOKENS];
    atomic_bool lets_go = false;
    MUST(load(&s, 2000));
    MUST(live(&s, 1, drawn)); /* loads the kernels */
    MUST(tol_session_create(s.loaded, NULL, &session));
    struct tol_stream *held = s.loaded->team.part[1]->stream;
    MUST(tol_stream_call(held, hold, &lets_go));
    MUST_FAIL(tol_session_prompt(session, &token, 1), TOL_TIMEOUT, "");
    MUST_FAIL(tol_session_prompt(session, &token, 1), TOL_POISONED,
              "the 2 devices of the model no longer respond to each other");
    tol_session_destroy(session);
    atomic_store(&lets_go, true);
    MUST(tol_stream_synchronize(held)); /* it comes, late */
    tol_model_unload(s.loaded);
    s.loaded = NULL;
    check_nothing_is_held(&s, 0);
    end(&s);
}

/* A kernel on the second device faults between two steps. */
Test(device_loss, a_device_that_faults_ends_sessions_and_another_load_goes_on) {
    int first[TOKENS], again[TOKENS], token = 1;
    struct tol_session *session = NULL;
    static const char ptx[] = ".version 6.4\n.target sm_70\n.address_size 64\n"
                              ".visible .entry wild()\n{\n.reg .b64 %rd<2>;\n.reg .b32 %r<2>;\n"
                              "mov.u64 %rd1, 64;\nmov.u32 %r1, 1;\nst.global.u32 [%rd1], %r1;\n"
                              "ret;\n}\n";
    struct tol_module *module = NULL;
    struct tol_kernel *wild = NULL;
    struct scene s = begin();
    if (test_on_gpu()) cr_skip_test("a fault ends all contexts of the process there");
    MUST(load(&s, 2000));
    MUST(live(&s, PROMPT, first));
    MUST(tol_session_create(s.loaded, NULL, &session));
    MUST(tol_session_prompt(session, &token, 1));
    MUST(tol_module_load(s.contexts[1], ptx, sizeof ptx - 1, NULL, &module));
    MUST(tol_module_kernel(module, "wild", &wild));
    MUST(tol_launch(s.loaded->team.part[1]->stream, wild, tol_launch_linear(1, 1),
                    (struct tol_arguments){0}));
    tol_status status = tol_session_step(session, &token); /* draws from the prompt */
    if (status == TOL_OK) status = tol_session_step(session, &token);
    cr_assert(status == TOL_POISONED || status == TOL_TIMEOUT || status == TOL_DRIVER_ERROR,
              "%s: %s", tol_status_name(status), tol_message());
    MUST_FAIL(tol_session_step(session, &token), TOL_POISONED, "");
    for (int i = 0; i < DEVICES; i++) tol_context_set_patience(s.contexts[i], 100);
    tol_session_destroy(session);
    tol_module_destroy(module);
    close_contexts(&s);
    open_contexts(&s);
    MUST(load(&s, 0));
    MUST(live(&s, PROMPT, again));
    cr_assert(memcmp(first, again, sizeof first) == 0);
    end(&s);
}

/* A page that the second device has no memory for: the first gives its part back. */
Test(device_loss, a_page_that_one_device_lacks_is_nowhere) {
    struct scene s = begin();
    struct tol_session *session = NULL;
    struct tol_loaded_stats stats;
    struct tol_health health;
    int tokens[PROMPT];
    make_tokens(tokens, PROMPT, stage_base.vocabulary, 1);
    MUST(load(&s, 0));
    MUST(tol_session_create(s.loaded, NULL, &session));
    struct tol_pool *pool = s.loaded->team.part[1]->pool;
    struct tol_pool_options tight;
    tol_pool_default(tol_context_device(s.contexts[1]), &tight);
    tight.limit_bytes = 1;
    MUST(tol_pool_create(s.contexts[1], &tight, &s.loaded->team.part[1]->pool));
    MUST_FAIL(tol_session_prompt(session, tokens, PROMPT), TOL_OUT_OF_DEVICE_MEMORY, "");
    tol_pool_destroy(s.loaded->team.part[1]->pool);
    s.loaded->team.part[1]->pool = pool;
    tol_loaded_stats(s.loaded, &stats);
    MUST(tol_health_check(s.contexts[0], NULL, &health));
    cr_assert(stats.pages == 0 && health.held[TOL_HELD_BLOCK].count == 0);
    MUST(tol_session_prompt(session, tokens, PROMPT));
    tol_session_destroy(session);
    tol_model_unload(s.loaded);
    s.loaded = NULL;
    check_nothing_is_held(&s, 0);
    end(&s);
}
