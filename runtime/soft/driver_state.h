/*
 * The driver's own state: devices, their primary contexts, and which context a thread has current.
 *
 * Handles given out are pointers to the structs here and in queue.h and image.h. They are kept in a
 * register of live handles, so that a handle that was never one, or is no longer, is refused with
 * CUDA's own code instead of followed. One lock guards all of this and all queues; it is never held
 * while a kernel or a copy runs.
 */
#ifndef SOFT_DRIVER_STATE_H
#define SOFT_DRIVER_STATE_H

#include "../cuda_abi.h"
#include "image.h"

#include <pthread.h>
#include <stdbool.h>

enum { SOFT_DRIVER_VERSION = 13000, SOFT_DEVICES_MAX = 8, SOFT_PRIORITY_GREATEST = -5 };

struct soft_stream;

struct soft_device {
    int ordinal;
    uint64_t memory_bytes, memory_used;
    struct soft_context *context; /* the primary one; made once and kept */
};

struct soft_context {
    struct soft_device *device;
    int retained;   /* how often; 0 is inactive */
    CUresult error; /* that every call returns once a kernel has failed */
    struct soft_stream *streams;
    unsigned stream_count;
    struct soft_stream *legacy; /* the default stream; in the list too */
    struct soft_event *events;
    struct soft_module *modules;
};

enum soft_handle_kind {
    SOFT_HANDLE_STREAM,
    SOFT_HANDLE_EVENT,
    SOFT_HANDLE_MODULE,
    SOFT_HANDLE_FUNCTION
};

extern pthread_mutex_t soft_lock;

/* CUDA_ERROR_NOT_INITIALIZED before cuInit. */
CUresult soft_state_check(void);
CUresult soft_state_init(void);

/* The device of a number; NULL if there is none. */
struct soft_device *soft_device_of(CUdevice device);

/* The calling thread's context. CUDA_ERROR_INVALID_CONTEXT if it has none, or one whose device was
 * released; its error once it has one. */
CUresult soft_context_current(struct soft_context **context);
void soft_context_set(struct soft_context *context);
struct soft_context *soft_context_get(void);

/* Whether a pointer is a primary context that has been made. */
bool soft_context_is(const struct soft_context *context);

/* Charges a device's memory, or gives back; false: there is not so much left. */
bool soft_device_charge(struct soft_device *device, uint64_t bytes);
void soft_device_refund(struct soft_device *device, uint64_t bytes);

/* The register of handles. The caller holds soft_lock. add: false when the host has no memory. */
bool soft_handle_add(enum soft_handle_kind kind, const void *handle);
void soft_handle_remove(enum soft_handle_kind kind, const void *handle);
bool soft_handle_is(enum soft_handle_kind kind, const void *handle);

#endif
