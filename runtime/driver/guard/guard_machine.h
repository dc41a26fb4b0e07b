/*
 * The machine of a guarded device: the table of guard_states.def as a function.
 *
 * It starts no process and reads no clock, so that a test can walk all of it.
 */
#ifndef TOLLENS_GUARD_MACHINE_H
#define TOLLENS_GUARD_MACHINE_H

#include "core/check.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum guard_state {
#define GUARD_STATE(name, word, meaning) GUARD_##name,
#include "guard_states.def"
#undef GUARD_STATE
    GUARD_STATES
};

enum guard_event {
#define GUARD_EVENT(name, word, meaning) GUARD_ON_##name,
#include "guard_states.def"
#undef GUARD_EVENT
    GUARD_EVENTS
};

enum guard_action {
#define GUARD_ACTION(name) GUARD_DO_##name,
#include "guard_states.def"
#undef GUARD_ACTION
    GUARD_ACTIONS
};

/* One row of the table. */
struct guard_move {
    enum guard_state from;
    enum guard_event event;
    enum guard_state to;
    enum guard_action action;
};

/* The rows, in the order of the list. Static. */
const struct guard_move *guard_machine_moves(size_t *count);

/* The row of a state and an event; NULL: the event cannot happen in the state. Static. */
const struct guard_move *guard_machine_step(enum guard_state state, enum guard_event event);

/* "resting", "gone for good"; "?" for an invalid number. Static. */
const char *guard_state_name(unsigned state);
const char *guard_event_name(unsigned event);

#endif
