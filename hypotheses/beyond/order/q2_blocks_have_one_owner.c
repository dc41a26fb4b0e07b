/*
 * Attacks on Q2: owners of blocks on several streams and threads, in every kind of pool; memory
 * that is remapped and compacted; and graphs that use blocks.
 */
#include "order_faults.h"
#include "hand_stage.h"

#include <stdio.h>
#include <string.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

/* ---- walks ----------------------------------------------------------------------------------- */

/* Mostly sizes that occur again, so that caches have them, and all multiples of a word. */
static size_t hand_draw_bytes(struct hand_walker *w, size_t most) {
    static const size_t usual[] = {4 * KIB, 64 * KIB, 1 * MIB, 2 * MIB + 4, 5 * MIB};
    size_t bytes = usual[hand_draw(w, sizeof usual / sizeof usual[0])];
    if (hand_draw(w, 4) == 0) bytes = 4 + 4 * (size_t)hand_draw(w, 256 * KIB);
    return bytes < most ? bytes : most;
}

static unsigned hand_draw_other(struct hand_walker *w, unsigned stream) {
    return (stream + 1 + (unsigned)hand_draw(w, HAND_STREAMS - 1)) % HAND_STREAMS;
}

/* A free while the stream still has slow work on the block, and at once an allocation of the same
 * size on another stream, whose stamp the host waits for first. */
static bool hand_pass_on(struct hand_walker *w, struct hand *hand, size_t bytes) {
    const unsigned next = hand_draw_other(w, hand->stream);
    const bool is_host = hand_draw(w, 4) == 0;
    if (!hand_check(w, hand, true) || !hand_give(w, hand)) return false;
    (void)hand_take(w, bytes, next, is_host);
    return hand_wait(w, next);
}

/* Another stream reads the block too, declared by an event: the free is in the order of the first
 * stream, which waits for the other's slow read. */
static bool hand_lend(struct hand_walker *w, struct hand *hand) {
    const unsigned own = hand->stream, other = hand_draw_other(w, own);
    struct hand lent = *hand;
    lent.stream = other;
    if (!hand_follow(w, other, own) || !hand_check(w, &lent, true) || !hand_follow(w, own, other)) {
        return false;
    }
    const size_t bytes = hand->bytes;
    if (!hand_give(w, hand)) return false;
    (void)hand_take(w, bytes, 3 - own - other, false);
    return hand_wait(w, 3 - own - other);
}

/* The owner moves to another stream, and writes and reads there. */
static bool hand_move(struct hand_walker *w, struct hand *hand) {
    const unsigned own = hand->stream;
    hand->stream = hand_draw_other(w, own);
    return hand_follow(w, hand->stream, own) && hand_check(w, hand, false) &&
           hand_stamp(w, hand, hand_draw(w, 2) == 0);
}

/* One step. false: trouble. */
static bool hand_step(struct hand_walker *w, size_t most) {
    const uint64_t what = hand_draw(w, 8);
    if (w->count == 0 || (what < 3 && w->count < HAND_LIVE - 1)) {
        (void)hand_take(w, hand_draw_bytes(w, most), (unsigned)hand_draw(w, HAND_STREAMS),
                        hand_draw(w, 8) == 0);
        return w->trouble[0] == '\0';
    }
    struct hand *hand = &w->hands[hand_draw(w, w->count)];
    const size_t bytes = hand_draw(w, 4) == 0 ? hand_draw_bytes(w, most) : hand->bytes;
    bool ok = false;
    switch (what) {
    case 3:
        ok = hand_move(w, hand);
        break;
    case 4:
        ok = hand_lend(w, hand);
        break;
    case 5:
        ok = hand_check(w, hand, true) && hand_give(w, hand);
        break;
    default:
        ok = hand_pass_on(w, hand, bytes);
        break;
    }
    return ok && w->trouble[0] == '\0';
}

/* Checks all hands, each on its own stream. */
static void hand_check_all(struct hand_walker *w) {
    for (unsigned i = 0; i < w->count; i++) (void)hand_check(w, &w->hands[i], false);
}

/* ---- the kinds of pools ---------------------------------------------------------------------- */

enum hand_kind {
    KIND_CACHED,
    KIND_PLAIN,
    KIND_LARGE,
    KIND_GUARDED,
    KIND_CHUNKED,
    KIND_DRIVER,
    KINDS
};

static const char *const kind_names[KINDS] = {
    "a pool with caches", "a pool without caches", "a pool that gives memory back",
    "a pool with guards", "a pool of chunks",      "the driver's pool"};

