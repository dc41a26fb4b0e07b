/*
 * Several devices: what a session gets is what it gets on one, bit for bit; and what is refused.
 */
#include "engine_scene.h"
#include "loaded_state.h"

#include <stdlib.h>
#include <string.h>

TestSuite(device_team, .fini = test_end, .timeout = 120);

enum { DEVICES_MAX = 4, PROMPT = 21, STEPS = 6, SESSIONS = 3 };

static const struct tol_session_options keeps = {.keeps_logits = true};

/* ---- devices ---- */

struct devices {
    unsigned count;
    struct tol_context *contexts[DEVICES_MAX];
};

/* Skips the test where a machine has fewer devices. */
static struct devices open_devices(unsigned count) {
    struct devices d = {.count = count};
    int there = 0;
    setenv("TOLLENS_SOFT_DEVICES", "4", 1);
    MUST(tol_device_count(test_driver(), &there));
    if (there < (int)count) cr_skip_test("%u devices are needed, and there are %d", count, there);
    for (unsigned i = 0; i < count; i++) {
        MUST(tol_context_create(test_driver(), (int)i, &d.contexts[i]));
    }
    return d;
}

static void close_devices(struct devices *d) {
    for (unsigned i = 0; i < d->count; i++) tol_context_destroy(d->contexts[i]);
}

/* As options say, on the first `count` devices. */
static struct tol_loaded *load_on(const struct devices *d, unsigned count,
                                  const struct tol_model *model, struct tol_load_options options) {
    struct tol_loaded *loaded = NULL;
    options.peers = d->contexts + 1;
    options.peer_count = count - 1;
    MUST(tol_model_load(model, d->contexts[0], &options, &loaded));
    return loaded;
}

/* ---- a text ---- */

/* The logits of a prompt and of steps after it, of several sessions that step together. */
struct text {
    float *logits; /* [SESSIONS][1 + STEPS][vocabulary] */
    int tokens[SESSIONS][STEPS];
};

static void note(struct text *text, const struct tol_session *session, size_t i, size_t step,
                 size_t vocabulary) {
    memcpy(text->logits + (i * (1 + STEPS) + step) * vocabulary, tol_session_logits(session),
           vocabulary * sizeof(float));
}

static struct text write_text(struct tol_loaded *loaded) {
    const size_t vocabulary = tol_loaded_shape(loaded)->vocabulary;
    struct text text = {.logits = calloc(SESSIONS * (1 + STEPS) * vocabulary, sizeof(float))};
    struct tol_step steps[SESSIONS];
    int tokens[PROMPT];
    cr_assert(text.logits != NULL);
    for (size_t i = 0; i < SESSIONS; i++) {
        const size_t count = PROMPT - 8 * i;
        make_tokens(tokens, count, vocabulary, (unsigned)i);
        MUST(tol_session_create(loaded, &keeps, &steps[i].session));
        MUST(tol_session_prompt(steps[i].session, tokens, count));
        note(&text, steps[i].session, i, 0, vocabulary);
    }
    for (size_t step = 0; step < STEPS; step++) {
        MUST(tol_sessions_step(steps, SESSIONS));
        for (size_t i = 0; i < SESSIONS; i++) {
            MUST(steps[i].status);
            text.tokens[i][step] = steps[i].token;
            note(&text, steps[i].session, i, step + 1, vocabulary);
        }
    }
    for (size_t i = 0; i < SESSIONS; i++) tol_session_destroy(steps[i].session);
    return text;
}

static void check_same(const struct text *one, const struct text *other, size_t vocabulary,
                       const char *what, unsigned devices) {
    const size_t count = SESSIONS * (1 + STEPS) * vocabulary;
    for (size_t i = 0; i < count; i++) {
        cr_assert(memcmp(&one->logits[i], &other->logits[i], sizeof(float)) == 0,
                  "%s on %u devices: session %zu, step %zu, logit %zu is %.9g, and %.9g on one",
                  what, devices, i / vocabulary / (1 + STEPS), i / vocabulary % (1 + STEPS),
                  i % vocabulary, (double)other->logits[i], (double)one->logits[i]);
    }
    cr_assert(memcmp(one->tokens, other->tokens, sizeof one->tokens) == 0, "%s: other tokens",
              what);
}

/* ---- the same bits ---- */

struct tried {
    struct gguf_maker maker;
    struct tol_model *model;
};

static struct tried open_tried(const struct tiny_model *tiny) {
    struct tried tried = {.model = NULL};
    tiny_model_write(tiny, &tried.maker);
    MUST(tol_model_open(tried.maker.path, &tried.model));
    return tried;
}

static void close_tried(struct tried *tried) {
    tol_model_close(tried->model);
    maker_end(&tried->maker);
}

