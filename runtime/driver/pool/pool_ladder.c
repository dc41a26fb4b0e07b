/*
 * The steps before an allocation fails, in this order: freeing what thread caches keep; stitching
 * idle memory (stitch.h), now and after each wait for work on other streams, the oldest first;
 * exceeding the soft limit; releasing what could not be stitched; meshing; and the program itself,
 * which may free something. Each step costs more than the one before it.
 *
 * Stitching comes before waiting, because a wait takes as long as the work; and again after it,
 * because more memory is idle then. Idle handles are not exchanged for new ones, because between
 * the release and the creation another process could take the memory. A handle is released only if
 * that makes the block fit: one that is larger than any gap of the block, for its replacement. If
 * the block does not fit even so, the pool keeps what it has, except for meshing, which needs free
 * memory.
 *
 * The flags that a step sets belong to the pool, whose lock is released during some steps: other
 * threads clear them when their allocations end. So they are set again after each step.
 */
#include "mesh.h"

enum { ATTEMPTS_MAX = 8 };

enum { FLUSH, WAIT, PASS_SOFT, GIVE_BACK, MESH, ASK };

bool tol_pool_wait_oldest(struct tol_pool *pool) {
    const struct tol_ticket_stream *oldest = NULL;
    for (unsigned i = 0; i < TOL_TICKET_STREAMS; i++) {
        const struct tol_ticket_stream *place = &pool->tickets.streams[i];
        if (place->stream == NULL || place->done >= place->last) continue;
        if (tol_tickets_is_captured(place)) continue;
        if (oldest == NULL || place->last < oldest->last) oldest = place;
    }
    if (oldest == NULL) return false;
    uint64_t streams = (uint64_t)1 << (oldest - pool->tickets.streams);
    return tol_tickets_wait(&pool->tickets, streams, oldest->last) == TOL_OK;
}

/* The bytes that must become free for a block; 0: it fits, or meshing does not help. */
static uint64_t pool_ladder_wanted(struct tol_pool *pool, uint64_t bytes, bool is_large) {
    uint64_t need = tol_pool_need(pool, bytes, is_large), room = tol_pool_room(pool);
    return need > room ? need - room : 0;
}

static bool pool_ladder_mesh(struct tol_pool *pool, uint64_t bytes, bool is_large) {
    const struct tol_pool_options *options = &pool->options;
    uint64_t gained = 0;
    if (!options->compact || pool->pages.page_bytes == 0) return false;
    uint64_t want = pool_ladder_wanted(pool, bytes, is_large);
    if (want == 0 || tol_mesh_promise(pool, want, tol_pool_room(pool)) < want) return false;
    if (options->hold != NULL) {
        pthread_mutex_unlock(&pool->lock);
        bool held = options->hold(options->user, true);
        pthread_mutex_lock(&pool->lock);
        if (!held) return false;
    }
    want = pool_ladder_wanted(pool, bytes, is_large);
    if (want > 0) (void)tol_mesh_pass(pool, want, &gained);
    if (options->hold != NULL) {
        pthread_mutex_unlock(&pool->lock);
        (void)options->hold(options->user, false);
        pthread_mutex_lock(&pool->lock);
    }
    return want == 0 || gained > 0;
}

static bool pool_ladder_ask(struct tol_pool *pool, struct tol_ladder *ladder, uint64_t bytes) {
    const struct tol_pool_options *options = &pool->options;
    if (options->on_out_of_memory == NULL || ladder->attempts == ATTEMPTS_MAX) return false;
    pthread_mutex_unlock(&pool->lock);
    bool again = options->on_out_of_memory(options->user, pool, (size_t)bytes, ladder->attempts);
    pthread_mutex_lock(&pool->lock);
    ladder->attempts++;
    ladder->rung = FLUSH;
    return again;
}

/* Whether releasing idle memory may help a block: for meshing, or if the block does not fit
 * although the sums say so. */
static bool helps_to_give_back(struct tol_pool *pool, uint64_t bytes, bool is_large) {
    if (pool->is_chunked) return false; /* all of it was */
    const uint64_t need = tol_pool_need(pool, bytes, is_large);
    return pool->options.compact || need <= tol_pool_room(pool) + tol_pool_idle(pool);
}

static bool pool_ladder_step(struct tol_pool *pool, struct tol_ladder *ladder, uint64_t bytes,
                             bool is_large) {
    if (ladder->rung == FLUSH) {
        pthread_mutex_unlock(&pool->lock);
        tol_magazine_flush_all(pool);
        pthread_mutex_lock(&pool->lock);
        if (pool->is_chunked) (void)tol_pool_give_back(pool, 0);
        ladder->rung = WAIT;
        return true;
    }
    if (ladder->rung == WAIT) {
        if (tol_pool_wait_oldest(pool)) {
            if (pool->is_chunked) (void)tol_pool_give_back(pool, 0);
            return true;
        }
        ladder->rung = PASS_SOFT;
    }
    if (ladder->rung == PASS_SOFT) {
        ladder->rung = GIVE_BACK;
        if (pool->options.soft_limit_bytes > 0 && !ladder->passes_soft) {
            ladder->passes_soft = true;
            return true;
        }
    }
    if (ladder->rung == GIVE_BACK) {
        ladder->rung = MESH;
        if (helps_to_give_back(pool, bytes, is_large) && tol_pool_give_back(pool, 0) > 0) {
            return true;
        }
    }
    if (ladder->rung == MESH) {
        ladder->rung = ASK;
        if (pool_ladder_mesh(pool, bytes, is_large)) return true;
    }
    return pool_ladder_ask(pool, ladder, bytes);
}

bool tol_ladder_step(struct tol_pool *pool, struct tol_ladder *ladder, uint64_t bytes,
                     bool is_large) {
    const bool again = pool_ladder_step(pool, ladder, bytes, is_large);
    pool->is_short = true;
    pool->may_stitch = !pool->is_chunked;
    pool->may_pass_soft = ladder->passes_soft;
    return again;
}
