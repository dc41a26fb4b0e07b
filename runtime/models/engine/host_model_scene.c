/*
 * A decoder in plain loops, position by position.
 */
#include "host_model_scene.h"

#include "model.h"

#include "quantised/linear/linear.h"
#include "quantised/formats/weight_format.h"
#include "test/test_device.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LAYERS_MAX = 64 };

/* A tensor as doubles. */
struct matrix {
    size_t columns, rows;
    double *values; /* NULL: the file has none of that name */
    bool rounds;    /* what it multiplies is rounded to bytes, as rounded.h says */
};

struct layer {
    struct matrix attention_norm, q, k, v, q_bias, k_bias, v_bias, q_norm, k_norm, out, out_bias,
        feed_norm, gate, up, down;
    double *keys, *values; /* of all positions, rounded to fp16 */
};

struct host {
    struct tol_gguf *file;
    char name[32];
    size_t layers, width, heads, kv_heads, size, rotated, window;
    double epsilon, base, factor, original;
    char scaling[16];
    bool halves;
    struct matrix embedding, output_norm, output, factors;
    struct layer layer[LAYERS_MAX];
};

static struct matrix read_matrix(struct host *h, const char *format, size_t layer) {
    char name[64];
    struct matrix m = {0};
    snprintf(name, sizeof name, format, layer);
    const struct tol_gguf_tensor *t = tol_gguf_find_tensor(h->file, name);
    if (t == NULL) return m;
    static const struct {
        enum tol_tensor_type type;
        enum kn_weight_format format;
    } formats[] = {{TOL_TENSOR_F32, KN_WEIGHT_F32},   {TOL_TENSOR_F16, KN_WEIGHT_F16},
                   {TOL_TENSOR_BF16, KN_WEIGHT_BF16}, {TOL_TENSOR_Q8_0, KN_WEIGHT_Q8_0},
                   {TOL_TENSOR_Q4_K, KN_WEIGHT_Q4_K}, {TOL_TENSOR_Q5_K, KN_WEIGHT_Q5_K},
                   {TOL_TENSOR_Q6_K, KN_WEIGHT_Q6_K}, {TOL_TENSOR_Q4_0, KN_WEIGHT_Q8_0},
                   {TOL_TENSOR_Q5_0, KN_WEIGHT_Q8_0}, {TOL_TENSOR_IQ4_NL, KN_WEIGHT_Q8_0},
                   {TOL_TENSOR_Q4_1, KN_WEIGHT_F32},  {TOL_TENSOR_Q5_1, KN_WEIGHT_F32}};
    enum { FORMATS = sizeof formats / sizeof formats[0] };
    size_t at = 0;
    while (at < FORMATS && formats[at].type != t->type) at++;
    cr_assert(at < FORMATS, "%s", name);
    m.columns = t->extent[0], m.rows = t->extent[1];
    /* Matrices of types without kernels are read as what they become; model_test.c compares the
     * values. */
    const bool is_vector = t->extent[1] == 1;
    const size_t loaded = (size_t)(is_vector ? t->bytes : tol_model_weight_bytes(t));
    void *bytes = malloc(loaded);
    float *floats = malloc(t->elements * sizeof *floats);
    m.values = malloc(t->elements * sizeof *m.values);
    cr_assert(bytes != NULL && floats != NULL && m.values != NULL);
    MUST(is_vector ? tol_gguf_read(h->file, t, 0, bytes, loaded)
                   : tol_model_read(h->file, t, 0, bytes, loaded));
    kn_weight_values(formats[at].format, bytes, t->elements, floats);
    for (size_t i = 0; i < t->elements; i++) m.values[i] = (double)floats[i];
    m.rounds = kn_linear_is_bytes(tol_context_device(test_context()), formats[at].format);
    free(bytes), free(floats);
    return m;
}

/* Rows of a matrix, or elements of a vector, from first on, with values of their own. */
static struct matrix part_of(const struct matrix *whole, size_t first, size_t count) {
    struct matrix part = *whole;
    const size_t each = whole->rows > 1 ? whole->columns : 1;
    if (whole->values == NULL) return part;
    part.values = malloc(count * each * sizeof *part.values);
    cr_assert(part.values != NULL);
    memcpy(part.values, whole->values + first * each, count * each * sizeof *part.values);
    *(whole->rows > 1 ? &part.rows : &part.columns) = count;
    return part;
}