static void hand_options(const struct hyp_attack *attack, enum hand_kind kind,
                         struct tol_pool_options *options) {
    tol_pool_default(tol_context_device(attack->context), options);
    options->first_bytes = 4 * MIB;
    switch (kind) {
    case KIND_PLAIN:
        options->magazine_max_bytes = 0;
        break;
    case KIND_LARGE:
        tol_pool_tight(tol_context_device(attack->context), options);
        options->first_count = 0;
        options->large_bytes = 2 * MIB;
        options->keep_bytes = 4 * MIB;
        options->park_bytes = 0;
        options->stitch_above = 1.01;
        break;
    case KIND_GUARDED:
        options->guard_one_in = 3;
        options->wipe = true;
        options->park_bytes = 0;
        break;
    case KIND_CHUNKED:
        options->source = TOL_POOL_CHUNKED;
        break;
    case KIND_DRIVER:
        options->source = TOL_POOL_DRIVER;
        break;
    default:
        break;
    }
}

static void hand_walk(struct hand_stage *s, enum hand_kind kind, unsigned steps) {
    struct tol_pool_options options;
    struct hand_walker w;
    bool lacks = false;
    hand_options(s->attack, kind, &options);
    struct tol_pool *pool = hand_pool(s, &options, &lacks);
    if (lacks) hyp_attack_note(s->attack, "this driver has no %s", kind_names[kind]);
    if (pool == NULL) return;
    bool ok = hand_walker_begin(s, &w, 0, pool);
    for (unsigned i = 0; ok && i < steps; i++) {
        ok = hand_step(&w, SIZE_MAX);
        if (i % 32 != 31 && i + 1 < steps) continue;
        hand_check_all(&w);
        ok = hand_settle(s, &w, 1, kind_names[kind]) && ok;
    }
    hand_walker_end(&w);
    (void)hand_settle(s, &w, 1, kind_names[kind]);
    tol_pool_destroy(pool);
}

HYP_ATTACK_WITH(q2, a_block_has_one_owner_over_streams, .many_queues = true,
                .soft_order = "newest") {
    const unsigned steps = attack->session.full ? 1280 : 320;
    struct hand_stage s;
    if (hand_stage_begin(attack, &s)) {
        for (enum hand_kind kind = 0; kind < KINDS; kind++) {
            hand_walk(&s, kind, steps);
            hyp_attack_progress(attack, (kind + 1.0) / KINDS);
        }
    }
    hand_stage_end(&s);
}

/* ---- threads --------------------------------------------------------------------------------- */

