/*
 * Watch: counts what happens to blocks of device memory, and raises an alarm when a rule is broken:
 * weights that are written twice, sealed blocks that are read back, a launch from an unknown
 * module.
 *
 * A watch is an interposer (interpose.h): without one, nothing of it is in the path. With one, each
 * driver call is judged and counted before it is made; if it fails, its counts are undone. A rule
 * may refuse: then the driver is not called, and the caller gets CUDA_ERROR_NOT_PERMITTED.
 *
 * What is seen. Copies, rows and layers of copies, fills, and launches with the addresses among
 * their arguments: 8-byte words of the parameters, at multiples of 8, that are in a block. A copy
 * to memory of the host that has a device address, or to managed memory, is a copy to the host. A
 * graph does what its nodes do, each time it is launched, and nothing while it is captured. Memory
 * that is shared: handles of IPC, handles of physical memory, a second mapping. And with
 * tol_watch_accesses what kernels access.
 *
 * Not seen: without tol_watch_accesses, addresses that a kernel loads from memory and the accesses
 * of a kernel itself; the bodies of a graph's conditional nodes; graphs that a driver does not
 * describe, and kernels of a driver before 12.4, which does not report their parameters (both
 * counted in launches_unread); calls of contexts that were created before the watch was installed,
 * or by another library.
 *
 * Rules are text, a part of TOML: tables [[rule]] with keys that are strings, whole numbers,
 * decimals or booleans; at most 64 tables.
 *
 *     [[rule]]
 *     name = "weights are written once"
 *     blocks = "weights*"        # labels; '*' at the end: any that begin so. "*" if it is absent
 *     kind = "written_once"
 *     refuse = true              # false if it is absent
 *
 *     kind               alarm
 *     written_once       a write to a block that has been written whole
 *     no_read_back       a copy from a block to the host
 *     copy_out_limit     more than mb_per_s megabytes (10^6 bytes) per second to the host, over
 *                        all blocks of the rule, with a burst of one second's bytes
 *     known_modules      a launch of a kernel whose module was loaded after
 *                        tol_watch_close_modules, or before the watch was installed
 *     no_copy            a copy from a block to anywhere
 *     no_share           a handle of a block's memory for another process, or a second mapping
 *     known_kernels      a launch of a kernel that gets a block's address, or a kernel that reads
 *                        the block, and that did neither before tol_watch_close_kernels
 *     usual              a window of window_ms milliseconds (1000) in which the blocks of the rule
 *                        had more copies out, bytes out, bytes in or launches than in any of the
 *                        windows that were learned. false_alarms (0.01) is the chance that a window
 *                        like the learned ones raises one; it fixes how many are learned
 *
 * Chance of a false alarm of "usual". If the windows are exchangeable, the largest of n + 1 values
 * is the last with a chance of at most 1 / (n + 1). There are four values in a window, so n is the
 * least with 4 / (n + 1) <= false_alarms. Source: V. Vovk, A. Gammerman, G. Shafer, Algorithmic
 * Learning in a Random World, 2005, chapter 2. A value that drifts is not exchangeable.
 *
 * Cost: `ninja bench-watch`. Threads: all functions but create, destroy, install and remove may be
 * called by any thread at any time. The callback runs on the thread whose call broke the rule, and
 * must not call the driver or this interface.
 */
#ifndef TOLLENS_WATCH_H
#define TOLLENS_WATCH_H

#include "interpose.h"

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tol_watch;

enum { TOL_WATCH_LABEL_BYTES = 64, TOL_WATCH_MEMBERS = 8 };

enum tol_watch_kind {
    TOL_WATCH_WRITTEN_ONCE,
    TOL_WATCH_NO_READ_BACK,
    TOL_WATCH_COPY_OUT_LIMIT,
    TOL_WATCH_KNOWN_MODULES,
    TOL_WATCH_USUAL,
    TOL_WATCH_NO_COPY,
    TOL_WATCH_NO_SHARE,
    TOL_WATCH_KNOWN_KERNELS
};

/* A broken rule. Texts and pointers are valid during the callback. */
struct tol_watch_alarm {
    enum tol_watch_kind kind;
    const char *rule;        /* its name */
    const char *label;       /* of the block; "" if the rule is not about one block */
    const char *call;        /* the driver function, as exported; "a kernel": what it accessed */
    const char *kernel;      /* of a launch, as its module names it; "" otherwise */
    uint64_t address, bytes; /* of the block that the call used; 0: not about one block */
    uint64_t stream;         /* the handle; 0: none, or the default stream */
    uint64_t thread;         /* the system's number of the calling thread */
    double value, limit;     /* what was seen, and what the rule allows; see kind */
    const char *unit;        /* of both */
    uint64_t time_ns;        /* by the watch's clock */
    bool refused;            /* the driver was not called */
};

