/*
 * Opening a model: keys to a shape, names to tensors, and the check that nothing is missing, wrong
 * or left over.
 */
#include "model.h"

#include "core/check.h"
#include "model_keys.h"
#include "rotation.h"

#include <tokenizer.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES = 80, LAYERS_MAX = 1024, SIZE_MAX_ELEMENTS = 1 << 24 };

struct tol_model {
    struct tol_gguf *file;
    struct tol_model_shape shape;
    struct tol_model_parts parts;
    struct tol_model_layer *layers;
    float *frequencies;
    bool *used; /* a tensor each: it has a place in the model */
};

/* What an architecture has that others lack. */
static const struct architecture {
    const char *name;
    bool halves;     /* rotates pairs of two halves */
    bool has_norms;  /* of q and k: needed */
    bool has_window; /* attention.sliding_window holds; llama.cpp reads it for none of the others */
    bool tunes_yarn; /* YaRN's turns, its multiplier and attention.temperature_scale hold */
} architectures[] = {{"llama", false, false, false, false},
                     {"mistral", false, false, true, false},
                     {"mistral3", false, false, false, true},
                     {"qwen2", true, false, false, false},
                     {"qwen3", true, true, false, false}};

/* ---- keys ---- */

static const char *model_key_of(const struct tol_model *m, const char *end, char key[NAME_BYTES]) {
    snprintf(key, NAME_BYTES, "%s.%s", m->shape.architecture, end);
    return key;
}

/* The number that an array has for each layer. */
static tol_status get_uniform(const struct tol_model *m, const struct tol_gguf_value *array,
                              const char *key, uint64_t *number) {
    tol_status status = TOL_OK;
    TOL_CHECK(array->count >= m->shape.layers && array->count > 0 &&
                  array->element != TOL_GGUF_STRING && array->element != TOL_GGUF_F32 &&
                  array->element != TOL_GGUF_F64,
              TOL_INVALID_FILE, "the key %s has %llu numbers for %zu layers", key,
              (unsigned long long)array->count, m->shape.layers);
    *number = tol_gguf_unsigned_at(array, 0);
    for (size_t i = 1; i < m->shape.layers; i++) {
        const uint64_t other = tol_gguf_unsigned_at(array, i);
        TOL_CHECK(other == *number, TOL_UNSUPPORTED,
                  "the key %s is %llu for layer 0 and %llu for layer %zu; this worker computes "
                  "layers of one shape",
                  key, (unsigned long long)*number, (unsigned long long)other, i);
    }
out:
    return status;
}

/* A size under architecture.end, from 1 to 2^24; 0 in *value is a default if it may be missing. */
static tol_status get_size(const struct tol_model *m, const char *end, bool may_miss,
                           size_t *value) {
    tol_status status = TOL_OK;
    char key[NAME_BYTES];
    uint64_t number = *value;
    const struct tol_gguf_value *found = tol_gguf_find(m->file, model_key_of(m, end, key));
    if (may_miss && found == NULL) return TOL_OK;
    if (found != NULL && found->kind == TOL_GGUF_ARRAY) {
        TOL_TRY(get_uniform(m, found, key, &number));
    } else {
        TOL_TRY(tol_gguf_get_unsigned(m->file, key, &number));
    }
    TOL_CHECK(number >= 1 && number <= SIZE_MAX_ELEMENTS, TOL_INVALID_FILE,
              "the key %s is %llu; it must be from 1 to %d", key, (unsigned long long)number,
              SIZE_MAX_ELEMENTS);
    *value = (size_t)number;
out:
    return status;
}

static tol_status get_real(const struct tol_model *m, const char *end, double least,
                           double *value) {
    tol_status status = TOL_OK;
    char key[NAME_BYTES];
    if (tol_gguf_find(m->file, model_key_of(m, end, key)) == NULL) return TOL_OK;
    TOL_TRY(tol_gguf_get_real(m->file, key, value));
    TOL_CHECK(*value >= least && *value <= 1e15, TOL_INVALID_FILE,
              "the key %s is %g; it must be at least %g", key, *value, least);
out:
    return status;
}

