/*
 * Where a session's values stop being finite: a position is computed again, with fewer and fewer
 * layers, until what is passed on between layers is finite.
 *
 * What is passed on is a sum to which each layer adds, so it stays infinite or NaN once it is. The
 * position has a slot of its own, whose table has the session's pages before it and a copy of its
 * own page; so nothing that the session or another one has is changed.
 */
#include "session_state.h"

#include "device_team.h"
#include "loaded_state.h"
#include "pass.h"

#include "core/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct trouble_probe {
    struct tol_loaded *l;
    const struct tol_session *s;
    size_t position;
    struct tol_block block[KN_COLLECTIVE_RANKS_MAX]; /* the copies of the page */
    unsigned blocks;
    float *x; /* what is passed on */
};

/* ---- the slot ---- */

static tol_status trouble_copy_page(struct trouble_probe *p, unsigned rank) {
    tol_status status = TOL_OK;
    const struct tol_loaded *part = p->l->team.part[rank];
    const struct tol_block from = p->s->page[p->position / KN_PAGE_POSITIONS]->block[rank];
    tol_auto_transfer struct tol_transfer *transfer = NULL;
    TOL_TRY(tol_transfer_create(part->context, NULL, &transfer));
    TOL_TRY(tol_pool_allocate(part->pool, part->page_bytes, part->stream, &p->block[rank]));
    p->blocks++;
    TOL_TRY(tol_stream_synchronize_for(part->stream, p->l->deadline_ms));
    status = tol_transfer_copy(transfer, tol_place_of_block(part->pool, p->block[rank]), 0,
                               tol_place_of_block(part->pool, from), 0, part->page_bytes);
out:
    return status;
}

/* The table of the slot: the pages before the position, and the copy. */
static tol_status trouble_enter(const struct trouble_probe *p, unsigned rank) {
    tol_status status = TOL_OK;
    const struct tol_loaded *part = p->l->team.part[rank];
    const size_t last = p->position / KN_PAGE_POSITIONS;
    uint64_t *addresses = calloc(last + 1, sizeof *addresses);
    TOL_CHECK(addresses != NULL, TOL_OUT_OF_HOST_MEMORY, "%zu pages", last + 1);
    for (size_t i = 0; i < last; i++) {
        addresses[i] = tol_pool_address(part->pool, p->s->page[i]->block[rank]);
    }
    addresses[last] = tol_pool_address(part->pool, p->block[rank]);
    status = tol_copy_from_pageable(part->stream, part->tables,
                                    p->l->sessions * p->l->pages_max * sizeof *addresses, addresses,
                                    (last + 1) * sizeof *addresses);
out:
    free(addresses);
    return status;
}

static tol_status trouble_begin(struct trouble_probe *p) {
    tol_status status = TOL_OK;
    p->x = malloc(p->l->shape.width * sizeof *p->x);
    TOL_CHECK(p->x != NULL, TOL_OUT_OF_HOST_MEMORY, "%zu values", p->l->shape.width);
    for (unsigned i = 0; i < p->l->share.ranks; i++) {
        TOL_TRY(trouble_copy_page(p, i));
        TOL_TRY(trouble_enter(p, i));
    }
out:
    return status;
}

static void trouble_end(struct trouble_probe *p) {
    for (unsigned i = 0; i < p->blocks; i++) {
        const struct tol_loaded *part = p->l->team.part[i];
        (void)tol_pool_free(part->pool, p->block[i], part->stream);
    }
    free(p->x);
}

/* ---- the search ---- */

/* Whether what the first `layers` layers pass on is finite. */
static tol_status trouble_compute(const struct trouble_probe *p, size_t layers, bool *is_finite) {
    tol_status status = TOL_OK;
    struct tol_loaded *l = p->l;
    const struct loaded_row row = {p->s->tokens[p->position], (int)p->position, (int)l->sessions};
    struct loaded_outcome outcome;
    TOL_TRY(loaded_pass_run(
        l, &(struct loaded_pass){.rows = &row, .count = 1, .left_out = l->shape.layers - layers},
        &outcome));
    TOL_TRY(
        tol_buffer_read_at(l->scratch.buffer, l->scratch.x, p->x, l->shape.width * sizeof *p->x));
    *is_finite = true;
    for (size_t i = 0; i < l->shape.width; i++) *is_finite &= isfinite(p->x[i]) != 0;
out:
    return status;
}