/* q, k and v of one matrix, if there is one; or biases. */
static void split_fused(struct host *h, const char *format, size_t layer, struct matrix *q,
                        struct matrix *k, struct matrix *v) {
    const struct matrix all = read_matrix(h, format, layer);
    const size_t rows = h->heads * h->size, kv = h->kv_heads * h->size;
    if (all.values == NULL) return;
    *q = part_of(&all, 0, rows);
    *k = part_of(&all, rows, kv);
    *v = part_of(&all, rows + kv, kv);
    free(all.values);
}

static double number(const struct host *h, const char *end, double otherwise) {
    char key[96];
    snprintf(key, sizeof key, "%s.%s", h->name, end);
    double value = otherwise;
    if (tol_gguf_find(h->file, key) != NULL) MUST(tol_gguf_get_real(h->file, key, &value));
    return value;
}

static void text(const struct host *h, const char *key, char *to, size_t bytes) {
    struct tol_gguf_text found = {"", 0};
    if (tol_gguf_find(h->file, key) != NULL) MUST(tol_gguf_get_text(h->file, key, &found));
    snprintf(to, bytes, "%.*s", (int)found.count, found.bytes);
}

static void open_host(struct host *h, const char *path, size_t positions) {
    char key[64];
    *h = (struct host){0};
    MUST(tol_gguf_open(path, &h->file));
    text(h, "general.architecture", h->name, sizeof h->name);
    snprintf(key, sizeof key, "%s.rope.scaling.type", h->name);
    text(h, key, h->scaling, sizeof h->scaling);
    h->halves = strncmp(h->name, "qwen", 4) == 0;
    h->layers = (size_t)number(h, "block_count", 0);
    h->width = (size_t)number(h, "embedding_length", 0);
    h->heads = (size_t)number(h, "attention.head_count", 1);
    h->kv_heads = (size_t)number(h, "attention.head_count_kv", (double)h->heads);
    h->size = (size_t)number(h, "attention.key_length", (double)(h->width / h->heads));
    h->rotated = (size_t)number(h, "rope.dimension_count", (double)h->size);
    /* llama.cpp, which the worker follows, reads it for none of the others. */
    if (strcmp(h->name, "mistral") == 0)
        h->window = (size_t)number(h, "attention.sliding_window", 0);
    h->epsilon = number(h, "attention.layer_norm_rms_epsilon", 0);
    h->base = number(h, "rope.freq_base", 10000);
    h->factor = number(h, "rope.scaling.factor", 1);
    h->original = number(h, "rope.scaling.original_context_length", 1);
    h->embedding = read_matrix(h, "token_embd.weight", 0);
    h->output_norm = read_matrix(h, "output_norm.weight", 0);
    h->output = read_matrix(h, "output.weight", 0);
    h->factors = read_matrix(h, "rope_freqs.weight", 0);
    cr_assert(h->layers <= LAYERS_MAX && h->embedding.values != NULL);
    for (size_t i = 0; i < h->layers; i++) {
        struct layer *l = &h->layer[i];
        l->attention_norm = read_matrix(h, "blk.%zu.attn_norm.weight", i);
        l->q = read_matrix(h, "blk.%zu.attn_q.weight", i);
        l->k = read_matrix(h, "blk.%zu.attn_k.weight", i);
        l->v = read_matrix(h, "blk.%zu.attn_v.weight", i);
        l->q_bias = read_matrix(h, "blk.%zu.attn_q.bias", i);
        l->k_bias = read_matrix(h, "blk.%zu.attn_k.bias", i);
        l->v_bias = read_matrix(h, "blk.%zu.attn_v.bias", i);
        split_fused(h, "blk.%zu.attn_qkv.weight", i, &l->q, &l->k, &l->v);
        split_fused(h, "blk.%zu.attn_qkv.bias", i, &l->q_bias, &l->k_bias, &l->v_bias);
        l->q_norm = read_matrix(h, "blk.%zu.attn_q_norm.weight", i);
        l->k_norm = read_matrix(h, "blk.%zu.attn_k_norm.weight", i);
        l->out = read_matrix(h, "blk.%zu.attn_output.weight", i);
        l->out_bias = read_matrix(h, "blk.%zu.attn_output.bias", i);
        l->feed_norm = read_matrix(h, "blk.%zu.ffn_norm.weight", i);
        l->gate = read_matrix(h, "blk.%zu.ffn_gate.weight", i);
        l->up = read_matrix(h, "blk.%zu.ffn_up.weight", i);
        l->down = read_matrix(h, "blk.%zu.ffn_down.weight", i);
        l->keys = malloc(positions * h->kv_heads * h->size * sizeof(double));
        l->values = malloc(positions * h->kv_heads * h->size * sizeof(double));
        cr_assert(l->keys != NULL && l->values != NULL);
    }
}

