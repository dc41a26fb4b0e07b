/*
 * Sessions that fail: each driver call is refused in turn, contexts and devices are lost, sessions
 * are cancelled. After each failure the ledgers must be exact, and the next session must compute
 * the right tokens.
 *
 * TOLLENS_TEST_SESSIONS is the number of sessions: 180 by default, or fewer if not all scenarios
 * are repeated (test_scenarios.h).
 */
#include "engine_scene.h"

#include "test/test_scenarios.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

TestSuite(session_loss, .fini = test_end);

enum { TOKENS = 4, PROMPT = 20, USUAL = 180 };

/* ---- a model on a separate context, with hooks ---- */

struct place {
    struct gguf_maker maker;
    struct tol_context *context;
    struct tol_model *model;
    struct tol_loaded *loaded;
};

static void open_place(struct place *p) {
    MUST(tol_context_create(test_driver(), 0, &p->context));
    MUST(tol_model_load(
        p->model, p->context,
        &(struct tol_load_options){.context = 128, .sessions = 4, .prompt_from = PROMPT},
        &p->loaded));
}

static void close_place(struct place *p) {
    tol_model_unload(p->loaded);
    tol_context_destroy(p->context);
    p->loaded = NULL;
    p->context = NULL;
}

static void begin(struct place *p) {
    *p = (struct place){.loaded = NULL};
    tiny_model_write(&stage_base, &p->maker);
    MUST(tol_model_open(p->maker.path, &p->model));
    open_place(p);
}

static void end(struct place *p) {
    close_place(p);
    tol_model_close(p->model);
    maker_end(&p->maker);
}

/* ---- a scenario ---- */

/* What a session of some kind does; the first failure ends it. */
static tol_status run_scenario(const struct place *p, unsigned kind, int *drawn) {
    const struct tol_session_options options = {
        .sampling = {.temperature = kind % 2 == 0 ? 0 : 0.9, .seed = kind}};
    struct tol_session *session = NULL, *beside = NULL;
    int tokens[PROMPT];
    make_tokens(tokens, PROMPT, stage_base.vocabulary, kind % 5);
    tol_status status = tol_session_create(p->loaded, &options, &session);
    if (status == TOL_OK) status = tol_session_prompt(session, tokens, PROMPT - kind % 3);
    if (status == TOL_OK && kind % 4 == 3) { /* another joins, with the same beginning */
        status = tol_session_create(p->loaded, NULL, &beside);
        if (status == TOL_OK) status = tol_session_prompt(beside, tokens, PROMPT);
    }
    for (int i = 0; i < TOKENS && status == TOL_OK; i++) {
        struct tol_step steps[2] = {{.session = session}, {.session = beside}};
        if (kind % 3 == 2 && i == 2) tol_session_cancel(session);
        status = tol_sessions_step(steps, beside != NULL ? 2 : 1);
        if (status == TOL_OK) status = steps[0].status;
        drawn[i] = steps[0].token;
    }
    tol_session_destroy(session);
    tol_session_destroy(beside);
    return status;
}

/* A session that nothing disturbs, and what is held when it has gone. */
static void check_next(const struct place *p, uint64_t n, const int *expected) {
    struct tol_health health;
    struct tol_loaded_stats stats;
    int drawn[TOKENS];
    MUST(run_scenario(p, 1, drawn));
    for (size_t i = 0; i < TOKENS; i++) {
        cr_assert(drawn[i] == expected[i], "after scenario %llu, token %zu is %d, not %d",
                  (unsigned long long)n, i, drawn[i], expected[i]);
    }
    tol_loaded_stats(p->loaded, &stats);
    MUST(tol_health_check(p->context, NULL, &health));
    cr_assert(stats.pages == 0 && health.held[TOL_HELD_BLOCK].count == 0,
              "after scenario %llu: %llu pages, %llu blocks", (unsigned long long)n,
              (unsigned long long)stats.pages,
              (unsigned long long)health.held[TOL_HELD_BLOCK].count);
    cr_assert(health.held[TOL_HELD_BUFFER].bytes == stats.weight_bytes + stats.scratch_bytes);
}

static uint64_t scenarios_wanted(void) {
    const char *text = getenv("TOLLENS_TEST_SESSIONS");
    const uint64_t wanted = text != NULL ? strtoull(text, NULL, 10) : 0;
    return wanted > 0 ? wanted : test_rounds(USUAL);
}

/* Each repetition refuses the next driver call of the scenario; with few repetitions it skips some.
 * After the last call the next kind of scenario begins. */
