/*
 * The fields of struct tol_context, and the two inline steps that begin each call on a context.
 *
 * Lock order: a context's holders, a graph, an instance; then a module, a pool, a pinned block or a
 * capture; then a context, a driver; then a driver's log or an outcome.
 */
#ifndef TOLLENS_CONTEXT_STATE_H
#define TOLLENS_CONTEXT_STATE_H

#include "check.h"
#include "tollens/device.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

/* health.h's. */
struct tol_held;
typedef void tol_held_visit(void *user, const struct tol_held *held);

struct tol_name;
struct tol_stream;

struct tol_context {
    const struct tol_driver_table *functions; /* copied from the driver: one load a call, not two */
    uint64_t id;                              /* never used twice, unlike the handle's address */
    atomic_bool poisoned;
    bool device_memory_only; /* does not change */
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

/* An object that holds memory of a context and reports it: a buffer, a pool. */
struct tol_holder {
    struct tol_holder *next, **link; /* in context->holders; no link: not reported */
    void (*report)(struct tol_holder *holder, tol_held_visit *visit, void *user);
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

tol_status tol_context_bind_slow(struct tol_context *context);
tol_status tol_context_report_poison(const struct tol_context *context);
void tol_context_retain(struct tol_context *context);

/* Queries every stream: counts the streams and those that have work, and finds errors that no call
 * has returned yet, which poison the context. Captured streams are not queried. */
tol_status tol_context_ask_streams(struct tol_context *context, unsigned *streams, unsigned *busy);

/* Adds an object that holds memory to the context's list, and removes it. The caller holds no lock.
 * Remove a holder before its memory is freed. */
void tol_context_add_holder(struct tol_context *context, struct tol_holder *holder,
                            void (*report)(struct tol_holder *, tol_held_visit *, void *));
void tol_context_drop_holder(struct tol_context *context, struct tol_holder *holder);

/* Synchronises the streams that are idle already. The driver's memory pools count freed memory as
 * used until the host has made a synchronising call; a query does not suffice. Waits for no
 * work. */
tol_status tol_context_show_ends(struct tol_context *context);

/* Destroys the streams of a context that ends. All their work is done. */
void tol_context_end_streams(struct tol_context *context);

/* Whether all work of a context, or of its blocking streams, is done: waits as long as the patience
 * of the context allows, and reports no failure of the work. Call it before calls in which the
 * driver would wait without a limit: freeing memory, and synchronous copies. */
bool tol_context_is_idle(struct tol_context *context, bool blocking_only);

/* Frees device memory, or a pinned block, once all earlier work is done: now, if it is. */
void tol_context_free_later(struct tol_context *context, CUdeviceptr address, void *pinned);

/* Before a synchronous call: TOL_TIMEOUT if blocking streams have not finished. */
tol_status tol_context_wait_blocking(struct tol_context *context);

/* A copy of text that lives as long as the context; NULL when the host has no memory. */
const char *tol_context_intern(struct tol_context *context, const char *text);

/* The failure of a driver call made in a context: composes the message with the driver's own
 * log, and poisons the context if the code is one that it cannot recover from. */
tol_status tol_context_fail(struct tol_context *context, const char *file, int line,
                            const char *call, int result, const char *format, ...) TOL_PRINTF(6, 7);

/* Begins a call on a context: fails if it is poisoned, otherwise makes it current. */
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
