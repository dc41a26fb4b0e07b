/*
 * The attacks on W1: logits, greedy tokens and the tokenizer against llama.cpp's records.
 *
 * The bounds are shares of the largest logit of a position. llama.cpp's own kernels for the CPU
 * round a row before a product, to 8 bits where the weights are blocks and to bf16 where they are
 * that, and random models magnify it; the double precision records beside (NAME.exact) say by how
 * much. The bounds are those of the engine's own tests.
 */
#include "worker_faults.h"
#include "worker_stage.h"

#include <tokenizer.h>

#include <math.h>
#include <stdlib.h>

static const struct {
    const char *name;
    double bound; /* of a logit, as a share of the largest of its position */
} models[] = {{"llama-f32", 2e-3},    {"mistral-f16", 5e-3},  {"qwen3-bf16", 0.05},
              {"qwen2-q8_0", 0.12},   {"llama-q4_k_m", 0.12}, {"qwen3-q5_k_m", 0.15},
              {"mistral3-f16", 5e-3}, {"qwen2-q5_0", 0.12}};

enum { MODELS = sizeof models / sizeof models[0], PROMPTS = 8, QUICK_PROMPT = 40 };

/* Each position of short prompts; of long ones, the positions after pieces of random lengths. */
static bool decode_check_prompt(struct hyp_attack *attack, const struct worker_stage *stage,
                                struct tol_session *session, const struct worker_prompt *prompt,
                                double *worst) {
    const uint64_t most = prompt->count > 200 ? 199 : prompt->count > 20 ? 15 : 1;
    for (size_t done = 0; done < prompt->count;) {
        size_t now = 1 + (size_t)hyp_random_below(attack, most);
        if (now > prompt->count - done) now = prompt->count - done;
        if (!HYP_OK(attack, tol_session_prompt(session, prompt->tokens + done, now))) return false;
        done += now;
        const struct worker_position there = worker_position_at(prompt, done - 1);
        *worst = fmax(*worst,
                      worker_position_off(&there, tol_session_logits(session), stage->vocabulary));
    }
    return true;
}

struct decoding {
    struct tol_session *sessions[PROMPTS];
    struct worker_prompt prompts[PROMPTS];
    bool has_parted[PROMPTS];
    size_t count, same, ties;
};

/* A token that differs from the record ends the comparison. It is no violation if two bounds could
 * swap the record's two largest logits, and these two are as close here. */
static void check_token(struct hyp_attack *attack, struct decoding *d, size_t at, size_t step,
                        int token, double bound, const char *name) {
    const struct worker_prompt *prompt = &d->prompts[at];
    const float *logits = tol_session_logits(d->sessions[at]);
    const int expected = prompt->greedy[step];
    if (d->has_parted[at]) return;
    if (token == expected) {
        d->same++;
        return;
    }
    const double allowed = 2 * bound * fabs((double)logits[token]);
    d->has_parted[at] = true;
    d->ties++;
    HYP_CHECK(attack,
              (double)prompt->leads[step] < allowed &&
                  (double)(logits[token] - logits[expected]) < allowed,
              "%s, prompt %zu, greedy token %zu: %d, and llama.cpp has %d by a lead of %g", name,
              at, step, token, expected, (double)prompt->leads[step]);
}

/* All prompts are continued in one batch. */
static void check_greedy(struct hyp_attack *attack, struct decoding *d, double bound,
                         const char *name, size_t most) {
    for (size_t step = 0; step < WORKER_GREEDY && step < most; step++) {
        struct tol_step steps[PROMPTS];
        size_t who[PROMPTS], count = 0;
        for (size_t i = 0; i < d->count; i++) {
            if (step >= d->prompts[i].greedy_count || d->has_parted[i]) continue;
            who[count] = i;
            steps[count++].session = d->sessions[i];
        }
        if (count == 0) return;
        HYP_NEED(attack, tol_sessions_step(steps, count));
        for (size_t i = 0; i < count; i++) {
            if (!HYP_OK(attack, steps[i].status)) return;
            check_token(attack, d, who[i], step, steps[i].token, bound, name);
        }
    }
}

static void check_model(struct hyp_attack *attack, size_t index) {
    static struct decoding d;
    const struct tol_session_options keeps = {.keeps_logits = true};
    const char *name = models[index].name;
    const size_t most = attack->session.full ? WORKER_PROMPT_MAX : QUICK_PROMPT;
    char path[128];
    size_t bytes = 0;
    double worst = 0;
    struct worker_record record;
    struct worker_stage stage;
    snprintf(path, sizeof path, "fixtures/models/%s.logits", name);
    char *text = hyp_attack_file(attack, path, &bytes);
    if (text == NULL) return;
    d = (struct decoding){.count = 0};
    bool ok = worker_stage_begin(
        attack, name,
        &(struct tol_load_options){.context = 1600, .sessions = PROMPTS, .prompt_from = 8}, &stage);
    ok = ok && HYP_CHECK(attack,
                         worker_record_begin(&record, text, bytes) &&
                             record.vocabulary == stage.vocabulary && record.prompts <= PROMPTS,
                         "%s is not a record of the model", path);
    for (uint32_t i = 0; ok && i < record.prompts; i++) {
        struct worker_prompt *prompt = &d.prompts[d.count];
        ok = HYP_CHECK(attack, worker_record_next(&record, prompt), "%s ends early", path);
        if (!ok || prompt->count > most) continue;
        ok = HYP_OK(attack, tol_session_create(stage.loaded, &keeps, &d.sessions[d.count]));
        d.count += ok;
        ok = ok && decode_check_prompt(attack, &stage, d.sessions[d.count - 1], prompt, &worst);
    }
    if (ok) check_greedy(attack, &d, models[index].bound, name, attack->session.full ? 64 : 24);
    if (ok) {
        hyp_attack_measure(attack, worst / models[index].bound, "%s", name);
        hyp_attack_note(attack,
                        "%s: logits within %.3g of the largest, %zu greedy tokens the same, %zu "
                        "texts diverge at a near-tie",
                        name, worst, d.same, d.ties);
    }
    while (d.count > 0) tol_session_destroy(d.sessions[--d.count]);
    worker_stage_end(&stage);
    free(text);
}

HYP_ATTACK(w1, logits_and_greedy_tokens_are_llama_cpps) {
    for (size_t i = 0; i < MODELS; i++) {
        check_model(attack, i);
        hyp_attack_progress(attack, (double)(i + 1) / MODELS);
    }
}