static bool model_is_text(struct tol_gguf_text text, const char *word) {
    return text.count == strlen(word) && memcmp(text.bytes, word, text.count) == 0;
}

static tol_status get_architecture(struct tol_model *m, const struct architecture **found) {
    tol_status status = TOL_OK;
    struct tol_gguf_text name = {"", 0};
    TOL_TRY(tol_gguf_get_text(m->file, "general.architecture", &name));
    *found = NULL;
    for (size_t i = 0; i < sizeof architectures / sizeof architectures[0]; i++) {
        if (model_is_text(name, architectures[i].name)) *found = &architectures[i];
    }
    TOL_CHECK(*found != NULL, TOL_UNSUPPORTED,
              "the model's architecture is \"%.*s\"; this worker computes llama, mistral, "
              "mistral3, qwen2 and qwen3",
              (int)(name.count < 60 ? name.count : 60), name.bytes);
    snprintf(m->shape.architecture, sizeof m->shape.architecture, "%s", (*found)->name);
out:
    return status;
}

static tol_status get_shape(struct tol_model *m, bool has_window) {
    tol_status status = TOL_OK;
    struct tol_model_shape *s = &m->shape;
    char key[NAME_BYTES];
    uint64_t experts = 0, window = 0;
    double epsilon = 0;
    TOL_TRY(get_size(m, "block_count", false, &s->layers));
    TOL_CHECK(s->layers <= LAYERS_MAX, TOL_UNSUPPORTED, "the model has %zu layers; at most %d",
              s->layers, LAYERS_MAX);
    TOL_TRY(get_size(m, "embedding_length", false, &s->width));
    TOL_TRY(get_size(m, "feed_forward_length", false, &s->feed_forward));
    TOL_TRY(get_size(m, "context_length", false, &s->context_max));
    TOL_TRY(get_size(m, "attention.head_count", false, &s->heads));
    s->kv_heads = s->heads;
    TOL_TRY(get_size(m, "attention.head_count_kv", true, &s->kv_heads));
    TOL_CHECK(s->heads % s->kv_heads == 0, TOL_INVALID_FILE,
              "%zu heads of q cannot share %zu heads of k and v (%s.attention.head_count_kv)",
              s->heads, s->kv_heads, s->architecture);
    s->head_size = s->width / s->heads;
    TOL_TRY(get_size(m, "attention.key_length", true, &s->head_size));
    size_t value_size = s->head_size;
    TOL_TRY(get_size(m, "attention.value_length", true, &value_size));
    TOL_CHECK(
        value_size == s->head_size && s->head_size > 0 && s->head_size % 8 == 0 &&
            s->head_size <= 256,
        TOL_UNSUPPORTED,
        "heads have %zu elements of keys and %zu of values (%s.attention.key_length and "
        "%s.attention.value_length); this worker computes those of one size, a multiple of 8 up to "
        "256",
        s->head_size, value_size, s->architecture, s->architecture);
    s->rotated = s->head_size;
    TOL_TRY(get_size(m, "rope.dimension_count", true, &s->rotated));
    TOL_CHECK(s->rotated % 2 == 0 && s->rotated <= s->head_size, TOL_INVALID_FILE,
              "%zu elements of a head of %zu are to be rotated (%s.rope.dimension_count)",
              s->rotated, s->head_size, s->architecture);
    TOL_CHECK(s->rotated == s->head_size || has_window, TOL_UNSUPPORTED,
              "%zu elements of a head of %zu are to be rotated (%s.rope.dimension_count), which is "
              "not computed for the architecture %s",
              s->rotated, s->head_size, s->architecture, s->architecture);
    TOL_TRY(tol_gguf_get_real(m->file, model_key_of(m, "attention.layer_norm_rms_epsilon", key),
                              &epsilon));
    TOL_CHECK(epsilon >= 0 && epsilon < 1, TOL_INVALID_FILE, "the key %s is %g", key, epsilon);
    s->epsilon = (float)epsilon;
    if (tol_gguf_find(m->file, model_key_of(m, "expert_count", key)) != NULL) {
        TOL_TRY(tol_gguf_get_unsigned(m->file, key, &experts));
        TOL_CHECK(experts == 0, TOL_UNSUPPORTED,
                  "the model is a mixture of %llu experts (%s), which this worker does not compute",
                  (unsigned long long)experts, key);
    }
    if (tol_gguf_find(m->file, model_key_of(m, "attention.sliding_window", key)) != NULL) {
        TOL_TRY(tol_gguf_get_unsigned(m->file, key, &window));
        TOL_CHECK(window <= INT32_MAX, TOL_INVALID_FILE, "the key %s is %llu", key,
                  (unsigned long long)window);
        s->window = has_window ? (size_t)window : 0;
    }
out:
    return status;
}

