/*
 * Context: a device made ready for work.
 *
 * It is the driver's primary context, shared with everything else in the process that uses the
 * device. There is one tol_context a driver object and device; creating it again gives the same one
 * with one more reference, and every stream, module, buffer and event holds a reference too, so the
 * order of destroying does not matter.
 *
 * Threads: a context and all that is made from it may be used from any thread, and no thread needs
 * a call of its own first; each call of the runtime makes the context current where it is not. A
 * program that changes the current context itself, behind the runtime, calls tol_context_bind
 * after.
 *
 * Errors: when the driver reports an error after which a context can do no more (an illegal address
 * and its kin), the context is poisoned: that call returns the error, every later call on the
 * context or on anything made from it returns TOL_POISONED with the first error's message, and
 * destroying still works. The driver asks for a new process then; so do we.
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

/* The longest a synchronising call waits unless told otherwise: the specification's deadlock limit
 * (spec 004 section 7.2, sync_deadlock_timeout_ms). */
enum { TOL_DEADLINE_MS = 5000 };

/*
 * Retains the primary context of a device and reads the device's description.
 *
 * TOL_NO_DEVICE: there is no such device. TOL_DEVICE_UNSUPPORTED: its compute capability is below
 *
 * TOL_COMPUTE_CAPABILITY_MIN. TOL_OUT_OF_HOST_MEMORY, TOL_OUT_OF_DEVICE_MEMORY, TOL_DRIVER_ERROR.
 */
TOL_API tol_status tol_context_create(struct tol_driver *driver, int ordinal,
                                      struct tol_context **context);

/* Gives one reference back; the last one releases the primary context. NULL is a no-op. Work that
 * still runs is the driver's to finish: synchronize first what must be done. */
TOL_API void tol_context_destroy(struct tol_context *context);

/* The device's description. Valid while the context lives. */
TOL_API const struct tol_device *tol_context_device(const struct tol_context *context);

/* The driver it was made from. Valid while the context lives. */
TOL_API struct tol_driver *tol_context_driver(const struct tol_context *context);

/* The functions the context calls through: the raw driver, or the interposer. For calls that the
 * runtime does not wrap; tol_context_bind comes first. Valid while the context lives. */
TOL_API const struct tol_driver_table *tol_context_functions(const struct tol_context *context);

/* Makes the context current on the calling thread, for raw driver calls, or after a program changed
 * the current context itself. It stays current. */
TOL_API tol_status tol_context_bind(struct tol_context *context);

/* Bytes free and in all on the device, as the driver gives them: other processes count too. Either
 * pointer may be NULL. */
TOL_API tol_status tol_context_memory(struct tol_context *context, size_t *free_bytes,
                                      size_t *total_bytes);

/* The lowest and the highest priority a stream can have; numerically lower is higher. */
TOL_API tol_status tol_context_priorities(struct tol_context *context, int *lowest, int *highest);

/* TOL_OK, or TOL_POISONED with the first fatal error's message. Calls no driver function: an error
 * that the driver has not reported yet is not known yet. */
TOL_API tol_status tol_context_check(const struct tol_context *context);

/*
 * How long destroying waits for the context's work, where the driver would wait without an end:
 * TOL_DEADLINE_MS unless told otherwise. Memory that is still in use then is freed later, with
 * another buffer or with the context; a context that ends while its work does not is left to the
 * driver as it is, until the process ends.
 */
TOL_API void tol_context_set_patience(struct tol_context *context, unsigned patience_ms);

/* Waits until all streams made from this context have no work left, deadline_ms at most.
 * TOL_TIMEOUT names the first stream that has. */
TOL_API tol_status tol_context_synchronize(struct tol_context *context, unsigned deadline_ms);

#ifdef __cplusplus
}
#endif
#endif
