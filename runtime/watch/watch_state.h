/*
 * What a watch keeps. Blocks are sorted by address, and looked up under a lock that readers share;
 * what is counted is atomic.
 */
#ifndef TOLLENS_WATCH_STATE_H
#define TOLLENS_WATCH_STATE_H

#include "tollens/watch.h"

#include <pthread.h>
#include <stdatomic.h>

/* A set of up to TOL_WATCH_MEMBERS handles or numbers, of which 0 is none. */
struct watch_set {
    _Atomic uint64_t member[TOL_WATCH_MEMBERS];
};

struct watch_block {
    char label[TOL_WATCH_LABEL_BYTES];
    CUdeviceptr begin, end;
    _Atomic uint64_t bytes_in, copies_in, bytes_out, copies_out, bytes_written, bytes_read;
    _Atomic uint64_t launches, first_ns, last_ns, alarms;
    struct watch_set threads, streams;
};

/* The values of a window that a rule "usual" compares. */
enum watch_value {
    WATCH_COPIES_OUT,
    WATCH_BYTES_OUT,
    WATCH_BYTES_IN,
    WATCH_LAUNCHES,
    WATCH_VALUES
};

/* A window of time and what is usual in one. Under its rule's lock. */
struct watch_baseline {
    uint64_t window_ns, begin_ns; /* begin_ns 0: no window was begun */
    uint64_t wanted, learned;     /* windows */
    uint64_t now[WATCH_VALUES], largest[WATCH_VALUES];
    bool alarmed[WATCH_VALUES]; /* in this window */
};

struct watch_rule {
    char name[TOL_WATCH_LABEL_BYTES], blocks[TOL_WATCH_LABEL_BYTES];
    enum tol_watch_kind kind;
    bool refuse;
    double mb_per_s;     /* copy_out_limit */
    double false_alarms; /* usual */
    double window_ms;
    pthread_mutex_t lock; /* of what follows */
    double tokens;        /* bytes that may be copied out now */
    uint64_t filled_ns;   /* when tokens was computed; 0: never */
    struct watch_baseline baseline;
};

enum { WATCH_WORDS = 4096 }; /* parameters of a kernel have at most 32764 bytes */

/* A kernel that was looked up, and where its parameters are. */
struct watch_kernel {
    CUfunction function; /* NULL: a free entry */
    CUmodule module;
    bool is_known, is_read; /* the module; whether the driver told the parameters */
    unsigned count;
    unsigned *bytes; /* of each parameter */
};

struct watch_module {
    CUmodule module;
    bool is_known;
};

struct tol_watch {
    struct tol_watch_options options;
    pthread_rwlock_t lock; /* of blocks, kernels and modules */
    struct watch_block **blocks;
    CUdeviceptr *ends; /* of each block, to be searched */
    size_t block_count, block_room;
    struct watch_kernel *kernels; /* a hash table; kernel_room is a power of two, or 0 */
    size_t kernel_count, kernel_room;
    struct watch_module *modules;
    size_t module_count, module_room;
    bool is_closed; /* modules loaded from now on are unknown */
    struct watch_rule *rules;
    size_t rule_count;
    _Atomic uint64_t alarms, unread;
    pthread_mutex_t alarm_lock; /* of first and of options.lines */
    char first[512];
};

/* What a call does with a block. */
enum watch_effect {
    WATCH_IN,      /* from the host */
    WATCH_OUT,     /* to the host */
    WATCH_WRITTEN, /* by the device */
    WATCH_READ,
    WATCH_LAUNCHED
};

/* Ranges that a call uses: at most two of a copy, or the words of a launch. */
struct watch_use {
    enum watch_effect effect;
    CUdeviceptr address;
    uint64_t bytes; /* moved; of rows, without the gaps */
    uint64_t span;  /* from the first byte to behind the last */
};

/* watch_calls.c: what a call does. Returns the number of uses, at most 2; 0: it is no copy and no
 * fill. */
unsigned watch_copies(const struct tol_interpose_call *call, struct watch_use uses[2],
                      CUstream *stream);

/* A launch: the function, its parameters and its stream. false: the call is none. */
struct watch_launch {
    CUfunction function;
    CUstream stream;
    void **parameters, **extra;
};
bool watch_is_seen(enum tol_driver_index index); /* whether it is a copy, a fill or a launch */
bool watch_launch_of(const struct tol_interpose_call *call, struct watch_launch *launch);

/* watch_blocks.c: the first block that ends behind address, or NULL, with its index. Under lock. */
struct watch_block *watch_block_from(struct tol_watch *watch, CUdeviceptr address, size_t *index);
/* Whether a label fits a rule's pattern. */
bool watch_label_fits(const char *pattern, const char *label);
struct watch_deed;
/* Counts what a call does with the block, or takes it back. */
void watch_count(struct watch_block *block, enum watch_effect effect, uint64_t bytes,
                 const struct watch_deed *deed, bool takes_back);

/* watch_kernels.c. All under the lock, which note and forget take for writing. */
void watch_kernel_note(struct tol_watch *watch, const struct tol_interpose_call *call);
const struct watch_kernel *watch_kernel_find(const struct tol_watch *watch, CUfunction function);
/* Calls use for each 8-byte word of a launch's parameters. false: they are not known. */
bool watch_kernel_words(const struct watch_kernel *kernel, const struct watch_launch *launch,
                        void (*use)(uint64_t word, void *user), void *user);

/* watch_rules.c: reads rules; *rules is the caller's. */
tol_status watch_rules_read(const char *text, struct watch_rule **rules, size_t *count);

/* watch_baseline.c: windows to learn for a rate of false alarms; adds what a call did and returns
 * the value that is unusual, or WATCH_VALUES. *seen and *limit: that value and the largest usual
 * one. */
uint64_t watch_windows_for(double false_alarms);
enum watch_value watch_baseline_add(struct watch_baseline *baseline, uint64_t now_ns,
                                    const uint64_t add[WATCH_VALUES], uint64_t *seen,
                                    uint64_t *limit);

/* watch_judge.c: judges what a call is about to do with a block, or a launch (block NULL). true:
 * a rule refuses it. */
struct watch_deed {
    const struct tol_interpose_call *call;
    bool is_launch;
    struct watch_block *block;         /* NULL: a launch, for rules about modules */
    const struct watch_kernel *kernel; /* of a launch; NULL: the watch does not know it */
    enum watch_effect effect;
    uint64_t bytes;
    CUstream stream;
    uint64_t now_ns;
};
bool watch_judge(struct tol_watch *watch, const struct watch_deed *deed);

/* watch_alarm.c: counts an alarm and hands it on. */
void watch_alarm(struct tol_watch *watch, const struct watch_rule *rule,
                 const struct watch_deed *deed, double value, double limit, const char *unit);

#endif