/* ---- tensors ---- */

/* Tokens without a row could not be computed, and rows without a token could be drawn. */
static tol_status check_vocabulary(const struct tol_model *m) {
    tol_status status = TOL_OK;
    const struct tol_gguf_value *tokens = tol_gguf_find(m->file, "tokenizer.ggml.tokens");
    if (tokens == NULL) goto out;
    TOL_CHECK(tokens->count == m->shape.vocabulary, TOL_INVALID_FILE,
              "the tensor token_embd.weight has %zu rows, and the tokenizer %llu tokens",
              m->shape.vocabulary, (unsigned long long)tokens->count);
out:
    return status;
}

/* Finds a tensor of this shape (rows 0: one dimension, of floats); marks it as used. */
static tol_status model_find(struct tol_model *m, bool may_miss, size_t columns, size_t rows,
                             const struct tol_gguf_tensor **tensor, const char *format, ...)
    __attribute__((format(printf, 6, 7)));
static tol_status model_find(struct tol_model *m, bool may_miss, size_t columns, size_t rows,
                             const struct tol_gguf_tensor **tensor, const char *format, ...) {
    tol_status status = TOL_OK;
    char name[NAME_BYTES];
    enum kn_weight_format weights;
    va_list list;
    va_start(list, format);
    vsnprintf(name, sizeof name, format, list);
    va_end(list);
    *tensor = tol_gguf_find_tensor(m->file, name);
    if (*tensor == NULL && may_miss) return TOL_OK;
    const struct tol_gguf_tensor *t = *tensor;
    TOL_CHECK(t != NULL, TOL_INVALID_FILE, "the tensor %s is missing", name);
    TOL_CHECK(t->extent[0] == columns && t->extent[1] == (rows > 0 ? rows : 1) &&
                  t->extent[2] == 1 && t->extent[3] == 1,
              TOL_INVALID_FILE,
              "the tensor %s is %llu x %llu x %llu x %llu; the keys imply %zu x %zu", name,
              (unsigned long long)t->extent[0], (unsigned long long)t->extent[1],
              (unsigned long long)t->extent[2], (unsigned long long)t->extent[3], columns,
              rows > 0 ? rows : 1);
    const bool is_known = tol_model_format(t->type, &weights);
    const bool is_floats =
        t->type == TOL_TENSOR_F32 || t->type == TOL_TENSOR_F16 || t->type == TOL_TENSOR_BF16;
    TOL_CHECK(is_known && (rows > 0 || is_floats), TOL_UNSUPPORTED,
              "the tensor %s is of %s, which this worker does not compute%s", name,
              tol_tensor_type_name(t->type), rows > 0 ? "" : " in tensors of one dimension");
    TOL_CHECK(rows == 0 || columns % kn_weight_grain(weights) == 0, TOL_UNSUPPORTED,
              "rows of the tensor %s have %zu elements, not a multiple of %zu", name, columns,
              kn_weight_grain(weights));
    for (size_t i = 0;; i++) {
        if (tol_gguf_tensor_at(m->file, i) != t) continue;
        m->used[i] = true;
        break;
    }
    m->shape.weight_bytes += tol_model_weight_bytes(t);
out:
    return status;
}

