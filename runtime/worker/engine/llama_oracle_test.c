/*
 * The device against llama.cpp: logits at positions of prompts of 1 to 1,500 tokens, and greedy
 * text, for every committed model. fixtures/models/README.md has the form of the records.
 *
 * llama.cpp's kernels for the CPU round a row before a product: to 8 bits where the weights are
 * blocks, to bf16 or fp16 where they are that. The engine does not. So the logits differ by this
 * rounding, which random models magnify: the bounds are about twice what was found on 2026-11-23
 * (shares of 0.001 for F32, 0.003 for F16, 0.03 for BF16, 0.07 to 0.08 for blocks). Greedy tokens
 * may part only where llama.cpp's own lead is less than two such bounds; with F32 they never do.
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

struct judge {
    const char *name;
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

/* The prompt of a record: each position, or for long ones each hundredth. */
static void check_prompt(struct judge *judge, struct record *record, struct tol_session *session,
                         size_t vocabulary) {
    static int tokens[2048];
    const size_t count = take_u32(record);
    cr_assert(count <= 2048);
    for (size_t i = 0; i < count; i++) tokens[i] = take_id(record);
    const size_t step = count > LONG ? 100 : 1;
    for (size_t i = 0; i < count; i += step) {
        MUST(tol_session_prompt(session, tokens + i, step));
        struct record there = *record;
        there.at += (i + step - 1) * POSITION_BYTES;
        check_position(judge, there, tol_session_logits(session), vocabulary, i + step - 1);
    }
    record->at += count * POSITION_BYTES;
}

/* Greedy text: the tokens of the record, up to a near-tie on which the two may part. */
static void check_greedy(struct judge *judge, struct record *record, struct tol_session *session) {
    const size_t count = take_u32(record);
    bool parted = false;
    for (size_t i = 0; i < count; i++) {
        const int expected = take_id(record);
        float lead = 0;
        int token = -1;
        take(record, &lead, sizeof lead);
        if (parted) continue;
        MUST(tol_session_step(session, &token));
        const float *logits = tol_session_logits(session); /* that the token was drawn from */
        if (token == expected) {
            judge->tokens++;
            continue;
        }
        const double allowed = 2 * judge->bound * fabs((double)logits[token]);
        cr_assert((double)lead < allowed && (double)(logits[token] - logits[expected]) < allowed,
                  "%s, greedy token %zu: %d, and llama.cpp has %d by a lead of %g", judge->name, i,
                  token, expected, (double)lead);
        parted = true;
        judge->ties++;
    }
}

static void check_model(const char *name, double bound, size_t least_tokens) {
    char path[64];
    size_t bytes = 0;
    struct tol_model *model = NULL;
    struct tol_loaded *loaded = NULL;
    struct judge judge = {.name = name, .bound = bound};
    snprintf(path, sizeof path, "models/%s.logits", name);
    char *content = test_fixture(path, &bytes);
    struct record record = {(unsigned char *)content, (unsigned char *)content + bytes};
    snprintf(path, sizeof path, "fixtures/models/%s.gguf", name);
    MUST(tol_model_open(path, &model));
    MUST(tol_model_load(model, test_context(), &(struct tol_load_options){.context = 1600},
                        &loaded));
    const size_t vocabulary = take_u32(&record), prompts = take_u32(&record);
    cr_assert(vocabulary == tol_loaded_shape(loaded)->vocabulary);
    for (size_t i = 0; i < prompts; i++) {
        struct tol_session *session = NULL;
        MUST(tol_session_create(loaded, &(struct tol_session_options){.keeps_logits = true},
                                &session));
        check_prompt(&judge, &record, session, vocabulary);
        check_greedy(&judge, &record, session);
        tol_session_destroy(session);
    }
    cr_assert(record.at == record.end);
    cr_assert(judge.positions > 0 && judge.tokens >= least_tokens, "%zu tokens",
              judge.tokens);
    cr_log_info("%s: worst share %.3g, %zu positions, %zu tokens, %zu near-ties", name, judge.worst,
                judge.positions, judge.tokens, judge.ties);
    tol_model_unload(loaded);
    tol_model_close(model);
    free(content);
}

Test(llama_oracle, llama_f32) {
    check_model("llama-f32", 2e-3, 448);
}
Test(llama_oracle, llama_q4_k_m) {
    check_model("llama-q4_k_m", 0.12, 60);
}
Test(llama_oracle, mistral_f16) {
    check_model("mistral-f16", 5e-3, 400);
}
Test(llama_oracle, qwen2_q8_0) {
    check_model("qwen2-q8_0", 0.12, 90);
}
Test(llama_oracle, qwen3_bf16) {
    check_model("qwen3-bf16", 0.05, 300);
}
Test(llama_oracle, qwen3_q5_k_m) {
    check_model("qwen3-q5_k_m", 0.15, 40);
}
