/*
 * Replay report: what came of a replay, as text, as JSON and as the files of --out.
 */
#ifndef HYP_REPLAY_REPORT_H
#define HYP_REPLAY_REPORT_H

#include "replay_once.h"

#include <jansson.h>

/* What all replays of a trace have in common. */
struct hyp_replay_setting {
    const char *path;
    const struct hyp_trace *trace;
    struct tol_context *context;
    uint64_t limit, floor;
};

/* One replay. hyp_replay_row_free frees its times; its pool may be gone. */
struct hyp_replay_row {
    const struct hyp_replay_profile *profile;
    struct hyp_replay replay;
    struct tol_pool_stats stats;
    struct tol_hdr *times[TOL_POOL_CALLS];
    double begin_s, length_s;
    uint64_t fits;           /* if an allocation failed: hyp_replay_fits of the first one */
    uint64_t least_limit;    /* hyp_replay_least_limit; 0: unknown */
    uint64_t least_unserved; /* the allocations that fail even then */
};

/* Reads stats and times from the pool. false: hyp_error(). */
bool hyp_replay_row_fill(struct hyp_replay_row *row);
void hyp_replay_row_free(struct hyp_replay_row *row);

/* The row with the fewest failures, of these the one that the smallest limit suffices for, and of
 * these the one that holds the least. */
size_t hyp_replay_best(const struct hyp_replay_row *rows, size_t count);

/* On stdout: the trace, then one replay or a table of several. */
void hyp_replay_print_trace(const struct hyp_replay_setting *setting);
void hyp_replay_print(const struct hyp_replay_setting *setting, const struct hyp_replay_row *row);
void hyp_replay_print_table(const struct hyp_replay_setting *setting,
                            const struct hyp_replay_row *rows, size_t count);

/* The document of --json: what was replayed, one replay, or several. NULL: no memory. */
json_t *hyp_replay_setting_json(const struct hyp_replay_setting *setting);
json_t *hyp_replay_json(const struct hyp_replay_setting *setting, const struct hyp_replay_row *row);
json_t *hyp_replay_table_json(const struct hyp_replay_setting *setting,
                              const struct hyp_replay_row *rows, size_t count);

/* snapshot.json and timeline.json in a folder that exists, while the row still has its pool. */
bool hyp_replay_write_pool(const struct hyp_replay_row *row, const char *folder);

/* replay.json and times.hlog. */
bool hyp_replay_write(const struct hyp_replay_setting *setting, const struct hyp_replay_row *row,
                      const char *folder);

#endif