/* Hands that one thread has laid down for another, whose work its stream has done. */
static struct {
    pthread_mutex_t lock;
    struct hand hands[HAND_LIVE];
    unsigned count;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Lays down a hand, or picks one up. */
static bool hand_exchange(struct hand_walker *w) {
    struct hand found = {.owner = 0};
    if (w->count > 2) {
        struct hand *hand = &w->hands[hand_draw(w, w->count)];
        if (!hand_wait(w, hand->stream)) return false;
        pthread_mutex_lock(&table.lock);
        if (table.count < HAND_LIVE) {
            table.hands[table.count++] = *hand;
            *hand = w->hands[--w->count];
        }
        pthread_mutex_unlock(&table.lock);
        return true;
    }
    pthread_mutex_lock(&table.lock);
    if (table.count > 0) found = table.hands[--table.count];
    pthread_mutex_unlock(&table.lock);
    if (found.owner == 0 || w->count == HAND_LIVE) return true;
    found.stream = (unsigned)hand_draw(w, HAND_STREAMS);
    w->hands[w->count] = found;
    return hand_check(w, &w->hands[w->count++], true);
}

struct hand_turn {
    struct hand_walker *walker;
    unsigned steps;
};

static void *hand_take_turn(void *user) {
    const struct hand_turn *turn = user;
    struct hand_walker *w = turn->walker;
    bool ok = tol_context_bind(w->stage->attack->context) == TOL_OK;
    for (unsigned i = 0; ok && i < turn->steps; i++) {
        ok = i % 8 == 7 ? hand_exchange(w) : hand_step(w, 2 * MIB + 4);
    }
    if (ok) hand_check_all(w);
    return NULL;
}

/* One round of all threads. false: a violation was recorded. */
static bool hand_round(struct hand_stage *s, struct hand_walker *walkers, unsigned steps) {
    pthread_t threads[HAND_WALKERS];
    struct hand_turn turns[HAND_WALKERS];
    unsigned started = 0;
    for (; started < HAND_WALKERS; started++) {
        turns[started] = (struct hand_turn){&walkers[started], steps};
        if (!HYP_CHECK(s->attack,
                       pthread_create(&threads[started], NULL, hand_take_turn, &turns[started]) ==
                           0,
                       "a thread cannot be created")) {
            break;
        }
    }
    for (unsigned i = 0; i < started; i++) pthread_join(threads[i], NULL);
    return hand_settle(s, walkers, HAND_WALKERS, "a pool that threads share") &&
           started == HAND_WALKERS;
}

HYP_ATTACK_WITH(q2, a_block_has_one_owner_over_threads, .many_queues = true,
                .soft_order = "drawn") {
    const unsigned rounds = attack->session.full ? 24 : 6;
    static struct hand_walker walkers[HAND_WALKERS];
    struct tol_pool_options options;
    struct hand_stage s;
    bool lacks = false;
    bool ok = hand_stage_begin(attack, &s);
    hand_options(attack, KIND_CACHED, &options);
    struct tol_pool *pool = ok ? hand_pool(&s, &options, &lacks) : NULL;
    for (unsigned i = 0; pool != NULL && i < HAND_WALKERS; i++) {
        ok = hand_walker_begin(&s, &walkers[i], i, pool) && ok;
    }
    for (unsigned i = 0; ok && pool != NULL && i < rounds; i++) {
        ok = hand_round(&s, walkers, 32);
        hyp_attack_progress(attack, (i + 1.0) / rounds);
    }
    for (unsigned i = 0; pool != NULL && i < HAND_WALKERS; i++) hand_walker_end(&walkers[i]);
    for (; table.count > 0; table.count--) {
        (void)tol_pool_free(pool, table.hands[table.count - 1].block, NULL);
    }
    tol_pool_destroy(pool);
    hand_stage_end(&s);
}

/* ---- memory that moves ----------------------------------------------------------------------- */

static bool hand_hold(void *user, bool begin) {
    (void)user;
    order_fault_compaction(begin);
    return true;
}

/* Fills the pool with blocks of about half a page, so that pages can be meshed. */
static bool hand_fill(struct hand_walker *w) {
    while (w->count < HAND_LIVE) {
        const size_t bytes = 64 * KIB * (size_t)(6 + hand_draw(w, 14));
        if (hand_take(w, bytes, (unsigned)hand_draw(w, HAND_STREAMS), false) == NULL) break;
    }
    return w->trouble[0] == '\0';
}

/* Frees about half of the blocks after slow work. */
static bool hand_thin(struct hand_walker *w) {
    bool ok = true;
    for (unsigned i = 0; ok && i < w->count;) {
        struct hand *hand = &w->hands[i];
        const bool is_given = hand_draw(w, 2) == 0;
        ok = hand_check(w, hand, true) && (!is_given || hand_give(w, hand));
        i += !is_given;
    }
    return ok;
}

/* Queues slow new stamps of all blocks, after all frees: a pass must wait for them. */
static bool hand_stamp_all(struct hand_walker *w) {
    bool ok = true;
    for (unsigned i = 0; ok && i < w->count; i++) {
        ok = hand_check(w, &w->hands[i], false) && hand_stamp(w, &w->hands[i], true);
    }
    return ok;
}

/* Blocks of several pages, for which idle pages are remapped and others are meshed. */
static bool hand_claim(struct hand_walker *w) {
    for (size_t bytes = 8 * MIB; bytes >= 2 * MIB && hand_stamp_all(w);) {
        const unsigned stream = (unsigned)hand_draw(w, HAND_STREAMS);
        const struct hand *hand = hand_take(w, bytes, stream, false);
        if (hand == NULL && !w->lacks) break;
        if (hand == NULL || !hand_wait(w, stream)) bytes /= 2;
    }
    return w->trouble[0] == '\0';
}

HYP_ATTACK_WITH(q2, a_block_keeps_its_bytes_when_memory_moves, .many_queues = true,
                .soft_order = "newest") {
    const unsigned rounds = attack->session.full ? 240 : 60;
    struct tol_pool_options options;
    struct tol_pool_stats stats = {.held = 0};
    struct hand_walker w;
    struct hand_stage s;
    bool lacks = false;
    bool ok = hand_stage_begin(attack, &s);
    tol_pool_tight(tol_context_device(attack->context), &options);
    options.limit_bytes = 24 * MIB;
    options.first_count = 0;
    options.large_bytes = 6 * MIB;
    options.compact = true;
    options.hold = hand_hold;
    struct tol_pool *pool = ok ? hand_pool(&s, &options, &lacks) : NULL;
    ok = pool != NULL && hand_walker_begin(&s, &w, 0, pool);
    for (unsigned i = 0; ok && i < rounds; i++) {
        ok = hand_fill(&w) && hand_thin(&w) && hand_claim(&w);
        hand_check_all(&w);
        ok = hand_settle(&s, &w, 1, "a pool that moves memory") && ok;
        while (ok && w.count > 4) ok = hand_give(&w, &w.hands[hand_draw(&w, w.count)]);
        hyp_attack_progress(attack, (i + 1.0) / rounds);
    }
    if (pool != NULL) {
        hand_walker_end(&w);
        (void)hand_settle(&s, &w, 1, "a pool that moves memory");
        HYP_OK(attack, tol_pool_stats(pool, &stats));
    }
    if (ok && tol_driver_has(attack->driver, TOL_FEATURE_VMM)) {
        HYP_CHECK(attack, stats.stitched > 0 && stats.compactions > 0,
                  "the attack moved nothing: %llu handles were remapped in %llu passes",
                  (unsigned long long)stats.stitched, (unsigned long long)stats.compactions);
    }
    hyp_attack_record(attack, (double)stats.stitched, "remapped");
    hyp_attack_record(attack, (double)stats.compactions, "compactions");
    tol_pool_destroy(pool);
    hand_stage_end(&s);
}

/* ---- graphs ---------------------------------------------------------------------------------- */

/* A graph of a slow stamp and a check. */
static struct tol_graph_exec *hand_capture(struct hand_walker *w, struct hand *hand) {
    struct hyp_attack *attack = w->stage->attack;
    struct tol_graph *graph = NULL;
    struct tol_graph_exec *exec = NULL;
    struct tol_stream *stream = w->streams[hand->stream];
    if (!HYP_OK(attack, tol_graph_capture_begin(stream))) return NULL;
    bool ok = hand_stamp(w, hand, true) && hand_check(w, hand, true);
    ok = HYP_OK(attack, tol_graph_capture_end(stream, &graph)) && ok;
    if (ok) ok = HYP_OK(attack, tol_graph_instantiate(graph, &exec));
    tol_graph_destroy(graph);
    return exec;
}

/* Launches the graph on a stream. Another stamp stands before it, so a launch that is lost shows in
 * the next check. */
static bool hand_launch(struct hand_walker *w, struct hand *hand, struct tol_graph_exec *exec,
                        unsigned owner) {
    const bool ok = hand_stamp(w, hand, false) &&
                    HYP_OK(w->stage->attack, tol_graph_launch(exec, w->streams[hand->stream]));
    hand->owner = owner;
    return ok;
}

/* The block is freed after launches of its graph, the last of them on another stream, and another
 * stream gets one of its size. */
static bool hand_replay(struct hand_walker *w, size_t bytes) {
    struct hand *hand = hand_take(w, bytes, (unsigned)hand_draw(w, HAND_STREAMS), false);
    struct tol_graph_exec *exec = hand != NULL ? hand_capture(w, hand) : NULL;
    bool ok = exec != NULL;
    if (ok) {
        const unsigned own = hand->stream, owner = hand->owner;
        ok = hand_launch(w, hand, exec, owner) && hand_check(w, hand, false);
        hand->stream = hand_draw_other(w, own);
        ok = ok && hand_follow(w, hand->stream, own) && hand_launch(w, hand, exec, owner) &&
             hand_pass_on(w, hand, bytes);
    }
    while (ok && w->count > HAND_LIVE / 2) {
        ok = hand_give(w, &w->hands[hand_draw(w, w->count)]);
    }
    tol_graph_exec_destroy(exec);
    return ok;
}

HYP_ATTACK_WITH(q2, a_graph_keeps_its_blocks, .many_queues = true, .soft_order = "newest") {
    const unsigned rounds = attack->session.full ? 240 : 60;
    struct tol_pool_options options;
    struct hand_walker w;
    struct hand_stage s;
    bool lacks = false;
    bool ok = hand_stage_begin(attack, &s);
    if (!tol_driver_has(attack->driver, TOL_FEATURE_GRAPH)) {
        hyp_attack_not_tested(attack, "no_graphs", "this driver has no graphs");
        ok = false;
    }
    hand_options(attack, KIND_CACHED, &options);
    struct tol_pool *pool = ok ? hand_pool(&s, &options, &lacks) : NULL;
    ok = pool != NULL && hand_walker_begin(&s, &w, 0, pool);
    for (unsigned i = 0; ok && i < rounds; i++) {
        ok = hand_replay(&w, hand_draw_bytes(&w, 4 * MIB));
        hand_check_all(&w);
        if (!ok || i % 8 == 7) ok = hand_settle(&s, &w, 1, "graphs") && ok;
        hyp_attack_progress(attack, (i + 1.0) / rounds);
    }
    if (pool != NULL) {
        hand_walker_end(&w);
        (void)hand_settle(&s, &w, 1, "graphs");
    }
    tol_pool_destroy(pool);
    hand_stage_end(&s);
}
