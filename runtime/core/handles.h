/*
 * The private layouts behind the runtime's opaque handles, in one place.
 *
 * Files of one floor may not include each other's headers, yet an event must reach the stream it is
 * recorded on. They meet here: fields, and the two inline steps that begin every call. What is
 * always true of them is stated by functions that are asserted (deep.h). Internal: not installed.
 *
 * Lock order: that of a context's holders, then a graph's, then an instance's, then a module's, a
 * pool's, a pinned block's or a capture's, then a context's, then a driver's, then the lock of a
 * driver's log or of an outcome.
 */
#ifndef TOLLENS_HANDLES_H
#define TOLLENS_HANDLES_H

#include "check.h"
#include "tollens/device.h"
#include "retire.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

/* health.h's. */
struct tol_held;
typedef void tol_held_visit(void *user, const struct tol_held *held);

struct tol_driver {
    const struct tol_driver_table *functions; /* what is called: table, or the interposer's */
    struct tol_driver_table table;            /* what the library exports */
    bool has[TOL_FEATURE_COUNT];
    int version;
    atomic_int references;
    pthread_mutex_t lock;         /* guards contexts and their references */
    struct tol_context *contexts; /* those alive, at most one a device */
    pthread_mutex_t log_lock;     /* guards log_position */
    CUlogIterator log_position;   /* up to where the driver's own error log has been read */
    char path[256];
};

struct tol_context {
    const struct tol_driver_table *functions; /* copied from the driver: one load a call, not two */
    uint64_t id;                              /* never used twice, unlike the handle's address */
    atomic_bool poisoned;
    CUcontext handle;
    struct tol_driver *driver;
    struct tol_context *next; /* in driver->contexts */
    int references;           /* guarded by driver->lock */
    CUdevice device_handle;
    struct tol_device device;
    pthread_mutex_t lock;       /* guards all below */
    struct tol_stream *streams; /* those alive, and orphans: destroyed, with work still to finish */
    unsigned streams_made;
    atomic_uint blocking_streams; /* those alive that the legacy stream waits for */
    struct tol_module *modules;   /* those loaded: the module cache */
    struct tol_staging *staging;  /* pinned blocks for pageable sources, free or in flight */
    struct tol_left *left;        /* memory whose free would have had to wait too long */
    unsigned patience_ms;         /* how long destroying waits for work */
    atomic_bool is_stuck;         /* the last such wait was in vain: the next asks once */
    struct tol_name *names; /* kernel names, kept to the end: a timeout may name a kernel late */
    pthread_mutex_t holders_lock; /* guards the list; taken before all other locks */
    struct tol_holder *holders;   /* all that has memory, for health.h */
    int poison_result;
    char poison_message[TOL_MESSAGE_BYTES];
};

/* What has memory of a context and tells of it: a buffer, a pool. */
struct tol_holder {
    struct tol_holder *next, **link; /* in context->holders; no link: not told of */
    void (*tell)(struct tol_holder *holder, tol_held_visit *visit, void *user);
};

/* Memory that is freed when the context's work is done, or with the context. */
struct tol_left {
    struct tol_left *next;
    CUdeviceptr address; /* on the device, or 0 */
    void *pinned;        /* on the host, or NULL */
};

/* A string that lives as long as its context. */
struct tol_name {
    struct tol_name *next;
    char text[];
};

struct tol_stream {
    const struct tol_driver_table *functions;
    struct tol_context *context;
    CUstream handle;
    _Atomic(const char *) last_kernel;     /* the name of what was launched last; NULL before */
    _Atomic(struct tol_outcome *) outcome; /* of host functions; NULL while there was none */
    _Atomic(struct tol_capture *) capture; /* what becomes a graph; NULL: work runs */
    struct tol_stream *next;               /* in context->streams */
    int references;                        /* guarded by context->lock; an orphan has none */
    unsigned number;                       /* small and unique in the context, for messages */
    bool blocking;                         /* the legacy stream waits for it */
};

struct tol_event {
    struct tol_context *context;
    CUevent handle;
    bool timed;
    _Atomic uint64_t capture_id; /* of the capture it was recorded in; 0: none */
};

/* What a stream's work becomes instead of running, and what the graph made of it holds on to. */
struct tol_capture {
    uint64_t id; /* never used twice */
    struct tol_context *context;
    atomic_int references;
    struct tol_outcome *outcome; /* of its host functions */
    pthread_mutex_t lock;        /* guards all below */
    struct tol_pinned **pinned;  /* blocks that its copies use */
    size_t pinned_count, pinned_room;
};

