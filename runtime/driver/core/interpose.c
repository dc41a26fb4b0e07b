/*
 * The interposer's table: one thunk per driver function, all generated from driver.def.
 *
 * A thunk packs the addresses of its arguments, so that a hook can change them, and passes the call
 * to enter() and leave(), which do what is the same for all functions. Function pointers carry no
 * state, so the state belongs to the process: that is why only one interposer may be active.
 */
#include "tollens/interpose.h"

#include "check.h"
#include "tollens/each.h"
#include "libcuda_state.h"
#include "monotonic.h"

#include <stdlib.h>
#include <string.h>

static struct {
    struct tol_interpose_options options;
    const struct tol_driver_table *driver; /* the real functions; stays set once installed */
    struct tol_driver *installed;          /* whose table is replaced now; NULL when off */
    _Atomic uint64_t calls;                /* traced, or left out when the trace was full */
    _Atomic uint64_t count[TOL_DRIVER_FUNCTIONS];
    _Atomic uint64_t ns[TOL_DRIVER_FUNCTIONS];
    _Atomic uint64_t *rule_matches; /* one per rule */
    struct tol_interpose_record *trace;
    _Atomic size_t traced; /* records asked for; more than the trace holds once it overflowed */
    _Atomic uint64_t threads;
} state;

static _Thread_local uint64_t thread_number;

static bool interpose_matches(const char *pattern, const char *name) {
    size_t length = strlen(pattern);
    if (length > 0 && pattern[length - 1] == '*') return strncmp(pattern, name, length - 1) == 0;
    return strcmp(pattern, name) == 0;
}

static void interpose_apply(const struct tol_interpose_rule *rule,
                            struct tol_interpose_call *call) {
    switch (rule->action) {
    case TOL_INTERPOSE_FAIL:
        call->forward = false;
        call->result = rule->result;
        break;
    case TOL_INTERPOSE_DROP:
        call->forward = false;
        call->result = CUDA_SUCCESS;
        break;
    case TOL_INTERPOSE_DELAY:
        for (uint64_t end = tol_now_ns() + rule->delay_ns; tol_now_ns() < end;) {
        }
        break;
    }
}

static void interpose_enter(struct tol_interpose_call *call) {
    if (state.trace != NULL) call->sequence = atomic_fetch_add(&state.calls, 1) + 1;
    atomic_fetch_add_explicit(&state.count[call->index], 1, memory_order_relaxed);
    for (size_t i = 0; i < state.options.rule_count; i++) {
        const struct tol_interpose_rule *rule = &state.options.rules[i];
        if (!interpose_matches(rule->function, tol_driver_function_name(call->index))) continue;
        uint64_t match = atomic_fetch_add(&state.rule_matches[i], 1) + 1;
        if (rule->nth != 0 && rule->nth != match) continue;
        interpose_apply(rule, call);
        break;
    }
    if (state.options.before != NULL) state.options.before(call, state.options.user);
    if (state.options.time) call->begin_ns = tol_now_ns();
}

static void interpose_keep(const struct tol_interpose_call *call) {
    size_t slot = atomic_fetch_add(&state.traced, 1);
    if (slot >= state.options.trace_records) return;
    if (thread_number == 0) thread_number = atomic_fetch_add(&state.threads, 1) + 1;
    state.trace[slot] = (struct tol_interpose_record){
        .index = call->index,
        .result = call->result,
        .sequence = call->sequence,
        .thread = thread_number,
        .begin_ns = call->begin_ns,
        .end_ns = call->end_ns,
    };
}

static CUresult interpose_leave(struct tol_interpose_call *call) {
    if (state.options.time) {
        call->end_ns = tol_now_ns();
        atomic_fetch_add_explicit(&state.ns[call->index], call->end_ns - call->begin_ns,
                                  memory_order_relaxed);
    }
    if (state.options.after != NULL) state.options.after(call, state.options.user);
    if (state.trace != NULL) interpose_keep(call);
    return call->result;
}

/* The address and the size of each argument. */
#define ADDRESS(argument) (void *)(uintptr_t)&argument
#define BYTES(argument) (unsigned)sizeof(argument)
#define ADDRESSES(...) TOL_EACH(ADDRESS, __VA_ARGS__)
#define SIZES(...) TOL_EACH(BYTES, __VA_ARGS__)

#define TOL_DRIVER_FN(feature, name, parameters, names)                                            \
    static CUresult CUDAAPI interposed_##name parameters {                                         \
        void *const hook_addresses[] = {ADDRESSES names};                                          \
        static const unsigned hook_bytes[] = {SIZES names};                                        \
        struct tol_interpose_call call = {                                                         \
            .index = TOL_DRIVER_INDEX_##name,                                                      \
            .argument_count = sizeof hook_bytes / sizeof hook_bytes[0],                            \
            .arguments = hook_addresses,                                                           \
            .argument_bytes = hook_bytes,                                                          \
            .driver = state.driver,                                                                \
            .forward = true,                                                                       \
        };                                                                                         \
        interpose_enter(&call);                                                                    \
        if (call.forward) call.result = state.driver->name names;                                  \
        return interpose_leave(&call);                                                             \
    }
