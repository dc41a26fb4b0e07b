/*
 * What kernels in streams may overlap.
 */
#include "dependence.h"

#include "base/options.h"
#include "machine/prior.h"

bool soft_dependence_on(void) {
    return soft_options()->check_sync;
}

/* Whether a module has griddepcontrol. Its kernels probably have dependents. */
static bool dependence_is_programmatic(const struct soft_module *module) {
    for (unsigned u = 0; u < module->unit_count; u++) {
        if (module->units[u].ptx.programmatic) return true;
    }
    return false;
}

void soft_dependence_forget(struct soft_stream *stream) {
    struct soft_dependence *own = &stream->dependence;
    soft_prior_drop(own->last);
    for (unsigned i = 0; i < own->event_count; i++) soft_prior_drop(own->events[i]);
    *own = (struct soft_dependence){0};
}

/* A kernel that was queued without recording its accesses, and has not begun, can still record
 * them. */
static void keep_last(struct soft_stream *stream) {
    struct soft_operation *last = stream->last;
    if (last == NULL || last->launch == NULL || last->begun || last->launch->prior != NULL) return;
    soft_prior_keep(last->launch);
    stream->dependence.last = soft_prior_hold(last->launch->prior);
}

static void queue_launch(struct soft_stream *stream, struct soft_operation *operation) {
    struct soft_launch *launch = operation->launch;
    struct soft_dependence *own = &stream->dependence;
    bool programmatic = operation->task.is.kernel.programmatic;
    if (programmatic) keep_last(stream);
    if (programmatic) soft_prior_add(launch, own->last);
    for (unsigned i = 0; i < own->event_count; i++) soft_prior_add(launch, own->events[i]);
    if (launch->after_count > 0 || dependence_is_programmatic(launch->module))
        soft_prior_keep(launch);
    soft_dependence_forget(stream);
    own->last = soft_prior_hold(launch->prior);
}

void soft_dependence_queue(struct soft_stream *stream, struct soft_operation *operation) {
    struct soft_dependence *own = &stream->dependence;
    const struct soft_event_point *point = operation->point;
    if (!soft_dependence_on()) return;
    if (operation->launch != NULL) {
        queue_launch(stream, operation);
        return;
    }
    /* The implicit order of the legacy stream is between streams, not between kernels of one
     * stream. */
    if (point != NULL && !point->of_event && operation->exec == NULL) return;
    bool keeps = point != NULL && point->prior != NULL;
    bool waits = keeps && operation->kind == SOFT_OPERATION_WAIT;
    struct soft_prior *prior = waits ? soft_prior_hold(point->prior) : NULL;
    if (keeps && !waits) return; /* the programmatic event itself */
    if (!waits || own->event_count == SOFT_PRIORS_MAX) {
        soft_dependence_forget(stream);
        soft_prior_drop(prior);
        return;
    }
    soft_prior_drop(own->last);
    own->last = NULL;
    own->events[own->event_count++] = prior;
}
