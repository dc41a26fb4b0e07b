/*
 * Values that are not finite, and such that the cache cannot hold: the layer that the message
 * names, and the sessions beside.
 */
#include "engine_scene.h"

#include "number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

TestSuite(session_trouble, .fini = test_end, .timeout = 120);

enum { LAYERS = 3, VOCABULARY = 50, SHORT = 20, LONG = 70, BAD = 7 };

static const struct tol_session_options keeps = {.keeps_logits = true};

/* Biases of q, k and v; heads of 32 elements, which a cache of q8_0 can hold. */
static struct tiny_model biased_model(void) {
    struct tiny_model tiny = stage_base;
    tiny.architecture = "qwen2";
    tiny.layers = LAYERS;
    tiny.head_size = 32;
    return tiny;
}

/* Changes an element of a tensor in the stage's file. */
static void poke(struct stage *s, const char *name, size_t element, float value) {
    struct tol_gguf *file = NULL;
    const uint16_t half = isnan(value) ? 0x7e00 : kn_f16_of(value);
    MUST(tol_gguf_open(s->maker.path, &file));
    const struct tol_gguf_tensor *t = tol_gguf_find_tensor(file, name);
    cr_assert(t != NULL && element < t->elements, "%s", name);
    const bool is_half = t->type == TOL_TENSOR_F16;
    const size_t bytes = is_half ? sizeof half : sizeof value;
    FILE *stream = fopen(s->maker.path, "r+b");
    cr_assert(stream != NULL && fseek(stream, (long)(t->offset + element * bytes), SEEK_SET) == 0);
    cr_assert(fwrite(is_half ? (const void *)&half : &value, bytes, 1, stream) == 1);
    cr_assert(fclose(stream) == 0);
    tol_gguf_close(file);
}

static struct stage open_poked(const struct tiny_model *tiny, const char *name, size_t element,
                               float value, const struct tol_load_options *options) {
    struct stage s = {.vocabulary = tiny->vocabulary};
    tiny_model_write(tiny, &s.maker);
    poke(&s, name, element, value);
    MUST(tol_model_open(s.maker.path, &s.model));
    MUST(tol_model_load(s.model, test_context(), options, &s.loaded));
    return s;
}

/* The first failure of a prompt and steps after it. */
static void expect_failure(const struct stage *s, double temperature, const int *tokens,
                           size_t count, const char *says) {
    const struct tol_session_options options = {
        .sampling = {.temperature = temperature, .seed = 1}};
    struct tol_session *session = open_session(s, &options);
    tol_status status = tol_session_prompt(session, tokens, count);
    for (int i = 0, token = 0; i < 4 && status == TOL_OK; i++) {
        status = tol_session_step(session, &token);
    }
    cr_assert(status == TOL_MISMATCH, "%s: %s", says, tol_status_name(status));
    cr_assert(strstr(tol_message(), says) != NULL, "not %s: %s", says, tol_message());
    tol_session_destroy(session);
}

static const struct {
    const char *tensor, *says;
    size_t element;
} origins[] = {{"token_embd.weight", "in the embedding of token 7, position 9", BAD * 64 + 3},
               {"blk.0.attn_norm.weight", "in layer 0 of 3 (blk.0), at position 0", 5},
               {"blk.0.attn_q.weight", "in layer 0 of 3 (blk.0)", 64},
               {"blk.1.attn_k.weight",
                "a key of layer 1 at position 0 is NaN or infinite: values stop being "
                "finite in layer 1 of 3 (blk.1), at position 0",
                70},
               {"blk.1.attn_v.bias",
                "a value of layer 1 at position 0 is NaN or infinite: values stop being "
                "finite in layer 1 of 3",
                2},
               {"blk.0.ffn_up.weight",
                "a key of layer 1 at position 0 is NaN or infinite: values stop being "
                "finite in layer 0 of 3 (blk.0), at position 0",
                130},
               {"blk.2.attn_output.weight", "in layer 2 of 3 (blk.2)", 1},
               {"blk.2.ffn_down.weight", "in layer 2 of 3 (blk.2)", 17},
               {"output_norm.weight", "begins in the output norm or matrix", 0},
               {"output.weight", "begins in the output norm or matrix", 64 * 11}};
enum { ORIGINS = sizeof origins / sizeof origins[0] };

/* NaN in each kind of tensor, in short and in long prompts, and infinity at another temperature. */
Test(session_trouble, the_layer_is_named_where_values_stop_being_finite) {
    const struct tiny_model tiny = biased_model();
    int tokens[LONG];
    make_tokens(tokens, LONG, BAD, 1);
    tokens[9] = BAD;
    for (size_t i = 0; i < ORIGINS; i++) {
        const char *tensor = origins[i].tensor, *says = origins[i].says;
        struct stage s = open_poked(&tiny, tensor, origins[i].element, NAN, NULL);
        expect_failure(&s, 0, tokens, SHORT, says);
        expect_failure(&s, 0, tokens, LONG, says);
        close_stage(&s);
        if (strcmp(tensor, "output.weight") == 0) continue; /* a logit of -infinity is no failure */
        s = open_poked(&tiny, tensor, origins[i].element, INFINITY, NULL);
        expect_failure(&s, 0.8, tokens, SHORT, says);
        close_stage(&s);
    }
}

