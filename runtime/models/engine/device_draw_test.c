/*
 * Steps whose tokens the device draws: the host's tokens, for every limit, alone and beside others;
 * and logits that stay on the device.
 */
#include "decode/draw_arguments.h"
#include "engine_scene.h"

#include <string.h>

TestSuite(device_draw, .fini = test_end);

enum { SESSIONS = 10, STEPS = 14, VOCABULARY = 1500 };

static struct stage open_wide(const struct tol_load_options *options) {
    struct tiny_model wide = stage_base;
    wide.vocabulary = VOCABULARY;
    return open_stage(&wide, options);
}

/* Greedy ones, a penalty without a temperature, and a window that the device does not take. */
static struct tol_sampling sampling_of(size_t i) {
    static const struct tol_sampling all[SESSIONS] = {
        {.temperature = 0.9},
        {.temperature = 2, .top_k = 20},
        {.temperature = 0.7, .top_p = 0.9},
        {.temperature = 1, .top_k = 100, .top_p = 0.8, .min_p = 0.02, .repetition_penalty = 1.3},
        {.temperature = 0},
        {.temperature = 0, .repetition_penalty = 1.5, .repetition_window = 9},
        {.temperature = 1.2, .repetition_penalty = 1.1, .repetition_window = DRAW_TOKENS + 1},
        {.temperature = 1e-9, .min_p = 1},
        {.temperature = 1, .repetition_penalty = 0.7, .repetition_window = DRAW_TOKENS},
        {.temperature = 1, .min_p = 0.05}};
    struct tol_sampling sampling = all[i];
    sampling.seed = 100 + i;
    return sampling;
}

static struct tol_session *begin(const struct stage *s, size_t i, bool keeps_logits) {
    int tokens[30];
    const struct tol_session_options options = {.sampling = sampling_of(i),
                                                .keeps_logits = keeps_logits};
    struct tol_session *session = open_session(s, &options);
    make_tokens(tokens, 3 * i + 1, s->vocabulary, (unsigned)i);
    MUST(tol_session_prompt(session, tokens, 3 * i + 1));
    return session;
}

static void play(const struct stage *s, bool together, bool keeps_logits,
                 int tokens[SESSIONS][STEPS]) {
    struct tol_step steps[SESSIONS];
    for (size_t i = 0; i < SESSIONS; i++) {
        struct tol_session *session = steps[i].session = begin(s, i, keeps_logits);
        for (size_t j = 0; j < STEPS && !together; j++) {
            MUST(tol_session_step(session, &tokens[i][j]));
        }
        if (!together) tol_session_destroy(session);
    }
    for (size_t j = 0; j < STEPS && together; j++) {
        MUST(tol_sessions_step(steps, SESSIONS));
        for (size_t i = 0; i < SESSIONS; i++) {
            cr_assert(steps[i].status == TOL_OK);
            tokens[i][j] = steps[i].token;
        }
    }
    for (size_t i = 0; i < SESSIONS && together; i++) tol_session_destroy(steps[i].session);
}

Test(device_draw, tokens_are_those_that_the_host_draws) {
    static int host[SESSIONS][STEPS], device[SESSIONS][STEPS];
    struct stage s = open_wide(&(struct tol_load_options){.draws_on_host = true});
    play(&s, false, false, host);
    close_stage(&s);
    s = open_wide(NULL);
    for (int way = 0; way < 3; way++) {
        play(&s, way > 0, way > 1, device);
        for (size_t i = 0; i < SESSIONS; i++) {
            for (size_t j = 0; j < STEPS; j++) {
                cr_assert(device[i][j] == host[i][j],
                          "session %zu, step %zu, %s: %d, and on the host %d", i, j,
                          way == 0   ? "alone"
                          : way == 1 ? "together"
                                     : "together, with logits",
                          device[i][j], host[i][j]);
            }
        }
    }
    close_stage(&s);
}

static struct {
    size_t longest; /* copy to the host */
    unsigned graphs, copies;
} seen;

static void watch(struct tol_interpose_call *call, void *user) {
    (void)user;
    seen.graphs += call->index == TOL_DRIVER_INDEX_cuGraphLaunch;
    if (call->index != TOL_DRIVER_INDEX_cuMemcpyDtoHAsync_v2) return;
    const size_t bytes = *(const size_t *)call->arguments[2];
    seen.longest = bytes > seen.longest ? bytes : seen.longest;
    seen.copies++;
}

/* Bytes that come back for a step of a session that draws by chance. */
static size_t longest_copy(const struct tol_load_options *options, bool keeps_logits) {
    int token = 0;
    MUST(tol_interpose_install(test_driver(), &(struct tol_interpose_options){.before = watch}));
    struct stage s = open_wide(options);
    struct tol_session *session = begin(&s, 3, keeps_logits);
    MUST(tol_session_step(session, &token)); /* of the prompt's logits */
    memset(&seen, 0, sizeof seen);
    for (int i = 0; i < 8; i++) MUST(tol_session_step(session, &token));
    cr_assert(seen.graphs >= 6 && seen.copies > 0, "%u graphs, %u copies", seen.graphs,
              seen.copies);
    cr_assert((tol_session_logits(session) != NULL) == keeps_logits);
    tol_session_destroy(session);
    close_stage(&s);
    tol_interpose_remove(test_driver());
    return seen.longest;
}

Test(device_draw, a_token_comes_back_and_no_logits) {
    enum { SLOTS = 33 }; /* of 32 sessions, and one more: their notices */
    const size_t logits = VOCABULARY * sizeof(float);
    cr_assert(longest_copy(NULL, false) == SLOTS * sizeof(uint64_t) + sizeof(int), "%zu",
              seen.longest);
    cr_assert(longest_copy(NULL, true) == logits);
    cr_assert(longest_copy(&(struct tol_load_options){.draws_on_host = true}, false) == logits);
}