static void close_host(struct host *h) {
    free(h->embedding.values), free(h->output_norm.values), free(h->output.values);
    free(h->factors.values);
    for (size_t i = 0; i < h->layers; i++) {
        struct layer *l = &h->layer[i];
        const struct matrix *all = &l->attention_norm;
        for (size_t j = 0; j < 15; j++) free(all[j].values);
        free(l->keys), free(l->values);
    }
    tol_gguf_close(h->file);
}

/* A chunk of 256 elements as multiples of its largest magnitude over 127. */
static void round_chunk(const double *x, double *rounded) {
    double most = 0;
    for (size_t i = 0; i < 256; i++) most = fmax(most, fabs(x[i]));
    for (size_t i = 0; i < 256; i++) {
        rounded[i] = most > 0 ? rint(x[i] * 127 / most) * most / 127 : 0;
    }
}

/* y = m x (+ bias) */
static void multiply(const struct matrix *m, const struct matrix *bias, const double *in,
                     double *y) {
    double *rounded = malloc(m->columns * sizeof *rounded);
    cr_assert(rounded != NULL);
    for (size_t i = 0; m->rounds && i < m->columns; i += 256) round_chunk(in + i, rounded + i);
    const double *x = m->rounds ? rounded : in;
    for (size_t r = 0; r < m->rows; r++) {
        double sum = bias != NULL && bias->values != NULL ? bias->values[r] : 0;
        for (size_t i = 0; i < m->columns; i++) sum += m->values[r * m->columns + i] * x[i];
        y[r] = sum;
    }
    free(rounded);
}

static void norm(const struct host *h, const double *weight, const double *x, size_t count,
                 double *y) {
    double squares = 0;
    for (size_t i = 0; i < count; i++) squares += x[i] * x[i];
    const double scale = 1 / sqrt(squares / (double)count + h->epsilon);
    for (size_t i = 0; i < count; i++) y[i] = x[i] * scale * weight[i];
}

/* Radians a position of a pair, and what the rotated pair is multiplied by. */
static double frequency(const struct host *h, size_t pair, double *magnitude) {
    const double n = (double)h->rotated;
    double f = pow(h->base, -2 * (double)pair / n);
    *magnitude = 1;
    if (h->factors.values != NULL) f /= h->factors.values[pair];
    if (strcmp(h->scaling, "linear") == 0) f /= h->factor;
    if (strcmp(h->scaling, "yarn") == 0) {
        const double low = floor(n * log(h->original / (32 * 2 * M_PI)) / (2 * log(h->base)));
        const double high = ceil(n * log(h->original / (1 * 2 * M_PI)) / (2 * log(h->base)));
        const double from = fmax(low, 0), to = fmin(high, n - 1);
        const double y = fmin(1, fmax(0, ((double)pair - from) / fmax(0.001, to - from)));
        f = f / h->factor * y + f * (1 - y);
        *magnitude = 1 + 0.1 * log(h->factor);
    }
    return f;
}

static void rotate(const struct host *h, size_t position, double *head) {
    for (size_t i = 0; i < h->rotated / 2; i++) {
        const size_t a = h->halves ? i : 2 * i, b = h->halves ? i + h->rotated / 2 : 2 * i + 1;
        double magnitude;
        const double angle = (double)position * frequency(h, i, &magnitude);
        const double x = head[a], y = head[b];
        head[a] = magnitude * (x * cos(angle) - y * sin(angle));
        head[b] = magnitude * (x * sin(angle) + y * cos(angle));
    }
}

static double as_half(double x) {
    return (double)kn_f16_value(kn_f16_of((float)x));
}

