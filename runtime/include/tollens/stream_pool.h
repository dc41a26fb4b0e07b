/*
 * Stream pool: streams that are lent, and the orders between them.
 *
 * Creating a stream costs microseconds, so a program that needs one for a while takes it here and
 * gives it back. Fork and join order work by events and never wait on the host: what is queued on
 * the forked streams comes behind what was queued on the one, and the joined one behind them all.
 * Each thread may have a stream of its own, which goes back when the thread ends.
 *
 * A stream that is given back keeps the work it has. One that is idle is lent first; where there is
 * none a new one is made until there are max_streams; then who takes queues behind older work.
 *
 * Threads: all functions may be called from any thread but tol_stream_pool_destroy, which is the
 * last, after the threads that have a stream of their own have ended. Source: spec 004 CRT-004.
 */
#ifndef TOLLENS_STREAM_POOL_H
#define TOLLENS_STREAM_POOL_H

#include "event.h"
#include "stream.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tol_stream_pool;

struct tol_stream_pool_options {
    unsigned max_streams; /* of each priority; 0: 32, beyond which a GPU runs no more at once */
};

/* Makes an empty pool. options may be NULL. TOL_INVALID_ARGUMENT, TOL_OUT_OF_HOST_MEMORY. */
TOL_API tol_status tol_stream_pool_create(struct tol_context *context,
                                          const struct tol_stream_pool_options *options,
                                          struct tol_stream_pool **pool);

/* Ends all streams of the pool, also those not given back; their work still runs. NULL is a
 * no-op. */
TOL_API void tol_stream_pool_destroy(struct tol_stream_pool *pool);

/* Lends a stream of a priority (tol_context_priorities; beyond the range counts as its end), for
 * the taker alone until it is given back. TOL_OVER_LIMIT: as many as may be are lent already. */
TOL_API tol_status tol_stream_pool_take(struct tol_stream_pool *pool, int priority,
                                        struct tol_stream **stream);

/* Gives a stream back. TOL_INVALID_ARGUMENT: it is not lent, or no stream of this pool. */
TOL_API tol_status tol_stream_pool_give(struct tol_stream_pool *pool, struct tol_stream *stream);

/* Lends count streams of the first one's priority, whose work comes behind all that is queued on
 * from so far. All or none. TOL_WRONG_CONTEXT, and as taking. */
TOL_API tol_status tol_stream_pool_fork(struct tol_stream_pool *pool, struct tol_stream *from,
                                        size_t count, struct tol_stream **streams);

/* What is queued on to from now on comes behind the work of all count streams, which are given
 * back. to may be any stream of the context. */
TOL_API tol_status tol_stream_pool_join(struct tol_stream_pool *pool, struct tol_stream *to,
                                        size_t count, struct tol_stream *const *streams);

/* The calling thread's own stream, of normal priority: the same one at every call, another for each
 * thread, lent until the thread ends. It must not be given back by hand. */
TOL_API tol_status tol_stream_pool_of_thread(struct tol_stream_pool *pool,
                                             struct tol_stream **stream);

struct tol_stream_pool_stats {
    unsigned made;    /* streams, of all priorities */
    unsigned lent;    /* of those */
    unsigned events;  /* made for forks and joins; they are used again */
    unsigned threads; /* that have a stream of their own now */
};
TOL_API tol_status tol_stream_pool_stats(struct tol_stream_pool *pool,
                                         struct tol_stream_pool_stats *stats);

#ifdef __cplusplus
}
#endif
#endif
