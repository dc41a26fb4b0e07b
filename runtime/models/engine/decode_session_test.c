/*
 * Sessions on a device against the host's model in double, and against themselves: alone and in a
 * batch, in pieces and at once, after a cancel, a rewind, and without memory.
 */
#include "engine_scene.h"
#include "host_model_scene.h"

#include <math.h>
#include <stdlib.h>

TestSuite(decode_session, .fini = test_end);

/* ---- against the host ---- */

static void check_logits(const float *got, const double *expected, size_t count, const char *what,
                         size_t position) {
    double spread = 0, worst = 0;
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        const double off = fabs((double)got[i] - expected[i]);
        spread = fmax(spread, fabs(expected[i]));
        if (!(off <= worst)) worst = off, at = i;
    }
    cr_assert(spread > 1, "%s: the logits say nothing: %g at most", what, spread);
    /* Own keys that fall on the other side of a rounding to fp16 move a score by 2^-11. */
    cr_assert(!(worst > 2e-3 * spread), "%s, position %zu, token %zu: %g and not %g; up to %g",
              what, position, at, (double)got[at], expected[at], spread);
}

/* A trial: every position, one at a time and all at once. */
static void check_model(const struct tiny_model *tiny, const char *what) {
    enum { COUNT = 24 };
    if (!test_takes_trial()) return;
    struct stage s = open_stage(tiny, &(struct tol_load_options){.sessions = 2, .rows = 10});
    const struct tol_session_options keeps = {.keeps_logits = true};
    struct tol_session *single = open_session(&s, &keeps), *whole = open_session(&s, &keeps);
    double *expected = malloc(COUNT * s.vocabulary * sizeof *expected);
    int tokens[COUNT];
    cr_assert(expected != NULL);
    make_tokens(tokens, COUNT, s.vocabulary, 7);
    host_model_run(s.maker.path, tokens, COUNT, true, expected);
    for (size_t i = 0; i < COUNT; i++) {
        MUST(tol_session_prompt(single, tokens + i, 1));
        check_logits(tol_session_logits(single), expected + i * s.vocabulary, s.vocabulary, what,
                     i);
    }
    MUST(tol_session_prompt(whole, tokens, COUNT));
    cr_assert(memcmp(tol_session_logits(single), tol_session_logits(whole),
                     s.vocabulary * sizeof(float)) == 0,
              "%s: a prompt at once and one by one differ", what);
    free(expected);
    tol_session_destroy(single);
    tol_session_destroy(whole);
    close_stage(&s);
}

Test(decode_session, every_architecture_is_the_hosts) {
    struct tiny_model m = stage_base;
    check_model(&m, "llama");
    m.with = "blk.1.attn_output.bias";
    check_model(&m, "llama, with a bias of the output");
    m.with = NULL;
    m.tied = true, m.has_factors = true, m.base = 500000;
    check_model(&m, "llama, tied, with factors");
    m = stage_base, m.scaling = "yarn", m.factor = 4;
    check_model(&m, "llama, yarn");
    m = stage_base, m.architecture = "mistral", m.window = 5, m.scaling = "linear", m.factor = 2;
    check_model(&m, "mistral, window, linear");
    m = stage_base, m.architecture = "mistral3", m.scaling = "yarn", m.factor = 4;
    check_model(&m, "mistral3, yarn");
    m = stage_base, m.architecture = "qwen2", m.heads = 6, m.kv_heads = 2, m.tied = true;
    check_model(&m, "qwen2");
    m.without = "blk.0.attn_v.bias";
    check_model(&m, "qwen2, without a bias");
    m = stage_base, m.architecture = "qwen3", m.head_size = 32, m.rotated = 32;
    check_model(&m, "qwen3");
    m = stage_base, m.architecture = "mistral", m.rotated = 8, m.kv_heads = 1;
    check_model(&m, "half rotated, one head of keys");
}

