/*
 * Whether other blocks have finished with the shared memory of a block that exits.
 *
 * A block of a cluster must not exit before the others' accesses to its shared memory are complete:
 * one of its threads must have waited for them, usually at the cluster barrier. So each access of
 * another block in the memory's cells is compared with the joint clock of the block's threads at
 * their exit.
 */
#include "machine/cluster_member.h"
#include "machine/race_events.h"
#include "race_state.h"

struct exit {
    struct soft_cta *cta;
    struct soft_clock *known; /* of all its threads */
};

static bool race_exit_is_known(const struct exit *exit, const struct soft_mark *mark) {
    const struct soft_race_cta *own = exit->cta->race;
    if (mark->time == 0 || mark->pending || mark->cta == own->number) return true;
    if (mark->lanes == 0) return true;
    return exit->known != NULL && soft_clock_covers(&own->race->clocks, exit->known, mark->cta,
                                                    mark->warp, mark->lanes, mark->time);
}

static void check_mark(const struct exit *exit, const struct soft_mark *mark, uint64_t at) {
    if (race_exit_is_known(exit, mark)) return;
    for (uint32_t r = 0; r < soft_cluster_count(exit->cta); r++) {
        struct soft_cta *other = soft_cluster_member(exit->cta, r);
        /* Cells of an earlier block do not count. */
        if (other->number == mark->cta) soft_race_tell_exit(exit->cta, other, mark, at);
    }
}

static void race_exit_check_cell(const struct exit *exit, const struct soft_cell *cell,
                                 uint64_t at) {
    check_mark(exit, &cell->write, at);
    check_mark(exit, &cell->read, at);
    for (uint32_t i = 0; cell->more != NULL && i < cell->more->count; i++) {
        check_mark(exit, &cell->more->marks[i], at);
    }
}

/* Lines are of the block itself. */
static void race_exit_check_row(const struct exit *exit, const struct soft_row *row,
                                uint64_t begin) {
    const struct soft_cell *cells = row->bytes != NULL ? row->bytes : row->words;
    const uint32_t count = row->bytes != NULL ? SOFT_ROW_BYTES : SOFT_CELLS;
    for (uint32_t i = 0; cells != NULL && i < count; i++) {
        race_exit_check_cell(exit, &cells[i], begin + i * (SOFT_ROW_BYTES / count));
    }
}

static void check_page(uint64_t number, void *record, void *data) {
    const struct soft_cells *cells = record;
    for (uint32_t r = 0; r < SOFT_ROWS; r++) {
        race_exit_check_row(data, &cells->rows[r], (number * SOFT_ROWS + r) * SOFT_ROW_BYTES);
    }
}

void soft_race_exit(struct soft_cta *cta) {
    struct soft_race_cta *own = cta->race;
    struct exit exit = {.cta = cta};
    if (own == NULL || atomic_load(&own->race->given_up)) return;
    struct soft_clocks *clocks = &own->race->clocks;
    pthread_mutex_lock(&own->race->lock);
    for (uint32_t w = 0; w < own->warp_count && own->acquired; w++) {
        for (uint32_t lane = 0; lane < SOFT_LANES; lane++) {
            struct soft_clock *one = own->warps[w].known[lane];
            if (one == NULL || one == exit.known) continue;
            struct soft_clock *both = soft_clock_join(clocks, exit.known, one);
            soft_clock_drop(clocks, exit.known);
            exit.known = both;
        }
    }
    soft_pages_each(&own->shared, check_page, &exit);
    soft_clock_drop(clocks, exit.known);
    pthread_mutex_unlock(&own->race->lock);
}
