/*
 * All of the table of states: each pair of a state and an event, and what must hold of the whole.
 */
#include "guard/guard_machine.h"

#include <criterion/criterion.h>
#include <string.h>

/* What the list says of a pair, read by an own walk over it. */
static size_t rows_of(enum guard_state state, enum guard_event event) {
    size_t count = 0, found = 0;
    const struct guard_move *moves = guard_machine_moves(&count);
    for (size_t i = 0; i < count; i++) found += moves[i].from == state && moves[i].event == event;
    return found;
}

Test(guard_machine, every_pair_has_one_row_or_is_refused) {
    size_t rows = 0, refused = 0, count = 0;
    guard_machine_moves(&count);
    for (unsigned state = 0; state < GUARD_STATES; state++) {
        for (unsigned event = 0; event < GUARD_EVENTS; event++) {
            const enum guard_state from = (enum guard_state)state;
            const enum guard_event on = (enum guard_event)event;
            const struct guard_move *move = guard_machine_step(from, on);
            const size_t found = rows_of(from, on);
            cr_assert(found == (move != NULL), "%s, %s: %zu rows", guard_state_name(state),
                      guard_event_name(event), found);
            if (move == NULL) {
                refused++;
                continue;
            }
            cr_assert(move->from == from && move->event == on && move->to < GUARD_STATES);
            rows++;
        }
    }
    cr_assert(rows == count && rows + refused == GUARD_STATES * GUARD_EVENTS);
}

/* From where a state can be reached by moves; bit per state. */
static unsigned reachable(enum guard_state from) {
    size_t count = 0;
    const struct guard_move *moves = guard_machine_moves(&count);
    unsigned seen = 1u << from;
    for (unsigned before = 0; before != seen;) {
        before = seen;
        for (size_t i = 0; i < count; i++) {
            if (seen & 1u << moves[i].from) seen |= 1u << moves[i].to;
        }
    }
    return seen;
}

Test(guard_machine, every_state_is_reached_and_only_two_are_the_end) {
    cr_assert(reachable(GUARD_OFF) == (1u << GUARD_STATES) - 1);
    for (unsigned state = 0; state < GUARD_STATES; state++) {
        size_t ways = 0;
        for (unsigned e = 0; e < GUARD_EVENTS; e++) {
            ways += guard_machine_step((enum guard_state)state, (enum guard_event)e) != NULL;
        }
        const bool is_end = state == GUARD_FENCED || state == GUARD_CLOSED;
        cr_assert((ways == 0) == is_end, "%s", guard_state_name(state));
        if (is_end) continue;
        /* Whatever happens, there is a way to both ends. */
        const unsigned both = 1u << GUARD_FENCED | 1u << GUARD_CLOSED;
        cr_assert((reachable((enum guard_state)state) & both) != 0, "%s", guard_state_name(state));
    }
}

static bool has_process(enum guard_state state) {
    return state == GUARD_PROBING || state == GUARD_STARTING || state == GUARD_READY ||
           state == GUARD_BUSY || state == GUARD_ENDING || state == GUARD_CLOSING;
}

Test(guard_machine, a_process_that_is_left_was_killed_or_is_gone) {
    size_t count = 0;
    const struct guard_move *moves = guard_machine_moves(&count);
    for (size_t i = 0; i < count; i++) {
        const struct guard_move *m = &moves[i];
        const bool is_gone = m->event == GUARD_ON_GONE || m->event == GUARD_ON_GONE_LAST ||
                             m->event == GUARD_ON_GONE_CLOSED || m->event == GUARD_ON_PROBED;
        /* Whoever was lost is given no new process before its old one is gone. */
        if (has_process(m->from) && !has_process(m->to)) {
            cr_assert(is_gone || (m->from == GUARD_ENDING && m->event == GUARD_ON_LATE));
        }
        cr_assert((m->action == GUARD_DO_KILL) == (m->to == GUARD_ENDING));
        cr_assert((m->action == GUARD_DO_PROBE) == (m->to == GUARD_PROBING));
        cr_assert((m->action == GUARD_DO_START) == (m->to == GUARD_STARTING));
        cr_assert((m->action == GUARD_DO_REST) == (m->to == GUARD_RESTING));
        cr_assert((m->action == GUARD_DO_FENCE) == (m->to == GUARD_FENCED));
        /* A worker is started after a probe alone. */
        cr_assert(m->to != GUARD_STARTING || m->event == GUARD_ON_PROBED);
    }
}

Test(guard_machine, what_can_happen_at_any_time_has_a_row_wherever_there_is_a_process) {
    for (unsigned state = 0; state < GUARD_STATES; state++) {
        const enum guard_state s = (enum guard_state)state;
        if (!has_process(s)) continue;
        const bool ends = guard_machine_step(s, GUARD_ON_GONE) != NULL ||
                          guard_machine_step(s, GUARD_ON_GONE_CLOSED) != NULL;
        cr_assert(ends, "a process can die while %s", guard_state_name(state));
        cr_assert(guard_machine_step(s, GUARD_ON_LATE) != NULL, "%s", guard_state_name(state));
    }
}

Test(guard_machine, names_are_words_and_differ) {
    for (unsigned a = 0; a < GUARD_STATES; a++) {
        cr_assert(strlen(guard_state_name(a)) > 2);
        for (unsigned b = 0; b < a; b++) {
            cr_assert_str_neq(guard_state_name(a), guard_state_name(b));
        }
    }
    for (unsigned a = 0; a < GUARD_EVENTS; a++) {
        for (unsigned b = 0; b < a; b++) {
            cr_assert_str_neq(guard_event_name(a), guard_event_name(b));
        }
    }
    cr_assert_str_eq(guard_state_name(GUARD_STATES), "?");
    cr_assert_str_eq(guard_event_name(GUARD_EVENTS), "?");
}
