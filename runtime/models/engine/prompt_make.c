/*
 * What passes of prompts need: memory, kernels for the model's shape, and the powers of two by
 * which its weights become halves.
 */
#include "prompt.h"

#include "attention/forward/attention.h"
#include "core/check.h"
#include "decode/halves.h"
#include "gemm/gemm.h"
#include "share.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 256, ROWS_MIN = 256, PEAKS = 6 };

static size_t prompt_make_larger(size_t a, size_t b) {
    return a > b ? a : b;
}

/* F32 models are computed in fp32, and longer rows have no kernel. */
static bool prompt_make_serves(const struct tol_loaded *l) {
    const struct tol_model_shape *s = &l->shape;
    if (s->width > KN_HALVES_COLUMNS_MAX || s->feed_forward > KN_HALVES_COLUMNS_MAX) return false;
    for (size_t i = 0; i < s->layers; i++) {
        const struct loaded_layer *layer = &l->layers[i];
        const struct loaded_matrix *all[] = {&layer->output, &layer->gate, &layer->up,
                                             &layer->down};
        for (size_t j = 0; j < sizeof all / sizeof all[0]; j++) {
            if (all[j]->format == KN_WEIGHT_F32) return false;
        }
        for (size_t j = 0; j < layer->qkv_count; j++) {
            if (layer->qkv[j].format == KN_WEIGHT_F32) return false;
        }
    }
    return true;
}