/* Prompts of `from` tokens and more take passes of their own. */
static void check_model(const struct tiny_model *tiny, unsigned devices, size_t from,
                        const char *what) {
    struct devices d = open_devices(devices);
    struct tried tried = open_tried(tiny);
    const struct tol_load_options options = {
        .sessions = SESSIONS, .rows = 10, .prompt_rows = 16, .prompt_from = from};
    struct tol_loaded *loaded = load_on(&d, 1, tried.model, options);
    struct text one = write_text(loaded);
    tol_model_unload(loaded);
    loaded = load_on(&d, devices, tried.model, options);
    cr_assert(from == SIZE_MAX || loaded->prompt.rows == 16 || test_on_gpu());
    struct text several = write_text(loaded);
    check_same(&one, &several, tiny->vocabulary, what, devices);
    tol_model_unload(loaded);
    free(several.logits);
    free(one.logits);
    close_tried(&tried);
    close_devices(&d);
}

Test(device_team, llama_gets_the_same_bits_on_four) {
    struct tiny_model m = stage_base; /* whose two heads of keys are each on two devices */
    m.with = "blk.1.attn_output.bias", m.tied = true, m.has_factors = true;
    check_model(&m, 4, SIZE_MAX, "llama");
}

Test(device_team, mistral_gets_the_same_bits) {
    struct tiny_model m = stage_base;
    m.architecture = "mistral", m.window = 5, m.kv_heads = 1;
    check_model(&m, 2, SIZE_MAX, "mistral, window, one head of keys");
}

Test(device_team, qwen2_gets_the_same_bits) {
    struct tiny_model m = stage_base;
    m.architecture = "qwen2", m.type = m.v_type = m.embedding_type = TOL_TENSOR_Q8_0, m.tied = true;
    check_model(&m, 2, SIZE_MAX, "qwen2");
}

Test(device_team, one_matrix_of_q_k_and_v_gets_the_same_bits) {
    struct tiny_model m = stage_base;
    m.architecture = "qwen2", m.fused = true, m.vector_type = TOL_TENSOR_F16;
    check_model(&m, 2, SIZE_MAX, "qwen2, fused");
}

Test(device_team, gate_and_up_of_two_types_get_the_same_bits) {
    struct tiny_model m = stage_base;
    m.gate_of_v_type = true, m.v_type = TOL_TENSOR_Q8_0;
    check_model(&m, 2, SIZE_MAX, "F16 and Q8_0");
}

Test(device_team, qwen3_gets_the_same_bits) {
    struct tiny_model m = stage_base;
    m.architecture = "qwen3", m.type = TOL_TENSOR_BF16, m.v_type = TOL_TENSOR_F32;
    check_model(&m, 2, SIZE_MAX, "qwen3");
}

/* Rows that are rounded to bytes are exchanged so where a share is whole chunks of 256, and before
 * that where it is not. */
static void check_blocks(size_t heads, size_t feed_forward, const char *what) {
    struct tiny_model m = stage_base;
    m.width = 256, m.layers = 1, m.head_size = 64, m.heads = heads, m.feed_forward = feed_forward;
    m.type = TOL_TENSOR_Q4_K, m.v_type = m.embedding_type = TOL_TENSOR_Q6_K;
    check_model(&m, 2, SIZE_MAX, what);
}

Test(device_team, attended_rows_of_bytes_get_the_same_bits) {
    check_blocks(8, 256, "attended as bytes, fed as floats");
}

Test(device_team, fed_rows_of_bytes_get_the_same_bits) {
    check_blocks(4, 512, "attended as floats, fed as bytes");
}

Test(device_team, long_prompts_get_the_same_bits) {
    struct tiny_model m = stage_base;
    check_model(&m, 2, 8, "llama");
}

Test(device_team, long_prompts_over_pages_get_the_same_bits) {
    struct tiny_model m = stage_base;
    m.architecture = "qwen2", m.kv_heads = 1;
    check_model(&m, 2, 8, "qwen2");
    m.architecture = "mistral", m.window = 5;
    check_model(&m, 2, 8, "mistral, window");
}

/* A file of any size that TOLLENS_TEST_MODEL names, on all devices that can share it. */
Test(given_model, two_devices_give_the_same_bits, .fini = test_end, .timeout = 600) {
    const char *path = getenv("TOLLENS_TEST_MODEL");
    struct tol_model *model = NULL;
    if (path == NULL) cr_skip_test("TOLLENS_TEST_MODEL names no model");
    struct devices d = open_devices(2);
    const struct tol_load_options options = {.sessions = SESSIONS, .context = 64, .prompt_from = 8};
    MUST(tol_model_open(path, &model));
    struct tol_loaded *loaded = load_on(&d, 1, model, options);
    struct text one = write_text(loaded);
    tol_model_unload(loaded);
    loaded = load_on(&d, 2, model, options);
    struct text two = write_text(loaded);
    check_same(&one, &two, tol_model_shape(model)->vocabulary, path, 2);
    tol_model_unload(loaded);
    free(one.logits);
    free(two.logits);
    tol_model_close(model);
    close_devices(&d);
}

