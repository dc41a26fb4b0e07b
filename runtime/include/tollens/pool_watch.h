/*
 * Pool watch: times, events, address lookup and snapshots of a pool.
 *
 * The counters of tol_pool_stats are always on. Call times are sampled: every call that went to the
 * driver is timed, from its first driver call on, and one in tol_pool_options.time_one_in of the
 * others, which counts for the calls before it. Events are recorded only if
 * tol_pool_options.trace_events is not 0: the latest ones are kept, and the lost ones are counted.
 *
 * Threads: all functions may be called from any thread. A function that returns a text allocates
 * it; the caller frees it with free().
 */
#ifndef TOLLENS_POOL_WATCH_H
#define TOLLENS_POOL_WATCH_H

#include "hdr.h"
#include "pool.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- times ---- */

/* The calls that are timed. */
enum tol_pool_call { TOL_POOL_CALL_ALLOCATE, TOL_POOL_CALL_FREE, TOL_POOL_CALLS };

/* Makes a histogram of the durations of all calls so far, in ns, to 1 %. The caller frees it with
 * tol_hdr_free. Each duration includes one clock reading, some 20 ns. Failed calls are not counted.
 * Up to 2 * time_one_in of a thread's latest calls may not be counted yet. TOL_INVALID_ARGUMENT:
 * NULL. TOL_OUT_OF_HOST_MEMORY. */
TOL_API tol_status tol_pool_times(struct tol_pool *pool, enum tol_pool_call call,
                                  struct tol_hdr **times);

/* ---- events ---- */

enum tol_pool_event_kind {
    TOL_POOL_EVENT_ALLOCATE, /* bytes: the size requested */
    TOL_POOL_EVENT_FREE,     /* bytes: the size that was requested */
    TOL_POOL_EVENT_REFUSE,   /* an allocation failed because memory was out; block is 0 */
    TOL_POOL_EVENT_TRIM,     /* tol_pool_trim; bytes: its keep_bytes */
    TOL_POOL_EVENT_GROW,     /* memory was taken from the driver; bytes: held after it */
    TOL_POOL_EVENT_SHRINK,   /* memory was returned to the driver; bytes: held after it */
    TOL_POOL_EVENT_STITCH,   /* idle memory was remapped for a block; bytes: the amount remapped */
    TOL_POOL_EVENT_KINDS
};

/* One event, 32 bytes. */
struct tol_pool_event {
    uint64_t begin_ns : 48; /* since the pool was created; wraps around after 78 hours */
    uint64_t thread : 16;   /* numbered from 1; 65535 for that thread and all later ones */
    uint64_t bytes : 48;    /* see the kind */
    uint64_t stream : 16;   /* 0: the host; else the stream's number; 65535 as for thread */
    uint64_t block;         /* the block's name (struct tol_block) */
    uint32_t took_ns;       /* 4294967295 or more: 4294967295; 0 for a free in progress */
    uint16_t tag;           /* 0: none */
    uint8_t kind;           /* enum tol_pool_event_kind */
    uint8_t zero;
};

/* Copies up to count events to events, the oldest first, and returns how many it copied. *lost (if
 * not NULL) is set to the number of older events that were overwritten. */
TOL_API size_t tol_pool_events(struct tol_pool *pool, struct tol_pool_event *events, size_t count,
                               uint64_t *lost);

/* The name of a kind as traces spell it, such as "allocate". Static. NULL for an unknown kind. */
TOL_API const char *tol_pool_event_name(unsigned kind);

/* ---- looking up an address ---- */

/* What an address belongs to. */
enum tol_pool_whose {
    TOL_POOL_WHOSE_NONE,  /* no block is live, and no recently freed block contains the address */
    TOL_POOL_WHOSE_LIVE,  /* a live block contains the address */
    TOL_POOL_WHOSE_FREED, /* one of the latest 128 blocks that a thread freed contains it */
    TOL_POOL_WHOSE_NEAR   /* none of these: block is the nearest live block */
};

struct tol_pool_found {
    enum tol_pool_whose whose;
    struct tol_pool_live block; /* the block found; all zero for TOL_POOL_WHOSE_NONE */
    int64_t offset;             /* address - block.address; negative before the block */
    const void *freed_site;     /* the code address that freed it; NULL if it was not freed */
};

/* Looks up a device address, such as a pointer of unknown origin or the address of a fault: the
 * block that contains it, and the calls that allocated and freed it. Visits every block, which
 * takes some us per thousand blocks. TOL_INVALID_ARGUMENT: NULL. */
TOL_API tol_status tol_pool_find(struct tol_pool *pool, CUdeviceptr address,
                                 struct tol_pool_found *found);

/* Checks that the range of bytes at address is inside one live block. TOL_OUT_OF_RANGE: it is not,
 * or bytes is 0; the message describes the block that the range leaves, the block that was freed
 * there, or the nearest block, with its tag and call sites. */
TOL_API tol_status tol_pool_check(struct tol_pool *pool, CUdeviceptr address, size_t bytes);

/* ---- as text ---- */

/* Makes a JSON object of the pool: options, statistics, percentiles of the call times, tags, pages,
 * holes, and all blocks with their tags and call sites. pool/snapshot.schema.json describes it;
 * later versions may add names, but do not change the existing ones. The pool is locked during the
 * call, about 1 us per block. TOL_INVALID_ARGUMENT: NULL. TOL_OUT_OF_HOST_MEMORY. */
TOL_API tol_status tol_pool_snapshot(struct tol_pool *pool, char **text);

/*
 * Makes a text of the kept events that `tollens replay` reads:
 *
 *     #tollens pool trace 1
 *     #lost 0                     the number of events that were overwritten
 *     #tag 1 weights              number and name of a tag, one line each
 *     event,time_ns,thread,stream,kind,block,bytes,tag,took_ns
 *     0,52100,1,0,grow,0,67108864,0,0
 *     1,1830,1,2,allocate,4311744512,4096,1,50700
 *
 * Numbers are decimal. Columns are the fields of struct tol_pool_event; event is the number of
 * the event, counted from the pool's first, and kind is the name from tol_pool_event_name. A reader
 * must ignore unknown lines that begin with #.
 * TOL_UNSUPPORTED: the pool keeps no events. TOL_INVALID_ARGUMENT, TOL_OUT_OF_HOST_MEMORY.
 */
TOL_API tol_status tol_pool_trace(struct tol_pool *pool, char **text);

/* Makes a text of the kept events in Chrome's trace format (JSON), for Perfetto or
 * chrome://tracing: held and requested bytes over time, and one track per thread with a slice for
 * each call of 1 us or more. Errors as above. */
TOL_API tol_status tol_pool_chrome_trace(struct tol_pool *pool, char **text);

#ifdef __cplusplus
}
#endif
#endif