/* *layers: the fewest layers that do not pass on finite values; more than there are: none. */
static tol_status trouble_search(const struct trouble_probe *p, size_t *layers) {
    tol_status status = TOL_OK;
    size_t least = 0, most = p->l->shape.layers + 1;
    while (least < most) {
        const size_t middle = (least + most - 1) / 2;
        bool is_finite = false;
        TOL_TRY(trouble_compute(p, middle, &is_finite));
        if (is_finite) {
            least = middle + 1;
        } else {
            most = middle;
        }
    }
    *layers = least;
out:
    return status;
}

/* ---- sentences ---- */

/* Where the values of a position stop being finite. The caller holds the lock. */
static void trouble_locate(struct tol_session *s, size_t position, char *text, size_t bytes) {
    struct trouble_probe probe = {.l = s->loaded, .s = s, .position = position};
    const size_t all = s->loaded->shape.layers;
    size_t layers = 0;
    tol_status status = trouble_begin(&probe);
    if (status == TOL_OK) status = trouble_search(&probe, &layers);
    trouble_end(&probe);
    if (status != TOL_OK) {
        snprintf(text, bytes, "in which layer it begins is not known: %.200s", tol_message());
    } else if (layers == 0) {
        snprintf(text, bytes, "values stop being finite in the embedding of token %d, position %zu",
                 s->tokens[position], position);
    } else if (layers <= all) {
        snprintf(text, bytes,
                 "values stop being finite in layer %zu of %zu (blk.%zu), at position %zu",
                 layers - 1, all, layers - 1, position);
    } else {
        snprintf(text, bytes,
                 "at position %zu all %zu layers pass on finite values: it begins in the output "
                 "norm or matrix, or in a long prompt's products in fp16",
                 position, all);
    }
}

static const char *trouble_cache_name(enum kn_cache cache) {
    return cache == KN_CACHE_F16 ? "f16" : "q8_0";
}

static void trouble_describe(struct tol_session *s) {
    const struct kn_notice *n = &s->notice;
    const char *what = n->is_value ? "value" : "key";
    if (n->is_finite) {
        snprintf(s->trouble, sizeof s->trouble,
                 "a %s of layer %zu at position %zu is %g or more in magnitude, which the cache of "
                 "%s cannot hold%s",
                 what, n->layer, n->position, kn_cache_end(s->loaded->cache),
                 trouble_cache_name(s->loaded->cache),
                 s->loaded->cache == KN_CACHE_F16 && s->loaded->shape.head_size % 32 == 0
                     ? "; one of q8_0 holds 127 times as much"
                     : "");
        return;
    }
    const int used = snprintf(s->trouble, sizeof s->trouble,
                              "a %s of layer %zu at position %zu is NaN or infinite: ", what,
                              n->layer, n->position);
    trouble_locate(s, n->position, s->trouble + used, sizeof s->trouble - (size_t)used);
}

tol_status session_take_notice(struct tol_session *s) {
    tol_status status = TOL_OK;
    uint64_t bits = kn_notice_none;
    TOL_TRY(loaded_team_notice(s->loaded, s->slot, &bits));
    if (!kn_notice_read(bits, &s->notice)) return TOL_OK;
    s->is_noticed = true;
    s->trouble[0] = '\0';
    status = loaded_team_forget_notice(s->loaded, s->slot);
out:
    return status;
}

tol_status session_check_notice(struct tol_session *s) {
    tol_status status = TOL_OK;
    if (!s->is_noticed) return TOL_OK;
    pthread_mutex_lock(&s->loaded->lock);
    if (s->trouble[0] == '\0') trouble_describe(s);
    pthread_mutex_unlock(&s->loaded->lock);
    TOL_FAIL(TOL_MISMATCH, "%s", s->trouble);
out:
    return status;
}

tol_status session_explain_draw(struct tol_session *s) {
    char sentence[TROUBLE_BYTES];
    const int used = snprintf(sentence, sizeof sentence / 2, "%s: ", tol_message());
    const size_t at = (size_t)used < sizeof sentence / 2 ? (size_t)used : 0;
    pthread_mutex_lock(&s->loaded->lock);
    trouble_locate(s, s->length - 1, sentence + at, sizeof sentence - at);
    pthread_mutex_unlock(&s->loaded->lock);
    return tol_fail_again(TOL_MISMATCH, 0, sentence);
}
