/*
 * The keys and tensors of a tiny model.
 */
#include "tiny_model_scene.h"

#include "inputs.h"
#include "model.h"
#include "quantised/formats/quantise.h"
#include "quantised/formats/weight_format.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { TENSORS_MAX = 128, ALIGNMENT = 32 };

struct tensor {
    char name[64];
    uint64_t extent[2];
    enum tol_tensor_type type;
    double deviation, mean;
    size_t bytes;
};

struct listing {
    const struct tiny_model *model;
    struct tensor tensors[TENSORS_MAX];
    size_t count;
};

static size_t bytes_of(enum tol_tensor_type type, size_t elements) {
    return elements / tol_tensor_block_elements(type) * tol_tensor_block_bytes(type);
}

static void add(struct listing *list, enum tol_tensor_type type, size_t columns, size_t rows,
                double deviation, double mean, const char *name) {
    if (list->model->without != NULL && strcmp(name, list->model->without) == 0) return;
    cr_assert(list->count < TENSORS_MAX);
    struct tensor *t = &list->tensors[list->count++];
    snprintf(t->name, sizeof t->name, "%s", name);
    t->extent[0] = columns, t->extent[1] = rows;
    t->type = type;
    t->deviation = deviation, t->mean = mean;
    t->bytes = bytes_of(type, columns * rows);
}

static void add_in(struct listing *list, size_t layer, enum tol_tensor_type type, size_t columns,
                   size_t rows, double deviation, double mean, const char *end) {
    char name[64];
    snprintf(name, sizeof name, "blk.%zu.%s", layer, end);
    add(list, type, columns, rows, deviation, mean, name);
}

static void list_qkv(struct listing *list, size_t i) {
    const struct tiny_model *m = list->model;
    const size_t q = m->heads * m->head_size, kv = m->kv_heads * m->head_size;
    const double in = 1.5 / sqrt((double)m->width);
    const bool is_biased = strcmp(m->architecture, "qwen2") == 0;
    if (m->fused) {
        add_in(list, i, m->type, m->width, q + 2 * kv, in, 0, "attn_qkv.weight");
        if (is_biased) add_in(list, i, m->vector_type, q + 2 * kv, 1, 0.5, 0, "attn_qkv.bias");
        return;
    }
    add_in(list, i, m->type, m->width, q, in, 0, "attn_q.weight");
    add_in(list, i, m->type, m->width, kv, in, 0, "attn_k.weight");
    add_in(list, i, m->v_type, m->width, kv, in, 0, "attn_v.weight");
    if (!is_biased) return;
    add_in(list, i, m->vector_type, q, 1, 0.5, 0, "attn_q.bias");
    add_in(list, i, m->vector_type, kv, 1, 0.5, 0, "attn_k.bias");
    add_in(list, i, m->vector_type, kv, 1, 0.5, 0, "attn_v.bias");
}

static void list_layer(struct listing *list, size_t i) {
    const struct tiny_model *m = list->model;
    const size_t q = m->heads * m->head_size;
    const double in = 1.5 / sqrt((double)m->width);
    add_in(list, i, m->vector_type, m->width, 1, 0.2, 1, "attn_norm.weight");
    list_qkv(list, i);
    if (strcmp(m->architecture, "qwen3") == 0) {
        add_in(list, i, m->vector_type, m->head_size, 1, 0.2, 1, "attn_q_norm.weight");
        add_in(list, i, m->vector_type, m->head_size, 1, 0.2, 1, "attn_k_norm.weight");
    }
    add_in(list, i, m->type, q, m->width, 1 / sqrt((double)q), 0, "attn_output.weight");
    add_in(list, i, m->vector_type, m->width, 1, 0.2, 1, "ffn_norm.weight");
    add_in(list, i, m->gate_of_v_type ? m->v_type : m->type, m->width, m->feed_forward, in, 0,
           "ffn_gate.weight");
    add_in(list, i, m->type, m->width, m->feed_forward, in, 0, "ffn_up.weight");
    add_in(list, i, m->type, m->feed_forward, m->width, 1 / sqrt((double)m->feed_forward), 0,
           "ffn_down.weight");
}

static void list_all(struct listing *list) {
    const struct tiny_model *m = list->model;
    const size_t rotated = m->rotated > 0 ? m->rotated : m->head_size;
    const double in = 3 / sqrt((double)m->width);
    add(list, m->embedding_type, m->width, m->vocabulary, in, 0, "token_embd.weight");
    for (size_t i = 0; i < m->layers; i++) list_layer(list, i);
    add(list, m->vector_type, m->width, 1, 0.2, 1, "output_norm.weight");
    if (!m->tied) add(list, m->type, m->width, m->vocabulary, in, 0, "output.weight");
    if (m->has_factors) {
        add(list, m->vector_type, rotated / 2, 1, 0.3, 2, "rope_freqs.weight");
    }
    if (m->with != NULL) add(list, TOL_TENSOR_F32, m->width, 1, 1, 0, m->with);
}

