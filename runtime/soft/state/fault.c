/*
 * Counts calls, and applies the rules to them.
 */
#include "fault.h"

#include "base/calls.h"
#include "contexts.h"
#include "base/dice.h"
#include "driver_state.h"
#include "fault_rule.h"
#include "base/file_text.h"
#include "base/options.h"
#include "base/report.h"
#include "base/result_name.h"
#include "memory/space.h"
#include "thread_state.h"
#include "tollens/plain_text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The number of calls of a function: by all threads, by one thread, or for one stream. */
struct tally {
    enum soft_call call;
    enum soft_fault_scope scope;
    uint64_t of, count;
    struct tally *next;
};

enum { BUCKETS = 256 };

static struct {
    pthread_once_t once;
    CUresult result;
    bool on;
    struct soft_arena arena; /* of the rules and the tallies */
    struct soft_fault_rules rules;
    pthread_mutex_t lock; /* guards all below, and how often rules have struck */
    struct tally *tallies[BUCKETS];
    uint64_t threads;
} faults = {.once = PTHREAD_ONCE_INIT, .lock = PTHREAD_MUTEX_INITIALIZER};

static void log_fault(const struct soft_fault_rule *rule, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void log_fault(const struct soft_fault_rule *rule, const char *format, ...) {
    char text[256], line[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    snprintf(line, sizeof line, "fault %u (line %u): %s", rule->number, rule->line, text);
    soft_log_add(line);
    if (!faults.rules.quiet) tol_plain_print(stderr, "tollens-soft: %s\n", line);
}

static const char *code_text(CUresult code, char room[24]) {
    const char *name = soft_result_name((int)code);
    if (name != NULL) return name;
    snprintf(room, 24, "code %d", (int)code);
    return room;
}

static void read_rules(void) {
    const char *path = soft_options()->faults;
    struct soft_json_error error = {.text = ""};
    char *text = NULL;
    if (path == NULL || path[0] == '\0') return;
    faults.result = soft_file_text(path, &text, NULL);
    if (faults.result != CUDA_SUCCESS) {
        tol_plain_print(stderr, "tollens-soft: TOLLENS_SOFT_FAULTS: cannot read the file %s\n",
                        path);
        return;
    }
    if (soft_fault_rules_read(&faults.arena, text, strlen(text), &faults.rules, &error)) {
        faults.on = faults.rules.count > 0;
    } else {
        tol_plain_print(stderr, "tollens-soft: %s:%u:%u: %s\n", path, error.place.line,
                        error.place.column, error.text);
        faults.result = CUDA_ERROR_INVALID_SOURCE;
    }
    free(text);
}

CUresult soft_fault_state(void) {
    pthread_once(&faults.once, read_rules);
    return faults.result;
}

/* ---- which calls ---- */

/* Counts a call. 0: out of memory, and no rule applies. The caller holds the lock. */
static uint64_t fault_count_call(enum soft_call call, enum soft_fault_scope scope, uint64_t of) {
    struct tally **link =
        &faults.tallies[((uint64_t)call * 31 + of * 7 + (uint64_t)scope) % BUCKETS];
    while (*link != NULL &&
           ((*link)->call != call || (*link)->scope != scope || (*link)->of != of)) {
        link = &(*link)->next;
    }
    if (*link == NULL) {
        *link = soft_arena_alloc(&faults.arena, sizeof **link);
        if (*link == NULL) return 0;
        **link = (struct tally){.call = call, .scope = scope, .of = of};
    }
    return ++(*link)->count;
}

/* A number that depends on the rule's seed, the function's name and the count, and on nothing
 * else. */
static uint64_t fault_draw(const struct soft_fault_rule *rule, const struct soft_call_fault *fault,
                           uint64_t of, uint64_t count) {
    uint64_t hash = soft_dice_mix(rule->seed);
    for (const char *c = soft_call_names[fault->call].name; *c != '\0'; c++) {
        hash = soft_dice_mix(hash ^ (unsigned char)*c);
    }
    return soft_dice_mix(soft_dice_mix(hash ^ of) ^ count);
}

static bool fault_means(const struct soft_fault_rule *rule, const struct soft_call_fault *fault) {
    const struct soft_call_name *call = &soft_call_names[fault->call];
    char name[128];
    if (soft_fault_matches(rule->function, call->name)) return true;
    if (soft_fault_matches(rule->function, call->base)) return true;
    if (!fault->own_default) return false;
    snprintf(name, sizeof name, "%s%s", call->name, call->suffix);
    return soft_fault_matches(rule->function, name);
}

/* Whether a rule strikes at a call. The caller holds the lock. */
static bool fault_strikes(struct soft_fault_rule *rule, const struct soft_call_fault *fault,
                          uint64_t of, uint64_t count) {
    if (count == 0 || !fault_means(rule, fault) || (rule->only != 0 && rule->only != of))
        return false;
    if (rule->nth != 0 && count != rule->nth) return false;
    if (rule->every != 0 && count % rule->every != 0) return false;
    if (rule->by_chance) {
        /* 53 bits are those of a double. */
        double share = (double)(fault_draw(rule, fault, of, count) >> 11) / (double)(1ull << 53);
        if (!(share * 100 < rule->percent)) return false;
    }
    if (rule->times != 0 && rule->struck >= rule->times) return false;
    rule->struck++;
    return true;
}

/* ---- what happens to them ---- */

struct soft_context *soft_fault_context(const struct soft_call_fault *fault) {
    return fault->context != NULL ? fault->context : soft_context_top();
}

static void fault_lose(struct soft_context *context, const struct soft_fault_rule *rule) {
    CUresult code = (CUresult)rule->code;
    pthread_mutex_lock(&soft_lock);
    if (rule->action == SOFT_FAULT_LOSE_CONTEXT) {
        if (context->error == CUDA_SUCCESS) context->error = code;
    } else {
        context->device->lost = code;
        for (struct soft_context *c = soft_contexts(); c != NULL; c = c->next) {
            bool hit = c->device == context->device && c->alive && c->error == CUDA_SUCCESS;
            if (hit) c->error = code;
        }
    }
    pthread_mutex_unlock(&soft_lock);
}

/* Applies one rule; us sums up delays. */
static void fault_apply(const struct soft_fault_rule *rule, struct soft_call_fault *fault,
                        CUresult *result, uint64_t *us) {
    struct soft_context *context = soft_fault_context(fault);
    const char *name = soft_call_names[fault->call].name;
    unsigned long long count = fault->count;
    char room[24];
    const char *code = code_text((CUresult)rule->code, room);
    switch (rule->action) {
    case SOFT_FAULT_RETURN:
        if (*result == CUDA_SUCCESS) *result = (CUresult)rule->code;
        log_fault(rule, "call %llu of %s returns %s", count, name, code);
        break;
    case SOFT_FAULT_DELAY:
        *us += rule->us;
        log_fault(rule, "call %llu of %s is delayed by %llu us", count, name,
                  (unsigned long long)rule->us);
        break;
    case SOFT_FAULT_LOSE_CONTEXT:
    case SOFT_FAULT_LOSE_DEVICE:
        if (context == NULL) break; /* there is nothing to lose */
        if (*result == CUDA_SUCCESS) *result = (CUresult)rule->code;
        log_fault(rule, "call %llu of %s loses the %s with %s", count, name,
                  rule->action == SOFT_FAULT_LOSE_DEVICE ? "device" : "context", code);
        fault_lose(context, rule);
        break;
    case SOFT_FAULT_LATER:
        fault->later = (CUresult)rule->code;
        fault->later_rule = rule;
        break;
    case SOFT_FAULT_FLIP:
        fault->flip = rule;
        break;
    case SOFT_FAULT_TRUNCATE:
        fault->truncate = rule;
        break;
    case SOFT_FAULT_TIMEOUT:
        fault->timeout = rule;
        break;
    default:
        break;
    }
}

static void wait_us(uint64_t us) {
    struct timespec left = {.tv_sec = (time_t)(us / 1000000),
                            .tv_nsec = (long)(us % 1000000 * 1000)};
    while (us > 0 && nanosleep(&left, &left) != 0) continue;
}

/* Applies the rules of one scope to the current call. */
static CUresult fault_ask(struct soft_call_fault *fault, enum soft_fault_scope scope, uint64_t of,
                          uint64_t *us) {
    CUresult result = CUDA_SUCCESS;
    pthread_mutex_lock(&faults.lock);
    fault->count = fault_count_call(fault->call, scope, of);
    for (unsigned i = 0; i < faults.rules.count; i++) {
        struct soft_fault_rule *rule = &faults.rules.items[i];
        bool asked = rule->action != SOFT_FAULT_BUDGET && rule->scope == scope;
        if (asked && fault_strikes(rule, fault, of, fault->count))
            fault_apply(rule, fault, &result, us);
    }
    pthread_mutex_unlock(&faults.lock);
    return result;
}

CUresult soft_fault_begin(enum soft_call call, bool own_default) {
    (void)soft_fault_state();
    if (!faults.on) return CUDA_SUCCESS;
    struct soft_call_fault *fault = &soft_thread()->fault;
    uint64_t us = 0;
    if (fault->thread == 0) {
        pthread_mutex_lock(&faults.lock);
        fault->thread = ++faults.threads;
        pthread_mutex_unlock(&faults.lock);
    }
    *fault = (struct soft_call_fault){
        .thread = fault->thread, .active = true, .call = call, .own_default = own_default};
    CUresult result = fault_ask(fault, SOFT_FAULT_OF_THREAD, fault->thread, &us);
    CUresult other = fault_ask(fault, SOFT_FAULT_OF_ALL, 0, &us);
    wait_us(us);
    return result != CUDA_SUCCESS ? result : other;
}

/* ---- what happens in streams ---- */

struct soft_call_fault *soft_fault_now(void) {
    struct soft_call_fault *fault = faults.on ? &soft_thread()->fault : NULL;
    return fault != NULL && fault->active ? fault : NULL;
}

CUresult soft_fault_ask_stream(struct soft_call_fault *fault) {
    uint64_t us = 0;
    CUresult result = fault_ask(fault, SOFT_FAULT_OF_STREAM, fault->stream, &us);
    wait_us(us);
    return result;
}

uint64_t soft_fault_chance(const struct soft_call_fault *fault) {
    return soft_dice_mix(fault_draw(fault->flip, fault, 0, fault->count));
}

void soft_fault_strike(struct soft_context *context, const struct soft_stream_fault *fault) {
    const struct soft_fault_rule *rule = fault->rule;
    char room[24];
    if (fault->code != CUDA_SUCCESS) {
        if (context->error == CUDA_SUCCESS) context->error = fault->code;
        log_fault(rule, "queued work fails with %s", code_text(fault->code, room));
        return;
    }
    struct soft_flip flip = {.device = context->device->ordinal,
                             .allocation = rule->allocation,
                             .draws = rule->allocation == 0,
                             .byte =
                                 rule->says_byte ? rule->byte : soft_dice_mix(fault->chance ^ 1),
                             .draws_byte = !rule->says_byte,
                             .bit = (unsigned)(rule->says_bit ? rule->bit : fault->chance >> 61)};
    if (flip.draws) flip.allocation = soft_dice_mix(fault->chance ^ 2);
    if (soft_space_flip(&flip)) {
        log_fault(rule, "flips bit %u of byte %llu of an allocation of %llu bytes", flip.bit,
                  (unsigned long long)flip.byte, (unsigned long long)flip.bytes);
    } else {
        log_fault(rule, "flips no bit: there is no such byte");
    }
}

/* ---- faults of the call's own work ---- */

uint64_t soft_fault_lost(uint64_t bytes) {
    const struct soft_call_fault *fault = soft_fault_now();
    if (fault == NULL || fault->truncate == NULL || fault->truncate->bytes >= bytes) return 0;
    log_fault(fault->truncate, "a copy of %llu bytes is truncated to %llu",
              (unsigned long long)bytes, (unsigned long long)fault->truncate->bytes);
    return bytes - fault->truncate->bytes;
}

uint64_t soft_fault_instructions(uint64_t otherwise) {
    struct soft_call_fault *fault = soft_fault_now();
    if (fault == NULL || fault->timeout == NULL) return otherwise;
    /* It ends with this code even if it finishes earlier. */
    fault->later = CUDA_ERROR_LAUNCH_TIMEOUT;
    fault->later_rule = fault->timeout;
    return fault->timeout->instructions;
}

uint64_t soft_fault_budget(int device, uint64_t bytes) {
    for (unsigned i = 0; i < faults.rules.count; i++) {
        const struct soft_fault_rule *rule = &faults.rules.items[i];
        bool meant = rule->action == SOFT_FAULT_BUDGET &&
                     (!rule->says_device || rule->device == (uint64_t)device);
        if (!meant || rule->bytes >= bytes) continue;
        log_fault(rule, "device %d is limited to %llu bytes", device,
                  (unsigned long long)rule->bytes);
        bytes = rule->bytes;
    }
    return bytes;
}
