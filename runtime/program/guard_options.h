/*
 * The options of `tollens guard`, and the devices that it finds if none is named.
 */
#ifndef HYP_GUARD_OPTIONS_H
#define HYP_GUARD_OPTIONS_H

#include "tollens.h"

enum { HYP_GUARD_RUNS = -1, HYP_GUARD_PROBE_WORDS = 4 };

struct hyp_guard_options {
    struct tol_guard_options guard; /* but for user, deliver and note */
    const char *jobs, *results;     /* paths; NULL: stdin, stdout */
    bool is_lines, is_verbose, is_json;
    char *names; /* of the devices */
    const char **devices;
    const char *probe[HYP_GUARD_PROBE_WORDS];
    const char *probe_word; /* the value of --probe; NULL: by the device */
};

/* HYP_GUARD_RUNS, or the exit code of a command that has said all: help, a probe, a mistake. Clear
 * it in any case. */
int hyp_guard_options_read(struct hyp_guard_options *options, int count, char **words);
void hyp_guard_options_clear(struct hyp_guard_options *options);

#endif