/* Blocks of Q5_K with values of a deviation: every scale is also a minimum, and dmin is 15.5 d, so
 * a value is d sc (q - 15.5). */
static void draw_q5_k(uint64_t *state, double deviation, size_t bytes, uint8_t *blocks) {
    for (size_t at = 0; at < bytes; at += 176) {
        const float d = (float)(deviation / 40 / 9.2);
        const uint16_t both[2] = {kn_f16_of(d), kn_f16_of(d * 15.5f)};
        for (size_t i = 0; i < 176; i++) blocks[at + i] = (uint8_t)(kn_random(state) >> 24);
        memcpy(blocks + at, both, sizeof both);
        memset(blocks + at + 4, 0, 12);
        for (int j = 0; j < 8; j++) {
            const uint8_t scale = (uint8_t)(20 + kn_random(state) % 40);
            kn_q4_k_set_scale(blocks + at + 4, j, scale, scale);
        }
    }
}

/* Blocks of 32 elements with random quants, whose values have about the deviation: `heads` numbers
 * of fp16, d and perhaps m, before the quants. */
static void draw_blocks(const struct tensor *t, uint64_t *state, unsigned heads, double quants,
                        uint8_t *blocks) {
    const size_t each = tol_tensor_block_bytes(t->type);
    for (size_t at = 0; at < t->bytes; at += each) {
        const float d = (float)(t->deviation / quants);
        const uint16_t both[2] = {kn_f16_of(d), kn_f16_of((float)(-t->deviation * 1.7))};
        for (size_t i = 0; i < each; i++) blocks[at + i] = (uint8_t)(kn_random(state) >> 24);
        memcpy(blocks + at, both, heads * sizeof both[0]);
    }
}

static void draw(const struct tensor *t, uint64_t *state, uint8_t *bytes) {
    const size_t count = t->extent[0] * t->extent[1];
    float *values = malloc(count * sizeof *values);
    cr_assert(values != NULL);
    kn_inputs_draw(KN_NORMAL, state, t->deviation, values, count);
    for (size_t i = 0; i < count; i++) values[i] += (float)t->mean;
    switch ((int)t->type) {
    case TOL_TENSOR_F32:
        memcpy(bytes, values, t->bytes);
        break;
    case TOL_TENSOR_F16:
        kn_numbers_store(KN_F16, values, count, bytes);
        break;
    case TOL_TENSOR_BF16:
        kn_numbers_store(KN_BF16, values, count, bytes);
        break;
    case TOL_TENSOR_Q8_0:
        MUST(kn_quantise(KN_Q8_0, values, count, bytes));
        break;
    case TOL_TENSOR_Q4_K:
        MUST(kn_quantise(KN_Q4_K, values, count, bytes));
        break;
    case TOL_TENSOR_Q6_K:
        MUST(kn_quantise(KN_Q6_K, values, count, bytes));
        break;
    case TOL_TENSOR_Q4_0:
        draw_blocks(t, state, 1, 4.6, bytes);
        break;
    case TOL_TENSOR_Q4_1:
        draw_blocks(t, state, 2, 4.6, bytes);
        break;
    case TOL_TENSOR_Q5_0:
        draw_blocks(t, state, 1, 9.2, bytes);
        break;
    case TOL_TENSOR_Q5_1:
        draw_blocks(t, state, 2, 9.2, bytes);
        break;
    case TOL_TENSOR_IQ4_NL:
        draw_blocks(t, state, 1, 66, bytes);
        break;
    case TOL_TENSOR_Q5_K:
        draw_q5_k(state, t->deviation, t->bytes, bytes);
        break;
    default:
        memset(bytes, 0, t->bytes);
    }
    free(values);
}

struct keys {
    struct gguf_maker *maker;
    const char *architecture;
};

static void key_u32(const struct keys *k, const char *end, size_t value) {
    char key[96];
    snprintf(key, sizeof key, "%s.%s", k->architecture, end);
    maker_key_u32(k->maker, key, (uint32_t)value);
}

static void key_f32(const struct keys *k, const char *end, double value) {
    const float number = (float)value;
    char key[96];
    snprintf(key, sizeof key, "%s.%s", k->architecture, end);
    maker_key(k->maker, key, TOL_GGUF_F32);
    maker_bytes(k->maker, &number, sizeof number);
}

