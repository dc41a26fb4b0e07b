/*
 * Trace file: reads a trace of a pool that tol_pool_trace wrote, for a replay. tollens/pool_watch.h
 * describes the format.
 *
 * Blocks, threads and streams become small numbers. Impossible events are rejected with their line:
 * a block allocated twice, or freed without an allocation, unless earlier events were lost.
 */
#ifndef HYP_TRACE_FILE_H
#define HYP_TRACE_FILE_H

#include "tollens.h"

#include <stdbool.h>

enum { HYP_TRACE_THREADS_MAX = 256, HYP_TRACE_STREAMS_MAX = 1024, HYP_TRACE_TAGS_MAX = 256 };

/* Only the events of the program: the pool grows and shrinks by itself. */
struct hyp_trace_event {
    uint64_t number;
    uint64_t bytes;
    uint32_t block;  /* of allocate and free */
    uint16_t thread; /* from 0, in the order of their first events */
    uint16_t stream; /* from 1; 0 is the host */
    uint16_t tag;    /* into tags; 0 is none */
    uint8_t kind;    /* enum tol_pool_event_kind */
};

struct hyp_trace {
    struct hyp_trace_event *events;
    size_t count, room;
    size_t allocations, frees, refusals, trims;
    uint32_t blocks;
    unsigned threads, streams; /* streams without the host */
    unsigned joined;           /* threads that took the place of an earlier one */
    char tags[HYP_TRACE_TAGS_MAX][32];
    uint64_t lost;    /* events before the first */
    uint64_t skipped; /* frees of blocks that were allocated before it */
    uint64_t peak;    /* the most live bytes */
};

/* Reads a whole file. false: hyp_error() names file and line. Call hyp_trace_free in any case. */
bool hyp_trace_read(const char *path, struct hyp_trace *trace);
void hyp_trace_free(struct hyp_trace *trace);

#endif
