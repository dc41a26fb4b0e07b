/*
 * The attack on W2 with long prompts: sessions that share a prefix, whose prompts are computed in
 * passes of another size than alone.
 */
#include "worker_stage.h"

#include <string.h>

enum { LONG_SESSIONS = 6, LONG_STEPS = 4, LONG_MAX = 90, SHARED = 50 };

/* The result of a session: tokens, and the bits of the logits after its prompt, as a sum. */
struct long_outcome {
    int tokens[LONG_STEPS];
    uint64_t sum;
};

struct long_trial {
    struct tol_sampling sampling;
    int tokens[LONG_MAX];
    size_t count;
};

static void draw_long(struct hyp_attack *attack, size_t vocabulary, struct long_trial *trials) {
    int beginning[SHARED];
    worker_tokens(hyp_random(attack), vocabulary, beginning, SHARED);
    for (size_t i = 0; i < LONG_SESSIONS; i++) {
        struct long_trial *trial = &trials[i];
        trial->count = SHARED + 2 + (size_t)hyp_random_below(attack, LONG_MAX - SHARED - 1);
        worker_tokens(hyp_random(attack), vocabulary, trial->tokens, trial->count);
        if (i % 3 != 2) memcpy(trial->tokens, beginning, sizeof beginning);
        trial->sampling = (struct tol_sampling){.seed = hyp_random(attack), .temperature = 0.9};
    }
}

static bool begin_long(struct hyp_attack *attack, const struct worker_stage *stage,
                       const struct long_trial *trial, struct long_outcome *outcome,
                       struct tol_session **session) {
    const struct tol_session_options options = {.sampling = trial->sampling, .keeps_logits = true};
    const bool ok = HYP_OK(attack, tol_session_create(stage->loaded, &options, session)) &&
                    HYP_OK(attack, tol_session_prompt(*session, trial->tokens, trial->count));
    if (ok) outcome->sum = worker_sum(tol_session_logits(*session), stage->vocabulary);
    return ok;
}

/* Each session alone, in a model whose sessions share nothing. */
static bool play_long_alone(struct hyp_attack *attack, const struct worker_stage *stage,
                            const struct long_trial *trial, struct long_outcome *outcome) {
    struct tol_session *session = NULL;
    bool ok = begin_long(attack, stage, trial, outcome, &session);
    for (size_t step = 0; ok && step < LONG_STEPS; step++) {
        ok = HYP_OK(attack, tol_session_step(session, &outcome->tokens[step]));
    }
    tol_session_destroy(session);
    return ok;
}

static bool play_long_together(struct hyp_attack *attack, const struct worker_stage *stage,
                               const struct long_trial *trials, struct long_outcome *outcomes) {
    struct tol_session *sessions[LONG_SESSIONS] = {NULL};
    struct tol_step steps[LONG_SESSIONS];
    bool ok = true;
    for (size_t i = 0; ok && i < LONG_SESSIONS; i++) {
        ok = begin_long(attack, stage, &trials[i], &outcomes[i], &sessions[i]);
        steps[i].session = sessions[i];
    }
    for (size_t step = 0; ok && step < LONG_STEPS; step++) {
        ok = HYP_OK(attack, tol_sessions_step(steps, LONG_SESSIONS));
        for (size_t i = 0; i < LONG_SESSIONS; i++) outcomes[i].tokens[step] = steps[i].token;
    }
    for (size_t i = 0; i < LONG_SESSIONS; i++) tol_session_destroy(sessions[i]);
    return ok;
}

HYP_ATTACK(w2, long_prompts_are_the_same_however_they_are_computed) {
    static struct long_trial trials[LONG_SESSIONS];
    static struct long_outcome alone[LONG_SESSIONS], together[LONG_SESSIONS];
    struct worker_stage stage;
    struct tol_loaded_stats stats;
    struct tol_load_options options = {
        .context = 128, .sessions = LONG_SESSIONS, .prompt_from = 16, .alone = true};
    bool ok = worker_stage_begin(attack, "qwen3-q5_k_m", &options, &stage);
    if (ok) draw_long(attack, stage.vocabulary, trials);
    for (size_t i = 0; ok && i < LONG_SESSIONS; i++) {
        ok = play_long_alone(attack, &stage, &trials[i], &alone[i]);
    }
    worker_stage_end(&stage);
    options.alone = false;
    options.prompt_rows = 1 + (size_t)hyp_random_below(attack, 40);
    if (!ok || !worker_stage_begin(attack, "qwen3-q5_k_m", &options, &stage)) return;
    ok = play_long_together(attack, &stage, trials, together);
    tol_loaded_stats(stage.loaded, &stats);
    HYP_CHECK(attack, !ok || stats.reused > 0, "no session shared a prefix");
    for (size_t i = 0; ok && i < LONG_SESSIONS; i++) {
        HYP_CHECK(attack, alone[i].sum == together[i].sum,
                  "session %zu: the bits of the logits after its prompt differ", i);
        for (size_t step = 0; step < LONG_STEPS; step++) {
            HYP_CHECK(attack, alone[i].tokens[step] == together[i].tokens[step],
                      "session %zu: token %zu is %d, but alone it is %d", i, step,
                      together[i].tokens[step], alone[i].tokens[step]);
        }
    }
    worker_stage_end(&stage);
}
