/*
 * Threads take steps in rounds, and after each round, while all of them wait, one measures.
 */
#include "pool_walk.h"

#include "files/atomic_file.h"
#include "harness/ledger.h"
#include "record/record.h"
#include "harness/sabotage.h"
#include "files/walk_csv.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MIB ((uint64_t)1 << 20)

enum { THREADS_MAX = 16, TRIES = 4 };

struct piece {
    struct tol_block block;
    uint64_t bytes;
};

/* One thread and its blocks. */
struct walker {
    struct hyp_walk *walk;
    pthread_t thread; /* but the first's, which is the attack's own */
    struct tol_stream *stream;
    uint64_t random;
    struct piece *pieces;
    size_t count, room;
    uint64_t live, live_peak; /* bytes */
    char trouble[600];
};

struct hyp_walk_state {
    struct walker walkers[THREADS_MAX];
    pthread_barrier_t barrier;
    uint64_t base; /* the ledger's bytes that are not the pool's */
    struct hyp_file file;
    bool has_file;
    uint64_t steps, round, sample_every; /* of the call that runs */
    unsigned allocate_percent;
    uint64_t most_live; /* of one thread */
    bool stop;
};

/* SplitMix64, as hyp_random; each thread has its own. */
static uint64_t pool_walk_draw(struct walker *w, uint64_t below) {
    uint64_t z = w->random += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (z ^ z >> 31) % below;
}

static uint64_t pool_walk_draw_bytes(struct walker *w) {
    const struct hyp_walk *walk = w->walk;
    uint64_t bytes = 0;
    if (walk->sizes == HYP_WALK_UNIFORM) {
        bytes = walk->least + pool_walk_draw(w, walk->most - walk->least);
    } else {
        uint64_t which = pool_walk_draw(w, 10);
        bytes = which < 6   ? 256 + pool_walk_draw(w, MIB - 256)
                : which < 9 ? MIB + pool_walk_draw(w, 31 * MIB)
                            : 64 * MIB + pool_walk_draw(w, 448 * MIB + 1);
    }
    return bytes / walk->scale > 0 ? bytes / walk->scale : 1;
}

static void pool_walk_note_trouble(struct walker *w, const char *call) {
    snprintf(w->trouble, sizeof w->trouble, "%s: %.500s", call, tol_message());
}

static void pool_walk_allocate(struct walker *w, uint64_t bytes) {
    if (w->count == w->room) {
        size_t room = w->room > 0 ? 2 * w->room : 1024;
        struct piece *more = realloc(w->pieces, room * sizeof *more);
        if (more == NULL) {
            snprintf(w->trouble, sizeof w->trouble, "out of host memory for %zu blocks", room);
            return;
        }
        w->pieces = more;
        w->room = room;
    }
    struct piece *piece = &w->pieces[w->count];
    piece->bytes = bytes;
    if (tol_pool_allocate(w->walk->pool, (size_t)bytes, w->stream, &piece->block) != TOL_OK) {
        pool_walk_note_trouble(w, "tol_pool_allocate");
        return;
    }
    w->count++;
    w->live += bytes;
    if (w->live > w->live_peak) w->live_peak = w->live;
}

static void pool_walk_drop(struct walker *w, size_t index) {
    struct piece piece = w->pieces[index];
    if (tol_pool_free(w->walk->pool, piece.block, w->stream) != TOL_OK) {
        pool_walk_note_trouble(w, "tol_pool_free");
        return;
    }
    w->live -= piece.bytes;
    w->pieces[index] = w->pieces[--w->count];
}

static void pool_walk_take_step(struct walker *w) {
    const struct hyp_walk_state *state = w->walk->state;
    uint64_t bytes = pool_walk_draw_bytes(w);
    bool grows = pool_walk_draw(w, 100) < state->allocate_percent || w->count == 0;
    if (grows && state->most_live != 0 && w->live + bytes > state->most_live) {
        if (w->count == 0) return;
        grows = false;
    }
    if (grows) {
        pool_walk_allocate(w, bytes);
    } else {
        pool_walk_drop(w, pool_walk_draw(w, w->count));
    }
}

/* ---- measuring: all other threads wait ------------------------------------------------------- */

/* The statistics, and what the driver allocated, which a thread of the pool may change while they
 * are read: they are read until they agree, for a tenth of a second at most. */
static tol_status pool_walk_read_both(struct hyp_walk *walk, struct tol_pool_stats *stats,
                                      uint64_t *held) {
    const struct timespec pause = {.tv_nsec = 100000};
    tol_status status = TOL_OK;
    for (int i = 0; i < 1000; i++) {
        status = tol_pool_stats(walk->pool, stats);
        *held = hyp_ledger_read().bytes - walk->state->base;
        if (status != TOL_OK || stats->held == *held) break;
        nanosleep(&pause, NULL);
    }
    return status;
}

