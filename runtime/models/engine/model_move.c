/*
 * Moving a model to another device while its sessions decode.
 *
 * Everything is created on the new device first, while passes continue, because weights do not
 * change. Then, under the lock, pages are copied and the loaded model exchanges the two devices,
 * which cannot fail. What is no longer needed, old or new, is freed at the end.
 */
#include "device_team.h"
#include "pass_graphs.h"
#include "prompt.h"
#include "session_state.h"

#include "core/check.h"

#include <stdlib.h>
#include <string.h>

enum { DEADLINE_MS = 60000 };

struct move {
    struct tol_loaded *l;   /* the first device's */
    struct tol_loaded *old; /* of the device that is left */
    struct tol_loaded *new;
    unsigned rank;
    struct tol_transfer *from, *to;
    struct kn_collective *collective;
};

/* ---- beside the passes ---- */

static tol_status model_move_check(const struct tol_loaded *l, unsigned rank,
                                   const struct tol_context *to) {
    tol_status status = TOL_OK;
    TOL_CHECK(l != NULL && to != NULL, TOL_INVALID_ARGUMENT,
              "moving a model needs a loaded model and a context");
    TOL_CHECK(rank < l->share.ranks, TOL_INVALID_ARGUMENT,
              "the model has %u devices; there is no device %u", l->share.ranks, rank);
    for (unsigned i = 0; i < l->share.ranks; i++) {
        TOL_CHECK(l->team.part[i]->context != to, TOL_INVALID_ARGUMENT,
                  "the model is on device %d already", tol_context_device(to)->ordinal);
    }
    TOL_CHECK(tol_context_driver(to) == tol_context_driver(l->context), TOL_INVALID_ARGUMENT,
              "the two contexts are of different drivers");
out:
    return status;
}

/* A part with all sizes of another, and nothing on its device. */
static struct tol_loaded *model_move_like(const struct tol_loaded *old,
                                          struct tol_context *context) {
    struct tol_loaded *l = calloc(1, sizeof *l);
    if (l == NULL) return NULL;
    pthread_mutex_init(&l->lock, NULL);
    pthread_mutex_init(&l->moving, NULL);
    l->context = context;
    l->shape = old->shape;
    l->share = old->share;
    l->team.part[0] = l;
    l->deadline_ms = old->deadline_ms;
    l->cache = old->cache;
    l->embedding = old->embedding;
    l->output = old->output;
    l->output_norm = old->output_norm;
    l->frequencies = old->frequencies;
    l->positions = old->positions, l->sessions = old->sessions, l->rows = old->rows;
    l->pages_max = old->pages_max, l->page_bytes = old->page_bytes;
    l->cache_bytes = old->cache_bytes;
    l->draws = old->draws;
    return l;
}

static tol_status copy_weights(const struct move *m) {
    tol_status status = TOL_OK;
    const struct tol_buffer *old = m->old->weights;
    struct tol_loaded *l = m->new;
    const size_t bytes = tol_buffer_bytes(old);
    TOL_TRY(tol_buffer_create(l->context, bytes, 1, &l->weights));
    memcpy(l->layers, m->old->layers, l->shape.layers * sizeof *l->layers);
    loaded_rebase(l, tol_buffer_address(l->weights) - tol_buffer_address(old));
    status = tol_transfer_peer(m->to, tol_place_of_buffer(l->weights), 0, m->from,
                               tol_place_of_buffer(old), 0, bytes);
out:
    return status;
}

static tol_status model_move_prepare(struct move *m, struct tol_context *to) {
    tol_status status = TOL_OK;
    struct tol_loaded *l = m->new = model_move_like(m->old, to);
    TOL_CHECK(l != NULL, TOL_OUT_OF_HOST_MEMORY, "a loaded model");
    l->layers = calloc(l->shape.layers, sizeof *l->layers);
    TOL_CHECK(l->layers != NULL, TOL_OUT_OF_HOST_MEMORY, "%zu layers", l->shape.layers);
    TOL_TRY(loaded_team_with(m->l, m->rank, to, &m->collective));
    TOL_TRY(tol_transfer_create(m->old->context, NULL, &m->from));
    TOL_TRY(tol_transfer_create(to, NULL, &m->to));
    TOL_TRY(kn_kernels_create(to, &l->kernels));
    TOL_TRY(tol_stream_create(to, NULL, &l->stream));
    TOL_TRY(copy_weights(m));
    TOL_TRY(loaded_prompt_copy(l, m->old));
    status = loaded_make_room(l);
out:
    return status;
}

/* ---- between two passes ---- */

static tol_status copy_page(const struct move *m, struct session_page *page) {
    tol_status status = TOL_OK;
    struct tol_pool *pool = m->new->pool;
    if (page->moves) return TOL_OK; /* another session has it too */
    TOL_TRY(tol_pool_allocate(pool, m->new->page_bytes, m->new->stream, &page->there));
    page->moves = true;
    status = tol_transfer_peer(m->to, tol_place_of_block(pool, page->there), 0, m->from,
                               tol_place_of_block(m->old->pool, page->block[m->rank]), 0,
                               m->new->page_bytes);
out:
    return status;
}

