/*
 * Health: checks a running program for misplaced memory, leaks and device errors, in one call.
 *
 * Residency: queries the driver whether each allocation of the context's buffers, pools and VRAM
 * contexts is device memory, neither host nor managed memory.
 *
 * Leaks: compares the live allocations with a mark made earlier, per call site. A server makes
 * a mark after warming up and checks again periodically. A call site with more live
 * allocations than at the mark leaks, or caches without a bound.
 *
 * Errors: queries every stream, which finds a kernel's fault even if no call has returned it yet.
 * If libnvidia-ml.so.1 can be opened and knows the device, NVML reports ECC errors, temperature and
 * this process's memory. TOLLENS_LIBNVML names another library.
 *
 * Not covered, because the runtime cannot see it: memory from raw driver calls, from other
 * libraries and from vram_malloc, which has a context of its own; and the pinned staging blocks of
 * copies.
 *
 * Threads: all functions may be called from any thread, at the same time as any other call. What
 * other threads allocate and free during a check is reported as of some moment of the check.
 * A check makes two driver calls per allocation.
 * Source: spec 001 "Health Monitoring"; D-17, D-38.
 */
#ifndef TOLLENS_HEALTH_H
#define TOLLENS_HEALTH_H

#include "status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tol_context;
struct tol_health_mark;

/* ---- live allocations ---- */

/* What an allocation was made with. */
enum tol_held_kind {
    TOL_HELD_BUFFER, /* tol_buffer_create */
    TOL_HELD_BLOCK,  /* a tol_pool */
    TOL_HELD_VRAM,   /* a tol_vram_context */
    TOL_HELD_PINNED, /* tol_pinned_create; host memory */
    TOL_HELD_KINDS
};

/* The name of a kind, such as "buffer". Static. NULL for an unknown kind. */
TOL_API const char *tol_held_name(unsigned kind);

/* One live allocation. */
struct tol_held {
    enum tol_held_kind kind;
    uint64_t address; /* device address; for pinned memory the host address */
    size_t bytes;     /* as requested */
    const char *tag;  /* the tag's name if it is a tagged pool block; else "" */
    const void *site; /* the code address that allocated it, for dladdr */
};

/* Calls visit for each live allocation. visit must not call anything with this context or with an
 * object created from it. *held is valid only during the call. */
TOL_API void tol_health_each(struct tol_context *context,
                             void (*visit)(void *user, const struct tol_held *held), void *user);

/* ---- the check ---- */

/* A number of allocations and their size. */
struct tol_health_sum {
    uint64_t count, bytes;
};

/* NVML's report on the whole device. A number that NVML does not report is -1. */
struct tol_health_device {
    bool is_told;            /* false: NVML gave no report, and all below is unknown */
    char reason[160];        /* why there is no report; "" if there is one */
    int64_t free_bytes;      /* as memory.free of nvidia-smi */
    int64_t used_bytes;      /* by all processes, without the driver's reserve */
    int64_t process_bytes;   /* by this process with its context; containers may hide it */
    int64_t ecc_uncorrected; /* errors since the driver was loaded; -1 also if ECC is off */
    int temperature_celsius;
};

/* The result of a check. */
struct tol_health {
    bool is_healthy;
    char complaint[512]; /* the problems found, in sentences; "" if healthy */

    bool is_lost; /* a fatal error: the context is unusable, and the driver no longer reports memory
                   * sizes or locations */
    int error;    /* the CUresult of that error */
    unsigned streams, busy; /* live streams; those of them that have work now */

    size_t free_bytes, total_bytes;             /* of the device, as the driver reports them */
    struct tol_health_sum held[TOL_HELD_KINDS]; /* live allocations by kind */
    unsigned ending;                            /* freed blocks that running work still uses */

    uint64_t resident, astray; /* allocations that are device memory; those that are not */

    struct tol_health_sum leaked; /* growth since the mark, over all call sites that have grown */
    struct tol_health_sum worst;  /* the part from the call site with the most bytes */
    enum tol_held_kind worst_kind;
    const void *worst_site; /* that call site; NULL: nothing leaks, or no mark was given */

    struct tol_health_device device;
};

/*
 * Checks the context and fills *health. since is the mark to compare with; NULL skips the search
 * for leaks. is_healthy means: no fatal error, nothing astray, nothing leaked, no uncorrected ECC
 * error. Returns TOL_OK for an unhealthy context too: read is_healthy.
 * TOL_INVALID_ARGUMENT: NULL, or a mark of another context. TOL_OUT_OF_HOST_MEMORY.
 * TOL_DRIVER_ERROR: a driver call failed with an error that is not fatal.
 */
TOL_API tol_status tol_health_check(struct tol_context *context,
                                    const struct tol_health_mark *since, struct tol_health *health);

/* Records the live allocations per call site. The caller destroys the mark. There may be any number
 * of marks, and a mark may outlive the context. TOL_OUT_OF_HOST_MEMORY. */
TOL_API tol_status tol_health_mark_create(struct tol_context *context,
                                          struct tol_health_mark **mark);

/* Destroys a mark. NULL is a no-op. */
TOL_API void tol_health_mark_destroy(struct tol_health_mark *mark);

#ifdef __cplusplus
}
#endif
#endif
