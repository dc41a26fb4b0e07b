/*
 * Pool watch: what a pool did, what it looks like, and whose an address is.
 *
 * Counters are in tol_pool_stats, and always on. Times are taken of every call that went to the
 * driver, from its first driver call on, and of one in so many of the others, which stands for
 * those before it (tol_pool_options.time_one_in). Events are kept only where room was asked for
 * (tol_pool_options.trace_events): the latest so many, and a count of those that are lost.
 *
 * Threads: any. Texts are made at once and belong to the caller, who frees them with free().
 */
#ifndef TOLLENS_POOL_WATCH_H
#define TOLLENS_POOL_WATCH_H

#include "hdr.h"
#include "pool.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- times ---- */

enum tol_pool_call { TOL_POOL_CALL_ALLOCATE, TOL_POOL_CALL_FREE, TOL_POOL_CALLS };

/* The times of the calls so far in ns, to 1 %: a histogram that the caller ends. A reading of the
 * clock, some 20 ns, is in each. Calls that fail are not counted, and up to two in time_one_in of
 * a thread's latest are not counted yet. TOL_OUT_OF_HOST_MEMORY. */
TOL_API tol_status tol_pool_times(struct tol_pool *pool, enum tol_pool_call call,
                                  struct tol_hdr **times);

/* ---- events ---- */

enum tol_pool_event_kind {
    TOL_POOL_EVENT_ALLOCATE, /* bytes: as asked for */
    TOL_POOL_EVENT_FREE,
    TOL_POOL_EVENT_REFUSE, /* an allocation for which memory was out; it has no block */
    TOL_POOL_EVENT_TRIM,   /* tol_pool_trim; bytes: to be kept */
    TOL_POOL_EVENT_GROW,   /* bytes: held of the driver from then on */
    TOL_POOL_EVENT_SHRINK, /* the same */
    TOL_POOL_EVENT_STITCH, /* memory was mapped elsewhere for a block; bytes: of it */
    TOL_POOL_EVENT_KINDS
};

/* 32 bytes. */
struct tol_pool_event {
    uint64_t begin_ns : 48; /* since the pool was made; it begins again after 78 hours */
    uint64_t thread : 16;   /* small numbers, from 1; 65535 stands for all later ones too */
    uint64_t bytes : 48;
    uint64_t stream : 16; /* 0: the host; else the stream's number; 65535 as above */
    uint64_t block;       /* its name */
    uint32_t took_ns;     /* 4294967295 stands for all that took longer; 0 of a free that runs */
    uint16_t tag;
    uint8_t kind; /* enum tol_pool_event_kind */
    uint8_t zero;
};

/* Copies up to count events, the oldest first; how many. *lost (if not NULL): how many came before
 * the oldest and are kept no more. */
TOL_API size_t tol_pool_events(struct tol_pool *pool, struct tol_pool_event *events, size_t count,
                               uint64_t *lost);

/* The name of a kind, as traces have it: "allocate". NULL: it is none. */
TOL_API const char *tol_pool_event_name(unsigned kind);

/* ---- whose an address is ---- */

enum tol_pool_whose {
    TOL_POOL_WHOSE_NONE,  /* no block is live, and it is in none that was freed */
    TOL_POOL_WHOSE_LIVE,  /* it lies in a live block */
    TOL_POOL_WHOSE_FREED, /* it lies in none, but in one of the latest 128 that a thread freed */
    TOL_POOL_WHOSE_NEAR   /* in neither: the live block that is nearest */
};

struct tol_pool_found {
    enum tol_pool_whose whose;
    struct tol_pool_live block; /* that block; all zero for none */
    int64_t offset;             /* of the address from its begin; its bytes and more: behind it */
    const void *freed_site;     /* who freed it; NULL where nobody did */
};

/* Finds whose an address is: of a pointer that came from elsewhere, or of a fault. Looks at each
 * block, some us a thousand. TOL_INVALID_ARGUMENT: NULL. */
TOL_API tol_status tol_pool_find(struct tol_pool *pool, CUdeviceptr address,
                                 struct tol_pool_found *found);

/* TOL_OUT_OF_RANGE unless bytes from address on lie inside one live block, and bytes is not 0; the
 * message names the block that they pass, or the one that was freed there, or the nearest, with its
 * tag and call sites. */
TOL_API tol_status tol_pool_check(struct tol_pool *pool, CUdeviceptr address, size_t bytes);

/* ---- as text ---- */

/* The pool as one JSON object: options, stats, percentiles of the times, tags, pages, holes, and
 * all blocks with their tags and call sites. pool/snapshot.schema.json describes it: names in it
 * stay, and new ones may come. The pool is locked meanwhile, about a us for each block. */
TOL_API tol_status tol_pool_snapshot(struct tol_pool *pool, char **text);

/*
 * The kept events for `tollens replay`, as lines:
 *
 *     #tollens pool trace 1
 *     #lost 0                     events that are kept no more
 *     #tag 1 weights              a tag's number and name; none, one or more such lines
 *     event,time_ns,thread,stream,kind,block,bytes,tag,took_ns
 *     0,52100,1,0,grow,0,67108864,0,0
 *     1,1830,1,2,allocate,4311744512,4096,1,50700
 *
 * Numbers are decimal; their meanings are those of struct tol_pool_event, and event counts from the
 * first that the pool ever had. Kinds are those of tol_pool_event_name. Other lines that begin with
 * # may come. TOL_UNSUPPORTED: the pool keeps no events.
 */
TOL_API tol_status tol_pool_trace(struct tol_pool *pool, char **text);

/* The kept events in Chrome's trace format (JSON), for Perfetto's viewer or chrome://tracing: what
 * is held and what is requested over time, and a slice for each call of a us or more, a track a
 * thread. TOL_UNSUPPORTED as above. */
TOL_API tol_status tol_pool_chrome_trace(struct tol_pool *pool, char **text);

#ifdef __cplusplus
}
#endif
#endif