Test(decode_session, one_matrix_of_q_k_and_v_is_the_hosts) {
    struct tiny_model m = stage_base;
    m.fused = true;
    check_model(&m, "llama, fused");
    m.architecture = "qwen2", m.heads = 6, m.kv_heads = 3;
    check_model(&m, "qwen2, fused, with biases");
    m = stage_base, m.fused = true, m.architecture = "qwen3", m.head_size = 64, m.width = 256;
    m.type = TOL_TENSOR_Q4_K, m.embedding_type = TOL_TENSOR_Q6_K, m.feed_forward = 256;
    check_model(&m, "qwen3, fused, Q4_K");
    m = stage_base, m.fused = true, m.type = TOL_TENSOR_Q5_0;
    check_model(&m, "llama, fused, Q5_0");
}

Test(decode_session, gate_and_up_of_two_types_are_the_hosts) {
    struct tiny_model m = stage_base;
    m.gate_of_v_type = true, m.v_type = TOL_TENSOR_Q8_0;
    check_model(&m, "F16 and Q8_0");
    m.type = TOL_TENSOR_Q5_0, m.v_type = TOL_TENSOR_Q4_0; /* both become Q8_0 */
    check_model(&m, "Q5_0 and Q4_0");
    m.width = m.feed_forward = 256, m.head_size = 64, m.layers = 1;
    m.type = TOL_TENSOR_Q4_K, m.v_type = TOL_TENSOR_Q6_K;
    check_model(&m, "Q4_K and Q6_K");
    m.v_type = TOL_TENSOR_F16;
    check_model(&m, "Q4_K and F16");
}

Test(decode_session, vectors_of_halves_are_the_hosts) {
    struct tiny_model m = stage_base;
    m.vector_type = TOL_TENSOR_F16, m.has_factors = true;
    check_model(&m, "llama, F16 norms and factors");
    m.has_factors = false, m.architecture = "qwen2", m.vector_type = TOL_TENSOR_BF16;
    check_model(&m, "qwen2, BF16 norms and biases");
    m.architecture = "qwen3", m.vector_type = TOL_TENSOR_F16;
    check_model(&m, "qwen3, F16 norms");
}

/* What quantising leaves where rows are no multiple of 256. */
Test(decode_session, weights_that_no_kernel_has_are_the_hosts) {
    struct tiny_model m = stage_base;
    m.type = TOL_TENSOR_Q5_0, m.v_type = TOL_TENSOR_Q8_0, m.embedding_type = TOL_TENSOR_Q4_0;
    check_model(&m, "Q5_0, Q8_0 and Q4_0");
    m.type = TOL_TENSOR_IQ4_NL, m.v_type = TOL_TENSOR_Q5_1, m.embedding_type = TOL_TENSOR_Q4_1;
    check_model(&m, "IQ4_NL, Q5_1 and Q4_1");
    m.type = TOL_TENSOR_Q5_1, m.v_type = TOL_TENSOR_Q5_0, m.embedding_type = TOL_TENSOR_Q8_0;
    check_model(&m, "Q5_1, Q5_0 and Q8_0");
}

Test(decode_session, every_format_is_the_hosts) {
    static const struct {
        enum tol_tensor_type type, v_type, embedding_type;
        size_t width;
    } trials[] = {{TOL_TENSOR_F32, TOL_TENSOR_F32, TOL_TENSOR_F32, 64},
                  {TOL_TENSOR_BF16, TOL_TENSOR_F32, TOL_TENSOR_BF16, 64},
                  {TOL_TENSOR_Q8_0, TOL_TENSOR_Q8_0, TOL_TENSOR_Q8_0, 64},
                  {TOL_TENSOR_Q4_K, TOL_TENSOR_Q6_K, TOL_TENSOR_Q4_K, 256},
                  {TOL_TENSOR_Q5_K, TOL_TENSOR_Q6_K, TOL_TENSOR_Q5_K, 256},
                  {TOL_TENSOR_Q6_K, TOL_TENSOR_Q6_K, TOL_TENSOR_Q6_K, 256},
                  {TOL_TENSOR_Q4_K, TOL_TENSOR_Q4_K, TOL_TENSOR_Q6_K, 256}};
    for (size_t i = 0; i < sizeof trials / sizeof trials[0]; i++) {
        struct tiny_model m = stage_base;
        m.type = trials[i].type, m.v_type = trials[i].v_type;
        m.embedding_type = trials[i].embedding_type;
        m.width = trials[i].width;
        if (m.width == 256) m.layers = 1, m.head_size = 64, m.feed_forward = 256;
        check_model(&m, tol_tensor_type_name(m.type));
    }
}

