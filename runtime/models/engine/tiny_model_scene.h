/*
 * Tiny model: writes the file of a small model with seeded random weights, for tests.
 */
#ifndef TOLLENS_TINY_MODEL_SCENE_H
#define TOLLENS_TINY_MODEL_SCENE_H

#include "gguf_scene.h"

struct tiny_model {
    const char *architecture;
    size_t layers, width, feed_forward, heads, kv_heads, head_size, vocabulary, context, window;
    size_t rotated;            /* 0: head_size */
    enum tol_tensor_type type; /* of matrices */
    enum tol_tensor_type v_type, embedding_type;
    bool tied, has_factors; /* llama 3's tensor of factors */
    const char *scaling;    /* of rotations: "linear", "yarn"; NULL: none */
    double factor, base;    /* base 0: 10000 */
    uint64_t seed;
    /* What is changed to make the file wrong: NULL, or the name of a tensor that is left out, or
     * added. */
    const char *without, *with;
};

/* The file is maker->path, until maker_end. */
void tiny_model_write(const struct tiny_model *model, struct gguf_maker *maker);

#endif
