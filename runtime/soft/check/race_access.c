/*
 * Splits the accesses of an instruction into lanes and words.
 */
#include "machine/cluster_member.h"
#include "machine/finding.h"
#include "race.h"
#include "machine/race_events.h"
#include "race_state.h"

/* Whether a block is of the lane's cluster; usually it is the lane's own. */
static bool race_access_is_near(const struct soft_checked_access *touch, uint32_t cta) {
    const struct soft_cluster *cluster = touch->warp->cta->cluster;
    if (cta == touch->mark.cta) return true;
    for (uint32_t r = 0; cluster != NULL && r < cluster->count; r++) {
        if (cluster->members[r]->number == cta) return true;
    }
    return false;
}

/* Each block has new shared memory, but the rows are reused. */
static void race_access_renew(struct soft_checked_access *touch, struct soft_row *row) {
    if (row->cta == touch->mark.cta) return;
    if (!race_access_is_near(touch, row->cta)) {
        soft_row_forget(row, &touch->race->clocks, touch->chunks);
    }
    row->cta = touch->mark.cta;
}

enum { PAGE_BYTES = SOFT_ROWS * SOFT_ROW_BYTES };

/* Forgets bytes of a row, from one offset in it to another. */
static void race_access_clear(struct soft_race *race, struct soft_row *row, uint32_t from,
                              uint32_t to) {
    if (from == 0 && to == SOFT_ROW_BYTES) {
        soft_row_forget(row, &race->clocks, &race->chunks);
        return;
    }
    if (!soft_row_expand(row, &race->chunks)) {
        atomic_store(&race->given_up, true);
        return;
    }
    for (uint32_t at = from; at < to; at++) {
        struct soft_cell *cell = row->bytes != NULL          ? &row->bytes[at]
                                 : at % SOFT_CELL_BYTES == 0 ? &row->words[at / SOFT_CELL_BYTES]
                                                             : NULL;
        if (cell != NULL) soft_cell_forget(cell, &race->clocks, &race->chunks);
    }
}

