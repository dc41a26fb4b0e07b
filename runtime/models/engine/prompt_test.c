/*
 * Long prompts: against the host's model, in passes of any size, beside other sessions, with shared
 * beginnings, and where there is no memory for them.
 */
#include "engine_scene.h"
#include "host_model_scene.h"
#include "loaded_state.h"

#include <math.h>
#include <stdlib.h>

TestSuite(prompt, .fini = test_end);

enum { COUNT = 150, VOCABULARY = 50 };

static const struct tol_session_options keeps = {.keeps_logits = true};

static struct tol_loaded_stats stats_of(const struct stage *s) {
    struct tol_loaded_stats stats;
    tol_loaded_stats(s->loaded, &stats);
    return stats;
}

/* Long prompts from 8 tokens on. */
static struct tol_load_options options_of(size_t rows) {
    return (struct tol_load_options){.sessions = 4, .prompt_rows = rows, .prompt_from = 8};
}

/* Whether the device computes long prompts otherwise than steps. */
static bool has_way(const struct stage *s) {
    if (s->loaded->prompt.rows > 0) return true;
    cr_log_info("not run here: the device has no tensor cores for fp16");
    return false;
}

/* ---- against the host ---- */

/* How far the last logits of a prompt are from the host's, as a share of the largest. */
static double share_of(const struct tiny_model *tiny, const struct tol_load_options *options,
                       size_t count, bool *has) {
    struct stage s = open_stage(tiny, options);
    struct tol_session *session = open_session(&s, &keeps);
    double *expected = malloc(count * s.vocabulary * sizeof *expected), worst = 0, spread = 0;
    int tokens[COUNT];
    cr_assert(expected != NULL);
    *has = s.loaded->prompt.rows > 0;
    make_tokens(tokens, count, s.vocabulary, 7);
    host_model_run(s.maker.path, tokens, count, !*has, expected);
    MUST(tol_session_prompt(session, tokens, count));
    for (size_t i = 0; i < s.vocabulary; i++) {
        const double right = expected[(count - 1) * s.vocabulary + i];
        const double off = fabs((double)tol_session_logits(session)[i] - right);
        spread = fmax(spread, fabs(right));
        if (!(off <= worst)) worst = off;
    }
    cr_assert(spread > 1);
    free(expected);
    tol_session_destroy(session);
    close_stage(&s);
    return worst / spread;
}

/* A trial. */
static void check_host(const struct tiny_model *tiny, const char *what) {
    bool has = false;
    if (!test_takes_trial()) return;
    const struct tol_load_options options = options_of(16);
    const double share = share_of(tiny, &options, 40, &has);
    cr_log_info("%s: %.3g", what, share);
    /* Products of bytes round the row of the logits: what is off by d crosses a rounding of step s
     * with probability d / s, which adds sqrt(d s): with d = 2e-3 and s = 3 / 127 about 7e-3. */
    const bool is_bytes = tiny->type == TOL_TENSOR_Q4_K || tiny->type == TOL_TENSOR_Q5_K ||
                          tiny->type == TOL_TENSOR_Q6_K;
    cr_assert(!(share > (is_bytes ? 6e-3 + 7e-3 : 6e-3)), "%s: a logit is off by %g of the largest",
              what, share);
}

Test(prompt, every_architecture_is_the_hosts) {
    struct tiny_model m = stage_base;
    check_host(&m, "llama");
    m.with = "blk.1.attn_output.bias";
    check_host(&m, "llama, with a bias of the output");
    m.with = NULL;
    m.architecture = "qwen2";
    check_host(&m, "qwen2, with biases");
    m.fused = true, m.vector_type = TOL_TENSOR_F16;
    check_host(&m, "qwen2, fused, vectors of F16");
    m.fused = false, m.vector_type = TOL_TENSOR_F32;
    m.architecture = "qwen3", m.head_size = 32;
    check_host(&m, "qwen3, with norms of heads");
    m = stage_base;
    m.architecture = "mistral", m.window = 20;
    check_host(&m, "a window, over pages");
    m = stage_base;
    m.heads = 6, m.kv_heads = 2, m.head_size = 136, m.width = 96;
    check_host(&m, "heads of 136 elements, over pages");
}

Test(prompt, gate_and_up_of_two_types_are_the_hosts) {
    struct tiny_model m = stage_base;
    m.gate_of_v_type = true, m.v_type = TOL_TENSOR_Q8_0;
    check_host(&m, "F16 and Q8_0");
    m.type = TOL_TENSOR_Q4_K, m.v_type = TOL_TENSOR_Q6_K;
    m.width = 256, m.feed_forward = 256, m.head_size = 64;
    check_host(&m, "Q4_K and Q6_K");
}