/* ---- against themselves ---- */

enum { STEPS = 12, SESSIONS = 24 };

static struct tol_session_options some_options(size_t i) {
    return (struct tol_session_options){.sampling = {.temperature = i % 3 == 0 ? 0 : 0.8,
                                                     .top_k = i % 2 == 0 ? 0 : 20,
                                                     .repetition_penalty = i == 4 ? 1.2 : 0,
                                                     .seed = i}};
}

static struct tol_session *begin_session(const struct stage *s, size_t i) {
    int tokens[40];
    const size_t count = 1 + 7 * i % 40;
    const struct tol_session_options options = some_options(i);
    struct tol_session *session = open_session(s, &options);
    make_tokens(tokens, count, s->vocabulary, (unsigned)i);
    MUST(tol_session_prompt(session, tokens, count));
    return session;
}

/* Sessions of several lengths, seeds and ways to draw; session i joins after i steps, and each
 * leaves after its STEPS. */
Test(decode_session, a_batch_gives_each_what_it_gets_alone) {
    struct stage s = open_stage(&stage_base, &(struct tol_load_options){.sessions = SESSIONS});
    static int alone[SESSIONS][STEPS];
    struct tol_session *sessions[SESSIONS] = {NULL};
    for (size_t i = 0; i < SESSIONS; i++) {
        struct tol_session *session = begin_session(&s, i);
        for (size_t j = 0; j < STEPS; j++) MUST(tol_session_step(session, &alone[i][j]));
        tol_session_destroy(session);
    }
    for (size_t step = 0; step < STEPS + SESSIONS; step++) {
        struct tol_step steps[SESSIONS];
        size_t count = 0, who[SESSIONS];
        if (step < SESSIONS) sessions[step] = begin_session(&s, step);
        for (size_t i = 0; i < SESSIONS; i++) {
            if (sessions[i] == NULL) continue;
            who[count] = i;
            steps[count++].session = sessions[i];
        }
        if (count == 0) break;
        MUST(tol_sessions_step(steps, count));
        for (size_t i = 0; i < count; i++) {
            cr_assert(steps[i].status == TOL_OK);
            cr_assert(steps[i].token == alone[who[i]][step - who[i]], "session %zu, step %zu",
                      who[i], step - who[i]);
            if (step - who[i] + 1 < STEPS) continue;
            tol_session_destroy(sessions[who[i]]);
            sessions[who[i]] = NULL;
        }
    }
    struct tol_loaded_stats stats;
    tol_loaded_stats(s.loaded, &stats);
    cr_assert(stats.pages == 0);
    cr_assert(stats.launched_graphs > STEPS, "%llu", (unsigned long long)stats.launched_graphs);
    close_stage(&s);
}

Test(decode_session, a_rewound_session_goes_another_way_and_back) {
    struct stage s = open_stage(&stage_base, NULL);
    const struct tol_session_options keeps = {.keeps_logits = true};
    struct tol_session *session = open_session(&s, &keeps);
    int tokens[40], other[10], token = 0;
    static float first[50];
    struct tol_loaded_stats stats;
    make_tokens(tokens, 40, s.vocabulary, 1);
    make_tokens(other, 10, s.vocabulary, 2);
    MUST(tol_session_prompt(session, tokens, 40));
    memcpy(first, tol_session_logits(session), sizeof first);
    MUST(tol_session_rewind(session, 5));
    tol_loaded_stats(s.loaded, &stats);
    cr_assert(stats.pages == 1);
    cr_assert(tol_session_length(session) == 5);
    MUST_FAIL(tol_session_step(session, &token), TOL_INVALID_ARGUMENT, "after a prompt");
    MUST(tol_session_prompt(session, other, 10));
    cr_assert(memcmp(first, tol_session_logits(session), sizeof first) != 0);
    MUST(tol_session_rewind(session, 5));
    MUST(tol_session_prompt(session, tokens + 5, 35));
    cr_assert(memcmp(first, tol_session_logits(session), sizeof first) == 0);
    MUST_FAIL(tol_session_rewind(session, 41), TOL_OUT_OF_RANGE, "40 positions, not 41");
    tol_session_destroy(session);
    close_stage(&s);
}