void soft_race_freed(struct soft_warp *warp, uint64_t address, uint64_t bytes) {
    struct soft_race_cta *own = warp->cta->race;
    if (own == NULL) return;
    struct soft_race *race = own->race;
    pthread_mutex_lock(&race->lock);
    for (uint64_t at = address, end = address + bytes; at < end;) {
        struct soft_cells *cells = soft_pages_find(&race->global, at / PAGE_BYTES);
        uint64_t row = at / SOFT_ROW_BYTES, stop = (row + 1) * SOFT_ROW_BYTES;
        if (stop > end) stop = end;
        if (cells != NULL) {
            race_access_clear(race, &cells->rows[row % SOFT_ROWS], (uint32_t)(at % SOFT_ROW_BYTES),
                              (uint32_t)(stop - row * SOFT_ROW_BYTES));
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

/* The row of an address; NULL: there is no memory for it. */
static struct soft_row *race_access_row(struct soft_checked_access *touch, uint64_t at) {
    struct soft_cells *cells = page_at(touch, at);
    if (cells == NULL) return NULL;
    struct soft_row *row = &cells->rows[at / SOFT_ROW_BYTES % SOFT_ROWS];
    if (touch->shared) race_access_renew(touch, row);
    return row;
}

/* The same, with cells. */
static struct soft_row *race_access_cells(struct soft_checked_access *touch, uint64_t at) {
    struct soft_row *row = race_access_row(touch, at);
    return row != NULL && soft_row_expand(row, touch->chunks) ? row : NULL;
}

/* false: there is no memory for cells. */
static bool race_access_check_range(struct soft_checked_access *touch) {
    uint64_t at = touch->begin, end = at + touch->bytes;
    while (at < end) {
        struct soft_row *row = race_access_cells(touch, at);
        if (row == NULL) return false;
        bool whole = at % SOFT_CELL_BYTES == 0 && end - at >= SOFT_CELL_BYTES;
        if (!whole && !soft_row_split(row, touch->chunks)) return false;
        const uint32_t byte = (uint32_t)(at % SOFT_ROW_BYTES);
        if (row->bytes == NULL) {
            soft_race_check(touch, &row->words[byte / SOFT_CELL_BYTES], at, SOFT_CELL_BYTES);
            at += SOFT_CELL_BYTES;
        } else {
            soft_race_check(touch, &row->bytes[byte], at, 1);
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

/* ---- the lanes of a warp ---- */

static void race_access_lanes(struct soft_checked_access *touch, uint32_t lanes) {
    const struct soft_instruction *in = touch->in;
    for (uint32_t left = lanes; left != 0; left &= left - 1) {
        touch->lane = (uint32_t)__builtin_ctz(left);
        touch->mark.lanes = 1u << touch->lane;
        touch->address = soft_access_address(touch->warp, in, touch->lane);
        if (touch->address % touch->bytes == 0) {
            soft_race_touch(touch, soft_access_space(in->mode));
        }
        touch->before |= touch->mark.lanes;
    }
}

/* The distance of the lanes' addresses, if it is the same for all that run: 0, or the bytes of an
 * access; -1: there is none. */
static int race_access_step(const struct soft_checked_access *touch) {
    const struct soft_warp *warp = touch->warp;
    const bool is_wide = (touch->in->mode & SOFT_ACCESS_WIDE_ADDRESS) != 0;
    const uint64_t *wide = SLOT(uint64_t, touch->in->a);
    const uint32_t *narrow = SLOT(uint32_t, touch->in->a);
    const uint32_t first = (uint32_t)__builtin_ctz(warp->mask);
    uint64_t moved = 0, beside = 0;
    for (uint32_t i = 0; i < SOFT_LANES; i++) {
        const uint64_t there = is_wide ? wide[i] - wide[first] : narrow[i] - narrow[first];
        const uint64_t active = warp->lane[i] != 0 ? UINT64_MAX : 0;
        moved |= there & active;
        beside |= (there ^ (uint64_t)(i - first) * touch->bytes) & active;
    }
    return beside == 0 ? (int)touch->bytes : moved == 0 ? 0 : -1;
}

/* Finds where the first lane of several accesses; all are in the same memory. false: they must be
 * checked one by one. */
static bool race_access_begin(struct soft_checked_access *touch, uint64_t bytes) {
    const uint32_t first = (uint32_t)__builtin_ctz(touch->warp->mask);
    touch->address = soft_access_address(touch->warp, touch->in, first);
    if (touch->address % touch->bytes != 0) return false;
    if (!race_access_locate(touch, soft_access_space(touch->in->mode))) return false;
    return !touch->shared || (touch->home == touch->warp->cta &&
                              touch->begin + bytes <= touch->warp->cta->shared_bytes);
}

/* The lanes of a line that are in a row; start: of the line, after the row's begin. */
static uint32_t race_access_in_row(uint32_t lanes, int64_t start, unsigned bytes) {
    const int64_t from = start < 0 ? -start / bytes : 0, to = (SOFT_ROW_BYTES - start) / bytes;
    if (from >= SOFT_LANES || to <= 0) return 0;
    return lanes & UINT32_MAX << from & (to < SOFT_LANES ? (1u << to) - 1 : UINT32_MAX);
}

/* Checks adjacent lanes row by row. */
static void race_access_line(struct soft_checked_access *touch, uint64_t bytes) {
    const uint32_t mask = touch->warp->mask, first = (uint32_t)__builtin_ctz(mask);
    const uint64_t begin = touch->begin;
    struct soft_row_line line = {.mark = touch->mark,
                                 .shift = (uint8_t)__builtin_ctz(touch->bytes),
                                 .writes = touch->writes};
    line.mark.lanes = mask;
    for (uint64_t at = begin - begin % SOFT_ROW_BYTES; at < begin + bytes; at += SOFT_ROW_BYTES) {
        const int64_t start = (int64_t)(begin - at) - (int64_t)first * touch->bytes;
        const uint32_t lanes = race_access_in_row(mask, start, touch->bytes);
        struct soft_row *row = lanes != 0 ? race_access_row(touch, at) : NULL;
        line.start = (int16_t)start;
        if (lanes == 0) continue;
        if (row == NULL) {
            atomic_store(&touch->race->given_up, true);
        } else if (!soft_row_take(touch, row, &line)) {
            race_access_lanes(touch, lanes);
        }
    }
}

/* Checks lanes that read the same words. */
static bool race_access_same(struct soft_checked_access *touch) {
    const struct soft_warp *warp = touch->warp;
    if (touch->bytes % SOFT_CELL_BYTES != 0) return false;
    struct soft_row *row = race_access_cells(touch, touch->begin);
    if (row == NULL || row->bytes != NULL) return false;
    struct soft_cell *cells = &row->words[touch->begin % SOFT_ROW_BYTES / SOFT_CELL_BYTES];
    touch->lane = (uint32_t)__builtin_ctz(warp->mask);
    touch->mark.lanes = warp->mask;
    for (uint32_t i = 0; i < touch->bytes / SOFT_CELL_BYTES; i++) {
        if (!soft_race_check_together(touch, &cells[i])) return false;
    }
    return true;
}

/* Whether what the warp knows is the same for all its lanes, apart from themselves. */
static bool race_access_is_uniform(const struct soft_checked_access *touch) {
    return !touch->cta->acquired && !touch->cta->warps[touch->mark.warp].parted;
}

/* Checks weak accesses of lanes that are adjacent, or read the same words. false: they must be
 * checked one by one; those checked already are checked again, which changes nothing. */
static bool race_access_together(struct soft_checked_access *touch) {
    const uint32_t mask = touch->warp->mask, bytes = touch->bytes;
    const uint32_t lanes = 32 - (uint32_t)__builtin_clz(mask) - (uint32_t)__builtin_ctz(mask);
    if (touch->mark.atomic || touch->mark.scope != SOFT_SCOPE_WEAK) return false;
    if (bytes > 16 || (bytes & (bytes - 1)) != 0) return false;
    const int step = race_access_step(touch);
    if (step < 0) return false;
    const uint64_t all = step > 0 ? (uint64_t)lanes * bytes : bytes;
    if (!race_access_begin(touch, all)) return false;
    if (step == 0) {
        return !touch->writes && race_access_is_uniform(touch) && race_access_same(touch);
    }
    race_access_line(touch, all);
    return true;
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
    if (!race_access_together(&touch)) race_access_lanes(&touch, warp->mask);
    soft_race_note_end(&touch);
}
