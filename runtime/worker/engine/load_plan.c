/*
 * Where each tensor lies on the device.
 *
 * All are in one buffer, each at a multiple of 256 bytes. q, k and v of a layer, and their biases,
 * follow each other without gaps where they have one format: the kernels then see one matrix.
 */
#include "loaded_state.h"

#include "core/check.h"

#include <stdlib.h>

enum { ALIGNMENT = 256 };

struct plan {
    struct tol_loaded *loaded;
    struct loaded_pieces *pieces;
    size_t chunk, at;
};

static tol_status add_piece(struct plan *p, const struct loaded_piece *piece) {
    tol_status status = TOL_OK;
    struct loaded_pieces *list = p->pieces;
    if (list->count == list->room) {
        const size_t room = list->room > 0 ? 2 * list->room : 256;
        struct loaded_piece *grown = realloc(list->list, room * sizeof *grown);
        TOL_CHECK(grown != NULL, TOL_OUT_OF_HOST_MEMORY, "%zu pieces", room);
        list->list = grown;
        list->room = room;
    }
    list->list[list->count++] = *piece;
    list->bytes += piece->bytes;
out:
    return status;
}

/* Gives a tensor the next bytes. aligned: from a multiple of 256 on. */
static tol_status place_tensor(struct plan *p, const struct tol_gguf_tensor *tensor, bool aligned,
                               size_t *offset) {
    tol_status status = TOL_OK;
    if (aligned) p->at = (p->at + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    *offset = p->at;
    for (uint64_t from = 0; from < tensor->bytes; from += p->chunk) {
        const uint64_t left = tensor->bytes - from;
        const size_t bytes = left < p->chunk ? (size_t)left : p->chunk;
        TOL_TRY(add_piece(p, &(struct loaded_piece){tensor, from, bytes, p->at + from, 0}));
    }
    p->at += tensor->bytes;
out:
    return status;
}

/* Places hold offsets plus 1 until loaded_place, so that 0 stays "none". */
static struct kn_place offset_place(size_t offset, size_t bytes) {
    return (struct kn_place){offset + 1, bytes};
}

static tol_status place_norm(struct plan *p, const struct tol_gguf_tensor *tensor, size_t *floats) {
    size_t offset = 0;
    const tol_status status = place_tensor(p, tensor, true, &offset);
    *floats = offset / sizeof(float);
    return status;
}

static tol_status place_floats(struct plan *p, const struct tol_gguf_tensor *tensor, bool aligned,
                               struct kn_place *place) {
    size_t offset = 0;
    tol_status status = TOL_OK;
    if (tensor == NULL) return TOL_OK;
    status = place_tensor(p, tensor, aligned, &offset);
    *place = offset_place(offset, (size_t)tensor->bytes);
    return status;
}

static tol_status place_matrix(struct plan *p, const struct tol_gguf_tensor *tensor, bool aligned,
                               struct loaded_matrix *matrix) {
    size_t offset = 0;
    const tol_status status = place_tensor(p, tensor, aligned, &offset);
    if (!tol_model_format(tensor->type, &matrix->format)) return TOL_UNSUPPORTED; /* was checked */
    matrix->k = (size_t)tensor->extent[0];
    matrix->rows = (size_t)tensor->extent[1];
    matrix->weights = offset_place(offset, (size_t)tensor->bytes);
    return status;
}

static tol_status place_qkv(struct plan *p, const struct tol_model_layer *from,
                            struct loaded_layer *to) {
    tol_status status = TOL_OK;
    const struct tol_gguf_tensor *tensors[QKV] = {from->q, from->k, from->v};
    const struct tol_gguf_tensor *biases[QKV] = {from->q_bias, from->k_bias, from->v_bias};
    size_t owner[QKV];
    for (size_t i = 0; i < QKV; i++) {
        const bool joins = i > 0 && tensors[i]->type == tensors[i - 1]->type &&
                           (biases[i] != NULL) == (biases[i - 1] != NULL);
        struct loaded_matrix own = {0};
        TOL_TRY(place_matrix(p, tensors[i], !joins, &own));
        if (joins) {
            struct loaded_matrix *whole = &to->qkv[to->qkv_count - 1];
            whole->rows += own.rows;
            whole->weights.bytes += own.weights.bytes;
        } else {
            to->qkv[to->qkv_count++] = own;
        }
        owner[i] = to->qkv_count - 1;
    }
    for (size_t i = 0; i < QKV; i++) {
        if (biases[i] == NULL) continue;
        struct kn_place place = {0, 0}, *whole = &to->qkv[owner[i]].bias;
        const bool joins = i > 0 && owner[i] == owner[i - 1];
        TOL_TRY(place_floats(p, biases[i], !joins, &place));
        if (joins) {
            whole->bytes += place.bytes;
        } else {
            *whole = place;
        }
    }
out:
    return status;
}

static tol_status place_layer(struct plan *p, const struct tol_model_layer *from,
                              struct loaded_layer *to) {
    tol_status status = TOL_OK;
    TOL_TRY(place_norm(p, from->attention_norm, &to->attention_norm));
    TOL_TRY(place_qkv(p, from, to));
    TOL_TRY(place_floats(p, from->q_norm, true, &to->q_norm));
    TOL_TRY(place_floats(p, from->k_norm, true, &to->k_norm));
    TOL_TRY(place_matrix(p, from->output, true, &to->output));
    TOL_TRY(place_floats(p, from->output_bias, true, &to->output.bias));
    TOL_TRY(place_norm(p, from->feed_norm, &to->feed_norm));
    TOL_TRY(place_matrix(p, from->gate, true, &to->gate));
    TOL_TRY(place_matrix(p, from->up, true, &to->up));
    TOL_TRY(place_matrix(p, from->down, true, &to->down));
out:
    return status;
}

tol_status loaded_plan(struct tol_loaded *loaded, const struct tol_model *model, size_t chunk_bytes,
                       struct loaded_pieces *pieces, size_t *bytes) {
    tol_status status = TOL_OK;
    const struct tol_model_parts *parts = tol_model_parts(model);
    struct plan p = {loaded, pieces, chunk_bytes, 0};
    TOL_TRY(place_matrix(&p, parts->embedding, true, &loaded->embedding));
    for (size_t i = 0; i < loaded->shape.layers; i++) {
        TOL_TRY(place_layer(&p, &parts->layers[i], &loaded->layers[i]));
    }
    TOL_TRY(place_norm(&p, parts->output_norm, &loaded->output_norm));
    loaded->output = loaded->embedding;
    if (parts->output != NULL) TOL_TRY(place_matrix(&p, parts->output, true, &loaded->output));
    p.at = (p.at + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    loaded->frequencies = offset_place(p.at, loaded->shape.rotated / 2 * sizeof(float));
    *bytes = p.at + loaded->frequencies.bytes + ALIGNMENT;
out:
    return status;
}

static void move(struct kn_place *place, CUdeviceptr base) {
    if (place->address != 0) place->address += base - 1;
}

static void move_matrix(struct loaded_matrix *matrix, CUdeviceptr base) {
    move(&matrix->weights, base);
    move(&matrix->bias, base);
}

void loaded_place(struct tol_loaded *loaded) {
    const CUdeviceptr base = tol_buffer_address(loaded->weights);
    for (size_t i = 0; i < loaded->shape.layers; i++) {
        struct loaded_layer *layer = &loaded->layers[i];
        for (size_t j = 0; j < layer->qkv_count; j++) move_matrix(&layer->qkv[j], base);
        struct loaded_matrix *matrices[] = {&layer->output, &layer->gate, &layer->up, &layer->down};
        for (size_t j = 0; j < sizeof matrices / sizeof matrices[0]; j++) {
            move_matrix(matrices[j], base);
        }
        move(&layer->q_norm, base);
        move(&layer->k_norm, base);
    }
    move_matrix(&loaded->embedding, base);
    move_matrix(&loaded->output, base);
    move(&loaded->frequencies, base);
}
