/*
 * Context: a device that is ready for work.
 *
 * A context is the driver's primary context of a device, shared with all other code of the process
 * that uses the device. There is one tol_context per driver object and device: creating it again
 * returns the same one with one more reference. Streams, modules, buffers and events hold a
 * reference too, so handles may be destroyed in any order.
 *
 * Threads: a context and everything created from it may be used from any thread, without a call to
 * set it up: each runtime call makes the context current if it is not. A program that changes the
 * current context with driver calls of its own must call tol_context_bind afterwards.
 *
 * Errors: some driver errors, such as an illegal address, destroy a context. The call that sees one
 * returns it and poisons the context: every later call on the context, or on anything created from
 * it, returns TOL_POISONED with the message of the first error. Destroying handles still works. As
 * with CUDA itself, only a new process recovers.
 *
 * Source: spec 004 CRT-002, D-18, D-29.
 */
#ifndef TOLLENS_CONTEXT_H
#define TOLLENS_CONTEXT_H

#include "device.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tol_context;

/* The default timeout in ms of every call that synchronizes. Source: the deadlock limit of spec 004
 * section 7.2, sync_deadlock_timeout_ms. */
enum { TOL_DEADLINE_MS = 5000 };

/*
 * Retains the primary context of device ordinal (from 0) and reads the device's description. The
 * caller returns the reference with tol_context_destroy.
 *
 * TOL_NO_DEVICE: no device has this ordinal. TOL_DEVICE_UNSUPPORTED: its compute capability is
 * below TOL_COMPUTE_CAPABILITY_MIN. TOL_OUT_OF_HOST_MEMORY, TOL_OUT_OF_DEVICE_MEMORY,
 * TOL_DRIVER_ERROR.
 */
TOL_API tol_status tol_context_create(struct tol_driver *driver, int ordinal,
                                      struct tol_context **context);

/* How to create a context. All zero means what tol_context_create does. */
struct tol_context_options {
    /*
     * Whether kernels may work on the device's own memory only: not on the host's (pinned or
     * registered, which the driver maps for the device), nor on managed memory. Then, with
     * TOL_NOT_RESIDENT:
     *   - pinned blocks are refused. The runtime's own staging blocks for pageable sources and for
     *     transfers remain; no kernel gets their addresses;
     *   - a launch and a graph's kernel node are refused if an argument of 8 bytes is the address
     *     of such memory. Pointers inside structures, and in memory, are not looked at;
     *   - transfers refuse such a struct tol_place, and one that the driver does not know;
     *   - each new buffer, block of a pool, VRAM block and variable of a module is queried, and
     *     freed again if it is elsewhere.
     * Each query (cuPointerGetAttribute) costs one or two driver calls.
     */
    bool device_memory_only;
};

/*
 * Like tol_context_create, with options. NULL means all zero. All references of a device's context
 * share its options: creating it again with device_memory_only is refused with TOL_INVALID_ARGUMENT
 * if it exists without, and creating it again without gets the context as it is.
 * Source: spec 001, context.
 */
TOL_API tol_status tol_context_create_with(struct tol_driver *driver, int ordinal,
                                           const struct tol_context_options *options,
                                           struct tol_context **context);

/* Whether the context was created with device_memory_only. */
TOL_API bool tol_context_is_device_memory_only(const struct tol_context *context);

/* Returns one reference. The last one releases the primary context. The caller synchronizes first
 * if queued work must complete. NULL is a no-op. */
TOL_API void tol_context_destroy(struct tol_context *context);

/* The device's description. Valid while the context lives. */
TOL_API const struct tol_device *tol_context_device(const struct tol_context *context);

/* The driver that the context was created from. Valid while the context lives. */
TOL_API struct tol_driver *tol_context_driver(const struct tol_context *context);

/* The function table that the context calls: the driver's own, or the interposer's. For driver
 * calls that the runtime does not wrap; call tol_context_bind first. Valid while the context
 * lives. */
TOL_API const struct tol_driver_table *tol_context_functions(const struct tol_context *context);

/* Makes the context current on the calling thread and leaves it current. Needed before raw driver
 * calls, and after the program itself changed the current context. */
TOL_API tol_status tol_context_bind(struct tol_context *context);

/* Free and total memory of the device in bytes, as the driver reports them; other processes' use
 * counts. Either pointer may be NULL. */
TOL_API tol_status tol_context_memory(struct tol_context *context, size_t *free_bytes,
                                      size_t *total_bytes);

/* The lowest and the highest stream priority. Numerically lower means higher priority. */
TOL_API tol_status tol_context_priorities(struct tol_context *context, int *lowest, int *highest);

/* Returns TOL_OK, or TOL_POISONED with the message of the first fatal error. Calls no driver
 * function, so it does not detect an error that the driver has not reported yet. */
TOL_API tol_status tol_context_check(const struct tol_context *context);

/*
 * Sets how long destroying a handle waits for the context's work, if the driver itself would
 * wait without limit. The default is TOL_DEADLINE_MS. Memory that is still in use after that is
 * freed later, when another buffer or the context is destroyed. If the context is destroyed while
 * work still runs, it is not released before the process ends.
 */
TOL_API void tol_context_set_patience(struct tol_context *context, unsigned patience_ms);

/* Waits at most deadline_ms until all streams of this context are idle. TOL_TIMEOUT: one is not;
 * the message names the first such stream. */
TOL_API tol_status tol_context_synchronize(struct tol_context *context, unsigned deadline_ms);

#ifdef __cplusplus
}
#endif
#endif