Test(prompt, every_format_is_the_hosts) {
    static const struct {
        enum tol_tensor_type type, v;
        const char *name;
    } formats[] = {{TOL_TENSOR_BF16, TOL_TENSOR_BF16, "bf16"},
                   {TOL_TENSOR_Q8_0, TOL_TENSOR_Q8_0, "q8_0"},
                   {TOL_TENSOR_Q4_K, TOL_TENSOR_Q6_K, "q4_k"},
                   {TOL_TENSOR_Q5_K, TOL_TENSOR_F16, "q5_k"},
                   {TOL_TENSOR_Q6_K, TOL_TENSOR_Q8_0, "q6_k"}};
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        struct tiny_model m = stage_base;
        m.type = formats[i].type, m.v_type = formats[i].v;
        m.width = 256, m.feed_forward = 256, m.head_size = 64;
        check_host(&m, formats[i].name);
    }
}

/* Weights in fp32 are computed in fp32. */
Test(prompt, fp32_is_computed_as_steps_are) {
    struct tiny_model m = stage_base;
    bool has = true;
    const struct tol_load_options options = options_of(16);
    m.type = m.v_type = TOL_TENSOR_F32;
    cr_assert(!(share_of(&m, &options, 40, &has) > 2e-3) && !has);
}

/* ---- the same bits ---- */

static void take_logits(const struct stage *s, struct tol_session *session, float *logits) {
    memcpy(logits, tol_session_logits(session), s->vocabulary * sizeof *logits);
}

/* The logits after a prompt and three tokens of a greedy text. */
static void run_alone(const struct tiny_model *tiny, const struct tol_load_options *options,
                      const int *tokens, size_t count, float *logits) {
    struct stage s = open_stage(tiny, options);
    struct tol_session *session = open_session(&s, &keeps);
    int token = 0;
    MUST(tol_session_prompt(session, tokens, count));
    take_logits(&s, session, logits);
    for (int i = 0; i < 3; i++) MUST(tol_session_step(session, &token));
    take_logits(&s, session, logits + VOCABULARY);
    tol_session_destroy(session);
    close_stage(&s);
}

/* A trial. */
static void check_passes(const struct tiny_model *tiny, const char *what) {
    if (!test_takes_trial()) return;
    static const size_t rows[] = {COUNT, 64, 17, 1};
    float first[2 * VOCABULARY], logits[2 * VOCABULARY];
    int tokens[COUNT];
    make_tokens(tokens, COUNT, VOCABULARY, 3);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct tol_load_options options = options_of(rows[i]);
        run_alone(tiny, &options, tokens, COUNT, i == 0 ? first : logits);
        cr_assert(i == 0 || memcmp(first, logits, sizeof first) == 0,
                  "%s: passes of %zu positions give other bits", what, rows[i]);
    }
}

Test(prompt, passes_of_any_size_give_the_same_bits) {
    struct tiny_model m = stage_base;
    check_passes(&m, "llama");
    m.architecture = "mistral", m.window = 20;
    check_passes(&m, "a window");
    m = stage_base;
    m.head_size = 64;
    check_passes(&m, "heads of 64 elements");
}

/* Sessions that begin alike share what both compute in the same way, and get what they get alone:
 * also after another prompt, and after going back into a shared page. */
Test(prompt, a_shared_beginning_gives_the_same_bits) {
    struct tol_load_options options = options_of(32), lonely = options;
    lonely.alone = true;
    struct stage s = open_stage(&stage_base, &options), alone = open_stage(&stage_base, &lonely);
    struct tol_session *first = open_session(&s, &keeps), *second = open_session(&s, &keeps);
    struct tol_session *other = open_session(&alone, &keeps);
    float got[VOCABULARY], expected[VOCABULARY];
    int tokens[COUNT], others[COUNT], token = 0, same = 0;
    make_tokens(tokens, COUNT, VOCABULARY, 1);
    memcpy(others, tokens, sizeof others);
    for (size_t i = 100; i < COUNT; i++) others[i] = (tokens[i] + 1) % VOCABULARY;
    MUST(tol_session_prompt(first, tokens, 120));
    MUST(tol_session_step(first, &token));
    MUST(tol_session_prompt(second, others, COUNT));
    cr_assert(stats_of(&s).reused == 96);
    MUST(tol_session_prompt(other, others, COUNT));
    for (size_t turn = 0; turn < 3; turn++) {
        take_logits(&s, second, got);
        take_logits(&alone, other, expected);
        cr_assert(memcmp(got, expected, sizeof got) == 0, "turn %zu", turn);
        if (turn == 2) break;
        const size_t back = turn == 0 ? 70 : 0;
        MUST(tol_session_rewind(second, back));
        MUST(tol_session_rewind(other, back));
        const size_t count = turn == 0 ? 5 : 90; /* as steps, and long again */
        MUST(tol_session_prompt(second, others, count));
        MUST(tol_session_prompt(other, others, count));
        MUST(tol_session_step(second, &token));
        MUST(tol_session_step(other, &same));
        cr_assert(token == same);
    }
    tol_session_destroy(first);
    tol_session_destroy(second);
    tol_session_destroy(other);
    close_stage(&s);
    close_stage(&alone);
}

