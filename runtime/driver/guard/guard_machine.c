/*
 * The table of guard_states.def. It has some forty rows and is read a few times per job, so it is
 * searched from its beginning.
 */
#include "guard_machine.h"

static const struct guard_move moves[] = {
#define GUARD_MOVE(from, event, to, action)                                                        \
    {GUARD_##from, GUARD_ON_##event, GUARD_##to, GUARD_DO_##action},
#include "guard_states.def"
#undef GUARD_MOVE
};
enum { MOVES = sizeof moves / sizeof moves[0] };

const struct guard_move *guard_machine_moves(size_t *count) {
    *count = MOVES;
    return moves;
}

const struct guard_move *guard_machine_step(enum guard_state state, enum guard_event event) {
    for (size_t i = 0; i < MOVES; i++) {
        if (moves[i].from == state && moves[i].event == event) return &moves[i];
    }
    return NULL;
}

const char *guard_state_name(unsigned state) {
    static const char *const names[] = {
#define GUARD_STATE(name, word, meaning) word,
#include "guard_states.def"
#undef GUARD_STATE
    };
    return state < GUARD_STATES ? names[state] : "?";
}

const char *guard_event_name(unsigned event) {
    static const char *const names[] = {
#define GUARD_EVENT(name, word, meaning) word,
#include "guard_states.def"
#undef GUARD_EVENT
    };
    return event < GUARD_EVENTS ? names[event] : "?";
}