static tol_status copy_session(const struct move *m, const struct tol_session *s,
                               uint64_t *addresses) {
    tol_status status = TOL_OK;
    for (size_t i = 0; i < s->pages; i++) {
        TOL_TRY(copy_page(m, s->page[i]));
        addresses[i] = tol_pool_address(m->new->pool, s->page[i]->there);
    }
    if (s->pages > 0) {
        status =
            tol_buffer_write_at(m->new->tables, s->slot * m->new->pages_max * sizeof *addresses,
                                addresses, s->pages * sizeof *addresses);
    }
out:
    return status;
}

static tol_status copy_sessions(const struct move *m) {
    tol_status status = TOL_OK;
    uint64_t *addresses = calloc(m->l->pages_max, sizeof *addresses);
    TOL_CHECK(addresses != NULL, TOL_OUT_OF_HOST_MEMORY, "addresses of pages");
    TOL_TRY(loaded_team_check(m->l));
    TOL_TRY(tol_stream_synchronize_for(m->old->stream, DEADLINE_MS));
    for (size_t i = 0; i < m->l->sessions; i++) {
        const struct tol_session *s = m->l->slots[i];
        if (s != NULL) TOL_TRY(copy_session(m, s, addresses));
    }
    status = tol_stream_synchronize_for(m->new->stream, DEADLINE_MS);
out:
    free(addresses);
    return status;
}

/* Frees each page on one of the devices: on the new one, or if it is kept there on the old one. */
static void settle_pages(const struct move *m, bool is_kept) {
    for (size_t i = 0; i < m->l->sessions; i++) {
        const struct tol_session *s = m->l->slots[i];
        for (size_t j = 0; s != NULL && j < s->pages; j++) {
            struct session_page *page = s->page[j];
            if (!page->moves) continue;
            const struct tol_loaded *left = is_kept ? m->old : m->new;
            const struct tol_block block = is_kept ? page->block[m->rank] : page->there;
            (void)tol_pool_free(left->pool, block, left->stream);
            if (is_kept) page->block[m->rank] = page->there;
            page->moves = false;
        }
    }
}

/* Sessions point to the first device's part, so what is on the devices changes places. Sizes are
 * the same on both, and are read without the lock: they are left alone. */
static void change_places(struct tol_loaded *a, struct tol_loaded *b) {
#define CHANGE(type, member)                                                                       \
    do {                                                                                           \
        type kept = a->member;                                                                     \
        a->member = b->member;                                                                     \
        b->member = kept;                                                                          \
    } while (0)
    CHANGE(struct tol_context *, context);
    CHANGE(struct kn_kernels *, kernels);
    CHANGE(struct tol_stream *, stream);
    CHANGE(struct tol_pool *, pool);
    CHANGE(struct tol_buffer *, weights);
    CHANGE(struct loaded_layer *, layers);
    CHANGE(struct loaded_matrix, embedding);
    CHANGE(struct loaded_matrix, output);
    CHANGE(struct kn_place, frequencies);
    CHANGE(struct tol_buffer *, scratch.buffer);
    CHANGE(struct tol_buffer *, prompt.buffer);
    CHANGE(struct prompt_powers *, prompt.powers);
    CHANGE(struct tol_buffer *, input);
    CHANGE(struct tol_buffer *, tables);
    CHANGE(struct tol_pinned *, sent);
    CHANGE(struct tol_pinned *, received);
#undef CHANGE
}

static tol_status model_move_exchange(struct move *m) {
    tol_status status = copy_sessions(m);
    settle_pages(m, status == TOL_OK);
    if (status != TOL_OK) return status;
    loaded_graphs_end(m->l); /* they have the old device's addresses */
    change_places(m->old, m->new);
    kn_collective_destroy(m->l->team.collective); /* while its devices do nothing else */
    m->l->team.collective = m->collective;
    m->collective = NULL;
    return status;
}

tol_status tol_model_move(struct tol_loaded *l, unsigned device, struct tol_context *to) {
    tol_status status = TOL_OK;
    struct move m = {.l = l, .rank = device};
    TOL_CHECK(l != NULL, TOL_INVALID_ARGUMENT, "moving a model needs a loaded model");
    pthread_mutex_lock(&l->moving);
    status = model_move_check(l, device, to);
    if (status == TOL_OK) {
        m.old = l->team.part[device];
        status = model_move_prepare(&m, to);
    }
    if (status == TOL_OK) {
        pthread_mutex_lock(&l->lock);
        status = model_move_exchange(&m);
        pthread_mutex_unlock(&l->lock);
    }
    kn_collective_destroy(m.collective);
    tol_transfer_destroy(m.from);
    tol_transfer_destroy(m.to);
    loaded_part_end(m.new);
    pthread_mutex_unlock(&l->moving);
out:
    return status;
}
