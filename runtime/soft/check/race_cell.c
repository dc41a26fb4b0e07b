/*
 * One word: its last writer, its readers since then, and what its strong writes pass on.
 *
 * Of mutually ordered accesses only the last is kept, because whatever is ordered after it is
 * ordered after all of them. Two races of the memory model are reported with race=strict alone. A
 * weak read concurrent with atomics gets one of their values; programs read like this before a
 * compare-and-swap, as in the CUDA Programming Guide. And without strict, a strong read is treated
 * as if a fence followed it.
 */
#include "race_state.h"

#include <string.h>

static bool both_strong(const struct soft_checked_access *touch, const struct soft_mark *mark) {
    unsigned scope = mark->scope < touch->mark.scope ? mark->scope : touch->mark.scope;
    if (mark->cta == touch->mark.cta) return scope != SOFT_SCOPE_WEAK;
    return scope > SOFT_SCOPE_CTA;
}

/* Whether the lane is ordered after a strong read that observed the word's last write. */
static bool has_seen(const struct soft_checked_access *touch, const struct soft_flag *flag) {
    if (flag == NULL) return false;
    if (flag->seers > SOFT_SEERS_MAX) return true;
    for (uint32_t i = 0; i < flag->seers; i++) {
        if (soft_race_ordered(touch, &flag->seen[i])) return true;
    }
    return false;
}

static bool races_with_write(const struct soft_checked_access *touch,
                             const struct soft_cell *cell) {
    const struct soft_mark *write = &cell->write;
    if (write->time == 0 || both_strong(touch, write)) return false;
    if (write->atomic && !touch->writes && !touch->race->is_strict) return false;
    return !soft_race_ordered(touch, write) &&
           !(write->scope != SOFT_SCOPE_WEAK && has_seen(touch, cell->flag));
}

static bool races_with_read(const struct soft_checked_access *touch, const struct soft_mark *read) {
    if (read->time == 0 || both_strong(touch, read)) return false;
    if (touch->mark.atomic && !touch->race->is_strict) return false;
    return !soft_race_ordered(touch, read);
}

static bool same_moment(const struct soft_mark *one, const struct soft_mark *other) {
    return one->cta == other->cta && one->warp == other->warp && one->time == other->time &&
           one->scope == other->scope && one->copies == other->copies &&
           one->pending == other->pending && one->product == other->product;
}

/* Adds a read to those that are not ordered with it. */
static void add_reader(struct soft_checked_access *touch, struct soft_cell *cell) {
    if (cell->read.time == 0 || soft_race_ordered(touch, &cell->read)) {
        /* It may still be unordered with the others. */
        cell->read = touch->mark;
    }
    if (same_moment(&cell->read, &touch->mark)) {
        cell->read.lanes |= touch->mark.lanes;
        return;
    }
    if (cell->more == NULL) {
        cell->more = soft_chunk_take(touch->chunks, sizeof *cell->more);
        if (cell->more == NULL) return;
    }
    struct soft_readers *more = cell->more;
    uint32_t place = more->count, oldest = 0;
    for (uint32_t i = more->count; i > 0; i--) {
        struct soft_mark *mark = &more->marks[i - 1];
        if (same_moment(mark, &touch->mark)) {
            mark->lanes |= touch->mark.lanes;
            return;
        }
        if (soft_race_ordered(touch, mark)) place = i - 1;
        if (mark->time < more->marks[oldest].time) oldest = i - 1;
    }
    if (place == SOFT_READERS_MAX) {
        place = oldest;
    } else if (place == more->count) {
        more->count++;
    }
    more->marks[place] = touch->mark;
}

bool soft_race_check_together(struct soft_checked_access *touch, struct soft_cell *cell) {
    const struct soft_mark *write = &cell->write;
    /* A weak read beside an atomic is no race, unless strict. */
    bool is_allowed = write->time == 0 || (write->atomic && !touch->race->is_strict);
    if (!is_allowed && !soft_race_all_ordered(touch, write)) return false;
    add_reader(touch, cell);
    return true;
}

/* A write discards the reads and the flag of the previous value. */
static void forget_readers(struct soft_checked_access *touch, struct soft_cell *cell) {
    cell->read = (struct soft_mark){0};
    soft_chunk_give(touch->chunks, cell->more, sizeof *cell->more);
    cell->more = NULL;
}

static struct soft_flag *flag_of(struct soft_checked_access *touch, struct soft_cell *cell) {
    if (cell->flag == NULL) cell->flag = soft_chunk_take(touch->chunks, sizeof *cell->flag);
    return cell->flag;
}

