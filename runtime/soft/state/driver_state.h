/*
 * The driver's own state: devices, contexts, and the register of live handles.
 *
 * Handles given out are pointers to the structs here, in queue.h and in loaded_module.h. They are
 * kept in a register of live handles, so that a handle that was never one, or is no longer, is
 * refused with CUDA's own code instead of followed. One lock guards all of this and all queues; it
 * is never held while a kernel or a copy runs.
 */
#ifndef SOFT_DRIVER_STATE_H
#define SOFT_DRIVER_STATE_H

#include "base/abi.h"
#include "lower/loaded_module.h"
#include "memory/space.h"

#include <pthread.h>
#include <stdbool.h>

enum {
    SOFT_DRIVER_VERSION = 13000,
    SOFT_DEVICES_MAX = 8,
    SOFT_CONTEXTS_MAX = 63, /* alive at a time: each has a bit in struct soft_reach */
    SOFT_SLOT_NONE = 63,    /* the bit of what belongs to no context */
    SOFT_PRIORITY_GREATEST = -5,
    SOFT_LIMITS = CU_LIMIT_PERSISTING_L2_CACHE_SIZE + 1
};

struct soft_stream;

struct soft_device {
    int ordinal;
    uint64_t memory_bytes, memory_used;
    uint64_t memory_given;               /* how much it gives out: all of it but for a fault */
    CUresult lost;                       /* what a fault has made contexts of it fail with */
    struct soft_context *primary;        /* made once and kept */
    struct soft_pool *usual_pool, *pool; /* the default memory pool, and the one in use */
    struct soft_pool *graph_pool;        /* what graphs allocate comes from it */
};

struct soft_context {
    struct soft_device *device;
    uint64_t id; /* never given out again; 0 before the first use */
    bool alive;
    int retained;   /* how often, of a primary context */
    CUresult error; /* that every call returns once a kernel has failed */
    unsigned flags, api_version;
    struct soft_reach reach; /* its device, and the contexts whose memory its kernels may use */
    size_t limits[SOFT_LIMITS];
    int cache_config, shared_config;
    struct soft_stream *streams;
    unsigned stream_count;
    struct soft_stream *legacy; /* the default stream; in the list too */
    struct soft_event *events;
    struct soft_module *modules;
    struct soft_context *next; /* in the list of all, dead ones too */
};

enum soft_handle_kind {
    SOFT_HANDLE_STREAM,
    SOFT_HANDLE_EVENT,
    SOFT_HANDLE_MODULE,
    SOFT_HANDLE_FUNCTION,
    SOFT_HANDLE_LIBRARY,
    SOFT_HANDLE_KERNEL,
    SOFT_HANDLE_LINK,
    SOFT_HANDLE_PHYSICAL,
    SOFT_HANDLE_POOL,
    SOFT_HANDLE_GRAPH,
    SOFT_HANDLE_NODE,
    SOFT_HANDLE_EXEC,
    SOFT_HANDLE_OBJECT
};

extern pthread_mutex_t soft_lock;

/* CUDA_ERROR_NOT_INITIALIZED before cuInit. */
CUresult soft_state_check(void);
CUresult soft_state_init(void);

/* The device of a number; NULL if there is none. */
struct soft_device *soft_device_of(CUdevice device);

/* Charges a device's memory, or gives back; false: there is not so much left. */
bool soft_device_charge(struct soft_device *device, uint64_t bytes);
void soft_device_refund(struct soft_device *device, uint64_t bytes);

/* ---- contexts; see contexts.c ---- */

/* The calling thread's context. CUDA_ERROR_INVALID_CONTEXT if it has none,
 * CUDA_ERROR_CONTEXT_IS_DESTROYED if that has ended, its error once it has one. */
CUresult soft_context_current(struct soft_context **context);

/* The context of a handle, NULL being the thread's current one; the same codes. */
CUresult soft_context_find(CUcontext handle, struct soft_context **context);

/* Whether a pointer is a context that lives. The caller holds soft_lock. */
bool soft_context_is(const struct soft_context *context);

/* The thread's stack of contexts: the top is current. push: false without memory. pop: NULL when
 * the stack is empty. set replaces the top; NULL takes it away. */
struct soft_context *soft_context_top(void);
bool soft_context_push(struct soft_context *context);
struct soft_context *soft_context_pop(void);
bool soft_context_set(struct soft_context *context);

/* Makes a context, or brings a primary one to life, with its default stream. The caller holds
 * soft_lock. */
CUresult soft_context_begin(struct soft_device *device, struct soft_context **context);
CUresult soft_context_revive(struct soft_context *context);

/* Waits for a context's work and ends all that was made in it. */
void soft_context_end(struct soft_context *context);

/* The living context of a slot, or NULL. The caller holds soft_lock. */
struct soft_context *soft_context_of(unsigned slot);

/* All contexts that were ever made. The caller holds soft_lock. */
struct soft_context *soft_contexts(void);

/* ---- the register of handles; see handle_set.c. The caller holds soft_lock. ---- */

/* false when the host has no memory. */
bool soft_handle_add(enum soft_handle_kind kind, const void *handle);
void soft_handle_remove(enum soft_handle_kind kind, const void *handle);
bool soft_handle_is(enum soft_handle_kind kind, const void *handle);

/* Calls visit for each handle, with the call that made it. */
void soft_handle_each(void (*visit)(enum soft_handle_kind kind, const void *handle,
                                    const struct soft_maker *maker, void *data),
                      void *data);

#endif
