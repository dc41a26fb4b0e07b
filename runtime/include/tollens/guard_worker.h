/*
 * Guard worker: a program's side of a guard (guard.h), in a few calls.
 *
 *     tol_guard_worker_open("H200, model.gguf", &worker);
 *     while (tol_guard_worker_next(worker, &job) == TOL_OK && job.number != 0) {
 *         tol_status status = compute(&job, &answer);
 *         if (status == TOL_OK) tol_guard_worker_done(worker, &job, answer, bytes);
 *         else tol_guard_worker_failed(worker, &job, status);
 *     }
 *     tol_guard_worker_close(worker);
 *
 * Opening moves stdout away: what the program or a library prints from then on goes to stderr, and
 * cannot break the protocol. A separate thread sends beats, which stop if the process is stopped.
 * Only parts and the answer show that a job makes progress.
 *
 * Threads: one worker per process; tol_guard_worker_keep may be called from any thread, the others
 * from one. Programs in other languages write the protocol themselves
 * (runtime/driver/guard/README.md).
 */
#ifndef TOLLENS_GUARD_WORKER_H
#define TOLLENS_GUARD_WORKER_H

#include "status.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tol_guard_worker;

/* A job. The bytes are the worker's, followed by a NUL, and valid until the next job. */
struct tol_guard_work {
    uint64_t number; /* 0: there is none, and the worker must end */
    const void *bytes;
    size_t count;
    /* The parts that earlier workers of the job kept, in order. Empty: the job begins anew. */
    const void *parts;
    size_t parts_count;
};

/* Says hello; kind is what people read of this worker, one line. The caller closes *worker.
 * TOL_INVALID_ARGUMENT. TOL_UNSUPPORTED: no guard has started this process. TOL_UNWRITABLE: the
 * guard is gone. TOL_OUT_OF_HOST_MEMORY. */
TOL_API tol_status tol_guard_worker_open(const char *kind, struct tol_guard_worker **worker);

/* Ends the signs of life. NULL is a no-op. */
TOL_API void tol_guard_worker_close(struct tol_guard_worker *worker);

/* Waits for a job. TOL_INVALID_FILE: what came is not the protocol. TOL_OUT_OF_HOST_MEMORY. */
TOL_API tol_status tol_guard_worker_next(struct tol_guard_worker *worker,
                                         struct tol_guard_work *work);

/* Keeps bytes for the next worker of the job, after those kept before.
 * The job's deadline begins anew. TOL_UNWRITABLE: the guard is gone. TOL_OVER_LIMIT. */
TOL_API tol_status tol_guard_worker_keep(struct tol_guard_worker *worker,
                                         const struct tol_guard_work *work, const void *bytes,
                                         size_t count);

/* Answers the job. Fails as tol_guard_worker_keep. */
TOL_API tol_status tol_guard_worker_done(struct tol_guard_worker *worker,
                                         const struct tol_guard_work *work, const void *bytes,
                                         size_t count);

/*
 * Reports that the job failed with a status of the runtime, and the thread's message. If the
 * status is the device's (TOL_POISONED, TOL_TIMEOUT, TOL_DRIVER_ERROR, TOL_NO_DEVICE), the guard
 * ends this process, and the job goes to another device; else the job itself is at fault, and this
 * is its answer. Fails as tol_guard_worker_keep.
 */
TOL_API tol_status tol_guard_worker_failed(struct tol_guard_worker *worker,
                                           const struct tol_guard_work *work, tol_status failure);

#ifdef __cplusplus
}
#endif
#endif