static void put_clock(struct soft_checked_access *touch, struct soft_clock **place,
                      struct soft_clock *clock, bool joins) {
    struct soft_clocks *clocks = &touch->race->clocks;
    struct soft_clock *both =
        joins ? soft_clock_join(clocks, *place, clock) : soft_clock_hold(clock);
    soft_clock_drop(clocks, *place);
    *place = both;
}

/* A write passes on its lane's fenced clock; an atomic also that of the write it observed. */
static void hand_on(struct soft_checked_access *touch, struct soft_cell *cell) {
    bool strong = touch->mark.scope != SOFT_SCOPE_WEAK, joins = touch->mark.atomic;
    bool near_only = touch->shared && touch->warp->cta->cluster == NULL;
    bool far = touch->mark.scope > SOFT_SCOPE_CTA && !near_only;
    struct soft_clock *released = far ? soft_race_released(touch, false) : NULL;
    struct soft_clock *near = strong ? soft_race_released(touch, true) : NULL;
    if (cell->flag == NULL && released == NULL && near == NULL) return;
    struct soft_flag *flag = flag_of(touch, cell);
    if (flag == NULL) return;
    put_clock(touch, &flag->released, released, joins);
    put_clock(touch, &flag->near, near, joins && flag->near_cta == touch->mark.cta);
    flag->near_cta = touch->mark.cta;
    flag->seers = 0;
}

/* A strong read gets the clock of the write that it observes, if their scopes include each
 * other. */
static void race_cell_take(struct soft_checked_access *touch, struct soft_cell *cell) {
    if (cell->write.time == 0 || !both_strong(touch, &cell->write)) return;
    struct soft_flag *flag = flag_of(touch, cell);
    if (flag == NULL) return;
    if (touch->acquires) {
        if (touch->mark.scope > SOFT_SCOPE_CTA) soft_race_learn(touch, flag->released);
        if (flag->near_cta == touch->mark.cta) soft_race_learn(touch, flag->near);
    }
    for (uint32_t i = 0; i < flag->seers && i < SOFT_SEERS_MAX; i++) {
        bool again = flag->seen[i].lanes == touch->mark.lanes;
        if (again && same_moment(&flag->seen[i], &touch->mark)) return;
    }
    if (flag->seers < SOFT_SEERS_MAX) flag->seen[flag->seers] = touch->mark;
    if (flag->seers <= SOFT_SEERS_MAX) flag->seers++;
}

/* The copy's lane has nothing pending here any more. */
static void race_cell_settle(const struct soft_checked_access *touch, struct soft_mark *mark) {
    if (!mark->pending || mark->cta != touch->mark.cta || mark->warp != touch->mark.warp ||
        mark->site != touch->mark.site) {
        return;
    }
    mark->lanes &= ~touch->mark.lanes;
    if (mark->lanes == 0) *mark = (struct soft_mark){0};
}

static void settle_all(const struct soft_checked_access *touch, struct soft_cell *cell) {
    if (touch->writes) race_cell_settle(touch, &cell->write);
    if (touch->writes) return;
    race_cell_settle(touch, &cell->read);
    for (uint32_t i = 0; cell->more != NULL && i < cell->more->count; i++) {
        race_cell_settle(touch, &cell->more->marks[i]);
    }
}

void soft_race_check(struct soft_checked_access *touch, struct soft_cell *cell, uint64_t at,
                     unsigned bytes) {
    if (touch->settles) settle_all(touch, cell);
    bool behind = !races_with_write(touch, cell);
    if (!behind) {
        soft_race_tell(touch, &cell->write, true, at, bytes);
    } else if (touch->writes) {
        const struct soft_mark *read = races_with_read(touch, &cell->read) ? &cell->read : NULL;
        for (uint32_t i = 0; cell->more != NULL && i < cell->more->count && read == NULL; i++) {
            if (races_with_read(touch, &cell->more->marks[i])) read = &cell->more->marks[i];
        }
        if (read != NULL) soft_race_tell(touch, read, false, at, bytes);
    }
    if (behind && touch->mark.proxied && touch->mark.pending && cell->write.time != 0 &&
        !cell->write.proxied && !soft_race_is_proxied(touch, &cell->write)) {
        soft_race_tell_proxy(touch, &cell->write);
    }
    bool strong = touch->mark.scope != SOFT_SCOPE_WEAK;
    if (touch->reads && strong) race_cell_take(touch, cell);
    if (!touch->writes) {
        add_reader(touch, cell);
        return;
    }
    hand_on(touch, cell);
    bool again = same_moment(&cell->write, &touch->mark) && cell->write.site == touch->mark.site &&
                 (cell->write.lanes & touch->before) != 0;
    uint32_t lanes = again ? cell->write.lanes : 0;
    forget_readers(touch, cell);
    cell->write = touch->mark;
    if (!touch->mark.atomic) cell->write.lanes |= lanes;
}
