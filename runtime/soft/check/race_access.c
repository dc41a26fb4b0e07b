/*
 * Splits the accesses of an instruction into lanes and words.
 */
#include "machine/cluster_member.h"
#include "machine/finding.h"
#include "race.h"
#include "machine/race_events.h"
#include "race_state.h"

/* The cells of one byte each, where a page has words so far. */
static bool race_access_split(struct soft_checked_access *touch, struct soft_cells *cells) {
    if (cells->bytes != NULL) return true;
    struct soft_cell *bytes =
        soft_chunk_take(touch->chunks, SOFT_CELLS * SOFT_CELL_BYTES * sizeof *bytes);
    if (bytes == NULL) return false;
    for (uint32_t i = 0; i < SOFT_CELLS * SOFT_CELL_BYTES; i++) {
        bytes[i] = cells->words[i / SOFT_CELL_BYTES];
        if (bytes[i].more == NULL || i % SOFT_CELL_BYTES == 0) continue;
        bytes[i].more = soft_chunk_take(touch->chunks, sizeof *bytes[i].more);
        if (bytes[i].more == NULL) continue;
        *bytes[i].more = *cells->words[i / SOFT_CELL_BYTES].more;
    }
    cells->bytes = bytes;
    return true;
}

static void race_access_forget(struct soft_clocks *clocks, struct soft_chunks *chunks,
                               struct soft_cell *cell) {
    soft_chunk_give(chunks, cell->more, sizeof *cell->more);
    if (cell->flag != NULL) {
        soft_clock_drop(clocks, cell->flag->released);
        soft_clock_drop(clocks, cell->flag->near);
    }
    soft_chunk_give(chunks, cell->flag, sizeof *cell->flag);
    *cell = (struct soft_cell){0};
}

/* Whether a mark is of the block's cluster; usually it is of the block itself. */
static bool race_access_is_near(const struct soft_checked_access *touch,
                                const struct soft_mark *mark) {
    const struct soft_cluster *cluster = touch->warp->cta->cluster;
    if (mark->time == 0 || mark->cta == touch->mark.cta) return true;
    for (uint32_t r = 0; cluster != NULL && r < cluster->count; r++) {
        if (cluster->members[r]->number == mark->cta) return true;
    }
    return false;
}

/* Each block has new shared memory, but the cells are reused. */
static void race_access_renew(struct soft_checked_access *touch, struct soft_cell *cell) {
    bool old =
        !race_access_is_near(touch, &cell->write) || !race_access_is_near(touch, &cell->read);
    if (old) race_access_forget(&touch->race->clocks, touch->chunks, cell);
}

static void race_access_check_cell(struct soft_checked_access *touch, struct soft_cell *cell,
                                   uint64_t at, unsigned bytes) {
    if (touch->shared) race_access_renew(touch, cell);
    soft_race_check(touch, cell, at, bytes);
}

enum { PAGE_BYTES = SOFT_CELLS * SOFT_CELL_BYTES };

void soft_race_freed(struct soft_warp *warp, uint64_t address, uint64_t bytes) {
    struct soft_race_cta *own = warp->cta->race;
    if (own == NULL) return;
    struct soft_race *race = own->race;
    pthread_mutex_lock(&race->lock);
    for (uint64_t at = address, end = address + bytes; at < end;) {
        struct soft_cells *cells = soft_pages_find(&race->global, at / PAGE_BYTES);
        uint64_t stop = (at / PAGE_BYTES + 1) * PAGE_BYTES;
        for (; cells != NULL && at < stop && at < end; at++) {
            if (cells->bytes != NULL) {
                race_access_forget(&race->clocks, &race->chunks, &cells->bytes[at % PAGE_BYTES]);
            } else if (at % SOFT_CELL_BYTES == 0) {
                struct soft_cell *cell = &cells->words[at % PAGE_BYTES / SOFT_CELL_BYTES];
                race_access_forget(&race->clocks, &race->chunks, cell);
            }
        }
        at = stop;
    }
    pthread_mutex_unlock(&race->lock);
}

/* The page of an address, usually that of the previous lane. */
static struct soft_cells *page_at(struct soft_checked_access *touch, uint64_t at) {
    uint64_t number = at / PAGE_BYTES;
    if (touch->page == NULL || touch->page_number != number ||
        touch->page_shared != touch->shared) {
        touch->page = soft_pages_at(
            touch->shared ? &touch->home->race->shared : &touch->race->global, number);
        touch->page_number = number;
        touch->page_shared = touch->shared;
    }
    return touch->page;
}

