/*
 * A pool with handles of one page, some of them idle, and a record of the driver calls. For the
 * tests of stitching.
 */
#ifndef TOLLENS_POOL_SCENE_H
#define TOLLENS_POOL_SCENE_H

#include "test/test_device.h"

#define MIB ((size_t)1 << 20)
enum { SCENE_BLOCKS_MAX = 32 };

/* Which calls the driver had, and which of them are refused. */
struct scene_calls {
    unsigned creates, releases, maps, unmaps, opens;
    uint64_t count, nth, times; /* memory calls: `times` calls from the nth on are refused */
    int64_t handles, mapped;    /* there are still, and MiB */
};

extern struct scene_calls scene_calls;

struct scene {
    struct tol_pool *pool;
    struct tol_block blocks[SCENE_BLOCKS_MAX];
    size_t count;
};

/* Counts calls from now on: before there is a context, which keeps the functions that it was made
 * with. Until scene_end_test. */
void scene_watch(void);
void scene_end_test(void);

/* Pages one by one, nothing trimmed. */
struct tol_pool_options scene_options(size_t limit, size_t large);
void scene_open(struct scene *s, const struct tol_pool_options *options);

/* With its sums checked. */
struct tol_pool_stats scene_stats(const struct scene *s);

/* Writes all of a block, and reads all of it. */
void scene_mark(const struct scene *s, struct tol_block block);
void scene_look(const struct scene *s, struct tol_block block);

/* Allocates one for the host and marks it; looks at it and frees it after a stream. */
tol_status scene_add(struct scene *s, size_t bytes);
void scene_drop(struct scene *s, size_t i, struct tol_stream *stream);

/* Eight pages of a block each, of which every second is freed: 8 MiB of 16 are idle. */
void scene_comb(struct scene *s, const struct tol_pool_options *options);

/* All blocks must be whole; then nothing may be left. */
void scene_end(struct scene *s);

const struct tol_driver_table *scene_driver(void);

#endif
