/*
 * The driver's state: devices and contexts.
 *
 * One lock guards all of this, the set of handles and all queues; it is never held while a kernel
 * or a copy runs.
 */
#ifndef SOFT_DRIVER_STATE_H
#define SOFT_DRIVER_STATE_H

#include "base/abi.h"
#include "base/options.h"
#include "lower/loaded_module.h"
#include "memory/space.h"

#include <pthread.h>
#include <stdbool.h>

enum {
    SOFT_DEVICES_MAX = SOFT_OPTIONS_DEVICES_MAX,
    SOFT_CONTEXTS_MAX = 63, /* live at a time: each has a bit in struct soft_reach */
    SOFT_SLOT_NONE = 63,    /* the bit of memory without a context */
    SOFT_PRIORITY_GREATEST = -5,
    SOFT_LIMITS = CU_LIMIT_PERSISTING_L2_CACHE_SIZE + 1
};

struct soft_stream;

struct soft_device {
    int ordinal;
    uint64_t memory_bytes, memory_used;
    uint64_t memory_given;               /* how much it allocates: all of it, except with a fault */
    CUresult lost;                       /* the error that a fault has set for its contexts */
    struct soft_context *primary;        /* made once and kept */
    struct soft_pool *usual_pool, *pool; /* the default memory pool, and the one in use */
    struct soft_pool *graph_pool;        /* what graphs allocate comes from it */
};

struct soft_context {
    struct soft_device *device;
    uint64_t id; /* never reused; 0 before the first use */
    bool alive;
    int retained;   /* how often, of a primary context */
    int attached;   /* how often beyond its creation, by cuCtxAttach */
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
    struct soft_context *next; /* in the list of all, including destroyed ones */
};

extern pthread_mutex_t soft_lock;

/* CUDA_ERROR_NOT_INITIALIZED before cuInit, and in a process that was forked after it: as with a
 * driver, the devices stay the parent's. */
CUresult soft_state_check(void);

/* Whether this process was forked from one that had initialised the devices. Any thread. */
bool soft_state_is_forked(void);

/* The last step of cuInit. The caller holds soft_lock. */
void soft_state_ready(void);

/* The device with a number; NULL if there is none. */
struct soft_device *soft_device_of(CUdevice device);

enum { SOFT_GRANULE_BYTES = 512 };

/* Memory is charged in granules: the charge of a number of bytes. */
static inline uint64_t soft_memory_rounded(uint64_t bytes) {
    return (bytes + SOFT_GRANULE_BYTES - 1) / SOFT_GRANULE_BYTES * SOFT_GRANULE_BYTES;
}

/* Charges a device's memory, or uncharges it; false: not enough is left. */
bool soft_device_charge(struct soft_device *device, uint64_t bytes);
void soft_device_refund(struct soft_device *device, uint64_t bytes);

#endif