Test(session_loss, a_call_that_is_refused_ends_one_session_and_nothing_else) {
    struct place p;
    int expected[TOKENS], drawn[TOKENS];
    uint64_t refused = 0, cancelled = 0, whole = 0, deepest = 0, reopened = 0, nth = 1;
    unsigned kind = 0;
    size_t free_before = 0, free_after = 0;
    const uint64_t count = scenarios_wanted(), usual = count < USUAL ? 3 * USUAL / count : 3;
    const uint64_t stride = count < 1000 ? usual : 1;
    test_staged_install(test_driver());
    begin(&p);
    MUST(run_scenario(&p, 1, expected));
    close_place(&p);
    MUST(tol_context_create(test_driver(), 0, &p.context));
    MUST(tol_context_memory(p.context, &free_before, NULL));
    tol_context_destroy(p.context);
    open_place(&p);
    for (uint64_t n = 1; n <= count; n++) {
        test_staged.refusal = (struct test_refusal){.nth = nth,
                                                    .result = n % 3 == 0 ? CUDA_ERROR_INVALID_VALUE
                                                                         : CUDA_ERROR_OUT_OF_MEMORY,
                                                    .refused = TOL_DRIVER_FUNCTIONS};
        test_staged.is_armed = true;
        const tol_status status = run_scenario(&p, kind, drawn);
        test_staged.is_armed = false;
        const bool was_refused = test_staged.refusal.refused != TOL_DRIVER_FUNCTIONS;
        cr_assert(was_refused || status == TOL_OK || status == TOL_CANCELLED, "scenario %llu: %s",
                  (unsigned long long)n, tol_message());
        refused += was_refused;
        cancelled += status == TOL_CANCELLED;
        whole += status == TOL_OK;
        if (nth > deepest) deepest = nth;
        nth = was_refused ? nth + stride : 1 + ++kind % stride;
        if (tol_context_check(p.context) != TOL_OK) {
            close_place(&p);
            open_place(&p);
            reopened++;
        }
        check_next(&p, n, expected);
        if (n % 200 != 0) continue;
        close_place(&p); /* all memory goes back */
        MUST(tol_context_create(test_driver(), 0, &p.context));
        MUST(tol_context_memory(p.context, &free_after, NULL));
        tol_context_destroy(p.context);
        if (!test_on_gpu()) {
            cr_assert(free_after == free_before, "%zu bytes free, and %zu before", free_after,
                      free_before);
        }
        open_place(&p);
    }
    cr_log_info("%llu sessions: %llu with a refused call, of up to %llu; %llu cancelled, %llu to "
                "their ends; the context was lost %llu times",
                (unsigned long long)count, (unsigned long long)refused, (unsigned long long)deepest,
                (unsigned long long)cancelled, (unsigned long long)whole,
                (unsigned long long)reopened);
    cr_assert(refused > count / 2 && whole > 0 && cancelled > 0);
    end(&p);
    tol_interpose_remove(test_driver());
}

/* ---- what is lost ---- */

/* Opens the soft device with a rule; false on a GPU, where none can be set. */
static bool set_rule(const char *rule) {
    static char path[64];
    if (test_on_gpu()) return false;
    strcpy(path, "/tmp/tollens-faults-XXXXXX");
    const int file = mkstemp(path);
    cr_assert(file >= 0 && dprintf(file, "{\"quiet\": true, \"rules\": [%s]}", rule) > 0);
    close(file);
    setenv("TOLLENS_SOFT_FAULTS", path, 1);
    (void)test_driver();
    unlink(path);
    return true;
}

/* Two sessions step until one step fails; then every call on them says so. */
static void step_until_lost(const struct place *p, tol_status expected) {
    struct tol_session *sessions[2] = {NULL};
    int tokens[PROMPT], token = 0;
    tol_status status = TOL_OK;
    make_tokens(tokens, PROMPT, stage_base.vocabulary, 1);
    for (size_t i = 0; i < 2; i++) {
        MUST(tol_session_create(p->loaded, NULL, &sessions[i]));
        MUST(tol_session_prompt(sessions[i], tokens, PROMPT));
    }
    struct tol_step steps[2] = {{.session = sessions[0]}, {.session = sessions[1]}};
    for (size_t i = 0; i < 50 && status == TOL_OK; i++) status = tol_sessions_step(steps, 2);
    cr_assert(status != TOL_OK, "nothing was lost");
    for (size_t i = 0; i < 2; i++) {
        cr_assert(steps[i].status == status && steps[i].token == -1);
        MUST_FAIL(tol_session_step(sessions[i], &token), expected, "");
        MUST_FAIL(tol_session_prompt(sessions[i], tokens, 1), expected, "");
        tol_session_destroy(sessions[i]);
    }
}

Test(session_loss, a_lost_context_ends_sessions_and_the_worker_opens_again) {
    struct place p;
    int first[TOKENS], again[TOKENS];
    if (!set_rule("{\"function\": \"cuGraphLaunch\", \"nth\": 9, \"action\": \"lose_context\", "
                  "\"code\": 719}")) {
        cr_skip_test("a GPU has no rules of faults");
    }
    begin(&p);
    MUST(run_scenario(&p, 1, first));
    step_until_lost(&p, TOL_POISONED);
    close_place(&p);
    open_place(&p);
    MUST(run_scenario(&p, 1, again));
    cr_assert(memcmp(first, again, sizeof first) == 0);
    end(&p);
}

Test(session_loss, a_lost_device_is_said_to_be_lost) {
    struct place p;
    struct tol_context *context = NULL;
    if (!set_rule("{\"function\": \"cuGraphLaunch\", \"nth\": 5, \"action\": \"lose_device\"}")) {
        cr_skip_test("a GPU has no rules of faults");
    }
    begin(&p);
    step_until_lost(&p, TOL_DRIVER_ERROR);
    close_place(&p);
    cr_assert(tol_context_create(test_driver(), 0, &context) != TOL_OK);
    tol_model_close(p.model);
    maker_end(&p.maker);
}