/* The exchanges are in the graphs, which are launched for other tokens. The soft device runs
 * kernels of two devices at once where it has threads to spare. */
Test(device_team, graphs_with_flags_get_the_same_bits) {
    setenv("TOLLENS_SOFT_WORKERS", "4", 1);
    struct devices d = open_devices(2);
    struct tried tried = open_tried(&stage_base);
    const struct tol_load_options options = {
        .sessions = SESSIONS, .prompt_from = SIZE_MAX, .way = KN_WAY_FLAGS};
    struct tol_loaded_stats stats;
    struct tol_loaded *loaded = load_on(&d, 1, tried.model, options);
    struct text one = write_text(loaded);
    tol_model_unload(loaded);
    loaded = load_on(&d, 2, tried.model, options);
    struct text two = write_text(loaded);
    check_same(&one, &two, stage_base.vocabulary, "with graphs", 2);
    tol_loaded_stats(loaded, &stats);
    cr_assert(stats.launched_graphs >= STEPS - 2, "%llu graphs",
              (unsigned long long)stats.launched_graphs);
    tol_model_unload(loaded);
    free(one.logits);
    free(two.logits);
    close_tried(&tried);
    close_devices(&d);
}

/* ---- refused ---- */

static void must_refuse(const struct tiny_model *tiny, unsigned devices, tol_status expected,
                        const char *text) {
    struct devices d = open_devices(devices);
    struct tried tried = open_tried(tiny);
    struct tol_loaded *loaded = NULL;
    MUST_FAIL(tol_model_load(
                  tried.model, d.contexts[0],
                  &(struct tol_load_options){.peers = d.contexts + 1, .peer_count = devices - 1},
                  &loaded),
              expected, text);
    cr_assert(loaded == NULL);
    close_tried(&tried);
    close_devices(&d);
}

Test(device_team, a_shape_that_cannot_be_shared_is_refused) {
    struct tiny_model m = stage_base;
    must_refuse(&m, 3, TOL_UNSUPPORTED, "4 heads cannot be shared equally by 3 devices");
    m.heads = 6, m.kv_heads = 3;
    must_refuse(&m, 2, TOL_UNSUPPORTED, "3 heads of keys can neither be shared equally by 2");
    m = stage_base, m.feed_forward = 104;
    must_refuse(&m, 4, TOL_UNSUPPORTED, "rows of 64 and 104 elements cannot be shared by 4");
}

Test(device_team, a_device_given_twice_and_a_ring_are_refused) {
    struct devices d = open_devices(2);
    struct tried tried = open_tried(&stage_base);
    struct tol_load_options options = {.peers = d.contexts, .peer_count = 1};
    struct tol_loaded *loaded = NULL;
    MUST_FAIL(tol_model_load(tried.model, d.contexts[0], &options, &loaded), TOL_INVALID_ARGUMENT,
              "ranks 0 and 1 are one device, 0");
    options.peers = d.contexts + 1;
    options.way = KN_WAY_RING;
    MUST_FAIL(tol_model_load(tried.model, d.contexts[0], &options, &loaded), TOL_INVALID_ARGUMENT,
              "ring");
    options.peers = NULL;
    MUST_FAIL(tol_model_load(tried.model, d.contexts[0], &options, &loaded), TOL_INVALID_ARGUMENT,
              "1 further devices");
    close_tried(&tried);
    close_devices(&d);
}

/* The value of the last head, which the second device has. */
Test(device_team, what_a_cache_cannot_hold_is_noticed_on_any_device) {
    struct devices d = open_devices(2);
    struct tiny_model tiny = stage_base;
    struct stage s = {.vocabulary = tiny.vocabulary};
    const float huge = 70000;
    int tokens[PROMPT];
    tiny.architecture = "qwen2";
    tiny_model_write(&tiny, &s.maker);
    MUST(tol_model_open(s.maker.path, &s.model));
    const struct tol_gguf_tensor *bias =
        tol_gguf_find_tensor(tol_model_file(s.model), "blk.1.attn_v.bias");
    FILE *file = fopen(s.maker.path, "r+b");
    cr_assert(file != NULL && bias != NULL);
    cr_assert(fseek(file, (long)(bias->offset + bias->bytes - sizeof huge), SEEK_SET) == 0);
    cr_assert(fwrite(&huge, sizeof huge, 1, file) == 1 && fclose(file) == 0);
    s.loaded = load_on(&d, 2, s.model, (struct tol_load_options){0});
    make_tokens(tokens, PROMPT, s.vocabulary, 1);
    struct tol_session *session = open_session(&s, NULL);
    MUST_FAIL(tol_session_prompt(session, tokens, PROMPT), TOL_MISMATCH,
              "a value of layer 1 at position 0 is 65520 or more");
    tol_session_destroy(session);
    close_stage(&s);
    close_devices(&d);
}