/* false: there is no memory for cells. */
static bool race_access_check_range(struct soft_checked_access *touch) {
    uint64_t at = touch->begin, end = at + touch->bytes;
    while (at < end) {
        struct soft_cells *cells = page_at(touch, at);
        if (cells == NULL) return false;
        bool whole = at % SOFT_CELL_BYTES == 0 && end - at >= SOFT_CELL_BYTES;
        if (!whole && !race_access_split(touch, cells)) return false;
        if (cells->bytes == NULL) {
            race_access_check_cell(touch, &cells->words[at % PAGE_BYTES / SOFT_CELL_BYTES], at,
                                   SOFT_CELL_BYTES);
            at += SOFT_CELL_BYTES;
        } else {
            race_access_check_cell(touch, &cells->bytes[at % PAGE_BYTES], at, 1);
            at++;
        }
    }
    return true;
}

/* The place of a lane's access. false: it need not be checked, because no other thread can reach it
 * or because it will be reported anyway. */
static bool race_access_locate(struct soft_checked_access *touch, enum soft_access_space space) {
    touch->begin = touch->address;
    if (space == SOFT_SPACE_GENERIC) space = soft_access_resolve(&touch->begin);
    touch->shared = space == SOFT_SPACE_SHARED || space == SOFT_SPACE_CLUSTER;
    touch->chunks = &touch->race->chunks;
    if (!touch->shared) return space == SOFT_SPACE_GLOBAL;
    uint32_t room = touch->warp->cta->shared_bytes, offset = 0;
    struct soft_cta *home = soft_cluster_find(touch->warp->cta, (uint32_t)touch->begin, &offset);
    if (home == NULL || home->race == NULL || touch->bytes > room || offset > room - touch->bytes) {
        return false;
    }
    if (touch->home != home) touch->page = NULL;
    touch->home = home;
    touch->begin = offset;
    touch->chunks = &home->race->chunks;
    return true;
}

void soft_race_touch(struct soft_checked_access *touch, enum soft_access_space space) {
    if (race_access_locate(touch, space) && !race_access_check_range(touch))
        atomic_store(&touch->race->given_up, true);
}

void soft_race_note_end(const struct soft_checked_access *touch) {
    struct soft_race *race = touch->race;
    if (race->clocks.failed) atomic_store(&race->given_up, true);
    if (!atomic_load(&race->given_up)) return;
    soft_launch_note(touch->warp, touch->in, "unfinished check", touch->warp->mask, 0,
                     "out of host memory: this launch is not checked for races any further");
}

void soft_race_access(struct soft_warp *warp, const struct soft_instruction *in) {
    struct soft_race_cta *own = warp->cta->race;
    struct soft_race *race = own->race;
    bool atomic = in->op == SOFT_OP_atom, writes = (in->mode & SOFT_ACCESS_STORE) != 0;
    if (in->mode & SOFT_ACCESS_RELEASE) soft_race_fence(warp, soft_access_scope(in->mode));
    struct soft_checked_access touch = {
        .warp = warp,
        .in = in,
        .race = race,
        .cta = own,
        .mark = {.cta = own->number,
                 .time = own->time,
                 .site = in->site,
                 .warp = (uint8_t)warp->index,
                 .scope = (uint8_t)soft_access_scope(in->mode),
                 .atomic = atomic},
        .reads = atomic || !writes,
        .writes = writes,
        .plain = true,
        .bytes = soft_access_bytes(in->mode) * soft_access_count(in->mode),
        .acquires = !writes || (atomic && (in->mode & SOFT_ACCESS_NO_RESULT) == 0),
        .observes = race->is_strict && (in->mode & SOFT_ACCESS_ACQUIRE) == 0,
    };
    for (uint32_t left = warp->mask; left != 0; left &= left - 1) {
        touch.lane = (uint32_t)__builtin_ctz(left);
        touch.mark.lanes = 1u << touch.lane;
        touch.address = soft_access_address(warp, in, touch.lane);
        if (touch.address % touch.bytes == 0) soft_race_touch(&touch, soft_access_space(in->mode));
        touch.before |= touch.mark.lanes;
    }
    soft_race_note_end(&touch);
}
