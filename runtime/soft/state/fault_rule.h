/*
 * Fault rules: the contents of the file that TOLLENS_SOFT_FAULTS names.
 *
 * A rule selects calls by function and count, and says how they fail. driver/FAULTS.md describes
 * the file. Parsing is strict: an invalid rule is rejected with line and column, so that no test
 * passes because a fault was misspelt.
 */
#ifndef SOFT_FAULT_RULE_H
#define SOFT_FAULT_RULE_H

#include "base/json.h"

enum soft_fault_action {
    SOFT_FAULT_RETURN,       /* a code instead of the call */
    SOFT_FAULT_DELAY,        /* the call begins later */
    SOFT_FAULT_LOSE_CONTEXT, /* the code, also for every later call in the context */
    SOFT_FAULT_LOSE_DEVICE,  /* the same for all present and future contexts of the device */
    SOFT_FAULT_LATER,        /* the call succeeds, and its work fails */
    SOFT_FAULT_FLIP,         /* a bit changes before the call's work */
    SOFT_FAULT_TRUNCATE,     /* a copy ends early */
    SOFT_FAULT_TIMEOUT,      /* a kernel is ended */
    SOFT_FAULT_BUDGET,       /* memory runs out early; of no call */
    SOFT_FAULT_ACTIONS
};

/* How calls of a function are counted. */
enum soft_fault_scope { SOFT_FAULT_OF_ALL, SOFT_FAULT_OF_THREAD, SOFT_FAULT_OF_STREAM };

struct soft_fault_rule {
    enum soft_fault_action action;
    unsigned number, line; /* its number among the rules, from 1, and its place in the file */
    const char *function;
    enum soft_fault_scope scope;
    uint64_t only;       /* the selected thread or stream; 0: each, counted separately */
    uint64_t nth, every; /* 0: not said */
    bool by_chance;
    double percent;
    uint64_t seed;
    uint64_t times; /* the maximum number of faults; 0: unlimited */
    int code;
    uint64_t us, bytes, instructions, device;
    uint64_t allocation, byte, bit; /* the bit to flip; absent numbers are drawn */
    bool says_byte, says_bit, says_device;
    uint64_t struck; /* so far */
};

struct soft_fault_rules {
    struct soft_fault_rule *items;
    unsigned count;
    bool quiet;
};

/* Parses the text of a file into an arena. false: the error has the place and the reason. */
bool soft_fault_rules_read(struct soft_arena *arena, const char *text, size_t bytes,
                           struct soft_fault_rules *rules, struct soft_json_error *error);

/* Whether a name matches a pattern: * means any characters, ? one. */
bool soft_fault_matches(const char *pattern, const char *name);

#endif
