/*
 * The attack on W4: hundreds of changed models, each with llama.cpp's answer. The worker must
 * refuse a file that llama.cpp refuses. For one that llama.cpp computes, it must give llama.cpp's
 * tokens and logits, or refuse the file with a message that names what it does not compute.
 *
 * fixtures/models/oracle.py describes the record and makes the changes. A file that the worker
 * refuses at loading takes no device time. One that it computes takes a load and a short prompt, so
 * a quick run computes only some of these.
 */
#include "worker_faults.h"
#include "worker_stage.h"

#include <tokenizer.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOKENS_MAX = 256, EDITS_MAX = 3, KINDS = 6, QUICK_ONE_IN = 16 };

static const struct {
    const char *name;
    double bound; /* as for W1 */
} bases[] = {{"llama-f32", 2e-3},
             {"mistral3-f16", 5e-3},
             {"llama-q4_k_m", 0.12},
             {"qwen2-q5_0", 0.12},
             {"qwen3-bf16", 0.05}};

enum { BASES = sizeof bases / sizeof bases[0] };

/* By the index of oracle.py's KINDS: the fault that hides a change of this kind. */
static const char *const hidden_by[KINDS] = {
    "key_ignored_one_in",    "type_mistaken_one_in",      "size_not_compared_one_in",
    "tensor_ignored_one_in", "token_rule_ignored_one_in", "value_not_watched_one_in"};

struct edit {
    uint32_t at, removed;
    struct worker_piece comes;
};

struct variant {
    struct worker_piece base, word;
    unsigned kind, edits;
    bool is_needed;
    struct edit edit[EDITS_MAX];
    struct worker_piece answer; /* none: llama.cpp refuses it */
    uint32_t index;
};

struct others {
    struct hyp_attack *attack;
    struct worker_piece text;
    char *base[BASES]; /* the content of the models' files */
    size_t base_bytes[BASES];
    size_t refused_by_both, refused, computed, skipped;
};

/* ---- the record ---- */

static bool others_take(struct worker_cursor *c, struct variant *v) {
    v->base = worker_piece(c, 1);
    v->word = worker_piece(c, 1);
    v->kind = worker_number(c, 1);
    v->is_needed = worker_number(c, 1) != 0;
    v->edits = worker_number(c, 1);
    if (v->kind >= KINDS || v->edits > EDITS_MAX) return false;
    for (unsigned i = 0; i < v->edits; i++) {
        v->edit[i].at = worker_number(c, 4);
        v->edit[i].removed = worker_number(c, 4);
        v->edit[i].comes = worker_piece(c, 4);
    }
    v->answer = worker_piece(c, 4);
    return true;
}

static int others_base(struct others *o, const struct variant *v) {
    char path[64];
    for (int i = 0; i < BASES; i++) {
        if (strlen(bases[i].name) != v->base.count ||
            memcmp(bases[i].name, v->base.bytes, v->base.count) != 0)
            continue;
        snprintf(path, sizeof path, "fixtures/models/%s.gguf", bases[i].name);
        if (o->base[i] == NULL) o->base[i] = hyp_attack_file(o->attack, path, &o->base_bytes[i]);
        return o->base[i] != NULL ? i : -1;
    }
    HYP_CHECK(o->attack, false, "no model is %.*s", (int)v->base.count, v->base.bytes);
    return -1;
}

/* ---- the changed file ---- */

/* Appends bytes of the file from *at on, up to an end. false: the file has fewer. */
static bool others_copy(FILE *to, const char *bytes, size_t count, size_t *at, size_t end) {
    if (end < *at || end > count) return false;
    const size_t part = end - *at;
    const bool ok = fwrite(bytes + *at, 1, part, to) == part;
    *at = end;
    return ok;
}

/* A path, until worker_file_end. is_hidden: the file is as it was before the change. */
static const char *others_write(const struct others *o, const struct variant *v, int base,
                                bool is_hidden) {
    const char *path = worker_file_new();
    FILE *to = path != NULL ? fopen(path, "wb") : NULL;
    size_t at = 0;
    bool ok = to != NULL;
    for (unsigned i = 0; ok && !is_hidden && i < v->edits; i++) {
        const struct edit *e = &v->edit[i];
        ok = others_copy(to, o->base[base], o->base_bytes[base], &at, e->at) &&
             fwrite(e->comes.bytes, 1, e->comes.count, to) == e->comes.count;
        at += e->removed;
    }
    ok = ok && others_copy(to, o->base[base], o->base_bytes[base], &at, o->base_bytes[base]);
    if (to != NULL) ok = fclose(to) == 0 && ok;
    return HYP_CHECK(o->attack, ok, "variant %u could not be written", v->index) ? path : NULL;
}

/* ---- judging ---- */

static void others_judge_refusal(struct others *o, const struct variant *v, tol_status status) {
    const char *said = tol_message();
    const bool is_file = status == TOL_UNSUPPORTED || status == TOL_INVALID_FILE ||
                         status == TOL_NOT_FOUND || status == TOL_MISMATCH;
    HYP_CHECK(o->attack, is_file, "variant %u is refused with %s: %s", v->index,
              tol_status_name(status), said);
    HYP_CHECK(o->attack, memmem(said, strlen(said), v->word.bytes, v->word.count) != NULL,
              "variant %u is refused without the name %.*s: %s", v->index, (int)v->word.count,
              v->word.bytes, said);
    HYP_CHECK(o->attack, !v->is_needed, "variant %u (%.*s) must be computed, and is refused: %s",
              v->index, (int)v->word.count, v->word.bytes, said);
    o->refused_by_both += v->answer.count == 0;
    o->refused += v->answer.count != 0;
}

