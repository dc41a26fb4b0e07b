/*
 * The pages of a session: from the pool to the table on the device; and where they, and the
 * weights, lie.
 */
#include "loaded_state.h"
#include "session_state.h"

#include "core/check.h"

tol_status session_grow(struct tol_session *s, size_t length) {
    tol_status status = TOL_OK;
    struct tol_loaded *l = s->loaded;
    const size_t before = s->pages;
    while (s->pages * KN_PAGE_POSITIONS < length) {
        struct tol_block block = {0};
        TOL_TRY(tol_pool_allocate(l->pool, l->page_bytes, l->stream, &block));
        s->blocks[s->pages++] = block;
        l->pages++;
        const uint64_t address = tol_pool_address(l->pool, block);
        const size_t entry = s->slot * l->pages_max + s->pages - 1;
        TOL_TRY(tol_copy_from_pageable(l->stream, l->tables, entry * sizeof address, &address,
                                       sizeof address));
    }
out:
    if (status != TOL_OK) session_shrink(s, before * KN_PAGE_POSITIONS);
    return status;
}

void session_shrink(struct tol_session *s, size_t length) {
    struct tol_loaded *l = s->loaded;
    while (s->pages > 0 && (s->pages - 1) * KN_PAGE_POSITIONS >= length) {
        (void)tol_pool_free(l->pool, s->blocks[--s->pages], l->stream);
        l->pages--;
    }
}

static tol_status look(struct tol_transfer *transfer, CUdeviceptr address, size_t bytes,
                       bool *resident) {
    tol_status status = TOL_OK;
    bool first = false, last = false;
    if (bytes == 0) return TOL_OK;
    TOL_TRY(tol_transfer_is_resident(transfer, address, &first));
    TOL_TRY(tol_transfer_is_resident(transfer, address + bytes - 1, &last));
    *resident = *resident && first && last;
out:
    return status;
}

static tol_status look_at_matrix(struct tol_transfer *transfer, const struct loaded_matrix *matrix,
                                 bool *resident) {
    tol_status status = TOL_OK;
    TOL_TRY(look(transfer, matrix->weights.address, matrix->weights.bytes, resident));
    status = look(transfer, matrix->bias.address, matrix->bias.bytes, resident);
out:
    return status;
}

tol_status tol_loaded_is_resident(struct tol_loaded *l, bool *resident) {
    tol_status status = TOL_OK;
    tol_auto_transfer struct tol_transfer *transfer = NULL;
    bool all = true;
    pthread_mutex_lock(&l->lock);
    TOL_TRY(tol_transfer_create(l->context, NULL, &transfer));
    TOL_TRY(look(transfer, tol_buffer_address(l->weights), tol_buffer_bytes(l->weights), &all));
    TOL_TRY(look_at_matrix(transfer, &l->embedding, &all));
    TOL_TRY(look_at_matrix(transfer, &l->output, &all));
    for (size_t i = 0; i < l->shape.layers; i++) {
        const struct loaded_layer *layer = &l->layers[i];
        for (size_t j = 0; j < layer->qkv_count; j++) {
            TOL_TRY(look_at_matrix(transfer, &layer->qkv[j], &all));
        }
        TOL_TRY(look_at_matrix(transfer, &layer->output, &all));
        TOL_TRY(look_at_matrix(transfer, &layer->gate, &all));
        TOL_TRY(look_at_matrix(transfer, &layer->up, &all));
        TOL_TRY(look_at_matrix(transfer, &layer->down, &all));
    }
    for (size_t i = 0; i < l->sessions; i++) {
        const struct tol_session *s = l->slots[i];
        for (size_t page = 0; s != NULL && page < s->pages; page++) {
            TOL_TRY(
                look(transfer, tol_pool_address(l->pool, s->blocks[page]), l->page_bytes, &all));
        }
    }
    *resident = all;
out:
    pthread_mutex_unlock(&l->lock);
    return status;
}