static void pool_walk_sample(struct hyp_walk *walk, uint64_t held) {
    struct hyp_walk_state *state = walk->state;
    struct tol_pool_stats stats;
    struct walker *first = &state->walkers[0];
    if (pool_walk_read_both(walk, &stats, &held) != TOL_OK) {
        pool_walk_note_trouble(first, "tol_pool_stats");
        return;
    }
    if (state->has_file) {
        hyp_walk_csv_add(&state->file,
                         &(struct hyp_walk_row){walk->step, walk->requested, stats.used, held,
                                                stats.largest_hole});
    }
    if (first->trouble[0] == '\0' && (stats.held != held || stats.requested != walk->requested)) {
        snprintf(first->trouble, sizeof first->trouble,
                 "at step %llu the pool reports %llu bytes held and %llu requested, expected %llu "
                 "and %llu",
                 (unsigned long long)walk->step, (unsigned long long)stats.held,
                 (unsigned long long)stats.requested, (unsigned long long)held,
                 (unsigned long long)walk->requested);
    }
}

static void pool_walk_measure(struct hyp_walk *walk) {
    struct hyp_walk_state *state = walk->state;
    uint64_t before = walk->step, held = hyp_ledger_read().bytes - state->base;
    walk->requested = 0;
    walk->step += state->round * walk->threads;
    for (unsigned i = 0; i < walk->threads; i++) walk->requested += state->walkers[i].live;
    if (walk->requested > walk->requested_peak) walk->requested_peak = walk->requested;
    walk->final = walk->requested > 0 ? (double)held / (double)walk->requested : 0;
    if (walk->requested >= walk->floor_bytes && walk->final > walk->worst) {
        walk->worst = walk->final;
    }
    if (before / state->sample_every != walk->step / state->sample_every)
        pool_walk_sample(walk, held);
    for (unsigned i = 0; i < walk->threads; i++) {
        state->stop = state->stop || state->walkers[i].trouble[0] != '\0';
    }
}

static void *take_steps(void *user) {
    struct walker *w = user;
    struct hyp_walk *walk = w->walk;
    struct hyp_walk_state *state = walk->state;
    const uint64_t rounds = state->steps / (state->round * walk->threads);
    for (uint64_t round = 0; round < rounds && !state->stop; round++) {
        for (uint64_t i = 0; i < state->round && w->trouble[0] == '\0'; i++) pool_walk_take_step(w);
        if (walk->threads == 1) {
            pool_walk_measure(walk);
            continue;
        }
        pthread_barrier_wait(&state->barrier);
        if (w == state->walkers) pool_walk_measure(walk);
        pthread_barrier_wait(&state->barrier);
    }
    return NULL;
}

/* ---- a walk ---------------------------------------------------------------------------------- */

static void pool_walk_begin_file(struct hyp_walk *walk) {
    char path[1024];
    const char *out = walk->attack->session.out;
    struct hyp_walk_state *state = walk->state;
    if (out == NULL || walk->csv == NULL) return;
    snprintf(path, sizeof path, "%.700s/%.96s.%.60s.csv", out, walk->attack->record->name,
             walk->csv);
    state->has_file = hyp_walk_csv_begin(&state->file, path);
    cr_assert(state->has_file, "the evidence could not be written: %s", hyp_error());
}

static void pool_walk_begin(struct hyp_walk *walk) {
    struct tol_pool_stats stats;
    if (walk->threads == 0) walk->threads = 1;
    if (walk->scale == 0) walk->scale = 1;
    cr_assert(walk->threads <= THREADS_MAX, "a walk of %u threads", walk->threads);
    struct hyp_walk_state *state = calloc(1, sizeof *state);
    cr_assert(state != NULL, "no memory for a walk");
    walk->state = state;
    pthread_barrier_init(&state->barrier, NULL, walk->threads);
    for (unsigned i = 0; i < walk->threads; i++) {
        state->walkers[i] = (struct walker){.walk = walk, .random = hyp_random(walk->attack)};
        if (walk->threads == 1) continue;
        walk->broken |= !HYP_OK(walk->attack, tol_stream_create(walk->attack->context, NULL,
                                                                &state->walkers[i].stream));
    }
    walk->broken |= !HYP_OK(walk->attack, tol_pool_stats(walk->pool, &stats));
    state->base = hyp_ledger_read().bytes - stats.held;
    pool_walk_begin_file(walk);
}