typedef void (*tol_watch_hook)(const struct tol_watch_alarm *alarm, void *user);

struct tol_watch_options {
    const char *rules;       /* text; NULL: none, only counts */
    tol_watch_hook on_alarm; /* NULL: none */
    void *user;
    FILE *lines;              /* gets one JSON object a line for each alarm; NULL: none. The caller
                               * keeps it open until the watch is destroyed */
    /* The clock; NULL: the monotonic one, read to the nanosecond where a rule is copy_out_limit or
     * usual, and to some milliseconds otherwise. */
    uint64_t (*now_ns)(void);
};

/* What happened to a block since tol_watch_add. */
struct tol_watch_block {
    char label[TOL_WATCH_LABEL_BYTES];
    uint64_t address, bytes;
    uint64_t bytes_in, copies_in;   /* from the host */
    uint64_t bytes_out, copies_out; /* to the host */
    uint64_t bytes_written;         /* by device copies and fills */
    uint64_t bytes_read;            /* by device copies */
    uint64_t launches;              /* that had an address in it among their arguments */
    /* Bytes that kernels read and wrote, each byte once per kernel: see tol_watch_accesses. */
    uint64_t bytes_loaded, bytes_stored;
    uint64_t shares;            /* calls that gave its memory to a handle or to a second mapping */
    uint64_t first_ns, last_ns; /* of calls, by the watch's clock; 0: none */
    unsigned threads, streams;  /* distinct ones; TOL_WATCH_MEMBERS means that many or more */
    uint64_t alarms;
};

/*
 * Creates a watch. options may be NULL. TOL_INVALID_FILE: a rule is wrong; the message names its
 * line. TOL_OUT_OF_HOST_MEMORY.
 */
TOL_API tol_status tol_watch_create(const struct tol_watch_options *options,
                                    struct tol_watch **watch);

/* Frees it. It must not be installed. NULL: a no-op. */
TOL_API void tol_watch_destroy(struct tol_watch *watch);

/* Watches contexts created after this call. TOL_INVALID_ARGUMENT: an interposer is installed. */
TOL_API tol_status tol_watch_install(struct tol_watch *watch, struct tol_driver *driver);

/* The hooks alone, to be passed on: below a trace (tol_trace_install) or with rules. */
TOL_API struct tol_interpose_options tol_watch_hooks(struct tol_watch *watch);

/*
 * Begins to watch a block. label: its name in rules and reports, shorter than
 * TOL_WATCH_LABEL_BYTES. TOL_INVALID_ARGUMENT: no bytes, a label that is too long, or an overlap
 * with a watched block. TOL_OUT_OF_HOST_MEMORY.
 */
TOL_API tol_status tol_watch_add(struct tol_watch *watch, CUdeviceptr address, size_t bytes,
                                 const char *label);

/* Ends it, before the memory is freed. TOL_NOT_FOUND: no watched block begins there. */
TOL_API tol_status tol_watch_drop(struct tol_watch *watch, CUdeviceptr address);

/* Modules that are loaded from now on are unknown to rules of the kind known_modules. */
TOL_API void tol_watch_close_modules(struct tol_watch *watch);

/* Kernels that use a block of a rule of the kind known_kernels for the first time from now on are
 * unknown to it. */
TOL_API void tol_watch_close_kernels(struct tol_watch *watch);

/*
 * Lets the driver report the bytes that each kernel reads and writes, for kernels that begin from
 * now on until the watch is destroyed. They are counted and judged when the kernel has ended. This
 * slows every access down. TOL_UNSUPPORTED: the driver cannot, as no driver of a GPU can; the soft
 * device does. TOL_INVALID_ARGUMENT: a watch of this process has it already.
 */
TOL_API tol_status tol_watch_accesses(struct tol_watch *watch, struct tol_driver *driver);

/* Whether each rule of the kind "usual" has learned all its windows. */
TOL_API bool tol_watch_has_learned(struct tol_watch *watch);

/* What happened to the block that contains address. TOL_NOT_FOUND: none. */
TOL_API tol_status tol_watch_find(struct tol_watch *watch, CUdeviceptr address,
                                  struct tol_watch_block *block);

/* Calls use for each block in the order of addresses. use must not call this interface. */
TOL_API void tol_watch_each(struct tol_watch *watch,
                            void (*use)(const struct tol_watch_block *block, void *user),
                            void *user);

/* Alarms so far. */
TOL_API uint64_t tol_watch_alarms(struct tol_watch *watch);

/* Launches whose parameters the driver did not report. */
TOL_API uint64_t tol_watch_launches_unread(struct tol_watch *watch);

/* TOL_OK if there was no alarm; else TOL_ALARM, with the first one as the message. */
TOL_API tol_status tol_watch_check(struct tol_watch *watch);

#ifdef __cplusplus
}
#endif
#endif
