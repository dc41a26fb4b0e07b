/*
 * The address of each tensor on the device.
 *
 * All are in one buffer, each at a multiple of 256 bytes. q, k and v of a layer, and their biases,
 * are adjacent if they have one format, so that the kernels see one matrix.
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

static tol_status load_plan_add_piece(struct plan *p, const struct loaded_piece *piece) {
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

/* Rows of a matrix, or elements of what has one row. */
struct share {
    size_t first, count;
};

/* Gives a part of a tensor the next bytes. aligned: from a multiple of 256 on. */
static tol_status place_bytes(struct plan *p, const struct tol_gguf_tensor *tensor, uint64_t first,
                              uint64_t count, bool aligned, size_t *offset) {
    tol_status status = TOL_OK;
    if (aligned) p->at = (p->at + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    *offset = p->at;
    for (uint64_t at = 0; at < count; at += p->chunk) {
        const size_t bytes = count - at < p->chunk ? (size_t)(count - at) : p->chunk;
        TOL_TRY(load_plan_add_piece(
            p, &(struct loaded_piece){tensor, first + at, bytes, p->at + at, 0}));
    }
    p->at += count;
out:
    return status;
}

/* Places hold offsets plus 1 until loaded_place, so that 0 stays "none". */
static struct kn_place offset_place(size_t offset, size_t bytes) {
    return (struct kn_place){offset + 1, bytes};
}

static tol_status place_norm(struct plan *p, const struct tol_gguf_tensor *tensor, size_t *floats) {
    size_t offset = 0;
    const tol_status status =
        place_bytes(p, tensor, 0, tol_model_weight_bytes(tensor), true, &offset);
    *floats = offset / sizeof(float);
    return status;
}

static tol_status place_floats(struct plan *p, const struct tol_gguf_tensor *tensor,
                               struct share share, bool aligned, struct kn_place *place) {
    size_t offset = 0;
    tol_status status = TOL_OK;
    const size_t bytes = share.count * sizeof(float);
    if (tensor == NULL) return TOL_OK;
    status = place_bytes(p, tensor, share.first * sizeof(float), bytes, aligned, &offset);
    *place = offset_place(offset, bytes);
    return status;
}

static tol_status place_matrix(struct plan *p, const struct tol_gguf_tensor *tensor,
                               struct share share, bool aligned, struct loaded_matrix *matrix) {
    size_t offset = 0;
    const uint64_t row = tol_model_weight_bytes(tensor) / tensor->extent[1],
                   bytes = share.count * row;
    const tol_status status = place_bytes(p, tensor, share.first * row, bytes, aligned, &offset);
    if (!tol_model_format(tensor->type, &matrix->format)) return TOL_UNSUPPORTED; /* was checked */
    matrix->k = (size_t)tensor->extent[0];
    matrix->rows = share.count;
    matrix->weights = offset_place(offset, (size_t)bytes);
    return status;
}

/* The rows of the share in a matrix whose rows are heads, or divided equally. */
static struct share load_plan_heads_of(const struct plan *p, size_t first, size_t count) {
    const size_t head = p->loaded->shape.head_size;
    return (struct share){first * head, count * head};
}

static struct share load_plan_part_of(const struct plan *p, size_t each) {
    return (struct share){p->loaded->share.rank * each, each};
}

/* The rows before those of q, k or v (0 to 2), if one tensor has all. */
static size_t load_plan_fused_rows(const struct plan *p, const struct tol_model_layer *from,
                                   size_t i) {
    const struct tol_model_shape *shape = &p->loaded->shape;
    if (from->q != from->k || i == 0) return 0;
    return (shape->heads + (i - 1) * shape->kv_heads) * shape->head_size;
}

static tol_status place_qkv(struct plan *p, const struct tol_model_layer *from,
                            struct loaded_layer *to) {
    tol_status status = TOL_OK;
    const struct tol_gguf_tensor *tensors[QKV] = {from->q, from->k, from->v};
    const struct tol_gguf_tensor *biases[QKV] = {from->q_bias, from->k_bias, from->v_bias};
    const struct loaded_share *share = &p->loaded->share;
    const struct share kv = load_plan_heads_of(p, share->first_kv_head, share->kv_heads);
    struct share parts[QKV] = {load_plan_heads_of(p, share->rank * share->heads, share->heads), kv,
                               kv};
    size_t owner[QKV];
    for (size_t i = 0; i < QKV; i++) parts[i].first += load_plan_fused_rows(p, from, i);
    for (size_t i = 0; i < QKV; i++) {
        const bool joins = i > 0 && tensors[i]->type == tensors[i - 1]->type &&
                           (biases[i] != NULL) == (biases[i - 1] != NULL);
        struct loaded_matrix own = {0};
        TOL_TRY(place_matrix(p, tensors[i], parts[i], !joins, &own));
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
        TOL_TRY(place_floats(p, biases[i], parts[i], !joins, &place));
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
    const struct share head = {0, p->loaded->shape.head_size};
    const struct share width = load_plan_part_of(p, p->loaded->share.width);
    const struct share feed = load_plan_part_of(p, p->loaded->share.feed_forward);
    TOL_TRY(place_norm(p, from->attention_norm, &to->attention_norm));
    TOL_TRY(place_qkv(p, from, to));
    TOL_TRY(place_floats(p, from->q_norm, head, true, &to->q_norm));
    TOL_TRY(place_floats(p, from->k_norm, head, true, &to->k_norm));
    TOL_TRY(place_matrix(p, from->output, width, true, &to->output));
    TOL_TRY(place_floats(p, from->output_bias, width, true, &to->output.bias));
    TOL_TRY(place_norm(p, from->feed_norm, &to->feed_norm));
    TOL_TRY(place_matrix(p, from->gate, feed, true, &to->gate));
    TOL_TRY(place_matrix(p, from->up, feed, true, &to->up));
    TOL_TRY(place_matrix(p, from->down, width, true, &to->down));
out:
    return status;
}

/* Rows of a matrix that is placed whole. */
static struct loaded_matrix load_plan_rows_of(const struct loaded_matrix *matrix,
                                              struct share share) {
    const size_t row = matrix->weights.bytes / matrix->rows;
    struct loaded_matrix part = *matrix;
    part.rows = share.count;
    part.weights.address += share.first * row;
    part.weights.bytes = share.count * row;
    return part;
}

tol_status loaded_plan(struct tol_loaded *loaded, const struct tol_model *model, size_t chunk_bytes,
                       struct loaded_pieces *pieces, size_t *bytes) {
    tol_status status = TOL_OK;
    const struct tol_model_parts *parts = tol_model_parts(model);
    const struct share all = {0, loaded->shape.vocabulary};
    const struct share own = {loaded->share.first_token, loaded->share.vocabulary};
    struct plan p = {loaded, pieces, chunk_bytes, 0};
    TOL_TRY(place_matrix(&p, parts->embedding, all, true, &loaded->embedding));
    for (size_t i = 0; i < loaded->shape.layers; i++) {
        TOL_TRY(place_layer(&p, &parts->layers[i], &loaded->layers[i]));
    }
    TOL_TRY(place_norm(&p, parts->output_norm, &loaded->output_norm));
    if (parts->output != NULL) {
        TOL_TRY(place_matrix(&p, parts->output, own, true, &loaded->output));
    } else {
        loaded->output = load_plan_rows_of(&loaded->embedding, own);
    }
    p.at = (p.at + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    loaded->frequencies = offset_place(p.at, loaded->shape.rotated / 2 * sizeof(float));
    *bytes = p.at + loaded->frequencies.bytes + ALIGNMENT;
out:
    return status;
}

static void load_plan_move(struct kn_place *place, CUdeviceptr base) {
    if (place->address != 0) place->address += base;
}

static void move_matrix(struct loaded_matrix *matrix, CUdeviceptr base) {
    load_plan_move(&matrix->weights, base);
    load_plan_move(&matrix->bias, base);
}

void loaded_place(struct tol_loaded *loaded) {
    loaded_rebase(loaded, tol_buffer_address(loaded->weights) - 1);
}

void loaded_rebase(struct tol_loaded *loaded, CUdeviceptr base) {
    for (size_t i = 0; i < loaded->shape.layers; i++) {
        struct loaded_layer *layer = &loaded->layers[i];
        for (size_t j = 0; j < layer->qkv_count; j++) move_matrix(&layer->qkv[j], base);
        struct loaded_matrix *matrices[] = {&layer->output, &layer->gate, &layer->up, &layer->down};
        for (size_t j = 0; j < sizeof matrices / sizeof matrices[0]; j++) {
            move_matrix(matrices[j], base);
        }
        load_plan_move(&layer->q_norm, base);
        load_plan_move(&layer->k_norm, base);
    }
    move_matrix(&loaded->embedding, base);
    move_matrix(&loaded->output, base);
    load_plan_move(&loaded->frequencies, base);
}
