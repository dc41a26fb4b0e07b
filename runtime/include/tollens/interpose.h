/*
 * The interposer: a second driver table whose every entry watches a call, or harms it, and then
 * forwards it to the driver.
 *
 * It is how driver calls are counted (H8), traced and timed, how failure tests make the nth call
 * fail, and how sabotage is done. Off, it is not in the path at all: contexts call through the
 * table pointer they took from the driver when they were opened, and that pointer is either the
 * driver's own table or this one. So install it before opening a context.
 *
 * One interposer may be active in a process. Counting is thread-safe; installing, removing and
 * changing rules must not run beside calls.
 */
#ifndef TOLLENS_INTERPOSE_H
#define TOLLENS_INTERPOSE_H

#include "driver.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One call on its way through. A hook may read and change everything marked so. */
struct tol_interpose_call {
    enum tol_driver_index index;
    uint64_t sequence;       /* position among all calls since installing, from 1 */
    unsigned argument_count; /* */
    void *const *arguments;  /* the address of each argument: a before-hook may change them */
    const unsigned *argument_bytes;        /* the size of each */
    const struct tol_driver_table *driver; /* the real functions: hooks may call them */
    bool forward;                          /* before: false keeps the call from the driver */
    CUresult result;                       /* what the caller gets: both hooks may change it */
    uint64_t begin_ns, end_ns; /* monotonic clock around the driver's part; 0 when not timed */
};

/* Called on the calling thread, before and after the driver. user is what was given at install. */
typedef void (*tol_interpose_hook)(struct tol_interpose_call *call, void *user);

/* What a rule does to the calls it matches. */
typedef enum tol_interpose_action {
    TOL_INTERPOSE_FAIL,  /* return result without calling the driver */
    TOL_INTERPOSE_DELAY, /* spin for delay_ns, then forward */
    TOL_INTERPOSE_DROP   /* return success without calling the driver */
} tol_interpose_action;

struct tol_interpose_rule {
    const char *function; /* an exported name, or a prefix followed by '*'; "*" is every call */
    uint64_t nth;         /* which matching call, from 1; 0 is every one */
    tol_interpose_action action;
    CUresult result;   /* for FAIL */
    uint64_t delay_ns; /* for DELAY */
};

/* One traced call. */
struct tol_interpose_record {
    enum tol_driver_index index;
    CUresult result;
    uint64_t sequence;
    uint64_t thread; /* a small number, in order of each thread's first call */
    uint64_t begin_ns, end_ns;
};

struct tol_interpose_options {
    const struct tol_interpose_rule
        *rules; /* must outlive the interposer; the first that matches acts */
    size_t rule_count;
    tol_interpose_hook before; /* NULL for none */
    tol_interpose_hook after;  /* NULL for none */
    void *user;                /* given to the hooks */
    bool time;                 /* read the clock around each call */
    bool lockless;             /* the runtime adds kernels to its cache without the lock: a defect,
                                * for tests that must notice it */
    size_t trace_records;      /* how many calls the trace holds; 0 is no trace. Implies time */
};

/*
 * Puts the interposer into the driver's path for contexts opened from now on. options may be NULL:
 * count only. TOL_INVALID_ARGUMENT when another driver is interposed already, or a rule names no
 * function of driver.def; TOL_OUT_OF_HOST_MEMORY for a trace that does not fit.
 */
TOL_API tol_status tol_interpose_install(struct tol_driver *driver,
                                         const struct tol_interpose_options *options);

/* Takes it out again for contexts opened from now on. Contexts opened in between keep calling
 * through it and are forwarded unharmed. A no-op when nothing is installed. */
TOL_API void tol_interpose_remove(struct tol_driver *driver);

/* How often a function was called since installing; for TOL_DRIVER_FUNCTIONS, all functions. */
TOL_API uint64_t tol_interpose_count(enum tol_driver_index index);

/* The nanoseconds spent inside a function's driver part since installing, when options.time. */
TOL_API uint64_t tol_interpose_ns(enum tol_driver_index index);

/* Whether locks are to be missing: the runtime's own question. */
TOL_API bool tol_interpose_is_lockless(void);

/* Sets all counters, times and the trace back to zero. */
TOL_API void tol_interpose_reset(void);

/* Copies up to count trace records, oldest first, and returns how many. *overflowed (if not NULL)
 * says whether calls came after the trace was full; those are counted but not kept. */
TOL_API size_t tol_interpose_trace(struct tol_interpose_record *records, size_t count,
                                   bool *overflowed);

#ifdef __cplusplus
}
#endif
#endif
