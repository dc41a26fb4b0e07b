/*
 * The attacks on W2: the tokens of a session alone, in a batch, in pieces, repeatedly, beside other
 * threads, and sampled on the host. Tokens are compared, and the bits of all logits by
 * their sum.
 */
#include "harness/clock.h"
#include "worker_faults.h"
#include "worker_stage.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { SESSIONS = 24, STEPS = 8, LENGTH_MAX = 40, THREADS = 4 };

struct trial {
    struct tol_sampling sampling;
    int tokens[LENGTH_MAX];
    size_t count, pieces; /* of the prompt */
};

/* The result of a trial. */
struct outcome {
    int tokens[STEPS];
    uint64_t sums[STEPS]; /* of the logits that the token was sampled from, FNV-1a */
};

static struct trial same_draw_trial(struct hyp_attack *attack, size_t vocabulary,
                                    size_t length_max) {
    struct trial trial = {.count = 1 + (size_t)hyp_random_below(attack, length_max),
                          .pieces = 1 + (size_t)hyp_random_below(attack, 3)};
    const uint64_t kind = hyp_random_below(attack, 4);
    worker_tokens(hyp_random(attack), vocabulary, trial.tokens, trial.count);
    trial.sampling.seed = hyp_random(attack);
    if (kind > 0) trial.sampling.temperature = 0.9;
    if (kind > 1) trial.sampling.top_k = 40, trial.sampling.repetition_penalty = 1.1;
    if (kind > 2) trial.sampling.top_p = 0.9, trial.sampling.min_p = 0.01;
    return trial;
}

/* ---- one step, as in the library, or with the fault ---- */

struct player {
    struct tol_session *session;
    const struct trial *trial;
    struct outcome outcome;
    size_t step;
};

static struct tol_sampler *shared; /* the generator that all sessions draw from, under the fault */

static tol_status begin_player(const struct worker_stage *stage, const struct trial *trial,
                               size_t pieces, struct player *player) {
    const struct tol_session_options options = {.sampling = trial->sampling, .keeps_logits = true};
    *player = (struct player){.trial = trial};
    tol_status status = tol_session_create(stage->loaded, &options, &player->session);
    for (size_t i = 0, done = 0; i < pieces && status == TOL_OK; i++) {
        const size_t end = i + 1 == pieces ? trial->count : trial->count * (i + 1) / pieces;
        if (end == done) continue;
        status = tol_session_prompt(player->session, trial->tokens + done, end - done);
        done = end;
    }
    return status;
}

static void end_player(struct player *player) {
    tol_session_destroy(player->session);
    player->session = NULL;
}

/* Draws from one generator and computes the token. */
static tol_status step_shared(struct player *player, size_t vocabulary) {
    int token = -1;
    const float *logits = tol_session_logits(player->session);
    player->outcome.sums[player->step] = worker_sum(logits, vocabulary);
    tol_status status = TOL_OK;
    if (shared == NULL) status = tol_sampler_create(&player->trial->sampling, vocabulary, &shared);
    if (status == TOL_OK) status = tol_sampler_draw(shared, logits, &token);
    if (status == TOL_OK) status = tol_session_prompt(player->session, &token, 1);
    player->outcome.tokens[player->step++] = token;
    return status;
}

/* A step of all players in one pass. */
static tol_status step_all(const struct hyp_attack *attack, size_t vocabulary,
                           struct player *const *players, size_t count) {
    struct tol_step steps[SESSIONS];
    tol_status status = TOL_OK;
    if (worker_fault_is(attack, "generator_shared")) {
        for (size_t i = 0; i < count && status == TOL_OK; i++) {
            status = step_shared(players[i], vocabulary);
        }
        return status;
    }
    for (size_t i = 0; i < count; i++) steps[i].session = players[i]->session;
    status = tol_sessions_step(steps, count);
    for (size_t i = 0; i < count && status == TOL_OK; i++) {
        struct player *player = players[i];
        status = steps[i].status;
        player->outcome.tokens[player->step] = steps[i].token;
        player->outcome.sums[player->step++] =
            worker_sum(tol_session_logits(player->session), vocabulary);
    }
    return status;
}