enum { TOL_MODULE_BUCKETS = 64 };

struct tol_module {
    struct tol_context *context;
    CUmodule handle;
    struct tol_module *next; /* in context->modules */
    int references;          /* guarded by context->lock */
    char *image;             /* the copy the cache compares with, NUL behind it */
    size_t image_bytes;
    uint64_t image_hash;
    int options[4]; /* as loaded, for the cache */
    bool unshared;
    char *log;            /* the JIT's */
    pthread_mutex_t lock; /* guards adding kernels */
    _Atomic(struct tol_kernel *) buckets[TOL_MODULE_BUCKETS];
};

struct tol_kernel {
    const struct tol_driver_table *functions;
    struct tol_context *context;
    CUfunction handle;
    const char *name; /* the context's, so it outlives the module */
    unsigned block_threads_max;
    unsigned shared_static_bytes;
    atomic_uint shared_dynamic_bytes_max;
    int local_bytes;
    int registers;
    int parameter_count; /* -1 where the driver cannot tell */
    unsigned parameter_bytes_total;
    struct tol_kernel *next;    /* in its bucket */
    unsigned parameter_bytes[]; /* the size of each */
};

/* Device memory, owned or a view of a module's variable. */
struct tol_buffer {
    struct tol_life life;
    struct tol_holder holder;
    const void *site; /* who made it */
    struct tol_context *context;
    CUdeviceptr address;
    size_t bytes;
    struct tol_module *module; /* of a view; NULL when the memory is the buffer's own */
};

/* The latest copy between a pinned block and the device on one stream. */
struct tol_copy_use {
    struct tol_event event;
    unsigned stream_number;
    bool in_flight;
    struct tol_copy_use *next;
};

struct tol_pinned {
    struct tol_life life;
    struct tol_holder holder;
    const void *site; /* who made it */
    struct tol_context *context;
    void *data;
    size_t bytes;
    pthread_mutex_t lock; /* guards uses */
    struct tol_copy_use *uses;
};

/* Around a copy queued on a stream: prepare may fail and has then changed nothing; mark notes that
 * the copy is in flight. */
tol_status tol_pinned_prepare(struct tol_pinned *pinned, struct tol_stream *stream,
                              struct tol_copy_use **use);
tol_status tol_pinned_mark(struct tol_pinned *pinned, struct tol_stream *stream,
                           struct tol_copy_use *use);

/* Host functions: what they said of a stream or a graph. NULL: no memory. Deliver gives the first
 * failure since the last time, with its message; relay queues handing it on to a stream. */
struct tol_outcome *tol_outcome_create(unsigned stream_number);
void tol_outcome_destroy(struct tol_outcome *outcome);
tol_status tol_outcome_deliver(struct tol_outcome *outcome);
bool tol_outcome_has_calls(struct tol_outcome *outcome);
tol_status tol_outcome_relay(struct tol_stream *stream, struct tol_outcome *from);

/* Captures: an event that was recorded in one takes a stream that waits for it along; a pinned
 * block that a captured copy uses is noted, to be marked at each launch. */
void tol_capture_join(struct tol_stream *stream, uint64_t id);
tol_status tol_capture_keep(struct tol_capture *capture, struct tol_pinned *pinned);

struct tol_launch_shape;
struct tol_arguments;

/* Refuses what a launch refuses: sizes and arguments that do not fit the kernel. */
tol_status tol_launch_check(const struct tol_kernel *kernel, const struct tol_launch_shape *shape,
                            const struct tol_arguments *arguments);

/* module.h's, for a buffer that is a view of a module's variable. */
void tol_module_destroy(struct tol_module *module);

/* A pinned block that the runtime copies a pageable source into, owned by the context. */
struct tol_staging {
    void *data;
    size_t bytes;
    CUevent done; /* reached when the block is free again */
    bool taken;   /* being filled or queued right now */
    struct tol_staging *next;
};

/* Which context is current on this thread, as far as the runtime knows. */
extern _Thread_local uint64_t tol_bound_context;

/* Whether this thread is in a host function, where no driver call may be made. */
extern _Thread_local bool tol_inside_host_function;

tol_status tol_context_bind_slow(struct tol_context *context);
tol_status tol_context_report_poison(const struct tol_context *context);
void tol_context_retain(struct tol_context *context);

