/*
 * The device against two records of every committed model: llama.cpp's, and one in double by a
 * program of its own. Logits at positions of prompts of 1 to 1,500 tokens, and greedy text.
 * fixtures/models/README.md has the form of the records.
 *
 * From the exact record the engine differs by its cache of fp16 and its sums in fp32. llama.cpp
 * differs more: its kernels for the CPU round a row before a product, to 8 bits where the weights
 * are blocks, to bf16 where they are that. Random models magnify both. The bounds are about twice
 * what was found on 2026-11-23. Greedy tokens may part only where the record's own lead is less
 * than two such bounds.
 *
 * Each prompt, with the text after it, is a trial (test_takes_trial).
 */
#include "decode_session.h"

#include "test/test_device.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

TestSuite(llama_oracle, .fini = test_end);

enum { TOP = 16, PROJECTIONS = 4, POSITION_BYTES = TOP * 6 + PROJECTIONS * 4, LONG = 1000 };

struct record {
    const unsigned char *at, *end;
};

static void take(struct record *record, void *to, size_t bytes) {
    cr_assert((size_t)(record->end - record->at) >= bytes, "the record ends early");
    memcpy(to, record->at, bytes);
    record->at += bytes;
}

static uint32_t take_u32(struct record *record) {
    uint32_t value = 0;
    take(record, &value, sizeof value);
    return value;
}

static int take_id(struct record *record) {
    uint16_t value = 0;
    take(record, &value, sizeof value);
    return value;
}

/* One of the two records of a model, and what it was found to say. */
struct judge {
    const char *name;
    struct record record;
    bool has_parted;
    double bound; /* of a logit, as a share of the largest of its position */
    double worst;     /* share that was found */
    size_t positions, tokens, ties;
};

static double projection(const float *logits, size_t count, uint32_t row) {
    uint32_t state = row + 1;
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525 + 1013904223;
        sum += state >> 31 ? (double)logits[i] : -(double)logits[i];
    }
    return sum / sqrt((double)count);
}

static void check_position(struct judge *judge, struct record record, const float *logits,
                           size_t vocabulary, size_t position) {
    uint16_t ids[TOP];
    float values[TOP], projections[PROJECTIONS];
    take(&record, ids, sizeof ids);
    take(&record, values, sizeof values);
    take(&record, projections, sizeof projections);
    const double spread = (double)values[0];
    cr_assert(spread > 1);
    for (size_t i = 0; i < TOP + PROJECTIONS; i++) {
        const double got = i < TOP ? (double)logits[ids[i]]
                                   : projection(logits, vocabulary, (uint32_t)(i - TOP));
        const double expected = (double)(i < TOP ? values[i] : projections[i - TOP]);
        const double share = fabs(got - expected) / spread;
        if (!(share <= judge->worst)) judge->worst = share;
        cr_assert(!(share > judge->bound), "%s, position %zu, number %zu: %g, and llama.cpp has %g",
                  judge->name, position, i, got, expected);
    }
    judge->positions++;
}

enum { EXACT, LLAMA, RECORDS };

/* The prompt of both records: each position, or of long ones each hundredth. */
static void check_prompt(struct judge *judges, struct tol_session *session, size_t vocabulary) {
    static int tokens[2048];
    const size_t count = take_u32(&judges[EXACT].record);
    cr_assert(take_u32(&judges[LLAMA].record) == count && count <= 2048);
    for (size_t i = 0; i < count; i++) {
        tokens[i] = take_id(&judges[EXACT].record);
        cr_assert(take_id(&judges[LLAMA].record) == tokens[i]);
    }
    const size_t step = count > LONG ? 100 : 1;
    for (size_t i = 0; i < count; i += step) {
        MUST(tol_session_prompt(session, tokens + i, step));
        for (int r = 0; r < RECORDS; r++) {
            struct record there = judges[r].record;
            there.at += (i + step - 1) * POSITION_BYTES;
            check_position(&judges[r], there, tol_session_logits(session), vocabulary,
                           i + step - 1);
        }
    }
    for (int r = 0; r < RECORDS; r++) judges[r].record.at += count * POSITION_BYTES;
}

/* A greedy token: the record's, or one of a near-tie on which the two part. */
static void check_token(struct judge *judge, int token, const float *logits) {
    const int expected = take_id(&judge->record);
    const double allowed = 2 * judge->bound * fabs((double)logits[token]);
    float lead = 0;
    take(&judge->record, &lead, sizeof lead);
    if (judge->has_parted) return;
    if (token == expected) {
        judge->tokens++;
        return;
    }
    cr_assert((double)lead < allowed && (double)(logits[token] - logits[expected]) < allowed,
              "%s, greedy token %zu: %d, and the record has %d by a lead of %g", judge->name,
              judge->tokens, token, expected, (double)lead);
    judge->has_parted = true;
    judge->ties++;
}