static bool play_alone(struct hyp_attack *attack, const struct worker_stage *stage,
                       const struct trial *trial, size_t pieces, struct outcome *outcome) {
    struct player player, *only = &player;
    bool ok = HYP_OK(attack, begin_player(stage, trial, pieces, &player));
    while (ok && player.step < STEPS) {
        ok = HYP_OK(attack, step_all(attack, stage->vocabulary, &only, 1));
    }
    *outcome = player.outcome;
    end_player(&player);
    return ok;
}

static void same_compare(struct hyp_attack *attack, const struct outcome *got,
                         const struct outcome *expected, size_t which, const char *what) {
    for (size_t i = 0; i < STEPS; i++) {
        HYP_CHECK(attack, got->tokens[i] == expected->tokens[i],
                  "session %zu %s: token %zu is %d, but alone it is %d", which, what, i,
                  got->tokens[i], expected->tokens[i]);
        HYP_CHECK(attack, got->sums[i] == expected->sums[i],
                  "session %zu %s: the bits of the logits of token %zu differ", which, what, i);
    }
}

/* ---- the attacks ---- */

static struct trial trials[SESSIONS];
static struct outcome alone[SESSIONS];

static bool play_each_alone(struct hyp_attack *attack, const struct worker_stage *stage,
                            size_t count) {
    bool ok = true;
    for (size_t i = 0; ok && i < count; i++) {
        trials[i] = same_draw_trial(attack, stage->vocabulary, LENGTH_MAX);
        ok = play_alone(attack, stage, &trials[i], 1, &alone[i]);
    }
    return ok;
}

/* Session i joins after i / 2 steps and leaves after its own. */
HYP_ATTACK(w2, a_batch_gives_each_session_what_it_gets_alone) {
    static struct player players[SESSIONS];
    struct worker_stage stage;
    struct tol_hdr *first = hyp_attack_series(attack, "time_to_first_token");
    struct tol_hdr *between = hyp_attack_series(attack, "between_tokens");
    bool ok = worker_stage_begin(attack, "llama-f32",
                                 &(struct tol_load_options){.context = 128, .sessions = SESSIONS},
                                 &stage) &&
              play_each_alone(attack, &stage, SESSIONS);
    for (size_t round = 0; ok && round < STEPS + SESSIONS / 2; round++) {
        struct player *live[SESSIONS];
        size_t count = 0;
        uint64_t begins[SESSIONS] = {0};
        for (size_t i = 0; ok && i < SESSIONS; i++) {
            if (i / 2 == round) {
                begins[i] = hyp_clock_ns();
                ok =
                    HYP_OK(attack, begin_player(&stage, &trials[i], trials[i].pieces, &players[i]));
            }
            if (i / 2 <= round && players[i].step < STEPS) live[count++] = &players[i];
        }
        const uint64_t begin = hyp_clock_ns();
        ok = ok && (count == 0 || HYP_OK(attack, step_all(attack, stage.vocabulary, live, count)));
        const uint64_t end = hyp_clock_ns();
        tol_hdr_record(between, (int64_t)(end - begin));
        for (size_t i = 0; i < SESSIONS; i++) {
            if (begins[i] != 0) tol_hdr_record(first, (int64_t)(end - begins[i]));
        }
        hyp_attack_progress(attack, (double)round / (STEPS + SESSIONS / 2));
    }
    for (size_t i = 0; i < SESSIONS; i++) {
        end_player(&players[i]);
        if (ok) same_compare(attack, &players[i].outcome, &alone[i], i, "in a batch");
    }
    tol_sampler_destroy(shared);
    shared = NULL;
    worker_stage_end(&stage);
}