Test(decode_session, a_token_that_was_drawn_belongs_before_the_next_prompt) {
    struct stage s = open_stage(&stage_base, NULL);
    const struct tol_session_options keeps = {.keeps_logits = true};
    struct tol_session *talk = open_session(&s, &keeps), *whole = open_session(&s, &keeps);
    int tokens[12];
    make_tokens(tokens, 12, s.vocabulary, 3);
    MUST(tol_session_prompt(talk, tokens, 4));
    MUST(tol_session_step(talk, &tokens[4]));
    MUST(tol_session_prompt(talk, tokens + 5, 7));
    MUST(tol_session_prompt(whole, tokens, 12));
    cr_assert(memcmp(tol_session_logits(talk), tol_session_logits(whole), 200) == 0);
    tol_session_destroy(talk);
    tol_session_destroy(whole);
    close_stage(&s);
}

/* ---- trouble ---- */

Test(decode_session, a_cancelled_session_stops_and_can_go_on) {
    struct stage s = open_stage(&stage_base, NULL);
    struct tol_session *session = begin_session(&s, 0), *other = begin_session(&s, 3);
    struct tol_step steps[2] = {{.session = session}, {.session = other}};
    int token = 0;
    tol_session_cancel(session);
    MUST_FAIL(tol_session_step(session, &token), TOL_CANCELLED, "after 1 positions");
    MUST_FAIL(tol_session_prompt(session, &token, 1), TOL_CANCELLED, "cancelled");
    MUST(tol_sessions_step(steps, 2));
    cr_assert(steps[0].status == TOL_CANCELLED && steps[0].token == -1);
    cr_assert(steps[1].status == TOL_OK && steps[1].token >= 0);
    tol_session_resume(session);
    MUST(tol_session_step(session, &token));
    tol_session_destroy(session);
    tol_session_destroy(other);
    close_stage(&s);
}

Test(decode_session, a_full_context_is_refused_and_keeps_what_it_has) {
    struct stage s =
        open_stage(&stage_base, &(struct tol_load_options){.context = 20, .sessions = 1});
    struct tol_session *session = open_session(&s, NULL), *more = NULL;
    int tokens[21], token = 0;
    make_tokens(tokens, 21, s.vocabulary, 1);
    MUST_FAIL(tol_session_create(s.loaded, NULL, &more), TOL_OVER_LIMIT, "all 1 sessions");
    MUST_FAIL(tol_session_prompt(session, tokens, 21), TOL_OVER_LIMIT,
              "21 tokens after 0 positions does not fit a context of 20");
    MUST_FAIL(tol_session_prompt(session, (int[]){50}, 1), TOL_INVALID_ARGUMENT, "is 50");
    MUST_FAIL(tol_session_prompt(session, tokens, 0), TOL_INVALID_ARGUMENT, "no tokens");
    MUST_FAIL(tol_session_step(session, &token), TOL_INVALID_ARGUMENT, "after a prompt");
    MUST(tol_session_prompt(session, tokens, 19));
    MUST(tol_session_step(session, &token));
    MUST(tol_session_step(session, &token)); /* position 20 of 20 is computed */
    MUST_FAIL(tol_session_step(session, &token), TOL_OVER_LIMIT, "context of 20 positions is full");
    cr_assert(tol_session_length(session) == 20 && tol_session_room(session) == 20);
    tol_session_destroy(session);
    close_stage(&s);
}

