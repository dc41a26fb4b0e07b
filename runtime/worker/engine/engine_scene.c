/*
 * A tiny model for tests of sessions.
 */
#include "engine_scene.h"

const struct tiny_model stage_base = {.architecture = "llama",
                                      .layers = 2,
                                      .width = 64,
                                      .feed_forward = 96,
                                      .heads = 4,
                                      .kv_heads = 2,
                                      .head_size = 16,
                                      .vocabulary = 50,
                                      .context = 512,
                                      .type = TOL_TENSOR_F16,
                                      .v_type = TOL_TENSOR_F16,
                                      .embedding_type = TOL_TENSOR_F16};

struct stage open_stage(const struct tiny_model *tiny, const struct tol_load_options *options) {
    struct stage s = {.vocabulary = tiny->vocabulary};
    tiny_model_write(tiny, &s.maker);
    MUST(tol_model_open(s.maker.path, &s.model));
    MUST(tol_model_load(s.model, test_context(), options, &s.loaded));
    return s;
}

void close_stage(struct stage *s) {
    tol_model_unload(s->loaded);
    tol_model_close(s->model);
    maker_end(&s->maker);
}

struct tol_session *open_session(const struct stage *s, const struct tol_session_options *options) {
    struct tol_session *session = NULL;
    MUST(tol_session_create(s->loaded, options, &session));
    return session;
}

void make_tokens(int *tokens, size_t count, size_t vocabulary, unsigned seed) {
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525 + 1013904223;
        tokens[i] = (int)(seed >> 8) % (int)vocabulary;
    }
}