static bool others_same_tokens(const struct worker_prompt *prompt, const int32_t *tokens,
                               size_t count) {
    bool same = prompt->count == count;
    for (size_t i = 0; same && i < count; i++) same = prompt->tokens[i] == tokens[i];
    return same;
}

/* What llama.cpp computes of the text, if it does, against what the worker does. */
static void others_judge_result(struct others *o, const struct variant *v, double bound,
                                const int32_t *tokens, size_t count, const float *logits,
                                size_t vocabulary) {
    static struct worker_prompt prompt;
    struct worker_record record = {.at = (const unsigned char *)v->answer.bytes,
                                   .end = (const unsigned char *)v->answer.bytes + v->answer.count};
    const int shown = (int)v->word.count;
    o->computed++;
    if (!HYP_CHECK(o->attack, v->answer.count > 0,
                   "variant %u (%.*s) is computed, and llama.cpp refuses it", v->index, shown,
                   v->word.bytes))
        return;
    if (!HYP_CHECK(o->attack, worker_record_last(&record, &prompt), "variant %u has no answer",
                   v->index))
        return;
    if (!HYP_CHECK(o->attack, others_same_tokens(&prompt, tokens, count),
                   "variant %u (%.*s) has %zu other tokens than llama.cpp's %zu", v->index, shown,
                   v->word.bytes, count, prompt.count))
        return;
    const struct worker_position there = worker_position_at(&prompt, 0);
    const double off = worker_position_off(&there, logits, vocabulary);
    HYP_CHECK(o->attack, off <= bound,
              "variant %u (%.*s) is computed, and its logits are %.3g of the largest from "
              "llama.cpp's",
              v->index, shown, v->word.bytes, off);
}

/* TOL_MISMATCH: the values are not finite. Any other failure is a violation. */
static tol_status others_compute(struct others *o, const struct variant *v, double bound,
                                 const struct tol_model *model,
                                 const struct tol_tokenizer *tokenizer) {
    const struct tol_load_options options = {.context = TOKENS_MAX, .prompt_from = 8};
    const struct tol_session_options keeps = {.keeps_logits = true};
    const struct tol_encode_options both = {.add_special = true, .parse_special = true};
    struct tol_loaded *loaded = NULL;
    struct tol_session *session = NULL;
    int32_t tokens[TOKENS_MAX];
    int next = 0;
    size_t count = 0;
    const bool ok =
        HYP_OK(o->attack, tol_tokenizer_encode(tokenizer, o->text.bytes, o->text.count, &both,
                                               tokens, TOKENS_MAX, &count)) &&
        HYP_OK(o->attack, tol_model_load(model, o->attack->context, &options, &loaded)) &&
        HYP_OK(o->attack, tol_session_create(loaded, &keeps, &session));
    tol_status status = ok ? tol_session_prompt(session, tokens, count) : TOL_OK;
    if (ok && status == TOL_OK) status = tol_session_step(session, &next);
    if (ok && status == TOL_OK) {
        others_judge_result(o, v, bound, tokens, count, tol_session_logits(session),
                            tol_model_shape(model)->vocabulary);
    }
    tol_session_destroy(session);
    tol_model_unload(loaded);
    return status;
}

static void others_check(struct others *o, const struct variant *v, int base) {
    struct hyp_attack *attack = o->attack;
    const bool is_hidden = hyp_sabotage_turn(attack->session.sabotage, hidden_by[v->kind]);
    const char *path = others_write(o, v, base, is_hidden);
    struct tol_model *model = NULL;
    struct tol_tokenizer *tokenizer = NULL;
    tol_status status = path != NULL ? tol_model_supported(path) : TOL_OK;
    if (status != TOL_OK) others_judge_refusal(o, v, status);
    if (path != NULL && status == TOL_OK && HYP_OK(attack, tol_model_open(path, &model)) &&
        HYP_OK(attack, tol_tokenizer_create(tol_model_file(model), &tokenizer))) {
        /* Where llama.cpp has an answer, a part of a quick run's; where it has none, all. */
        const bool is_taken = attack->session.full || is_hidden || v->answer.count == 0 ||
                              hyp_random_below(attack, QUICK_ONE_IN) == 0;
        status = is_taken ? others_compute(o, v, bases[base].bound, model, tokenizer) : TOL_OK;
        o->skipped += !is_taken;
        if (status != TOL_OK) others_judge_refusal(o, v, status);
    }
    tol_tokenizer_destroy(tokenizer);
    tol_model_close(model);
    worker_file_end();
}

HYP_ATTACK(w4, changed_models_are_llama_cpps_or_refused) {
    struct worker_cursor cursor;
    struct others others = {.attack = attack};
    struct variant v;
    uint32_t count = 0;
    if (worker_unpack(attack, "fixtures/models/variants.bin.xz", &cursor)) {
        others.text = worker_piece(&cursor, 2);
        count = worker_number(&cursor, 4);
        HYP_CHECK(attack, count > 200, "%u variants", count);
    }
    for (v.index = 0; v.index < count; v.index++) {
        if (!HYP_CHECK(attack, others_take(&cursor, &v), "variant %u is no record", v.index)) break;
        const int base = others_base(&others, &v);
        if (base < 0) break;
        others_check(&others, &v, base);
        hyp_attack_progress(attack, (v.index + 1.0) / count);
    }
    HYP_CHECK(attack, cursor.at == cursor.count, "the record was not read to its end");
    hyp_attack_note(attack,
                    "%u changed models: %zu refused as by llama.cpp, %zu refused though llama.cpp "
                    "computes them, %zu computed with llama.cpp's logits, %zu accepted and not "
                    "computed in a quick run",
                    count, others.refused_by_both, others.refused, others.computed, others.skipped);
    for (int i = 0; i < BASES; i++) free(others.base[i]);
    free(cursor.bytes);
}