static void write_further(const struct keys *k, const struct tiny_key *further) {
    char key[96];
    snprintf(key, sizeof key, "%s.%s", k->architecture, further->end);
    if (further->kind == TOL_GGUF_STRING) {
        maker_key_string(k->maker, key, further->text);
    } else if (further->kind == TOL_GGUF_F32) {
        key_f32(k, further->end, further->number);
    } else if (further->kind == TOL_GGUF_BOOL) {
        const unsigned char flag = further->number != 0;
        maker_key(k->maker, key, TOL_GGUF_BOOL);
        maker_bytes(k->maker, &flag, 1);
    } else {
        key_u32(k, further->end, (size_t)further->number);
    }
}

static void write_kv_heads(const struct keys *k, const struct tiny_model *m) {
    char key[96];
    if (m->kv_heads_last == 0) {
        key_u32(k, "attention.head_count_kv", m->kv_heads);
        return;
    }
    snprintf(key, sizeof key, "%s.attention.head_count_kv", k->architecture);
    maker_key_array(k->maker, key, TOL_GGUF_U32, m->layers);
    for (size_t i = 1; i < m->layers; i++) maker_u32(k->maker, (uint32_t)m->kv_heads);
    maker_u32(k->maker, (uint32_t)m->kv_heads_last);
}

static void write_tokens(const struct tiny_model *m, struct gguf_maker *maker) {
    char token[32];
    maker_key_string(maker, "tokenizer.ggml.model", "llama");
    maker_key_array(maker, "tokenizer.ggml.tokens", TOL_GGUF_STRING, m->tokens);
    for (size_t i = 0; i < m->tokens; i++) {
        snprintf(token, sizeof token, "t%zu", i);
        maker_string(maker, token);
    }
}

static size_t count_further(const struct tiny_model *m) {
    size_t count = 0;
    while (count < TINY_KEYS_MAX && m->keys[count].end != NULL) count++;
    return count;
}

static bool has_type(const struct tiny_model *m) {
    return m->scaling == NULL || m->scaling[0] != '\0';
}

static void write_keys(const struct tiny_model *m, struct gguf_maker *maker) {
    const struct keys k = {maker, m->architecture};
    char key[96];
    maker_key_string(maker, "general.architecture", m->architecture);
    key_u32(&k, "block_count", m->layers);
    key_u32(&k, "context_length", m->context);
    key_u32(&k, "embedding_length", m->width);
    key_u32(&k, "feed_forward_length", m->feed_forward);
    key_u32(&k, "attention.head_count", m->heads);
    write_kv_heads(&k, m);
    key_u32(&k, "attention.key_length", m->head_size);
    key_u32(&k, "attention.value_length", m->head_size);
    key_u32(&k, "attention.sliding_window", m->window);
    key_u32(&k, "rope.dimension_count", m->rotated > 0 ? m->rotated : m->head_size);
    key_f32(&k, "rope.freq_base", m->base > 0 ? m->base : 10000);
    key_f32(&k, "attention.layer_norm_rms_epsilon", 1e-5);
    snprintf(key, sizeof key, "%s.rope.scaling.type", m->architecture);
    if (has_type(m)) maker_key_string(maker, key, m->scaling != NULL ? m->scaling : "none");
    if (m->factor >= 0) key_f32(&k, "rope.scaling.factor", m->factor > 0 ? m->factor : 1);
    key_u32(&k, "rope.scaling.original_context_length", m->context / 4 + 1);
    for (size_t i = 0; i < count_further(m); i++) write_further(&k, &m->keys[i]);
    if (m->tokens > 0) write_tokens(m, maker);
}

void tiny_model_write(const struct tiny_model *m, struct gguf_maker *maker) {
    enum { KEYS = 14 }; /* that every file has */
    static struct listing list;
    uint64_t state = m->seed + 1, offset = 0;
    struct tol_gguf *gguf = NULL;
    list = (struct listing){.model = m};
    list_all(&list);
    maker_begin(maker, 3, list.count,
                KEYS + (has_type(m) ? 1 : 0) + (m->factor >= 0 ? 1 : 0) + count_further(m) +
                    (m->tokens > 0 ? 2 : 0));
    write_keys(m, maker);
    for (size_t i = 0; i < list.count; i++) {
        const struct tensor *t = &list.tensors[i];
        maker_tensor(maker, t->name, t->extent[1] > 1 ? 2 : 1, t->extent, t->type, offset);
        offset += (t->bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }
    for (size_t i = 0; i < list.count; i++) {
        const struct tensor *t = &list.tensors[i];
        uint8_t *bytes = malloc(t->bytes);
        cr_assert(bytes != NULL);
        draw(t, &state, bytes);
        maker_pad(maker, ALIGNMENT);
        maker_bytes(maker, bytes, t->bytes);
        free(bytes);
    }
    maker_pad(maker, ALIGNMENT);
    MUST(maker_open(maker, &gguf));
    tol_gguf_close(gguf);
}