/* Pages come from memory that another session takes: one fails, the others go on. */
Test(decode_session, without_memory_one_session_fails_and_the_others_go_on) {
    enum { COUNT = 4 };
    struct tiny_model big = stage_base;
    big.kv_heads = 4, big.head_size = 128; /* 64 KiB a page: 32 pages */
    struct stage s =
        open_stage(&big, &(struct tol_load_options){.cache_bytes = 2 << 20, .sessions = COUNT});
    struct tol_session *sessions[COUNT];
    struct tol_loaded_stats stats;
    int tokens[100], token = 0;
    tol_status status = TOL_OK;
    make_tokens(tokens, 100, s.vocabulary, 5);
    for (size_t i = 0; i < COUNT; i++) {
        sessions[i] = open_session(&s, NULL);
        MUST(tol_session_prompt(sessions[i], tokens, 90 + i));
    }
    for (size_t i = 0; i < 100 && status == TOL_OK; i++) {
        tol_loaded_stats(s.loaded, &stats);
        status = tol_session_prompt(sessions[i % COUNT], tokens, 16);
    }
    cr_assert(status == TOL_OUT_OF_DEVICE_MEMORY, "%s", tol_status_name(status));
    const uint64_t before = stats.pages;
    tol_loaded_stats(s.loaded, &stats);
    cr_assert(stats.pages == before);
    struct tol_step steps[COUNT];
    for (size_t i = 0; i < COUNT; i++) steps[i].session = sessions[i];
    size_t failed = 0, went_on = 0;
    for (size_t round = 0; round < 18; round++) {
        MUST(tol_sessions_step(steps, COUNT));
        for (size_t i = 0; i < COUNT; i++) {
            cr_assert(steps[i].status == TOL_OK || steps[i].status == TOL_OUT_OF_DEVICE_MEMORY);
            failed += steps[i].status != TOL_OK;
            went_on += steps[i].status == TOL_OK;
        }
    }
    cr_assert(failed > 0 && went_on > 0);
    for (size_t i = 1; i < COUNT; i++) tol_session_destroy(sessions[i]);
    MUST(tol_session_prompt(sessions[0], tokens, 60)); /* there is memory again */
    MUST(tol_session_step(sessions[0], &token));
    tol_session_destroy(sessions[0]);
    close_stage(&s);
}

struct progress {
    uint64_t last, total, limit;
    size_t calls;
};

static bool note(void *user, uint64_t done, uint64_t total) {
    struct progress *p = user;
    cr_assert(done >= p->last && done <= total);
    p->last = done, p->total = total;
    p->calls++;
    return done < p->limit;
}

Test(decode_session, loading_reports_and_cancels_and_leaves_nothing) {
    struct gguf_maker maker = {0};
    struct tol_model *model = NULL;
    struct tol_loaded *loaded = NULL;
    struct progress progress = {.limit = UINT64_MAX};
    struct tol_load_options options = {
        .chunk_bytes = 4096, .threads = 3, .verify = true, .progress = note, .user = &progress};
    bool resident = false;
    size_t before = 0, after = 0;
    tiny_model_write(&stage_base, &maker);
    MUST(tol_model_open(maker.path, &model));
    MUST(tol_model_load(model, test_context(), &options, &loaded));
    cr_assert(progress.last == progress.total);
    cr_assert(progress.total == tol_model_shape(model)->weight_bytes);
    MUST(tol_loaded_is_resident(loaded, &resident));
    cr_assert(resident);
    tol_model_unload(loaded);
    loaded = NULL;
    MUST(tol_context_memory(test_context(), &before, NULL));
    progress = (struct progress){.limit = 0};
    MUST_FAIL(tol_model_load(model, test_context(), &options, &loaded), TOL_CANCELLED,
              "loading was cancelled");
    cr_assert(loaded == NULL);
    options = (struct tol_load_options){.context = 513};
    MUST_FAIL(tol_model_load(model, test_context(), &options, &loaded), TOL_INVALID_ARGUMENT,
              "513 positions is wanted, but the model was made for 512");
    MUST(tol_context_memory(test_context(), &after, NULL));
    /* Other processes use a GPU as well. */
    cr_assert(test_on_gpu() || after == before, "%zu bytes free before, %zu after", before, after);
    tol_model_unload(NULL);
    tol_model_close(model);
    maker_end(&maker);
}
