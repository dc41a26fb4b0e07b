/*
 * Health: in one call, whether memory lies where it should, whether the program gives back what it
 * takes, and whether the device has reported errors; of a running program, not of a test.
 *
 * Residency: each allocation of the context's buffers, pools and VRAM contexts is asked for, and
 * must be the device's own memory, neither the host's nor managed.
 *
 * Leaks: what lives now is compared with a mark that was made before, place by place in the
 * program. A server makes a mark when it has warmed up and looks again every so many requests: a
 * place from which more lives than at the mark leaks, or caches without a bound.
 *
 * Errors: every stream is asked, so that a kernel's fault is found although no call has met it yet;
 * and NVML, where libnvidia-ml.so.1 can be opened and knows the device, tells of ECC errors, the
 * temperature, and what this process has of the device. TOLLENS_LIBNVML names another library.
 *
 * What the runtime cannot see it does not tell: memory of raw driver calls, of other libraries, of
 * vram_malloc, whose context is its own, and the pinned blocks that copies are staged through.
 *
 * Threads: any, beside any other calls; what others make and free meanwhile is told as it was at
 * some moment. A call asks the driver twice for each allocation. Source: spec 001 "Health
 * Monitoring"; D-17, D-38.
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

/* ---- what lives ---- */

enum tol_held_kind {
    TOL_HELD_BUFFER, /* tol_buffer_create */
    TOL_HELD_BLOCK,  /* of a tol_pool */
    TOL_HELD_VRAM,   /* of a tol_vram_context */
    TOL_HELD_PINNED, /* tol_pinned_create: the host's memory */
    TOL_HELD_KINDS
};

/* The name of a kind: "buffer". Static. NULL: it is none. */
TOL_API const char *tol_held_name(unsigned kind);

/* One allocation. */
struct tol_held {
    enum tol_held_kind kind;
    uint64_t address; /* on the device, or of pinned memory on the host */
    size_t bytes;     /* as they were asked for */
    const char *tag;  /* its name, of a pool's block that has one; else "" */
    const void *site; /* who made it: an address in the program, which dladdr names */
};

/* Calls visit for each allocation that lives. It must make no call with this context or with what
 * was made from it; *held is valid only while it runs. */
TOL_API void tol_health_each(struct tol_context *context,
                             void (*visit)(void *user, const struct tol_held *held), void *user);

/* ---- how it is ---- */

struct tol_health_sum {
    uint64_t count, bytes;
};

/* What NVML says of the whole device. Numbers that it does not tell are -1. */
struct tol_health_device {
    bool is_told;            /* false: all below is unknown */
    char reason[160];        /* why not; "" where it is told */
    int64_t free_bytes;      /* nvidia-smi's memory.free */
    int64_t used_bytes;      /* by all processes, without what the driver reserves */
    int64_t process_bytes;   /* of this process, its context included; containers may hide it */
    int64_t ecc_uncorrected; /* errors since the driver was loaded; -1 also where ECC is off */
    int temperature_celsius;
};

struct tol_health {
    bool is_healthy;
    char complaint[512]; /* what is wrong, in sentences; "" where nothing is */

    bool is_lost; /* a fatal error: the context can do no more, and where memory is, and how much,
                   * the driver tells no more */
    int error;    /* its CUresult */
    unsigned streams, busy; /* that live, and that have work now */

    size_t free_bytes, total_bytes;             /* of the device, as the driver has them */
    struct tol_health_sum held[TOL_HELD_KINDS]; /* what lives */
    unsigned ending; /* blocks that were freed and that work in flight still uses */

    uint64_t resident, astray; /* allocations on the device, and those that are not */

    struct tol_health_sum leaked; /* more than at the mark, summed over places that have more */
    struct tol_health_sum worst;  /* of that, the most bytes from one place ... */
    enum tol_held_kind worst_kind;
    const void *worst_site; /* ... which is this; NULL: nothing leaks, or no mark was given */

    struct tol_health_device device;
};

/*
 * Looks at all of it. since may be NULL: then leaks are not looked for. It is healthy when there is
 * no fatal error, nothing astray, nothing leaked and no uncorrected ECC error.
 * TOL_OK also where it is not healthy: the call has told so. TOL_INVALID_ARGUMENT: NULL, or a mark
 * of another context. TOL_OUT_OF_HOST_MEMORY. TOL_DRIVER_ERROR: the driver would not tell, for a
 * reason that is not fatal.
 */
TOL_API tol_status tol_health_check(struct tol_context *context,
                                    const struct tol_health_mark *since, struct tol_health *health);

/* Notes what lives now, by the places that made it. Belongs to the caller; any number may be, and
 * they may outlive the context. TOL_OUT_OF_HOST_MEMORY. */
TOL_API tol_status tol_health_mark_create(struct tol_context *context,
                                          struct tol_health_mark **mark);

/* NULL is a no-op. */
TOL_API void tol_health_mark_destroy(struct tol_health_mark *mark);

#ifdef __cplusplus
}
#endif
#endif