static size_t prompt_make_take(size_t *at, size_t bytes) {
    const size_t offset = *at;
    *at = (offset + bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return offset;
}

/* Lays out the arrays for a number of rows. Returns the bytes. */
static size_t lay_out(const struct tol_loaded *l, struct loaded_prompt *p, size_t rows) {
    const struct tol_model_shape *s = &l->shape;
    const struct loaded_share *own = &l->share;
    const size_t half = sizeof(uint16_t), attended = s->heads * s->head_size;
    const size_t kv = own->kv_heads * s->head_size, heads = own->heads * s->head_size;
    const size_t qkv = heads + 2 * kv;
    const size_t widest =
        prompt_make_larger(s->width, prompt_make_larger(s->feed_forward, attended));
    const size_t sums =
        prompt_make_larger(2 * s->feed_forward, prompt_make_larger(s->width, qkv + heads));
    const size_t matrix =
        prompt_make_larger(prompt_make_larger(2 * own->feed_forward, qkv) * s->width,
                           prompt_make_larger(attended, s->feed_forward) * own->width);
    size_t at = 0;
    p->rows = rows;
    p->x = prompt_make_take(&at, rows * s->width * sizeof(float));
    p->halves = prompt_make_take(&at, rows * widest * half);
    p->q = prompt_make_take(&at, rows * heads * half);
    p->sums = prompt_make_take(&at, rows * sums * sizeof(float));
    p->scales = prompt_make_take(&at, prompt_make_larger(rows, s->layers * PEAKS) * sizeof(float));
    p->keys = prompt_make_take(&at, l->positions * kv * half);
    p->values = prompt_make_take(&at, l->positions * kv * half);
    p->weights = prompt_make_take(&at, matrix * half);
    return at;
}

/* Whether the device has a kernel of this name for the products. */
static bool has_product(const struct tol_loaded *l, const char *variant) {
    const struct loaded_prompt *p = &l->prompt;
    const struct kn_variant *picked = NULL;
    return kn_gemm_pick(l->kernels,
                        &(struct kn_gemm){.precision = KN_GEMM_F16,
                                          .c_type = KN_F32,
                                          .transpose_b = true,
                                          .m = 1,
                                          .n = l->share.width,
                                          .k = l->shape.width,
                                          .alpha = 1,
                                          .a = {p->buffer, p->halves / sizeof(uint16_t), 0, 0},
                                          .b = {p->buffer, p->weights / sizeof(uint16_t), 0, 0},
                                          .c = {p->buffer, p->sums / sizeof(float), 0, 0},
                                          .variant = variant},
                        &picked) == TOL_OK;
}

static bool has_attention(const struct tol_loaded *l, const char *variant) {
    const struct loaded_prompt *p = &l->prompt;
    const size_t half = sizeof(uint16_t), head = l->shape.head_size, row = l->share.heads * head;
    const struct kn_variant *picked = NULL;
    return kn_attention_pick(
               l->kernels,
               &(struct kn_attention){.type = KN_F16,
                                      .batch = 1,
                                      .heads = l->share.heads,
                                      .kv_heads = l->share.kv_heads,
                                      .q_length = 1,
                                      .kv_length = 1,
                                      .head_size = head,
                                      .causal = true,
                                      .q = {p->buffer, p->q / half, 0, head, row},
                                      .k = {.buffer = p->buffer, .offset = p->keys / half},
                                      .v = {.buffer = p->buffer, .offset = p->values / half},
                                      .out = {p->buffer, p->halves / half, 0, head, row},
                                      .variant = variant},
               &picked) == TOL_OK;
}

/* The kernels, the same for every pass. false: there is none for the products. */
static bool prompt_make_choose(struct tol_loaded *l) {
    struct loaded_prompt *p = &l->prompt;
    if (has_product(l, "wgmma_128") && has_product(l, "wgmma_256")) {
        p->narrow = "wgmma_128", p->wide = "wgmma_256";
    } else if (has_product(l, "async_128")) {
        p->narrow = p->wide = "async_128";
    } else {
        return false;
    }
    p->attention = NULL;
    if (l->shape.window > 0) return true;
    p->attention = has_attention(l, "wgmma")    ? "wgmma"
                   : has_attention(l, "tensor") ? "tensor"
                                                : NULL;
    return true;
}

/* ---- powers of two ---- */

static tol_status queue_peak(struct tol_loaded *l, const struct loaded_matrix *matrix, size_t at) {
    const struct loaded_prompt *p = &l->prompt;
    return kn_halves_peak(
        l->kernels, l->stream,
        &(struct kn_halves_weights){.format = matrix->format,
                                    .count = matrix->rows * matrix->k,
                                    .weights = matrix->weights,
                                    .out = kn_place_of(p->buffer, p->scales + at * sizeof(float))});
}

/* A norm's weights, as a matrix of one row. */
static struct loaded_matrix norm_of(const struct tol_loaded *l, size_t weight) {
    return (struct loaded_matrix){.format = KN_WEIGHT_F32,
                                  .rows = 1,
                                  .k = l->shape.width,
                                  .weights = kn_place_of(l->weights, weight * sizeof(float))};
}

static tol_status queue_peaks(struct tol_loaded *l) {
    tol_status status = TOL_OK;
    const struct loaded_prompt *p = &l->prompt;
    TOL_TRY(tol_copy_fill(l->stream, p->buffer, p->scales, 0, 1,
                          l->shape.layers * PEAKS * sizeof(float)));
    for (size_t i = 0; i < l->shape.layers; i++) {
        const struct loaded_layer *layer = &l->layers[i];
        const struct loaded_matrix attention = norm_of(l, layer->attention_norm);
        const struct loaded_matrix feed = norm_of(l, layer->feed_norm);
        const size_t at = i * PEAKS;
        for (size_t j = 0; j < layer->qkv_count; j++) TOL_TRY(queue_peak(l, &layer->qkv[j], at));
        TOL_TRY(queue_peak(l, &layer->output, at + 1));
        TOL_TRY(queue_peak(l, &layer->gate, at + 2));
        TOL_TRY(queue_peak(l, &layer->up, at + 2));
        TOL_TRY(queue_peak(l, &layer->down, at + 3));
        TOL_TRY(queue_peak(l, &attention, at + 4));
        TOL_TRY(queue_peak(l, &feed, at + 5));
    }
out:
    return status;
}

/* Raises each peak to that of a device's weights. */
static tol_status raise_peaks(struct tol_loaded *l, float *peaks, float *own, size_t count) {
    tol_status status = TOL_OK;
    TOL_TRY(queue_peaks(l));
    TOL_TRY(tol_stream_synchronize(l->stream));
    TOL_TRY(tol_buffer_read_at(l->prompt.buffer, l->prompt.scales, own, count * sizeof *own));
    for (size_t i = 0; i < count; i++) {
        if (isnan(own[i]) || own[i] > peaks[i]) peaks[i] = own[i];
    }
out:
    return status;
}

static void set_powers(struct loaded_prompt *p, const float *peaks, size_t layers, double longest) {
    for (size_t i = 0; i < layers; i++) {
        const float *peak = peaks + i * PEAKS;
        p->powers[i] =
            (struct prompt_powers){.qkv = kn_halves_exponent((double)peak[0]),
                                   .output = kn_halves_exponent((double)peak[1]),
                                   .gated = kn_halves_exponent((double)peak[2]),
                                   .down = kn_halves_exponent((double)peak[3]),
                                   .attention_norm = kn_halves_exponent(longest * (double)peak[4]),
                                   .feed_norm = kn_halves_exponent(longest * (double)peak[5])};
    }
}

/* Of whole matrices, whatever parts of them the devices have. */
static tol_status learn_powers(struct tol_loaded *l) {
    tol_status status = TOL_OK;
    const size_t count = l->shape.layers * PEAKS;
    const double longest = sqrt((double)l->shape.width); /* an element of a normed row, at most */
    float *peaks = calloc(count, sizeof *peaks), *own = malloc(count * sizeof *own);
    TOL_CHECK(peaks != NULL && own != NULL, TOL_OUT_OF_HOST_MEMORY, "powers of %zu layers",
              l->shape.layers);
    for (unsigned i = 0; i < l->share.ranks; i++) {
        struct tol_loaded *part = l->team.part[i];
        part->prompt.powers = calloc(l->shape.layers, sizeof *part->prompt.powers);
        TOL_CHECK(part->prompt.powers != NULL, TOL_OUT_OF_HOST_MEMORY, "powers of %zu layers",
                  l->shape.layers);
        TOL_TRY(raise_peaks(part, peaks, own, count));
    }
    for (unsigned i = 0; i < l->share.ranks; i++) {
        set_powers(&l->team.part[i]->prompt, peaks, l->shape.layers, longest);
    }
out:
    free(peaks);
    free(own);
    return status;
}

/* Allocates a device's memory, for the most rows that fit. */
static tol_status take_memory(struct tol_loaded *l, size_t rows) {
    tol_status status = TOL_OK;
    struct loaded_prompt *p = &l->prompt;
    do {
        status = tol_buffer_create(l->context, lay_out(l, p, rows), 1, &p->buffer);
        rows /= 2;
    } while (status == TOL_OUT_OF_DEVICE_MEMORY && rows >= ROWS_MIN);
    return status;
}

/* All devices, or none: they have the same layout, for the rows of the one with least memory, and
 * the same kernels. */
static tol_status prompt_make_take_all(struct tol_loaded *l, size_t rows) {
    tol_status status = TOL_OK;
    for (unsigned i = 0; i < l->share.ranks; i++) {
        struct tol_loaded *part = l->team.part[i];
        TOL_TRY(take_memory(part, rows));
        if (part->prompt.rows < rows) rows = part->prompt.rows;
    }
    for (unsigned i = 0; i < l->share.ranks; i++) {
        struct tol_loaded *part = l->team.part[i];
        (void)lay_out(part, &part->prompt, rows);
        if (!prompt_make_choose(part)) return TOL_UNSUPPORTED;
    }
out:
    return status;
}

tol_status loaded_prompt_make(struct tol_loaded *l, size_t rows) {
    tol_status status = TOL_OK;
    if (rows == 0 || !prompt_make_serves(l)) return TOL_OK;
    if (tol_context_device(l->context)->compute_capability < 80) return TOL_OK;
    status = prompt_make_take_all(l, rows);
    if (status == TOL_OK) return learn_powers(l);
    for (unsigned i = 0; i < l->share.ranks; i++) loaded_prompt_end(l->team.part[i]);
    return status == TOL_OUT_OF_DEVICE_MEMORY || status == TOL_UNSUPPORTED ? TOL_OK : status;
}

tol_status loaded_prompt_copy(struct tol_loaded *to, const struct tol_loaded *from) {
    tol_status status = TOL_OK;
    const size_t layers = from->shape.layers;
    to->prompt.from = from->prompt.from;
    if (from->prompt.rows == 0) return TOL_OK;
    TOL_TRY(tol_buffer_create(to->context, lay_out(to, &to->prompt, from->prompt.rows), 1,
                              &to->prompt.buffer));
    TOL_CHECK(prompt_make_choose(to) && to->prompt.narrow == from->prompt.narrow &&
                  to->prompt.attention == from->prompt.attention,
              TOL_UNSUPPORTED, "device %d has other kernels for long prompts than device %d",
              tol_context_device(to->context)->ordinal, tol_context_device(from->context)->ordinal);
    to->prompt.powers = malloc(layers * sizeof *to->prompt.powers);
    TOL_CHECK(to->prompt.powers != NULL, TOL_OUT_OF_HOST_MEMORY, "powers of %zu layers", layers);
    memcpy(to->prompt.powers, from->prompt.powers, layers * sizeof *to->prompt.powers);
out:
    return status;
}

void loaded_prompt_end(struct tol_loaded *l) {
    tol_buffer_destroy(l->prompt.buffer);
    free(l->prompt.powers);
    l->prompt.buffer = NULL;
    l->prompt.powers = NULL;
    l->prompt.rows = 0;
}
