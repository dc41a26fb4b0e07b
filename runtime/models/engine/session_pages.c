/*
 * The pages of a session: from the pool, or from a session whose text begins with the same tokens;
 * their addresses in the table on the device; and checks that they, and the weights, are in device
 * memory.
 */
#include "loaded_state.h"
#include "session_state.h"

#include "core/check.h"

#include <stdlib.h>

/* Enters a page as the session's next, in the tables of all devices. */
static tol_status session_pages_enter(struct tol_session *s, struct session_page *page) {
    tol_status status = TOL_OK;
    const struct tol_loaded *l = s->loaded;
    const size_t entry = s->slot * l->pages_max + s->pages;
    for (unsigned i = 0; i < l->share.ranks; i++) {
        const struct tol_loaded *part = l->team.part[i];
        const uint64_t address = tol_pool_address(part->pool, page->block[i]);
        TOL_TRY(tol_copy_from_pageable(part->stream, part->tables, entry * sizeof address, &address,
                                       sizeof address));
    }
    s->page[s->pages++] = page;
    page->users++;
out:
    return status;
}

static void free_blocks(struct tol_loaded *l, struct session_page *page, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        const struct tol_loaded *part = l->team.part[i];
        (void)tol_pool_free(part->pool, page->block[i], part->stream);
    }
    free(page);
}

static void session_pages_leave(struct tol_loaded *l, struct session_page *page) {
    if (page->users > 0 && --page->users > 0) return;
    free_blocks(l, page, l->share.ranks);
    l->pages--;
}

static tol_status add_page(struct tol_session *s) {
    tol_status status = TOL_OK;
    struct tol_loaded *l = s->loaded;
    unsigned count = 0;
    struct session_page *page = calloc(1, sizeof *page + l->share.ranks * sizeof page->block[0]);
    TOL_CHECK(page != NULL, TOL_OUT_OF_HOST_MEMORY, "a page");
    for (; count < l->share.ranks; count++) {
        const struct tol_loaded *part = l->team.part[count];
        TOL_TRY(tol_pool_allocate(part->pool, part->page_bytes, part->stream, &page->block[count]));
    }
    l->pages++;
    status = session_pages_enter(s, page);
    if (status != TOL_OK) session_pages_leave(l, page);
    page = NULL;
out:
    if (page != NULL) free_blocks(l, page, count);
    return status;
}

tol_status session_grow(struct tol_session *s, size_t length) {
    tol_status status = TOL_OK;
    const size_t before = s->pages;
    while (s->pages * KN_PAGE_POSITIONS < length) TOL_TRY(add_page(s));
out:
    if (status != TOL_OK) session_shrink(s, before * KN_PAGE_POSITIONS);
    return status;
}

void session_shrink(struct tol_session *s, size_t length) {
    while (s->pages > 0 && (s->pages - 1) * KN_PAGE_POSITIONS >= length) {
        session_pages_leave(s->loaded, s->page[--s->pages]);
    }
}

bool session_is_shared(const struct tol_session *s, size_t position) {
    const size_t page = position / KN_PAGE_POSITIONS;
    return page < s->pages && s->page[page]->users > 1;
}

/* How many of the tokens, as full pages, another session has computed in this way. */
static size_t session_pages_alike(const struct tol_session *other, const int *tokens, size_t most,
                                  enum session_way way) {
    size_t same = 0, pages = 0;
    if (most > other->length) most = other->length;
    while (same < most && other->tokens[same] == tokens[same]) same++;
    while (pages < same / KN_PAGE_POSITIONS && other->page[pages]->made == 1U << way) pages++;
    return pages * KN_PAGE_POSITIONS;
}

void session_note(struct tol_session *s, size_t first, size_t count, enum session_way way) {
    for (size_t at = first / KN_PAGE_POSITIONS; at * KN_PAGE_POSITIONS < first + count; at++) {
        s->page[at]->made |= 1U << way;
    }
}

tol_status session_share(struct tol_session *s, const int *tokens, size_t count,
                         enum session_way way, size_t *positions) {
    tol_status status = TOL_OK;
    struct tol_loaded *l = s->loaded;
    const struct tol_session *source = NULL;
    *positions = 0;
    session_shrink(s, 0); /* of a prompt that came to nothing */
    for (size_t i = 0; i < l->sessions; i++) {
        const struct tol_session *other = l->slots[i];
        if (other == NULL || other == s || other->is_noticed) continue;
        const size_t same = session_pages_alike(other, tokens, count - 1, way);
        if (same <= *positions) continue;
        *positions = same;
        source = other;
    }
    for (size_t i = 0; i < *positions / KN_PAGE_POSITIONS; i++) {
        TOL_TRY(session_pages_enter(s, source->page[i]));
    }
    l->reused += *positions;
out:
    if (status != TOL_OK) session_shrink(s, 0);
    return status;
}

static tol_status session_pages_look(struct tol_transfer *transfer, CUdeviceptr address,
                                     size_t bytes, bool *resident) {
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
    TOL_TRY(session_pages_look(transfer, matrix->weights.address, matrix->weights.bytes, resident));
    status = session_pages_look(transfer, matrix->bias.address, matrix->bias.bytes, resident);
out:
    return status;
}

static tol_status look_at_weights(struct tol_transfer *transfer, const struct tol_loaded *l,
                                  bool *resident) {
    tol_status status = TOL_OK;
    TOL_TRY(session_pages_look(transfer, tol_buffer_address(l->weights),
                               tol_buffer_bytes(l->weights), resident));
    TOL_TRY(look_at_matrix(transfer, &l->embedding, resident));
    TOL_TRY(look_at_matrix(transfer, &l->output, resident));
    for (size_t i = 0; i < l->shape.layers; i++) {
        const struct loaded_layer *layer = &l->layers[i];
        for (size_t j = 0; j < layer->qkv_count; j++) {
            TOL_TRY(look_at_matrix(transfer, &layer->qkv[j], resident));
        }
        TOL_TRY(look_at_matrix(transfer, &layer->output, resident));
        TOL_TRY(look_at_matrix(transfer, &layer->gate, resident));
        TOL_TRY(look_at_matrix(transfer, &layer->up, resident));
        TOL_TRY(look_at_matrix(transfer, &layer->down, resident));
    }
out:
    return status;
}

/* The pages of all sessions on a device, which is `rank` of them. */
static tol_status look_at_pages(struct tol_transfer *transfer, const struct tol_loaded *first,
                                unsigned rank, bool *resident) {
    tol_status status = TOL_OK;
    const struct tol_loaded *l = first->team.part[rank];
    for (size_t i = 0; i < first->sessions; i++) {
        const struct tol_session *s = first->slots[i];
        for (size_t page = 0; s != NULL && page < s->pages; page++) {
            TOL_TRY(session_pages_look(transfer,
                                       tol_pool_address(l->pool, s->page[page]->block[rank]),
                                       l->page_bytes, resident));
        }
    }
out:
    return status;
}

tol_status tol_loaded_is_resident(struct tol_loaded *l, bool *resident) {
    tol_status status = TOL_OK;
    bool all = true;
    pthread_mutex_lock(&l->lock);
    for (unsigned i = 0; i < l->share.ranks; i++) {
        tol_auto_transfer struct tol_transfer *transfer = NULL;
        TOL_TRY(tol_transfer_create(l->team.part[i]->context, NULL, &transfer));
        TOL_TRY(look_at_weights(transfer, l->team.part[i], &all));
        TOL_TRY(look_at_pages(transfer, l, i, &all));
    }
    *resident = all;
out:
    pthread_mutex_unlock(&l->lock);
    return status;
}
