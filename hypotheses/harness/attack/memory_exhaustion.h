/*
 * Memory exhaustion: allocates device memory in one of three ways until a request is refused.
 *
 * The thread that gets a refusal checks its message at once and records what is wrong with it. The
 * attack's thread reports that later.
 */
#ifndef HYP_MEMORY_EXHAUSTION_H
#define HYP_MEMORY_EXHAUSTION_H

#include "harness/attack.h"

enum hyp_memory_exhaustion_way {
    HYP_MEMORY_EXHAUSTION_BUFFERS,
    HYP_MEMORY_EXHAUSTION_POOL,
    HYP_MEMORY_EXHAUSTION_DRIVERS_POOL,
    HYP_MEMORY_EXHAUSTION_WAYS
};

/* "the pool" */
const char *hyp_memory_exhaustion_name(enum hyp_memory_exhaustion_way way);

enum { HYP_MEMORY_EXHAUSTION_MAX = 4096 };

struct hyp_memory_exhaustion {
    enum hyp_memory_exhaustion_way way;
    struct tol_context *context;
    struct tol_pool *pool;     /* NULL: buffers */
    struct tol_stream *stream; /* the driver's pool orders by it; else NULL */
    struct tol_buffer *buffers[HYP_MEMORY_EXHAUSTION_MAX];
    struct tol_block blocks[HYP_MEMORY_EXHAUSTION_MAX];
    size_t count, refusals;
    size_t first_bytes; /* a 64th of the device: some hundred blocks fill it */
    char trouble[600];  /* the first refusal with a wrong status or without its numbers */
};

/* Creates the pool of a way. NULL: buffers, a violation, or the driver does not support it, and the
 * attack is not tested, whatever else it does. */
struct tol_pool *hyp_memory_exhaustion_pool(struct hyp_attack *attack,
                                            enum hyp_memory_exhaustion_way way);

/* Begins with nothing allocated. false: there is no such pool. */
bool hyp_memory_exhaustion_open(struct hyp_attack *attack, enum hyp_memory_exhaustion_way way,
                                struct tol_stream *stream,
                                struct hyp_memory_exhaustion *exhaustion);

/* Allocates blocks of the first size. After a refusal the size is halved, until a request of 1 MiB
 * is refused. May run in any thread. */
void hyp_memory_exhaustion_take(struct hyp_memory_exhaustion *exhaustion);

/* Checks that a block was allocated, a request was refused, and each refusal has its numbers. */
void hyp_memory_exhaustion_check(struct hyp_attack *attack,
                                 const struct hyp_memory_exhaustion *exhaustion);

/* Frees all blocks and waits for the streams. */
void hyp_memory_exhaustion_free(struct hyp_attack *attack,
                                struct hyp_memory_exhaustion *exhaustion);

/* Destroys a pool. It must hold no memory after all blocks are freed. NULL is a no-op. */
void hyp_memory_exhaustion_end(struct hyp_attack *attack, struct tol_pool *pool);

#endif
