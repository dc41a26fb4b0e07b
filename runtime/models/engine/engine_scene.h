/*
 * Engine scene: a tiny model, loaded, for tests of sessions.
 */
#ifndef TOLLENS_ENGINE_SCENE_H
#define TOLLENS_ENGINE_SCENE_H

#include "decode_session.h"
#include "tiny_model_scene.h"

#include "test/test_device.h"

extern const struct tiny_model stage_base;

struct stage {
    struct gguf_maker maker;
    struct tol_model *model;
    struct tol_loaded *loaded;
    size_t vocabulary;
};

/* The file of a model, loaded onto the tests' context. */
struct stage open_stage(const struct tiny_model *tiny, const struct tol_load_options *options);
void close_stage(struct stage *stage);

struct tol_session *open_session(const struct stage *stage,
                                 const struct tol_session_options *options);

/* Random tokens. */
void make_tokens(int *tokens, size_t count, size_t vocabulary, unsigned seed);

#endif