/* What steps computed is not shared with a long prompt, nor the other way round. */
Test(prompt, what_was_computed_otherwise_is_not_shared) {
    struct tol_load_options options = options_of(32);
    options.prompt_from = 64;
    struct stage s = open_stage(&stage_base, &options);
    if (has_way(&s)) {
        struct tol_session *sessions[4];
        int tokens[COUNT];
        make_tokens(tokens, COUNT, VOCABULARY, 4);
        for (size_t i = 0; i < 4; i++) sessions[i] = open_session(&s, &keeps);
        MUST(tol_session_prompt(sessions[0], tokens, 40));
        MUST(tol_session_prompt(sessions[1], tokens, 70)); /* the first's pages are of steps */
        cr_assert(stats_of(&s).reused == 0);
        MUST(tol_session_prompt(sessions[2], tokens, 50)); /* the first's */
        cr_assert(stats_of(&s).reused == 32);
        MUST(tol_session_prompt(sessions[1], tokens + 70, 20)); /* its fifth page is of both now */
        MUST(tol_session_prompt(sessions[3], tokens, 100));
        cr_assert(stats_of(&s).reused == 32 + 64);
        for (size_t i = 0; i < 4; i++) tol_session_destroy(sessions[i]);
    }
    close_stage(&s);
}

/* Between the passes of a prompt nothing runs, but between prompts others step. */
Test(prompt, others_change_nothing) {
    const struct tol_load_options options = options_of(32);
    float expected[2 * VOCABULARY], got[VOCABULARY];
    int tokens[COUNT];
    make_tokens(tokens, COUNT, VOCABULARY, 5);
    run_alone(&stage_base, &options, tokens, COUNT, expected);
    struct stage s = open_stage(&stage_base, &options);
    struct tol_session *session = NULL, *others[3];
    struct tol_step steps[4];
    for (size_t i = 0; i < 3; i++) {
        others[i] = open_session(&s, NULL);
        MUST(tol_session_prompt(others[i], tokens + i + 1, 20 * i + 5));
        steps[i].session = others[i];
    }
    MUST(tol_sessions_step(steps, 3));
    session = open_session(&s, &keeps);
    MUST(tol_session_prompt(session, tokens, COUNT));
    take_logits(&s, session, got);
    cr_assert(memcmp(got, expected, sizeof got) == 0);
    steps[3].session = session;
    for (size_t i = 0; i < 3; i++) MUST(tol_sessions_step(steps, 4));
    take_logits(&s, session, got);
    cr_assert(memcmp(got, expected + VOCABULARY, sizeof got) == 0);
    tol_session_destroy(session);
    for (size_t i = 0; i < 3; i++) tol_session_destroy(others[i]);
    close_stage(&s);
}

/* ---- without memory ---- */

static size_t allocation_max; /* 0: any */

static void refuse_large(struct tol_interpose_call *call, void *user) {
    (void)user;
    if (call->index != TOL_DRIVER_INDEX_cuMemAlloc_v2) return;
    if (allocation_max == 0 || *(const size_t *)call->arguments[1] <= allocation_max) return;
    call->forward = false;
    call->result = CUDA_ERROR_OUT_OF_MEMORY;
}

/* With less memory passes are shorter, and without it there are none; a session gets, from the
 * model as it is loaded, always the same. */
Test(prompt, without_memory_passes_are_shorter_or_as_steps_are) {
    const struct tol_load_options long_ones = {.sessions = 1, .rows = 16, .prompt_from = 8};
    const struct tol_load_options steps = {.sessions = 1, .rows = 16, .prompt_from = SIZE_MAX};
    float expected[2 * VOCABULARY], got[2 * VOCABULARY];
    struct tol_loaded_stats stats;
    int tokens[COUNT];
    make_tokens(tokens, COUNT, VOCABULARY, 6);
    MUST(tol_interpose_install(test_driver(),
                               &(struct tol_interpose_options){.before = refuse_large}));
    struct stage s = open_stage(&stage_base, &long_ones);
    const bool has = has_way(&s);
    stats = stats_of(&s);
    cr_assert(stats.prompt_rows == (has ? 512 : 0));
    const size_t whole = has ? tol_buffer_bytes(s.loaded->prompt.buffer) : 0;
    close_stage(&s);
    if (has) {
        run_alone(&stage_base, &long_ones, tokens, COUNT, expected);
        allocation_max = whole - 1;
        s = open_stage(&stage_base, &long_ones);
        cr_assert(stats_of(&s).prompt_rows == 256);
        close_stage(&s);
        run_alone(&stage_base, &long_ones, tokens, COUNT, got);
        cr_assert(memcmp(got, expected, sizeof got) == 0, "shorter passes");
        allocation_max = whole / 2 - whole / 8;
        s = open_stage(&stage_base, &long_ones);
        cr_assert(stats_of(&s).prompt_rows == 0);
        close_stage(&s);
        allocation_max = 0;
        s = open_stage(&stage_base, &steps);
        cr_assert(stats_of(&s).prompt_rows == 0);
        close_stage(&s);
    }
    tol_interpose_remove(test_driver());
}