/* All kinds of limits, each with a penalty, so that every part of sampling runs. */
HYP_ATTACK(w2, the_device_draws_what_the_host_draws) {
    static struct player players[SESSIONS];
    struct player *live[SESSIONS];
    struct worker_stage stage;
    size_t begun = 0;
    bool ok = worker_stage_begin(attack, "llama-f32",
                                 &(struct tol_load_options){.context = 128, .draws_on_host = true},
                                 &stage);
    for (size_t i = 0; ok && i < SESSIONS; i++) {
        trials[i] = same_draw_trial(attack, stage.vocabulary, LENGTH_MAX);
        trials[i].sampling.temperature = 0.2 + (double)hyp_random_below(attack, 1800) / 1000;
        trials[i].sampling.repetition_penalty = 0.6 + (double)hyp_random_below(attack, 1000) / 1000;
        ok = play_alone(attack, &stage, &trials[i], 1, &alone[i]);
    }
    worker_stage_end(&stage);
    ok = ok && worker_stage_begin(attack, "llama-f32",
                                  &(struct tol_load_options){.context = 128, .sessions = SESSIONS},
                                  &stage);
    for (; ok && begun < SESSIONS; begun++) {
        live[begun] = &players[begun];
        ok = HYP_OK(attack, begin_player(&stage, &trials[begun], 1, &players[begun]));
    }
    for (size_t step = 0; ok && step < STEPS; step++) {
        ok = HYP_OK(attack, step_all(attack, stage.vocabulary, live, SESSIONS));
        hyp_attack_progress(attack, (double)step / STEPS);
    }
    for (size_t i = 0; i < begun; i++) {
        end_player(&players[i]);
        if (ok) same_compare(attack, &players[i].outcome, &alone[i], i, "drawn on the device");
    }
    tol_sampler_destroy(shared);
    shared = NULL;
    worker_stage_end(&stage);
}

HYP_ATTACK(w2, a_hundred_runs_give_the_same_tokens) {
    const unsigned runs = attack->session.full ? 100 : 20;
    struct worker_stage stage;
    struct outcome first, next;
    bool ok = worker_stage_begin(attack, "llama-f32", NULL, &stage);
    struct trial trial = {.count = 0};
    if (ok) trial = same_draw_trial(attack, stage.vocabulary, 20);
    trial.sampling.temperature = 1;
    ok = ok && play_alone(attack, &stage, &trial, 1, &first);
    for (unsigned run = 1; ok && run < runs; run++) {
        ok = play_alone(attack, &stage, &trial, 1 + run % 3, &next);
        if (ok) same_compare(attack, &next, &first, run, "run again");
        hyp_attack_progress(attack, (double)run / runs);
    }
    tol_sampler_destroy(shared);
    shared = NULL;
    worker_stage_end(&stage);
}

struct runner {
    const struct hyp_attack *attack;
    const struct worker_stage *stage;
    const struct trial *trial;
    struct outcome outcome;
    tol_status status;
    char message[300];
};

static void *run_thread(void *user) {
    struct runner *runner = user;
    struct player player, *only = &player;
    runner->status = begin_player(runner->stage, runner->trial, 1, &player);
    while (runner->status == TOL_OK && player.step < STEPS) {
        runner->status = step_all(runner->attack, runner->stage->vocabulary, &only, 1);
    }
    runner->outcome = player.outcome;
    if (runner->status != TOL_OK) {
        snprintf(runner->message, sizeof runner->message, "%.290s", tol_message());
    }
    end_player(&player);
    return NULL;
}

HYP_ATTACK(w2, threads_beside_change_nothing) {
    static struct runner runners[THREADS];
    pthread_t threads[THREADS];
    size_t count = 0;
    struct worker_stage stage;
    bool ok = worker_stage_begin(attack, "llama-f32", NULL, &stage) &&
              play_each_alone(attack, &stage, THREADS);
    if (ok && worker_fault_is(attack, "generator_shared")) {
        ok = false; /* one generator without a lock would be a race of the attack's own */
        HYP_CHECK(attack, true, "not run under this fault");
    }
    for (; ok && count < THREADS; count++) {
        runners[count] =
            (struct runner){.attack = attack, .stage = &stage, .trial = &trials[count]};
        ok = HYP_CHECK(attack,
                       pthread_create(&threads[count], NULL, run_thread, &runners[count]) == 0,
                       "a thread did not start");
        if (!ok) break;
    }
    for (size_t i = 0; i < count; i++) pthread_join(threads[i], NULL);
    for (size_t i = 0; ok && i < count; i++) {
        HYP_CHECK(attack, runners[i].status == TOL_OK, "%s", runners[i].message);
        same_compare(attack, &runners[i].outcome, &alone[i], i, "beside threads");
    }
    tol_sampler_destroy(shared);
    shared = NULL;
    worker_stage_end(&stage);
}