#define TOL_DRIVER_FN0(feature, name)                                                              \
    static CUresult CUDAAPI interposed_##name(void) {                                              \
        struct tol_interpose_call call = {                                                         \
            .index = TOL_DRIVER_INDEX_##name, .driver = state.driver, .forward = true};            \
        interpose_enter(&call);                                                                    \
        if (call.forward) call.result = state.driver->name();                                      \
        return interpose_leave(&call);                                                             \
    }
#include "tollens/driver.def"

static struct tol_driver_table interposed;

/* A function that the driver lacks stays absent: the interposer adds no features. */
static void interpose_fill_table(const struct tol_driver_table *driver) {
#define TOL_DRIVER_FN(feature, name, parameters, names)                                            \
    interposed.name = driver->name != NULL ? interposed_##name : NULL;
#include "tollens/driver.def"
}

static bool names_a_function(const char *pattern) {
    for (int i = 0; pattern != NULL && i < TOL_DRIVER_FUNCTIONS; i++) {
        if (interpose_matches(pattern, tol_driver_function_name((enum tol_driver_index)i)))
            return true;
    }
    return false;
}

tol_status tol_interpose_install(struct tol_driver *driver,
                                 const struct tol_interpose_options *options) {
    tol_status status = TOL_OK;
    static const struct tol_interpose_options count_only = {0};
    struct tol_interpose_record *trace = NULL;
    _Atomic uint64_t *rule_matches = NULL;
    if (options == NULL) options = &count_only;

    TOL_CHECK(driver != NULL, TOL_INVALID_ARGUMENT, "tol_interpose_install: driver is NULL");
    TOL_CHECK(state.installed == NULL, TOL_INVALID_ARGUMENT,
              "an interposer is installed already; a process can have only one");
    for (size_t i = 0; i < options->rule_count; i++) {
        TOL_CHECK(names_a_function(options->rules[i].function), TOL_INVALID_ARGUMENT,
                  "interposer rule %zu matches no driver function: \"%s\"", i,
                  options->rules[i].function != NULL ? options->rules[i].function : "(null)");
    }
    if (options->trace_records > 0) {
        trace = calloc(options->trace_records, sizeof *trace);
        TOL_CHECK(trace != NULL, TOL_OUT_OF_HOST_MEMORY,
                  "no host memory for a trace of %zu records", options->trace_records);
    }
    if (options->rule_count > 0) {
        rule_matches = calloc(options->rule_count, sizeof *rule_matches);
        TOL_CHECK(rule_matches != NULL, TOL_OUT_OF_HOST_MEMORY,
                  "no host memory for %zu rule counters", options->rule_count);
    }
    state.options = *options;
    state.options.time = options->time || trace != NULL;
    state.trace = trace;
    state.rule_matches = rule_matches;
    trace = NULL;
    rule_matches = NULL;
    tol_interpose_reset();
    state.driver = &driver->table;
    interpose_fill_table(&driver->table);
    state.installed = driver;
    driver->functions = &interposed;
out:
    free(trace);
    free((void *)rule_matches);
    return status;
}

void tol_interpose_remove(struct tol_driver *driver) {
    if (driver == NULL || state.installed != driver) return;
    driver->functions = &driver->table;
    state.installed = NULL;
    state.options = (struct tol_interpose_options){0};
    free(state.trace);
    state.trace = NULL;
    free((void *)state.rule_matches);
    state.rule_matches = NULL;
}

uint64_t tol_interpose_count(enum tol_driver_index index) {
    if ((int)index < 0 || index > TOL_DRIVER_FUNCTIONS) return 0;
    if (index < TOL_DRIVER_FUNCTIONS) return atomic_load(&state.count[index]);
    uint64_t sum = 0;
    for (int i = 0; i < TOL_DRIVER_FUNCTIONS; i++) sum += atomic_load(&state.count[i]);
    return sum;
}

uint64_t tol_interpose_ns(enum tol_driver_index index) {
    if ((int)index < 0 || index >= TOL_DRIVER_FUNCTIONS) return 0;
    return atomic_load(&state.ns[index]);
}

void tol_interpose_reset(void) {
    atomic_store(&state.calls, 0);
    atomic_store(&state.traced, 0);
    for (int i = 0; i < TOL_DRIVER_FUNCTIONS; i++) {
        atomic_store(&state.count[i], 0);
        atomic_store(&state.ns[i], 0);
    }
    for (size_t i = 0; i < state.options.rule_count; i++) atomic_store(&state.rule_matches[i], 0);
}

size_t tol_interpose_trace(struct tol_interpose_record *records, size_t count, bool *overflowed) {
    size_t traced = atomic_load(&state.traced);
    size_t held = traced < state.options.trace_records ? traced : state.options.trace_records;
    if (overflowed != NULL) *overflowed = traced > held;
    if (count > held) count = held;
    if (count > 0) memcpy(records, state.trace, count * sizeof *records);
    return count;
}