static void check_greedy(struct judge *judges, struct tol_session *session) {
    size_t counts[RECORDS];
    for (int r = 0; r < RECORDS; r++) {
        counts[r] = take_u32(&judges[r].record);
        judges[r].has_parted = false;
    }
    for (size_t i = 0; i < counts[EXACT] || i < counts[LLAMA]; i++) {
        int token = -1;
        MUST(tol_session_step(session, &token));
        const float *logits = tol_session_logits(session); /* that the token was drawn from */
        for (int r = 0; r < RECORDS; r++) {
            if (i < counts[r]) check_token(&judges[r], token, logits);
        }
    }
}

/* Goes past a prompt and the text after it. */
static void pass_over(struct record *record) {
    const size_t positions = take_u32(record);
    record->at += positions * (sizeof(uint16_t) + POSITION_BYTES);
    const size_t tokens = take_u32(record);
    record->at += tokens * (sizeof(uint16_t) + sizeof(float));
}

static char *open_record(struct judge *judge, const char *model, const char *ending) {
    char path[64];
    size_t bytes = 0;
    snprintf(path, sizeof path, "models/%s.%s", model, ending);
    char *content = test_fixture(path, &bytes);
    judge->name = model;
    judge->record = (struct record){(unsigned char *)content, (unsigned char *)content + bytes};
    return content;
}

/* The bounds, and how many greedy tokens of all prompts must come before near-ties, for each
 * record. Where some prompts are taken, models of other turns take others: the longest is slow. */
static void check_model(const char *name, unsigned turn, double exact_bound, size_t exact_tokens,
                        double llama_bound, size_t llama_tokens) {
    char path[64];
    size_t taken = 0;
    while (turn-- > 0) (void)test_takes_trial();
    struct tol_model *model = NULL;
    struct tol_loaded *loaded = NULL;
    struct judge judges[RECORDS] = {{.bound = exact_bound}, {.bound = llama_bound}};
    char *contents[RECORDS] = {open_record(&judges[EXACT], name, "exact"),
                               open_record(&judges[LLAMA], name, "logits")};
    snprintf(path, sizeof path, "models/%s.gguf", name);
    MUST(tol_model_open(test_fixture_path(path), &model));
    MUST(tol_model_load(model, test_context(), &(struct tol_load_options){.context = 1600},
                        &loaded));
    const size_t vocabulary = take_u32(&judges[EXACT].record);
    const size_t prompts = take_u32(&judges[EXACT].record);
    cr_assert(vocabulary == tol_loaded_shape(loaded)->vocabulary);
    cr_assert(take_u32(&judges[LLAMA].record) == vocabulary);
    cr_assert(take_u32(&judges[LLAMA].record) == prompts);
    for (size_t i = 0; i < prompts; i++) {
        struct tol_session *session = NULL;
        if (!test_takes_trial()) {
            for (int r = 0; r < RECORDS; r++) pass_over(&judges[r].record);
            continue;
        }
        taken++;
        MUST(tol_session_create(loaded, &(struct tol_session_options){.keeps_logits = true},
                                &session));
        check_prompt(judges, session, vocabulary);
        check_greedy(judges, session);
        tol_session_destroy(session);
    }
    for (int r = 0; r < RECORDS; r++) {
        const struct judge *judge = &judges[r];
        cr_log_info("%s: worst share %.3g, %zu positions, %zu tokens, %zu near-ties", judge->name,
                    judge->worst, judge->positions, judge->tokens, judge->ties);
        cr_assert(judge->record.at == judge->record.end);
        cr_assert(judge->positions > 0);
        free(contents[r]);
    }
    /* A prompt may part early. */
    if (taken == prompts) {
        cr_assert(judges[EXACT].tokens >= exact_tokens, "%zu tokens", judges[EXACT].tokens);
        cr_assert(judges[LLAMA].tokens >= llama_tokens, "%zu tokens", judges[LLAMA].tokens);
    }
    for (int r = 0; r < RECORDS; r++) cr_assert(judges[r].tokens + judges[r].ties >= taken);
    tol_model_unload(loaded);
    tol_model_close(model);
}

Test(llama_oracle, llama_f32) {
    check_model("llama-f32", 1, 4e-3, 340, 2e-3, 448);
}
Test(llama_oracle, llama_q4_k_m) {
    check_model("llama-q4_k_m", 2, 0.15, 40, 0.12, 60);
}
Test(llama_oracle, mistral_f16) {
    check_model("mistral-f16", 3, 4e-3, 340, 5e-3, 400);
}
Test(llama_oracle, qwen2_q8_0) {
    check_model("qwen2-q8_0", 4, 4e-3, 340, 0.12, 90);
}
Test(llama_oracle, qwen3_bf16) {
    check_model("qwen3-bf16", 5, 4e-3, 340, 0.05, 300);
}
Test(llama_oracle, qwen3_q5_k_m) {
    check_model("qwen3-q5_k_m", 6, 0.15, 40, 0.12, 40);
}