/* What went wrong in any thread is a violation, noted here since only this one may. */
static void report_troubles(struct hyp_walk *walk) {
    for (unsigned i = 0; i < walk->threads; i++) {
        char *trouble = walk->state->walkers[i].trouble;
        if (trouble[0] == '\0') continue;
        walk->broken = true;
        HYP_CHECK(walk->attack, false, "%s", trouble);
        trouble[0] = '\0';
    }
}

void hyp_walk_steps(struct hyp_walk *walk, uint64_t steps, unsigned allocate_percent,
                    uint64_t most_live) {
    if (walk->state == NULL) pool_walk_begin(walk);
    struct hyp_walk_state *state = walk->state;
    if (walk->broken) return;
    const unsigned threads = walk->threads > 0 ? walk->threads : 1;
    const uint64_t samples = walk->samples > 0 ? walk->samples : 1000;
    state->steps = steps;
    state->round = threads == 1 ? 1 : 4;
    state->sample_every = steps / samples > 0 ? steps / samples : 1;
    state->allocate_percent = allocate_percent;
    state->most_live = most_live / threads;
    state->stop = false;
    for (unsigned i = 1; i < threads; i++) {
        int error = pthread_create(&state->walkers[i].thread, NULL, take_steps, &state->walkers[i]);
        cr_assert(error == 0, "no thread: %s", strerror(error));
    }
    take_steps(&state->walkers[0]);
    for (unsigned i = 1; i < threads; i++) pthread_join(state->walkers[i].thread, NULL);
    report_troubles(walk);
}

/* Events that were recorded a moment ago may not be done: it is tried again after a wait. */
static void give_all_back(struct hyp_walk *walk) {
    struct hyp_attack *attack = walk->attack;
    struct tol_pool_stats stats = {.held = 1};
    for (int i = 0; i < TRIES && stats.held > 0; i++) {
        if (i > 0 && !HYP_OK(attack, tol_context_synchronize(attack->context, 10000))) return;
        if (!HYP_OK(attack, tol_pool_trim(walk->pool, 0))) return;
        if (!HYP_OK(attack, tol_pool_stats(walk->pool, &stats))) return;
    }
    struct hyp_ledger ledger = hyp_ledger_read();
    HYP_CHECK(attack, stats.held == 0 && stats.requested == 0 && stats.blocks == 0,
              "after everything was freed the pool holds %llu bytes and reports %llu requested in "
              "%llu blocks",
              (unsigned long long)stats.held, (unsigned long long)stats.requested,
              (unsigned long long)stats.blocks);
    HYP_CHECK(attack, ledger.bytes == walk->state->base && ledger.foreign == 0,
              "after the pool was destroyed %lld bytes were not returned to the driver",
              (long long)(ledger.bytes - walk->state->base));
}

void hyp_walk_end(struct hyp_walk *walk) {
    struct hyp_walk_state *state = walk->state;
    if (state != NULL) {
        for (unsigned i = 0; i < walk->threads; i++) {
            struct walker *w = &state->walkers[i];
            while (w->count > 0 && w->trouble[0] == '\0') pool_walk_drop(w, w->count - 1);
        }
        report_troubles(walk);
        give_all_back(walk);
        for (unsigned i = 0; i < walk->threads; i++) {
            tol_stream_destroy(state->walkers[i].stream);
            free(state->walkers[i].pieces);
        }
        pthread_barrier_destroy(&state->barrier);
        if (state->has_file) {
            cr_assert(hyp_file_keep(&state->file), "the evidence could not be written: %s",
                      hyp_error());
        }
        free(state);
        walk->state = NULL;
    }
    tol_pool_destroy(walk->pool);
    walk->pool = NULL;
}

struct tol_pool *hyp_walk_pool(struct hyp_attack *attack,
                               void (*profile)(const struct tol_device *device,
                                               struct tol_pool_options *options),
                               uint64_t scale, uint64_t limit_bytes) {
    struct tol_pool_options options;
    struct tol_pool *pool = NULL;
    profile(tol_context_device(attack->context), &options);
    options.limit_bytes = (size_t)limit_bytes;
    /* Where there is a limit, one thread allocates, and it queues nothing meanwhile. */
    options.compact = limit_bytes > 0;
    if (scale > 1) {
        /* A small device has small blocks, and a pool to go with them. */
        options.page_bytes /= scale;
        options.first_bytes /= scale;
        options.double_bytes /= scale;
        options.large_bytes /= scale;
        options.slack_bytes /= scale;
        options.keep_bytes /= scale;
        options.magazine_bytes /= scale;
        options.park_bytes /= scale;
        options.magazine_max_bytes /= scale;
    }
    (void)hyp_sabotage_pool(attack->session.sabotage, &options);
    return HYP_OK(attack, tol_pool_create(attack->context, &options, &pool)) ? pool : NULL;
}
