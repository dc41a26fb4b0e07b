/*
 * Tiny model: writes the file of a small model with seeded random weights, for tests.
 */
#ifndef TOLLENS_TINY_MODEL_SCENE_H
#define TOLLENS_TINY_MODEL_SCENE_H

#include "gguf_scene.h"

/* A key under the architecture's prefix, of kind u32, f32, bool or string. */
struct tiny_key {
    const char *end;
    enum tol_gguf_kind kind;
    double number;
    const char *text;
};

enum { TINY_KEYS_MAX = 4 };

struct tiny_model {
    const char *architecture;
    size_t layers, width, feed_forward, heads, kv_heads, head_size, vocabulary, context, window;
    size_t rotated;            /* 0: head_size */
    size_t kv_heads_last;      /* heads of keys are an array, with this for the last layer; 0: no */
    enum tol_tensor_type type; /* of matrices */
    enum tol_tensor_type v_type, embedding_type, vector_type; /* of norms, biases and factors */
    bool gate_of_v_type;
    bool fused;             /* q, k and v are one matrix */
    bool tied, has_factors; /* llama 3's tensor of factors */
    const char *scaling;    /* of rotations: "linear", "yarn"; NULL: none; "": no key */
    double factor, base;    /* base 0: 10000; factor below 0: no key */
    uint64_t seed;
    /* What is changed to make the file wrong: NULL, or the name of a tensor that is left out, or
     * added. */
    const char *without, *with;
    struct tiny_key keys[TINY_KEYS_MAX]; /* further ones, up to the first without an end */
    size_t tokens;                       /* of a tokenizer of SPM; 0: the file has none */
};

/* The file is maker->path, until maker_end. */
void tiny_model_write(const struct tiny_model *model, struct gguf_maker *maker);

#endif