/* Puts a new stream, with one reference, into its context's list and numbers it. */
void tol_context_add_stream(struct tol_context *context, struct tol_stream *stream);

/* Keeps a stream and the driver's stream behind it alive after the program has destroyed it. */
void tol_context_retain_stream(struct tol_stream *stream);

/* Asks the driver of each stream, how many there are and how many have work: finds errors that no
 * call has met yet, which poison the context. Of those that are captured nothing is asked. */
tol_status tol_context_ask_streams(struct tol_context *context, unsigned *streams, unsigned *busy);

/* Adds what has memory to the context's list, and takes it out again. The caller holds no lock; a
 * holder is out before its memory goes. */
void tol_context_add_holder(struct tol_context *context, struct tol_holder *holder,
                            void (*tell)(struct tol_holder *, tol_held_visit *, void *));
void tol_context_drop_holder(struct tol_context *context, struct tol_holder *holder);

/* Whether an address is the device's own memory: not the host's and not managed. false for one that
 * the driver does not know. */
tol_status tol_context_is_resident(struct tol_context *context, CUdeviceptr address,
                                   bool *resident);

/* Lets the driver see which streams have come to their end. Its own memory pools count what was
 * freed as used until the host has waited by a synchronising call; that a query told the end is not
 * enough. Waits for no work. */
tol_status tol_context_show_ends(struct tol_context *context);

/* Gives back a reference to a stream. Without any left, the driver's stream is destroyed as soon as
 * its work is done: until then the context still waits for it. */
void tol_context_release_stream(struct tol_stream *stream);

/* Destroys the streams of a context that ends. All their work is done. */
void tol_context_end_streams(struct tol_context *context);

/* Whether all work of a context is done, or all of its blocking streams: waits in silence, as long
 * as the context has patience, and tells nobody what became of the work. For what the driver would
 * wait for without an end: freeing memory, and synchronous copies. */
bool tol_context_is_idle(struct tol_context *context, bool blocking_only);

/* Frees device memory, or a pinned block, when its turn has come: now, where all work is done. */
void tol_context_free_later(struct tol_context *context, CUdeviceptr address, void *pinned);

/* In front of a synchronous call: TOL_TIMEOUT where blocking streams have not finished. */
tol_status tol_context_wait_blocking(struct tol_context *context);

/* A copy of text that lives as long as the context; NULL when the host has no memory. */
const char *tol_context_intern(struct tol_context *context, const char *text);

/* The failure of a driver call made in a context: makes the message, adds what the driver's own log
 * says, and poisons the context when the code is one it cannot come back from. */
tol_status tol_context_fail(struct tol_context *context, const char *file, int line,
                            const char *call, int result, const char *format, ...) TOL_PRINTF(6, 7);

/* Begins a call on a context: nothing of a poisoned one is touched, and it is current after. */
static inline tol_status tol_context_enter(struct tol_context *context) {
    if (TOL_UNLIKELY(atomic_load_explicit(&context->poisoned, memory_order_relaxed))) {
        return tol_context_report_poison(context);
    }
    if (TOL_UNLIKELY(tol_bound_context != context->id)) return tol_context_bind_slow(context);
    return TOL_OK;
}

/* TOL_CU for a call made in a context. */
#define TOL_CONTEXT_CU(context, call, arguments, ...)                                              \
    do {                                                                                           \
        CUresult tol_cu_result = (context)->functions->call arguments;                             \
        if (TOL_UNLIKELY(tol_cu_result != CUDA_SUCCESS)) {                                         \
            status = tol_context_fail(context, __FILE__, __LINE__, #call, (int)tol_cu_result,      \
                                      __VA_ARGS__);                                                \
            goto out;                                                                              \
        }                                                                                          \
    } while (0)

/* ---- handles_valid.c, for asserts: not with NDEBUG ---- */

/* Whether a stream or a module has what it needs and is counted. The caller holds the context's
 * lock. */
bool tol_stream_is_valid(const struct tol_stream *stream);
bool tol_module_is_valid(const struct tol_module *module);

/* Whether all listed streams and modules are valid and the context's own. Walks both lists. The
 * caller holds the context's lock. */
bool tol_context_is_valid(const struct tol_context *context);

/* Whether the listed contexts are the driver's, alive, and of different devices. The caller holds
 * the driver's lock. */
bool tol_driver_is_valid(const struct tol_driver *driver);

#endif
