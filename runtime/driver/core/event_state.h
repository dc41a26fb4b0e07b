/*
 * The fields of struct tol_event.
 */
#ifndef TOLLENS_EVENT_STATE_H
#define TOLLENS_EVENT_STATE_H

#include "context_state.h"

struct tol_event {
    struct tol_context *context;
    CUevent handle;
    bool timed;
    _Atomic uint64_t capture_id; /* of the capture it was recorded in; 0: none */
};

#endif