/* q, k and v: three matrices, or one that has their rows in this order. */
static tol_status find_qkv(struct tol_model *m, size_t i, struct tol_model_layer *layer) {
    tol_status status = TOL_OK;
    const struct tol_model_shape *s = &m->shape;
    const size_t q = s->heads * s->head_size, kv = s->kv_heads * s->head_size, all = q + 2 * kv;
    TOL_TRY(model_find(m, true, s->width, all, &layer->q, "blk.%zu.attn_qkv.weight", i));
    if (layer->q != NULL) {
        layer->k = layer->v = layer->q;
        TOL_TRY(model_find(m, true, all, 0, &layer->q_bias, "blk.%zu.attn_qkv.bias", i));
        layer->k_bias = layer->v_bias = layer->q_bias;
        return TOL_OK;
    }
    TOL_TRY(model_find(m, false, s->width, q, &layer->q, "blk.%zu.attn_q.weight", i));
    TOL_TRY(model_find(m, false, s->width, kv, &layer->k, "blk.%zu.attn_k.weight", i));
    TOL_TRY(model_find(m, false, s->width, kv, &layer->v, "blk.%zu.attn_v.weight", i));
    TOL_TRY(model_find(m, true, q, 0, &layer->q_bias, "blk.%zu.attn_q.bias", i));
    TOL_TRY(model_find(m, true, kv, 0, &layer->k_bias, "blk.%zu.attn_k.bias", i));
    TOL_TRY(model_find(m, true, kv, 0, &layer->v_bias, "blk.%zu.attn_v.bias", i));
out:
    return status;
}

static tol_status find_layer(struct tol_model *m, const struct architecture *a, size_t i,
                             struct tol_model_layer *layer) {
    tol_status status = TOL_OK;
    const struct tol_model_shape *s = &m->shape;
    const size_t q = s->heads * s->head_size;
    const bool no_norm = !a->has_norms;
    TOL_TRY(
        model_find(m, false, s->width, 0, &layer->attention_norm, "blk.%zu.attn_norm.weight", i));
    TOL_TRY(find_qkv(m, i, layer));
    if (a->has_norms) {
        TOL_TRY(model_find(m, no_norm, s->head_size, 0, &layer->q_norm,
                           "blk.%zu.attn_q_norm.weight", i));
        TOL_TRY(model_find(m, no_norm, s->head_size, 0, &layer->k_norm,
                           "blk.%zu.attn_k_norm.weight", i));
    }
    TOL_TRY(model_find(m, false, q, s->width, &layer->output, "blk.%zu.attn_output.weight", i));
    TOL_TRY(model_find(m, true, s->width, 0, &layer->output_bias, "blk.%zu.attn_output.bias", i));
    TOL_TRY(model_find(m, false, s->width, 0, &layer->feed_norm, "blk.%zu.ffn_norm.weight", i));
    TOL_TRY(model_find(m, false, s->width, s->feed_forward, &layer->gate, "blk.%zu.ffn_gate.weight",
                       i));
    TOL_TRY(
        model_find(m, false, s->width, s->feed_forward, &layer->up, "blk.%zu.ffn_up.weight", i));
    TOL_TRY(model_find(m, false, s->feed_forward, s->width, &layer->down, "blk.%zu.ffn_down.weight",
                       i));
out:
    return status;
}

static tol_status find_tensors(struct tol_model *m, const struct architecture *a) {
    tol_status status = TOL_OK;
    struct tol_gguf_description file;
    const struct tol_gguf_tensor *embedding = tol_gguf_find_tensor(m->file, "token_embd.weight");
    tol_gguf_describe(m->file, &file);
    m->used = calloc(file.tensors + 1, sizeof *m->used);
    m->layers = calloc(m->shape.layers, sizeof *m->layers);
    TOL_CHECK(m->used != NULL && m->layers != NULL, TOL_OUT_OF_HOST_MEMORY, "%zu layers",
              m->shape.layers);
    m->parts.layers = m->layers;
    TOL_CHECK(embedding != NULL, TOL_INVALID_FILE, "the tensor token_embd.weight is missing");
    m->shape.vocabulary = (size_t)embedding->extent[1];
    TOL_CHECK(m->shape.vocabulary <= SIZE_MAX_ELEMENTS, TOL_UNSUPPORTED,
              "a vocabulary of %zu tokens; at most %d", m->shape.vocabulary, SIZE_MAX_ELEMENTS);
    TOL_TRY(check_vocabulary(m));
    TOL_TRY(model_find(m, false, m->shape.width, m->shape.vocabulary, &m->parts.embedding,
                       "token_embd.weight"));
    TOL_TRY(model_find(m, false, m->shape.width, 0, &m->parts.output_norm, "output_norm.weight"));
    TOL_TRY(model_find(m, true, m->shape.width, m->shape.vocabulary, &m->parts.output,
                       "output.weight"));
    m->shape.tied = m->parts.output == NULL;
    for (size_t i = 0; i < m->shape.layers; i++) TOL_TRY(find_layer(m, a, i, &m->layers[i]));
out:
    return status;
}

