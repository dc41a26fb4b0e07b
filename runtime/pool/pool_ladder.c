/*
 * What is tried, in this order, before memory is said to be out: what thread caches keep; memory
 * that nobody uses; work on other streams, the oldest first; passing the soft limit; meshing; and
 * the program itself, which may free something. Each rung costs more than the one before it.
 *
 * There is no rung that maps free pages side by side for one block: addresses are plentiful, so
 * free handles are released and one new handle is made, which on an H200 costs 30 us for each that
 * goes and 46 us for all that comes, where mapping each again costs 55 us. Aliases of pages that
 * are free in part gave nothing in the simulated comb (0.605 of the limit with them and without).
 */
#include "mesh.h"

enum { ATTEMPTS_MAX = 8 };

enum { FLUSH, WAIT, PASS_SOFT, MESH, ASK };

/* Waits for the stream whose frees are the oldest that work may still use; false: there is none, or
 * it does not end. */
static bool wait_for_oldest(struct tol_pool *pool) {
    const struct tol_ticket_stream *oldest = NULL;
    for (unsigned i = 0; i < TOL_TICKET_STREAMS; i++) {
        const struct tol_ticket_stream *place = &pool->tickets.streams[i];
        if (place->stream == NULL || place->done >= place->last) continue;
        if (oldest == NULL || place->last < oldest->last) oldest = place;
    }
    if (oldest == NULL) return false;
    uint64_t streams = (uint64_t)1 << (oldest - pool->tickets.streams);
    return tol_tickets_wait(&pool->tickets, streams, oldest->last) == TOL_OK;
}

/* The bytes that must come free for a block; 0: it has room, or no meshing helps. */
static uint64_t wanted(struct tol_pool *pool, uint64_t bytes, bool is_large) {
    uint64_t need = tol_pool_need(pool, bytes, is_large), room = tol_pool_room(pool);
    return need > room ? need - room : 0;
}

static bool mesh(struct tol_pool *pool, uint64_t bytes, bool is_large) {
    const struct tol_pool_options *options = &pool->options;
    uint64_t gained = 0;
    if (!options->compact || pool->pages.page_bytes == 0) return false;
    uint64_t want = wanted(pool, bytes, is_large);
    if (want == 0 || tol_mesh_promise(pool, want, tol_pool_room(pool)) < want) return false;
    if (options->hold != NULL) {
        pthread_mutex_unlock(&pool->lock);
        bool held = options->hold(options->user, true);
        pthread_mutex_lock(&pool->lock);
        if (!held) return false;
    }
    want = wanted(pool, bytes, is_large);
    if (want > 0) (void)tol_mesh_pass(pool, want, &gained);
    if (options->hold != NULL) {
        pthread_mutex_unlock(&pool->lock);
        (void)options->hold(options->user, false);
        pthread_mutex_lock(&pool->lock);
    }
    return want == 0 || gained > 0;
}

static bool ask(struct tol_pool *pool, struct tol_ladder *ladder, uint64_t bytes) {
    const struct tol_pool_options *options = &pool->options;
    if (options->on_out_of_memory == NULL || ladder->attempts == ATTEMPTS_MAX) return false;
    pthread_mutex_unlock(&pool->lock);
    bool again = options->on_out_of_memory(options->user, pool, (size_t)bytes, ladder->attempts);
    pthread_mutex_lock(&pool->lock);
    ladder->attempts++;
    ladder->rung = FLUSH;
    return again;
}

bool tol_ladder_step(struct tol_pool *pool, struct tol_ladder *ladder, uint64_t bytes,
                     bool is_large) {
    if (ladder->rung == FLUSH) {
        pthread_mutex_unlock(&pool->lock);
        tol_magazine_flush_all(pool);
        pthread_mutex_lock(&pool->lock);
        (void)tol_pool_give_back(pool, 0);
        pool->is_short = true;
        ladder->rung = WAIT;
        return true;
    }
    if (ladder->rung == WAIT) {
        if (wait_for_oldest(pool)) {
            (void)tol_pool_give_back(pool, 0);
            return true;
        }
        ladder->rung = PASS_SOFT;
    }
    if (ladder->rung == PASS_SOFT) {
        ladder->rung = MESH;
        if (pool->options.soft_limit_bytes > 0 && !pool->may_pass_soft) {
            pool->may_pass_soft = true;
            return true;
        }
    }
    if (ladder->rung == MESH) {
        ladder->rung = ASK;
        if (mesh(pool, bytes, is_large)) return true;
    }
    return ask(pool, ladder, bytes);
}