/* 70,000 is finite, and as fp16 infinite. A scale of 127ths can be up to 65,504. */
Test(session_trouble, what_the_cache_cannot_hold_is_said) {
    const struct tiny_model tiny = biased_model();
    static const struct {
        const char *tensor, *says;
        enum kn_cache cache;
        float value;
    } cases[] = {{"blk.1.attn_v.bias",
                  "a value of layer 1 at position 0 is 65520 or more in magnitude, which the cache "
                  "of f16 cannot hold; one of q8_0 holds 127 times as much",
                  KN_CACHE_F16, -70000},
                 {"blk.2.attn_k.bias", "a key of layer 2 at position 0 is 65520 or more",
                  KN_CACHE_F16, 200000},
                 {"blk.0.attn_v.bias",
                  "a value of layer 0 at position 0 is 8.32104e+06 or more in magnitude, which the "
                  "cache of q8_0 cannot hold",
                  KN_CACHE_Q8_0, 1e7f}};
    int tokens[LONG];
    make_tokens(tokens, LONG, VOCABULARY, 1);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct stage s = open_poked(&tiny, cases[i].tensor, 40, cases[i].value,
                                    &(struct tol_load_options){.cache = cases[i].cache});
        expect_failure(&s, 0, tokens, SHORT, cases[i].says);
        expect_failure(&s, 0, tokens, LONG, cases[i].says);
        close_stage(&s);
    }
    struct stage s = open_poked(&tiny, "blk.1.attn_v.bias", 40, 70000,
                                &(struct tol_load_options){.cache = KN_CACHE_Q8_0});
    struct tol_session *session = open_session(&s, NULL);
    int token = 0;
    MUST(tol_session_prompt(session, tokens, SHORT));
    for (int i = 0; i < 5; i++) MUST(tol_session_step(session, &token));
    tol_session_destroy(session);
    close_stage(&s);
}

/* The logits of a session's latest position are those of the same text alone. */
static void check_alone(const struct stage *s, const struct tol_session *session, const int *tokens,
                        size_t count) {
    struct tol_session *alone = open_session(s, &keeps);
    MUST(tol_session_prompt(alone, tokens, count));
    cr_assert(memcmp(tol_session_logits(alone), tol_session_logits(session),
                     VOCABULARY * sizeof(float)) == 0);
    tol_session_destroy(alone);
}

/* A token with a bad embedding, in one of two sessions: in a prompt, and in a step. */
Test(session_trouble, other_sessions_go_on_and_share_nothing_of_it) {
    const struct tiny_model tiny = biased_model();
    struct stage s = open_poked(&tiny, "token_embd.weight", BAD * 64, NAN,
                                &(struct tol_load_options){.prompt_from = SIZE_MAX});
    struct tol_session *bad = open_session(&s, &keeps), *good = open_session(&s, &keeps);
    struct tol_loaded_stats stats;
    int tokens[40], text[41];
    make_tokens(tokens, 40, BAD, 3);
    memcpy(text, tokens, sizeof tokens);
    MUST(tol_session_prompt(good, tokens, 40));
    tokens[35] = BAD;
    MUST_FAIL(tol_session_prompt(bad, tokens, 40), TOL_MISMATCH,
              "embedding of token 7, position 35");
    MUST_FAIL(tol_session_prompt(bad, text, 1), TOL_MISMATCH, "embedding of token 7, position 35");
    tol_loaded_stats(s.loaded, &stats);
    const uint64_t reused = stats.reused;
    struct tol_step steps[] = {{.session = bad}, {.session = good}};
    MUST(tol_sessions_step(steps, 2));
    cr_assert(steps[0].status == TOL_MISMATCH && steps[0].token == -1);
    cr_assert(steps[1].status == TOL_OK);
    MUST(tol_sessions_step(steps, 2)); /* computes what was drawn */
    text[40] = steps[1].token;
    cr_assert(steps[1].status == TOL_OK);
    tol_session_destroy(good);
    struct tol_session *third = open_session(&s, &keeps);
    MUST_FAIL(tol_session_prompt(third, tokens, 40), TOL_MISMATCH, "position 35");
    tol_loaded_stats(s.loaded, &stats);
    cr_assert(stats.reused == reused, "pages of a session without use are shared");
    MUST(tol_session_rewind(bad, 33));
    MUST_FAIL(tol_session_prompt(bad, text, 1), TOL_MISMATCH, "position 35");
    MUST(tol_session_rewind(bad, 0));
    MUST(tol_session_prompt(bad, text, 40));
    check_alone(&s, bad, text, 40);
    tol_session_destroy(bad), tol_session_destroy(third);
    close_stage(&s);
}

/* The session that takes the last page leaves none for the search. */
Test(session_trouble, without_memory_the_failure_is_said_all_the_same) {
    enum { SESSIONS = 64 };
    struct tiny_model tiny = biased_model();
    struct tol_session *sessions[SESSIONS];
    tiny.head_size = 256; /* 96 KiB per page, and 2 MiB are the least that a pool takes */
    struct stage s =
        open_poked(&tiny, "blk.1.attn_k.weight", 3, NAN,
                   &(struct tol_load_options){.cache_bytes = 1 << 21, .sessions = SESSIONS});
    char latest[512] = "";
    int tokens[SHORT];
    size_t count = 0;
    make_tokens(tokens, SHORT, BAD, 1);
    for (;;) {
        cr_assert(count < SESSIONS);
        sessions[count] = open_session(&s, NULL);
        const tol_status status = tol_session_prompt(sessions[count++], tokens, 9);
        if (status == TOL_OUT_OF_DEVICE_MEMORY) break;
        cr_assert(status == TOL_MISMATCH);
        snprintf(latest, sizeof latest, "%s", tol_message());
    }
    cr_assert(strstr(latest, "a key of layer 1 at position 0 is NaN or infinite: in which layer it "
                             "begins is not known: ") != NULL,
              "%zu sessions: %s", count, latest);
    while (count > 0) tol_session_destroy(sessions[--count]);
    close_stage(&s);
}
