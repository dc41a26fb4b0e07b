/*
 * RMM's log: the lines of logging_resource_adaptor, which Python's rmm.enable_logging and
 * rmm.reinitialize(logging=True) write too. Source: the user guide of RMM, "The CSV columns".
 *
 *     Thread,Time,Action,Pointer,Size,Stream
 *     2342727,15:47:02.841961,allocate,0x10012400000,1048576,0
 *
 * Action is allocate, allocate failure or free. Pointer and Stream are of base 16, with or without
 * 0x; Stream 0 is the default stream. Threads write in the order of their calls to the log, which
 * is nearly that of their calls to the allocator: a block may be seen at an address before the free
 * of the one that was there.
 */
#include "files/atomic_file.h"
#include "trace_formats.h"

#include <stdlib.h>
#include <string.h>

static const char names[] = "Thread,Time,Action,Pointer,Size,Stream";
enum { FIELDS = 6 };
enum field { THREAD, TIME, ACTION, POINTER, SIZE, STREAM };

static const struct action {
    const char *name;
    uint8_t kind;
} actions[] = {{"allocate", TOL_POOL_EVENT_ALLOCATE},
               {"allocate failure", TOL_POOL_EVENT_REFUSE},
               {"free", TOL_POOL_EVENT_FREE}};

static bool trace_rmm_action(const struct hyp_trace_maker *maker, const char *word, uint8_t *kind) {
    for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++) {
        if (strcmp(word, actions[i].name) != 0) continue;
        *kind = actions[i].kind;
        return true;
    }
    return hyp_trace_refuse(maker, "the action must be allocate, allocate failure or free, not",
                            word);
}

/* 15:47:02.841961, 15:47:02:841961 or 56822.841961, in ns. The time is only told to the user: if it
 * has no known form, it is 0. */
static uint64_t trace_rmm_time(const char *word) {
    uint64_t seconds = 0, ns = 0, unit = 100000000;
    char *at = (char *)(uintptr_t)word;
    for (int part = 0;; part++, at++) {
        if (*at < '0' || *at > '9') return 0;
        seconds = (60 * seconds + strtoul(at, &at, 10)) % 10000000000;
        if (*at != ':' || part == 2) break;
    }
    if (*at == '.' || *at == ':') {
        for (at++; *at >= '0' && *at <= '9'; at++, unit /= 10) ns += unit * (uint64_t)(*at - '0');
    }
    return *at == '\0' ? seconds * 1000000000 + ns : 0;
}

/* The pointer of an allocation that failed is printed as that of nothing, in any way. */
static bool trace_rmm_read_event(struct hyp_trace_maker *maker, char *line, uint64_t number) {
    struct hyp_trace_found found = {.tag = 0};
    char *fields[FIELDS] = {NULL};
    if (!hyp_trace_split(maker, line, fields, FIELDS) ||
        !trace_rmm_action(maker, fields[ACTION], &found.kind) ||
        !hyp_trace_number(maker, fields[THREAD], 10, UINT64_MAX, &found.thread) ||
        !hyp_trace_number(maker, fields[SIZE], 10, (1ull << 48) - 1, &found.bytes) ||
        !hyp_trace_number(maker, fields[STREAM], 16, UINT64_MAX, &found.stream)) {
        return false;
    }
    if (found.kind != TOL_POOL_EVENT_REFUSE && found.bytes > 0 &&
        !hyp_trace_number(maker, fields[POINTER], 16, UINT64_MAX, &found.block)) {
        return false;
    }
    found.time_ns = trace_rmm_time(fields[TIME]);
    return hyp_trace_add(maker, number, &found);
}

bool hyp_trace_read_rmm(struct hyp_trace_maker *maker, struct hyp_trace *trace, FILE *file) {
    char line[HYP_TRACE_LINE_BYTES];
    enum hyp_trace_line one;
    trace->format = "an RMM log";
    hyp_trace_maker_rule(maker, HYP_TRACE_LEAVES_OUT);
    uint64_t number = 0;
    while ((one = hyp_trace_next_line(maker, file, line)) == HYP_TRACE_LINE) {
        if (++number > 1) {
            if (!trace_rmm_read_event(maker, line, number)) return false;
        } else if (strcmp(line, names) != 0) {
            return hyp_trace_refuse(maker,
                                    "the first line of an RMM log must be "
                                    "'Thread,Time,Action,Pointer,Size,Stream', not",
                                    line);
        }
    }
    if (one == HYP_TRACE_LINE_CUT && number > 0) hyp_trace_notice(maker, HYP_TRACE_CUT_SHORT);
    return one == HYP_TRACE_LINE_NONE || (one == HYP_TRACE_LINE_CUT && number > 0);
}
