/*
 * The state of a device: its pool, the streams seen so far, captures, pending frees. And how a call
 * begins and ends: with this device's context current and captures left alone.
 */
#ifndef TOLLENS_TORCH_DEVICE_H
#define TOLLENS_TORCH_DEVICE_H

#include "core/context_state.h"
#include "tollens/pool.h"
#include "tollens/torch.h"
#include "torch_block.h"

#include <pthread.h>

enum { TORCH_DEVICES = 64, TORCH_STREAM_BUCKETS = 256 };

/* A stream of PyTorch, adopted by the runtime. Kept until the process ends. */
struct torch_stream {
    CUstream handle;
    struct tol_stream *stream;
    struct torch_stream *next; /* in its bucket */
};

struct torch_device {
    int ordinal;
    struct tol_context *context;
    struct tol_pool *pool;
    pthread_mutex_t lock; /* guards adding streams, and arenas with their routes */
    _Atomic(struct torch_stream *) streams[TORCH_STREAM_BUCKETS];
    struct torch_arena *arenas;
    struct torch_route *routes;
    atomic_uint route_count;
    pthread_mutex_t waiting_lock;  /* guards the next three */
    struct torch_waiting *waiting; /* the oldest first */
    struct torch_waiting **waiting_end;
    struct torch_event *events; /* free ones */
    atomic_uint waiting_count;
    _Atomic(uint64_t) recorded, refused; /* counts: frees that had to wait, failed allocations */
};

/* What a call found and restores at its end. */
struct torch_visit {
    CUcontext before;
    CUstreamCaptureMode mode;
};

/* The device; opens it at the first call. NULL, with a message: it cannot be opened. */
struct torch_device *torch_device_get(int ordinal);

/* The device if it is open already, or NULL. */
struct torch_device *torch_device_if_open(int ordinal);

/* Makes the device's context current, and lets this thread make calls that a capture by another
 * thread would forbid. PyTorch reads the current context as the current device. */
void torch_enter(struct torch_device *device, struct torch_visit *visit);
void torch_leave(struct torch_device *device, const struct torch_visit *visit);

/* The pool's name of a stream. NULL, with a message: it cannot be adopted. */
struct tol_stream *torch_stream_of(struct torch_device *device, CUstream handle);

/* Says how many devices PyTorch has: an allocation on another one is refused. 0: unknown. */
void torch_device_set_count(int count);

/* Sets the limit of a device that has no pool yet, as a share of its memory. */
void torch_device_set_fraction(int ordinal, double fraction);

#endif
