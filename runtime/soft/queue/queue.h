/*
 * Queues: streams of operations, and the threads that execute them.
 *
 * The thread that waits for work executes it: a thread that synchronizes takes operations off the
 * queues and runs them itself, without a thread switch. Helper threads join if a grid is large, and
 * one of them executes work that no thread waits for. Grids run in slices, so streams advance side
 * by side however long their kernels run. Host functions are the exception: they run on a separate
 * thread, because they may block until the program continues.
 *
 * Asserted by the operations: soft_operation_is_valid, soft_stream_is_valid, soft_queue_is_valid.
 */
#ifndef SOFT_QUEUE_H
#define SOFT_QUEUE_H

#include "queue_state.h"

/* ---- streams; see streams.c ---- */

/* Makes a stream and puts it into the context's list; NULL without memory. The caller holds
 * soft_lock. */
struct soft_stream *soft_stream_new(struct soft_context *context, unsigned flags, int priority);

/* The stream of a handle, and its context: NULL, CU_STREAM_LEGACY and CU_STREAM_PER_THREAD mean
 * default streams of the calling thread's context; any other stream has its own context. The codes
 * of soft_context_current; CUDA_ERROR_INVALID_HANDLE. */
CUresult soft_stream_find(CUstream handle, struct soft_context **context,
                          struct soft_stream **stream);

/* The same; the caller holds soft_lock, which is released while a fault rule delays the call. */
CUresult soft_stream_find_locked(CUstream handle, struct soft_context **context,
                                 struct soft_stream **stream);

/* Destroys a stream: at once if it is empty, else when it has drained. The caller holds
 * soft_lock. */
void soft_stream_drop(struct soft_stream *stream);

/* Frees a destroyed stream once it has drained. The caller holds soft_lock. */
void soft_stream_settle(struct soft_stream *stream);

/* Makes a stream wait as the rule of the legacy stream requires. The caller holds soft_lock. */
CUresult soft_stream_order(struct soft_stream *stream);

/* ---- operations; see operation.c ---- */

/* An operation for a task, whose resources it takes over on success; NULL without memory. */
struct soft_operation *soft_operation_new(struct soft_task *task);

/* An operation that records or waits for an event point, whose reference it takes over. */
struct soft_operation *soft_operation_point(enum soft_operation_kind kind,
                                            struct soft_event_point *point);
void soft_operation_free(struct soft_operation *operation);

/* Gives a launch that is queued to a stream its number, its order and its reach. The caller holds
 * soft_lock. */
void soft_operation_number(struct soft_launch *launch, const struct soft_stream *stream);

/* The number of the launch that was queued last, to any stream. Thread-safe. */
uint64_t soft_operation_last(void);

/* An event point with this number of references; NULL without memory. */
struct soft_event_point *soft_event_point_new(int references);

/* Releases an event point. The caller holds soft_lock. */
void soft_event_point_release(struct soft_event_point *point);

/* ---- the queues; see queue.c ---- */

/* Appends an operation to a stream and takes it over. */
CUresult soft_queue_add(struct soft_stream *stream, struct soft_operation *operation);

/* The same for a list of operations, which it takes over only on success. The caller holds
 * soft_lock. */
CUresult soft_queue_add_all(struct soft_stream *stream, struct soft_operation *operations);

/* The same for an operation that only waits for its turn: no implicit order, no check of the
 * context. The caller holds soft_lock. */
void soft_queue_append(struct soft_stream *stream, struct soft_operation *operation);

/* Waits until the stream is empty, the event point is reached, or all of the context's streams are
 * empty, working meanwhile. Returns the context's error. */
CUresult soft_queue_wait_stream(struct soft_stream *stream);
CUresult soft_queue_wait_point(struct soft_context *context, struct soft_event_point *point);
CUresult soft_queue_wait_context(struct soft_context *context);

/* Waits for the work of all contexts of a device; -1: of all devices. */
void soft_queue_wait_device(int device);

/* Works a little on the queried work, then returns whether it is done: CUDA_SUCCESS,
 * CUDA_ERROR_NOT_READY, or the context's error. */
CUresult soft_queue_query_stream(struct soft_stream *stream);
CUresult soft_queue_query_context(struct soft_context *context);
CUresult soft_queue_query_point(struct soft_context *context, struct soft_event_point *point);

/* Frees the streams and the spare memory of a finished context. */
void soft_queue_end_context(struct soft_context *context);

/* ---- for asserts (base/deep_assert.h): not with NDEBUG. The caller holds soft_lock. ---- */

/* Whether an operation has the fields that its kind needs. */
bool soft_operation_is_valid(const struct soft_operation *operation);

/* Whether both ends of a stream's list agree, and its next operation is valid. */
bool soft_stream_is_valid(const struct soft_stream *stream);

/* Whether all streams and operations are valid, the counters agree with them, and each event point
 * that is next in a stream has at least the references that queues and events hold. Walks all
 * queues. */
bool soft_queue_is_valid(void);

#endif