/* The computation would ignore a tensor without a place, so the model is rejected. */
static tol_status check_unused(const struct tol_model *m) {
    tol_status status = TOL_OK;
    const struct tol_gguf_tensor *tensor = NULL;
    for (size_t i = 0; (tensor = tol_gguf_tensor_at(m->file, i)) != NULL; i++) {
        TOL_CHECK(m->used[i], TOL_UNSUPPORTED,
                  "the tensor %.*s has no place in a model of architecture %s",
                  (int)tensor->name.count, tensor->name.bytes, m->shape.architecture);
    }
out:
    return status;
}

/* ---- rotation ---- */

static tol_status get_tuning(const struct tol_model *m, struct tol_rotation *r) {
    tol_status status = TOL_OK;
    TOL_TRY(get_real(m, "rope.scaling.yarn_beta_fast", 1e-3, &r->fast));
    TOL_TRY(get_real(m, "rope.scaling.yarn_beta_slow", 1e-3, &r->slow));
    TOL_TRY(get_real(m, "rope.scaling.yarn_log_multiplier", 0, &r->multiplier));
out:
    return status;
}

/* Queries are multiplied by 1 + scale * log(1 + floor(position / original context)). That is 1 for
 * the positions of the original context, and no others are computed. */
static tol_status limit_context(struct tol_model *m) {
    tol_status status = TOL_OK;
    double scale = 0;
    size_t original = m->shape.context_max;
    TOL_TRY(get_real(m, "attention.temperature_scale", 0, &scale));
    TOL_TRY(get_size(m, "rope.scaling.original_context_length", true, &original));
    if (scale != 0 && original < m->shape.context_max) m->shape.context_max = original;
out:
    return status;
}

/* As llama.cpp reads the keys: without a type scaling is linear, and the old key holds where the
 * new one is missing. A factor of 0 is none. */
static tol_status get_scaling(const struct tol_model *m, const struct architecture *a,
                              struct tol_rotation *r) {
    tol_status status = TOL_OK;
    char key[NAME_BYTES];
    struct tol_gguf_text type = {"linear", 6};
    if (tol_gguf_find(m->file, model_key_of(m, "rope.scaling.type", key)) != NULL) {
        TOL_TRY(tol_gguf_get_text(m->file, key, &type));
    }
    TOL_TRY(get_real(m, "rope.scale_linear", 0, &r->factor));
    TOL_TRY(get_real(m, "rope.scaling.factor", 0, &r->factor));
    if (r->factor == 0) r->factor = 1;
    TOL_CHECK(r->factor >= 1e-6, TOL_INVALID_FILE,
              "the rotation is scaled by %g; it must be at least 1e-6", r->factor);
    TOL_TRY(get_real(m, "rope.scaling.attn_factor", 0, &r->attention_factor));
    if (model_is_text(type, "linear")) {
        r->scaling = TOL_ROTATION_LINEAR;
    } else if (model_is_text(type, "yarn")) {
        r->scaling = TOL_ROTATION_YARN;
        r->original_context = (double)m->shape.context_max;
        TOL_TRY(get_real(m, "rope.scaling.original_context_length", 1, &r->original_context));
        if (a->tunes_yarn) TOL_TRY(get_tuning(m, r));
    } else {
        TOL_CHECK(model_is_text(type, "none"), TOL_UNSUPPORTED,
                  "the rotation is scaled by \"%.*s\" (%s.rope.scaling.type); this worker computes "
                  "linear, yarn, and factors in a tensor",
                  (int)(type.count < 60 ? type.count : 60), type.bytes, m->shape.architecture);
    }
out:
    return status;
}

