/*
 * Model: a file whose keys and tensors make one of the decoders that this worker computes. It is on
 * the host; tol_model_load (loaded.h) brings it to a device, and only what is there has sessions.
 *
 * Architectures: llama (also llama 3 and 3.x with their rotation factors, and mistral, whose files
 * name it), mistral3 (its text, within the original context), qwen2, qwen3 (norms of q and k).
 * Grouped heads, an output matrix of its own or the embedding's. Everything that the file asks for
 * and this worker does not compute is refused by name: an unknown architecture, experts, a tensor
 * that nothing would use, a format of weights that the kernels lack. A model that opens has every
 * tensor it needs, in the shape it needs.
 *
 * Threads: a model does not change after it was opened. Source: the keys and names of tensors of
 * GGUF files (ggml, docs/gguf.md; llama.cpp's converter).
 */
#ifndef TOLLENS_MODEL_H
#define TOLLENS_MODEL_H

#include <gguf.h>
#include <tollens.h>

#include "quantised/formats/weight_format.h"

struct tol_model;

/* All sizes are of elements, unless they say otherwise. */
struct tol_model_shape {
    char architecture[16]; /* as the file says: "llama" */
    size_t layers, vocabulary;
    size_t width;        /* of a position between layers */
    size_t feed_forward; /* of a position inside a layer */
    size_t heads, kv_heads, head_size;
    size_t context_max;    /* positions that the model was made for */
    size_t window;         /* positions that a position sees, with itself; 0: all before it */
    size_t rotated;        /* of a head the elements that are rotated by the position */
    bool halves;           /* pairs are i and i + rotated / 2, else 2 i and 2 i + 1 */
    bool tied;             /* the output matrix is the embedding's */
    float epsilon;         /* of the norms */
    float magnitude;       /* of rotations; 1 unless YaRN or a key lengthens them */
    uint64_t weight_bytes; /* of all tensors that are loaded */
};

/* The tensors of a layer. NULL: the model has none of that name. If q, k and v are one tensor, it
 * has the rows of all, in this order; so have their biases. */
struct tol_model_layer {
    const struct tol_gguf_tensor *attention_norm, *q, *k, *v, *q_bias, *k_bias, *v_bias, *q_norm,
        *k_norm, *output, *output_bias, *feed_norm, *gate, *up, *down;
};

/* The tensors of a model, and what is computed from its keys. */
struct tol_model_parts {
    const struct tol_gguf_tensor *embedding, *output_norm, *output; /* output: NULL if tied */
    const struct tol_model_layer *layers;
    const float *frequencies; /* rotated / 2: radians a position */
};

/*
 * Opens and checks a file. The caller closes *model.
 * TOL_UNREADABLE, TOL_INVALID_FILE: as tol_gguf_open; TOL_INVALID_FILE also if a key or a tensor is
 * missing or has another shape than the others imply. TOL_UNSUPPORTED: it is a model that this
 * worker does not compute; the message has the name of what it lacks. TOL_OUT_OF_HOST_MEMORY.
 */
TOL_API tol_status tol_model_open(const char *path, struct tol_model **model);

/*
 * Whether this worker computes exactly this file as llama.cpp does: TOL_OK, or the status and in
 * tol_message() the sentence with which loading it fails. Checked are all keys that change the
 * computation, the types and shapes of all tensors, the tokenizer, and whether its tokens are the
 * rows of the embedding and of the output. No device is needed. Errors as tol_model_open and
 * tol_tokenizer_create.
 */
TOL_API tol_status tol_model_supported(const char *path);

/* What was loaded from it stays. NULL is a no-op. */
TOL_API void tol_model_close(struct tol_model *model);

/* All valid while the model is open. */
TOL_API const struct tol_model_shape *tol_model_shape(const struct tol_model *model);
TOL_API const struct tol_model_parts *tol_model_parts(const struct tol_model *model);
TOL_API const struct tol_gguf *tol_model_file(const struct tol_model *model);

/* The kernels' format in which tensors of a type are loaded. false: they have none. */
TOL_API bool tol_model_format(enum tol_tensor_type type, enum kn_weight_format *format);

/* TOL_UNSUPPORTED: tensors have types without a format. The message names them for the whole file,
 * with the number of tensors of each. */
tol_status tol_model_check_types(const struct tol_gguf *file);

/* Bytes of a tensor in that format; of one with one dimension, as floats. */
TOL_API uint64_t tol_model_weight_bytes(const struct tol_gguf_tensor *tensor);

/* Reads bytes of a tensor in that format, from byte from of it on. Fails as tol_gguf_read does, and
 * with TOL_OUT_OF_HOST_MEMORY. */
TOL_API tol_status tol_model_read(const struct tol_gguf *file, const struct tol_gguf_tensor *tensor,
                                  uint64_t from, void *to, size_t bytes);

#endif
