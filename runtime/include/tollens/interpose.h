/*
 * Interposer: a second driver table whose entries observe or change a call and then forward it to
 * the driver.
 *
 * It counts driver calls (H8), traces and times them, makes the nth call fail for failure tests,
 * and carries out sabotage. When it is off it is not in the path at all: a context keeps the table
 * pointer that the driver had when the context was created, which is either the driver's own table
 * or this one. So install it before creating a context.
 *
 * Threads: a process may have one active interposer. Counting is thread-safe. Installing, removing
 * and changing rules must not run at the same time as driver calls.
 */
#ifndef TOLLENS_INTERPOSE_H
#define TOLLENS_INTERPOSE_H

#include "driver.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One intercepted call. A hook may read all fields, and change those that say so. */
struct tol_interpose_call {
    enum tol_driver_index index;
    uint64_t sequence; /* number of the call since installing, from 1; 0: there is no trace */
    unsigned argument_count;
    void *const *arguments; /* address of each argument; the before hook may change the values */
    const unsigned *argument_bytes;        /* size of each argument */
    const struct tol_driver_table *driver; /* the driver's own functions; hooks may call them */
    bool forward;                          /* the before hook may set false to skip the driver */
    CUresult result;                       /* what the caller gets; both hooks may change it */
    uint64_t begin_ns, end_ns; /* monotonic clock around the driver's call; 0 if not timed */
};

/* A hook. Runs on the calling thread before or after the driver. user is options.user. */
typedef void (*tol_interpose_hook)(struct tol_interpose_call *call, void *user);

/* What a rule does to the calls it matches. */
typedef enum tol_interpose_action {
    TOL_INTERPOSE_FAIL,  /* return result without calling the driver */
    TOL_INTERPOSE_DELAY, /* spin for delay_ns, then forward */
    TOL_INTERPOSE_DROP   /* return success without calling the driver */
} tol_interpose_action;

/* Selects calls and says what happens to them. */
struct tol_interpose_rule {
    const char *function; /* an exported name, or a prefix and '*'; "*" matches every call */
    uint64_t nth;         /* which matching call, from 1; 0: every one */
    tol_interpose_action action;
    CUresult result;   /* for FAIL */
    uint64_t delay_ns; /* for DELAY */
};

/* One traced call. */
struct tol_interpose_record {
    enum tol_driver_index index;
    CUresult result;
    uint64_t sequence;
    uint64_t thread; /* threads are numbered in the order of their first call */
    uint64_t begin_ns, end_ns;
};

struct tol_interpose_options {
    const struct tol_interpose_rule
        *rules; /* must outlive the interposer; the first rule that matches is applied */
    size_t rule_count;
    tol_interpose_hook before; /* NULL: none */
    tol_interpose_hook after;  /* NULL: none */
    void *user;                /* passed to the hooks */
    bool time;                 /* read the clock around each call */
    size_t trace_records;      /* number of calls the trace can hold; 0: no trace. Implies time */
};

/*
 * Installs the interposer for contexts created after this call. options may be NULL, which means
 * count only. TOL_INVALID_ARGUMENT: an interposer is installed already, or a rule matches no
 * function of driver.def. TOL_OUT_OF_HOST_MEMORY: there is no memory for the trace.
 */
TOL_API tol_status tol_interpose_install(struct tol_driver *driver,
                                         const struct tol_interpose_options *options);

/* Removes the interposer for contexts created after this call. Contexts created while it was
 * installed keep calling through it, and it forwards their calls unchanged. A no-op if nothing is
 * installed. */
TOL_API void tol_interpose_remove(struct tol_driver *driver);

/* The number of calls of a function since installing. TOL_DRIVER_FUNCTIONS: of all functions. */
TOL_API uint64_t tol_interpose_count(enum tol_driver_index index);

/* The nanoseconds that a function spent in the driver since installing, if options.time is set. */
TOL_API uint64_t tol_interpose_ns(enum tol_driver_index index);

/* Resets all counters and times and clears the trace. */
TOL_API void tol_interpose_reset(void);

/* Copies up to count trace records, oldest first, and returns how many it copied. *overflowed (if
 * not NULL) is set to whether calls came after the trace was full; they are counted, not traced. */
TOL_API size_t tol_interpose_trace(struct tol_interpose_record *records, size_t count,
                                   bool *overflowed);

#ifdef __cplusplus
}
#endif
#endif
