/*
 * Starting and ending a trace.
 */
#include "core/check.h"
#include "core/monotonic.h"
#include "trace_state.h"

#include <stdlib.h>

/* A stream that got nothing for GAP_NS may be idle; a tight loop of launches takes less. */
enum { CALLS = 65536, OPERATIONS = 8192, GAP_NS = 5000 };

static tol_status trace_install_choose(const struct tol_trace_options *options,
                                       struct tol_trace_options *result) {
    tol_status status = TOL_OK;
    struct tol_trace_options wanted = options != NULL ? *options : (struct tol_trace_options){0};
    if (wanted.calls_max == 0) wanted.calls_max = CALLS;
    if (wanted.operations_max == 0) wanted.operations_max = OPERATIONS;
    if (wanted.gap_ns == 0) wanted.gap_ns = GAP_NS;
    if (wanted.every == 0) wanted.every = 1;
    bool has_bursts = wanted.every == 1 && wanted.begins != TOL_TRACE_BEGINS_EACH;
    if (wanted.share == 0) wanted.share = has_bursts ? TOL_TRACE_SHARE_DEFAULT : 1;
    TOL_CHECK(wanted.share <= TOL_TRACE_SHARE_MAX, TOL_INVALID_ARGUMENT,
              "share is %u: at most %d operations can share an event", wanted.share,
              TOL_TRACE_SHARE_MAX);
    TOL_CHECK(wanted.share == 1 || has_bursts, TOL_INVALID_ARGUMENT,
              "share above 1 cannot be combined with every above 1 or with TOL_TRACE_BEGINS_EACH");
    TOL_CHECK((unsigned)wanted.begins <= TOL_TRACE_BEGINS_EACH, TOL_INVALID_ARGUMENT,
              "begins: %d is not an enum tol_trace_begins", (int)wanted.begins);
    *result = wanted;
out:
    return status;
}

tol_status tol_trace_install(struct tol_driver *driver, const struct tol_trace_options *options,
                             const struct tol_interpose_options *under) {
    tol_status status = TOL_OK;
    struct tol_trace_call *calls = NULL;
    struct tol_interpose_options hooks = {.before = NULL};
    struct tol_trace_options wanted;
    TOL_CHECK(driver != NULL, TOL_INVALID_ARGUMENT, "tol_trace_install: driver is NULL");
    TOL_CHECK(!tol_trace.is_on, TOL_INVALID_ARGUMENT, "a trace is installed already");
    TOL_TRY(trace_install_choose(options, &wanted));
    calls = calloc(wanted.calls_max, sizeof *calls);
    TOL_CHECK(calls != NULL, TOL_OUT_OF_HOST_MEMORY, "no host memory for a trace of %zu calls",
              wanted.calls_max);
    if (under != NULL) hooks = *under;
    tol_trace.under = hooks;
    tol_trace.options = wanted;
    tol_trace.driver = tol_driver_functions(driver);
    tol_trace.calls = calls;
    tol_trace_hook(&hooks);
    TOL_TRY(tol_interpose_install(driver, &hooks));
    tol_trace.begin_ns = tol_now_ns();
    tol_trace.is_on = true;
    atomic_fetch_add(&tol_trace.generation, 1);
    calls = NULL;
out:
    free(calls);
    return status;
}

void tol_trace_remove(struct tol_driver *driver) {
    if (!tol_trace.is_on) return;
    tol_interpose_remove(driver);
    tol_trace_read_all(true);
    tol_trace.is_on = false;
    for (unsigned i = 0; i < TOL_TRACE_CONTEXTS; i++) {
        free(tol_trace.contexts[i].operations);
        free(tol_trace.contexts[i].ends);
        free(tol_trace.contexts[i].begins);
        tol_trace.contexts[i] = (struct tol_trace_context){.handle = NULL};
    }
    tol_trace_clear_marks();
    free(tol_trace.calls);
    tol_trace.calls = NULL;
    atomic_store(&tol_trace.context_count, 0);
    atomic_store(&tol_trace.name_count, 0);
    atomic_store(&tol_trace.noted, 0);
    atomic_store(&tol_trace.captures, 0);
}
