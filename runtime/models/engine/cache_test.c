/*
 * The cache of Q8_0 against that of fp16: how far logits move, how large it is, and that sessions
 * are as they were.
 */
#include "engine_scene.h"

#include <math.h>

TestSuite(cache, .fini = test_end);

enum { COUNT = 100, VOCABULARY = 512 };

static const struct tol_session_options keeps = {.keeps_logits = true};

/* The logits after each tenth of the tokens. */
static void run(const char *name, enum kn_cache kind, const int *tokens, float *logits,
                uint64_t *page_bytes) {
    char path[64];
    struct tol_model *model = NULL;
    struct tol_loaded *loaded = NULL;
    struct tol_session *session = NULL;
    struct tol_loaded_stats stats;
    snprintf(path, sizeof path, "models/%s.gguf", name);
    MUST(tol_model_open(test_fixture_path(path), &model));
    MUST(tol_model_load(model, test_context(),
                        &(struct tol_load_options){.context = 128, .cache = kind}, &loaded));
    MUST(tol_session_create(loaded, &keeps, &session));
    for (size_t i = 0; i < COUNT; i += 10) {
        MUST(tol_session_prompt(session, tokens + i, 10));
        memcpy(logits + i / 10 * VOCABULARY, tol_session_logits(session),
               VOCABULARY * sizeof *logits);
    }
    tol_loaded_stats(loaded, &stats);
    *page_bytes = stats.page_bytes;
    tol_session_destroy(session);
    tol_model_unload(loaded);
    tol_model_close(model);
}

/* A key or value is off by half of a 127th of its block's largest at most, eight times what fp16
 * may round. The bound is about twice what was found on 2026-11-23. */
static void check_model(const char *name, double bound) {
    static float halves[COUNT / 10 * VOCABULARY], bytes[COUNT / 10 * VOCABULARY];
    int tokens[COUNT];
    uint64_t halves_page = 0, bytes_page = 0;
    double worst = 0;
    make_tokens(tokens, COUNT, VOCABULARY, 3);
    run(name, KN_CACHE_F16, tokens, halves, &halves_page);
    run(name, KN_CACHE_Q8_0, tokens, bytes, &bytes_page);
    for (size_t at = 0; at < COUNT / 10; at++) {
        double largest = 0;
        for (size_t i = at * VOCABULARY; i < (at + 1) * VOCABULARY; i++) {
            largest = fmax(largest, fabs((double)halves[i]));
        }
        for (size_t i = at * VOCABULARY; i < (at + 1) * VOCABULARY; i++) {
            const double share = fabs((double)halves[i] - (double)bytes[i]) / largest;
            worst = fmax(worst, isnan(share) ? INFINITY : share);
        }
    }
    cr_log_info("%s: a logit is off by %.3g of the largest", name, worst);
    cr_assert(worst > 1e-5, "%s: the caches are the same", name);
    cr_assert(worst < bound, "%s: %g", name, worst);
    cr_assert(bytes_page * 32 == halves_page * 17, "a page has %llu bytes",
              (unsigned long long)bytes_page);
}

Test(cache, bytes_move_logits_by_a_bound) {
    check_model("llama-q4_k_m", 0.085);
    check_model("qwen3-bf16", 0.09);
}

/* What holds of sessions holds with this cache: pieces, batches and shared pages give the bits of a
 * session alone. */
Test(cache, sessions_with_bytes_get_what_they_get_alone) {
    struct tiny_model tiny = stage_base;
    int tokens[40];
    float alone[50];
    tiny.head_size = 32;
    struct stage s = open_stage(&tiny, &(struct tol_load_options){.cache = KN_CACHE_Q8_0});
    struct tol_session *first = open_session(&s, &keeps), *second = open_session(&s, &keeps);
    make_tokens(tokens, 40, s.vocabulary, 8);
    for (size_t i = 0; i < 40; i++) MUST(tol_session_prompt(first, tokens + i, 1));
    memcpy(alone, tol_session_logits(first), sizeof alone);
    MUST(tol_session_prompt(second, tokens, 40));
    cr_assert(memcmp(alone, tol_session_logits(second), sizeof alone) == 0);
    struct tol_step steps[2] = {{.session = first}, {.session = second}};
    for (size_t i = 0; i < 6; i++) {
        MUST(tol_sessions_step(steps, 2));
        cr_assert(steps[0].token == steps[1].token);
        cr_assert(memcmp(tol_session_logits(first), tol_session_logits(second), sizeof alone) == 0);
    }
    tol_session_destroy(first);
    tol_session_destroy(second);
    close_stage(&s);
}

Test(cache, what_it_cannot_hold_is_refused) {
    struct stage s = open_stage(&stage_base, NULL);
    struct tol_loaded *loaded = NULL;
    struct tol_load_options options = {.cache = KN_CACHE_Q8_0};
    MUST_FAIL(tol_model_load(s.model, test_context(), &options, &loaded), TOL_INVALID_ARGUMENT,
              "the model's have 16");
    options.cache = (enum kn_cache)7;
    MUST_FAIL(tol_model_load(s.model, test_context(), &options, &loaded), TOL_INVALID_ARGUMENT,
              "no kind of cache is 7");
    close_stage(&s);
}