static void attend(const struct host *h, const struct layer *l, size_t position, const double *q,
                   size_t head, double *out) {
    const size_t kv = head / (h->heads / h->kv_heads), row = h->kv_heads * h->size;
    const size_t first = h->window > 0 && position + 1 > h->window ? position + 1 - h->window : 0;
    double total = 0, largest = -INFINITY, *scores = malloc((position + 1) * sizeof *scores);
    cr_assert(scores != NULL);
    for (size_t p = first; p <= position; p++) {
        scores[p] = 0;
        for (size_t i = 0; i < h->size; i++) {
            scores[p] += q[i] * l->keys[p * row + kv * h->size + i] / sqrt((double)h->size);
        }
        largest = fmax(largest, scores[p]);
    }
    for (size_t i = 0; i < h->size; i++) out[i] = 0;
    for (size_t p = first; p <= position; p++) {
        const double weight = exp(scores[p] - largest);
        total += weight;
        for (size_t i = 0; i < h->size; i++) {
            out[i] += weight * l->values[p * row + kv * h->size + i];
        }
    }
    for (size_t i = 0; i < h->size; i++) out[i] /= total;
    free(scores);
}

static void run_attention(struct host *h, struct layer *l, size_t position, const double *in,
                          double *out) {
    const size_t row = h->kv_heads * h->size;
    double *q = malloc(2 * h->heads * h->size * sizeof *q), *attended = q + h->heads * h->size;
    double *k = l->keys + position * row, *v = l->values + position * row;
    cr_assert(q != NULL);
    multiply(&l->q, &l->q_bias, in, q);
    multiply(&l->k, &l->k_bias, in, k);
    multiply(&l->v, &l->v_bias, in, v);
    for (size_t i = 0; i < h->heads + h->kv_heads; i++) {
        double *head = i < h->heads ? q + i * h->size : k + (i - h->heads) * h->size;
        const struct matrix *weights = i < h->heads ? &l->q_norm : &l->k_norm;
        if (weights->values != NULL) norm(h, weights->values, head, h->size, head);
        rotate(h, position, head);
    }
    for (size_t i = 0; i < row; i++) k[i] = as_half(k[i]), v[i] = as_half(v[i]);
    for (size_t i = 0; i < h->heads; i++) {
        attend(h, l, position, q + i * h->size, i, attended + i * h->size);
    }
    multiply(&l->out, &l->out_bias, attended, out);
    free(q);
}

static void run_feed(const struct layer *l, const double *in, double *out) {
    double *gate = malloc(2 * l->gate.rows * sizeof *gate), *up = gate + l->gate.rows;
    cr_assert(gate != NULL);
    multiply(&l->gate, NULL, in, gate);
    multiply(&l->up, NULL, in, up);
    for (size_t i = 0; i < l->gate.rows; i++) up[i] *= gate[i] / (1 + exp(-gate[i]));
    multiply(&l->down, NULL, up, out);
    free(gate);
}

static void run_position(struct host *h, size_t position, int token, double *logits) {
    const size_t w = h->width;
    double *x = malloc(3 * w * sizeof *x), *normed = x + w, *more = x + 2 * w;
    cr_assert(x != NULL);
    for (size_t i = 0; i < w; i++) x[i] = h->embedding.values[(size_t)token * w + i];
    for (size_t i = 0; i < h->layers; i++) {
        struct layer *l = &h->layer[i];
        norm(h, l->attention_norm.values, x, w, normed);
        run_attention(h, l, position, normed, more);
        for (size_t j = 0; j < w; j++) x[j] += more[j];
        norm(h, l->feed_norm.values, x, w, normed);
        run_feed(l, normed, more);
        for (size_t j = 0; j < w; j++) x[j] += more[j];
    }
    norm(h, h->output_norm.values, x, w, normed);
    multiply(h->output.values != NULL ? &h->output : &h->embedding, NULL, normed, logits);
    free(x);
}

void host_model_run(const char *path, const int *tokens, size_t count, bool rounds,
                    double *logits) {
    static struct host h;
    open_host(&h, path, count);
    for (size_t i = 0; !rounds && i < h.layers; i++) {
        struct matrix *all = &h.layer[i].attention_norm;
        for (size_t j = 0; j < 15; j++) all[j].rounds = false;
    }
    for (size_t i = 0; i < count; i++) {
        run_position(&h, i, tokens[i], logits + i * h.embedding.rows);
    }
    close_host(&h);
}

size_t host_model_vocabulary(const char *path) {
    struct tol_gguf *file = NULL;
    MUST(tol_gguf_open(path, &file));
    const struct tol_gguf_tensor *t = tol_gguf_find_tensor(file, "token_embd.weight");
    cr_assert(t != NULL);
    const size_t vocabulary = t->extent[1];
    tol_gguf_close(file);
    return vocabulary;
}
