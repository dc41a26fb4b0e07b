/*
 * Stream pool: reusable streams, and fork and join between them.
 *
 * Creating a stream costs microseconds, so a program that needs one for a short time takes it from
 * a pool and gives it back. Fork makes several streams wait for one stream; join makes one stream
 * wait for several. Both use events and never wait on the host.
 * Each thread may also have a stream of its own, which returns to the pool when the thread ends.
 *
 * A stream that is given back keeps its queued work. The pool lends idle streams first, then
 * creates new ones up to max_streams, then lends streams that still have work: new work is
 * queued after it.
 *
 * Threads: all functions may be called from any thread at the same time, except
 * tol_stream_pool_destroy, which must be the last call, after every thread with a stream of its own
 * has ended. Source: spec 004 CRT-004.
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
    unsigned max_streams; /* per priority; 0: 32, since a GPU runs no more than that concurrently */
};

/* Creates an empty pool. options may be NULL. TOL_INVALID_ARGUMENT, TOL_OUT_OF_HOST_MEMORY. */
TOL_API tol_status tol_stream_pool_create(struct tol_context *context,
                                          const struct tol_stream_pool_options *options,
                                          struct tol_stream_pool **pool);

/* Destroys the pool and all its streams, including lent ones. Queued work still runs. NULL is
 * a no-op. */
TOL_API void tol_stream_pool_destroy(struct tol_stream_pool *pool);

/* Lends a stream of the given priority to the caller until tol_stream_pool_give. A priority outside
 * the range of tol_context_priorities is clamped. TOL_OVER_LIMIT: max_streams are lent already. */
TOL_API tol_status tol_stream_pool_take(struct tol_stream_pool *pool, int priority,
                                        struct tol_stream **stream);

/* Returns a stream to the pool. TOL_INVALID_ARGUMENT: the stream is not lent, is the own stream of
 * a thread, or does not belong to this pool. */
TOL_API tol_status tol_stream_pool_give(struct tol_stream_pool *pool, struct tol_stream *stream);

/* Lends count streams with the priority of from and makes them wait for the work queued on from so
 * far. On failure it lends none. TOL_WRONG_CONTEXT, and the errors of tol_stream_pool_take. */
TOL_API tol_status tol_stream_pool_fork(struct tol_stream_pool *pool, struct tol_stream *from,
                                        size_t count, struct tol_stream **streams);

/* Makes later work on to wait for the work of all count streams, and returns them to the pool. to
 * may be any stream of the context. */
TOL_API tol_status tol_stream_pool_join(struct tol_stream_pool *pool, struct tol_stream *to,
                                        size_t count, struct tol_stream *const *streams);

/* Gets the calling thread's own stream, of normal priority: always the same one for a thread, and
 * different threads get different streams. It returns to the pool when the thread ends; the program
 * must not return it. */
TOL_API tol_status tol_stream_pool_of_thread(struct tol_stream_pool *pool,
                                             struct tol_stream **stream);

/* Counts. */
struct tol_stream_pool_stats {
    unsigned made;    /* streams created, of all priorities */
    unsigned lent;    /* streams lent now */
    unsigned events;  /* events created for forks and joins, which are reused */
    unsigned threads; /* threads that have a stream of their own now */
};
TOL_API tol_status tol_stream_pool_stats(struct tol_stream_pool *pool,
                                         struct tol_stream_pool_stats *stats);

#ifdef __cplusplus
}
#endif
#endif
