/*
 * Trace file: what a program did with a pool, as tol_pool_trace wrote it (tollens/pool_watch.h has
 * the format), read so that it can be done again.
 *
 * Blocks become small numbers, threads and streams too. What cannot have happened is refused with
 * the line: a block made twice, or freed that never was, unless events are lost before it.
 */
#ifndef HYP_TRACE_FILE_H
#define HYP_TRACE_FILE_H

#include "tollens.h"

#include <stdbool.h>

enum { HYP_TRACE_THREADS_MAX = 256, HYP_TRACE_STREAMS_MAX = 1024, HYP_TRACE_TAGS_MAX = 256 };

/* Only those that a program does: growing and shrinking come of themselves. */
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
    char tags[HYP_TRACE_TAGS_MAX][32];
    uint64_t lost;    /* events before the first */
    uint64_t skipped; /* frees of blocks that were made before it */
    uint64_t peak;    /* bytes live at most */
};

/* Reads a whole file. false: hyp_error() names the file and the line. Either way hyp_trace_free. */
bool hyp_trace_read(const char *path, struct hyp_trace *trace);
void hyp_trace_free(struct hyp_trace *trace);

#endif
