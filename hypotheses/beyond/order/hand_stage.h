/*
 * Hand stage: owners of blocks of a pool. An owner's kernel writes its stamp into its block, a word
 * in each granule, and a later kernel checks that the stamp is still there. A slow kernel goes
 * before either of them, so that memory that is handed out too early is overwritten or read in
 * between.
 *
 * What an owner itself orders (a block that goes to another stream) goes past the hooks, by the
 * driver's own functions: a fault in the driver table then hits only what the pool orders.
 */
#ifndef HYP_HAND_STAGE_H
#define HYP_HAND_STAGE_H

#include "harness/plugin.h"

#include <pthread.h>

enum { HAND_STREAMS = 3, HAND_LIVE = 24, HAND_TROUBLE_BYTES = 500 };

/* A block and its owner. owner 0: none. */
struct hand {
    struct tol_block block;
    CUdeviceptr at;
    size_t bytes;
    unsigned owner;
    unsigned stream;   /* of the walker: the one that its work is on */
    bool is_given_too; /* the saboteur has freed it already */
};

struct hand_stage {
    struct hyp_attack *attack;
    struct tol_module *module;
    struct tol_kernel *slow, *stamp, *check;
    struct tol_buffer *report; /* four words for each walker */
    _Atomic unsigned owners;
};

/* One thread's streams and hands. Only the attack's own thread may use HYP_CHECK, so what goes
 * wrong is written to trouble. */
struct hand_walker {
    struct hand_stage *stage;
    struct tol_pool *pool;
    unsigned place; /* of its report */
    uint64_t random;
    struct tol_stream *streams[HAND_STREAMS];
    CUevent event;
    struct hand hands[HAND_LIVE];
    unsigned count;
    bool lacks; /* the last allocation found no memory; trouble is then not set */
    char trouble[HAND_TROUBLE_BYTES];
};

enum { HAND_WALKERS = 4 };

/* false: a violation was recorded. End it in either case. */
bool hand_stage_begin(struct hyp_attack *attack, struct hand_stage *stage);
void hand_stage_end(struct hand_stage *stage);

/* Makes the pool, with the fault in it that the saboteur wants. NULL: a violation was recorded, or
 * the device lacks what the source needs and *lacks is set. */
struct tol_pool *hand_pool(struct hand_stage *stage, const struct tol_pool_options *options,
                           bool *lacks);

bool hand_walker_begin(struct hand_stage *stage, struct hand_walker *walker, unsigned place,
                       struct tol_pool *pool);
/* Gives all hands and destroys the streams. */
void hand_walker_end(struct hand_walker *walker);

/* A number below limit, from the walker's own state. */
uint64_t hand_draw(struct hand_walker *walker, uint64_t limit);

/* Allocates for a stream (is_host: for the host), and stamps on the stream. NULL: no memory, no
 * place or trouble. */
struct hand *hand_take(struct hand_walker *walker, size_t bytes, unsigned stream, bool is_host);

/* Queues a new stamp, or a check, on the hand's stream. is_slow: after a slow kernel. */
bool hand_stamp(struct hand_walker *walker, struct hand *hand, bool is_slow);
bool hand_check(struct hand_walker *walker, const struct hand *hand, bool is_slow);

/* Makes later work of one stream wait for the work of another. */
bool hand_follow(struct hand_walker *walker, unsigned stream, unsigned first);

/* Frees the block in the order of its stream, and forgets the hand. */
bool hand_give(struct hand_walker *walker, struct hand *hand);

/* Waits for one stream, or for all work. */
bool hand_wait(struct hand_walker *walker, unsigned stream);

/* Waits for all work, and records the first stamp that was not there, and troubles, as violations.
 * From the attack's own thread. false: there was one. */
bool hand_settle(struct hand_stage *stage, struct hand_walker *walkers, unsigned count,
                 const char *what);

#endif