static tol_status get_rotation(struct tol_model *m, const struct architecture *a) {
    tol_status status = TOL_OK;
    const size_t pairs = m->shape.rotated / 2;
    const struct tol_gguf_tensor *factors = NULL;
    float *divisors = NULL;
    struct tol_rotation r = {.rotated = m->shape.rotated,
                             .base = 10000,
                             .factor = 1,
                             .fast = 32,
                             .slow = 1,
                             .attention_factor = 1};
    TOL_TRY(get_real(m, "rope.freq_base", 1, &r.base));
    TOL_TRY(get_scaling(m, a, &r));
    if (a->tunes_yarn) TOL_TRY(limit_context(m));
    m->frequencies = malloc((pairs + 1) * sizeof *m->frequencies);
    TOL_CHECK(m->frequencies != NULL, TOL_OUT_OF_HOST_MEMORY, "%zu frequencies", pairs);
    TOL_TRY(model_find(m, true, pairs, 0, &factors, "rope_freqs.weight"));
    if (factors != NULL) {
        const size_t bytes = (size_t)tol_model_weight_bytes(factors);
        m->shape.weight_bytes -= bytes; /* it stays on the host */
        divisors = malloc(bytes);
        TOL_CHECK(divisors != NULL, TOL_OUT_OF_HOST_MEMORY, "%zu factors", pairs);
        TOL_TRY(tol_model_read(m->file, factors, 0, divisors, bytes));
        for (size_t i = 0; i < pairs; i++) {
            TOL_CHECK(divisors[i] >= 1e-6f && divisors[i] <= 1e6f, TOL_INVALID_FILE,
                      "factor %zu of rope_freqs.weight is %g", i, (double)divisors[i]);
        }
        r.divisors = divisors;
    }
    m->shape.magnitude = tol_rotation_frequencies(&r, m->frequencies);
    m->parts.frequencies = m->frequencies;
out:
    free(divisors);
    return status;
}

/* ---- the model ---- */

tol_status tol_model_open(const char *path, struct tol_model **model) {
    tol_status status = TOL_OK;
    struct tol_model *m = NULL;
    const struct architecture *architecture = NULL;
    TOL_CHECK(path != NULL && model != NULL, TOL_INVALID_ARGUMENT, "a model needs a path");
    m = calloc(1, sizeof *m);
    TOL_CHECK(m != NULL, TOL_OUT_OF_HOST_MEMORY, "a model");
    TOL_TRY(tol_gguf_open(path, &m->file));
    TOL_TRY(get_architecture(m, &architecture));
    m->shape.halves = architecture->halves;
    TOL_TRY(model_keys_check(m->file, m->shape.architecture));
    TOL_TRY(get_shape(m, architecture->has_window));
    TOL_TRY(tol_model_check_types(m->file));
    TOL_TRY(find_tensors(m, architecture));
    TOL_TRY(get_rotation(m, architecture));
    TOL_TRY(check_unused(m));
    *model = m;
    m = NULL;
out:
    tol_model_close(m);
    return status;
}

tol_status tol_model_supported(const char *path) {
    tol_status status = TOL_OK;
    struct tol_model *model = NULL;
    struct tol_tokenizer *tokenizer = NULL;
    TOL_TRY(tol_model_open(path, &model));
    TOL_TRY(tol_tokenizer_create(model->file, &tokenizer));
out:
    tol_tokenizer_destroy(tokenizer);
    tol_model_close(model);
    return status;
}

void tol_model_close(struct tol_model *model) {
    if (model == NULL) return;
    tol_gguf_close(model->file);
    free(model->layers);
    free(model->frequencies);
    free(model->used);
    free(model);
}

const struct tol_model_shape *tol_model_shape(const struct tol_model *model) {
    return &model->shape;
}

const struct tol_model_parts *tol_model_parts(const struct tol_model *model) {
    return &model->parts;
}

const struct tol_gguf *tol_model_file(const struct tol_model *model) {
    return model->file;
}
