/*
 * What a watch keeps. Blocks are sorted by address, and looked up under a lock that readers share;
 * counts are atomic.
 */
#ifndef TOLLENS_WATCH_STATE_H
#define TOLLENS_WATCH_STATE_H

#include "tollens/accesses.h"
#include "tollens/watch.h"
#include "watch_lock.h"

#include <pthread.h>
#include <stdatomic.h>

/* A set of up to TOL_WATCH_MEMBERS handles or numbers, of which 0 is none. */
struct watch_set {
    _Atomic uint64_t member[TOL_WATCH_MEMBERS];
};

struct watch_block {
    char label[TOL_WATCH_LABEL_BYTES];
    CUdeviceptr begin, end;
    uint64_t rules; /* a bit for each rule whose pattern fits the label */
    _Atomic uint64_t bytes_in, copies_in, bytes_out, copies_out, bytes_written, bytes_read;
    _Atomic uint64_t launches, bytes_loaded, bytes_stored, shares, first_ns, last_ns, alarms;
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

/* What a call does with a block. */
enum watch_effect {
    WATCH_IN,      /* from the host */
    WATCH_OUT,     /* to the host */
    WATCH_WRITTEN, /* by the device */
    WATCH_READ,
    WATCH_LAUNCHED, /* a kernel got its address */
    WATCH_LOADED,   /* a kernel has read it, as the driver reports */
    WATCH_STORED,
    WATCH_SHARED, /* its memory was given to another process, or another address */
    WATCH_EFFECTS
};

enum { WATCH_WORDS = 4096 }; /* parameters of a kernel have at most 32764 bytes */

/* A kernel that was looked up, and where its parameters are. */
struct watch_kernel {
    CUfunction function; /* NULL: a free entry */
    CUmodule module;
    char *name;
    bool is_known, is_read; /* the module; whether the driver told the parameters */
    unsigned count;
    unsigned *bytes;          /* of each parameter */
    _Atomic uint64_t learned; /* a bit for each rule of known_kernels whose blocks it has used */
};

struct watch_module {
    CUmodule module;
    bool is_known;
};

struct watch_exec;
struct watch_maps;

struct tol_watch {
    struct tol_watch_options options;
    struct watch_lock lock;      /* of blocks, kernels, modules, graphs and mappings */
    _Atomic uint64_t generation; /* changes with the blocks and the table of kernels */
    struct watch_block **blocks;
    CUdeviceptr *ends;  /* of each block, to be searched */
    CUdeviceptr lowest; /* where the first block begins */
    size_t block_count, block_room;
    struct watch_kernel *kernels; /* a hash table; kernel_room is a power of two, or 0 */
    size_t kernel_count, kernel_room;
    struct watch_module *modules;
    size_t module_count, module_room;
    bool is_closed; /* modules loaded from now on are unknown */
    atomic_bool kernels_closed;
    struct watch_exec **execs; /* executable graphs */
    size_t exec_count, exec_room;
    struct watch_maps *maps;      /* NULL: nothing was mapped */
    _Atomic int captures;         /* of streams, under way */
    tol_accesses_function teller; /* of accesses; NULL: none */
    struct watch_rule *rules;
    size_t rule_count;
    /* A bit for each rule that looks at an effect on a block, or at unknown modules. */
    uint64_t rules_of[WATCH_EFFECTS], rules_of_modules;
    _Atomic uint64_t alarms, unread;
    pthread_mutex_t alarm_lock; /* of first and of options.lines */
    char first[512];
};

/* A range that a call uses. */
struct watch_use {
    enum watch_effect effect;
    CUdeviceptr address;
    uint64_t bytes; /* moved; of rows, without the gaps */
    uint64_t span;  /* from the first byte to the end of the last */
    CUdeviceptr
        other; /* of a copy: the other end, if it has an address that may be the host's; 0 */
};

/* watch_calls.c: what a call does. Returns the number of uses, at most 2; 0: it is no copy and no
 * fill. */
unsigned watch_copies(const struct tol_interpose_call *call, struct watch_use uses[2],
                      CUstream *stream);
unsigned watch_copy_of_node(const CUDA_MEMCPY3D *copy, struct watch_use uses[2]);
unsigned watch_fill_of_node(const CUDA_MEMSET_NODE_PARAMS *node, struct watch_use uses[2]);

/* Whether the host can read what is at an address. */
bool watch_is_of_host(const struct tol_driver_table *driver, CUdeviceptr address);

/* A launch: the function, its parameters and its stream. false: the call is none. */
struct watch_launch {
    CUfunction function;
    CUstream stream;
    void **parameters, **extra;
};
bool watch_is_seen(enum tol_driver_index index); /* whether a call is looked at before it is made */
bool watch_is_work(enum tol_driver_index index); /* a copy, a fill or a launch */
bool watch_launch_of(const struct tol_interpose_call *call, struct watch_launch *launch);

/* What a call is about to do with a block, or a launch of an unknown kernel (block NULL). */
struct watch_deed {
    const struct tol_interpose_call *call; /* NULL: a kernel's accesses */
    struct watch_block *block;
    struct watch_kernel *kernel; /* of a launch; NULL: the watch does not know it */
    const char *kernel_name;     /* as the driver reports; NULL: as the kernel says */
    enum watch_effect effect;
    uint64_t bytes, count;
    CUstream stream;
    uint64_t now_ns;
};

/* watch_visit.c: all that a call does, block by block. */
struct watch_found {
    struct watch_block *block;
    struct watch_kernel *kernel;
    enum watch_effect effect;
    uint64_t bytes, count;
};
enum { WATCH_FEW = 32 };
struct watch_visit {
    struct tol_watch *watch;
    const struct tol_driver_table *driver;
    struct watch_deed deed; /* what is the same for all */
    size_t count, room;
    struct watch_found *found, few[WATCH_FEW]; /* few, or memory of its own */
};
void watch_visit_begin(struct watch_visit *visit, struct tol_watch *watch,
                       const struct tol_driver_table *driver);
void watch_visit_end(struct watch_visit *visit);
/* The functions below are called under the lock. Adds to what was found, or to one of the same. */
void watch_visit_add(struct watch_visit *visit, const struct watch_found *found, bool merges);
void watch_visit_use(struct watch_visit *visit, const struct watch_use *use);
void watch_visit_launch(struct watch_visit *visit, struct watch_kernel *kernel,
                        const uint64_t *words, size_t count);
/* Applies the rules. true: one refuses. */
bool watch_visit_judge(struct watch_visit *visit);
void watch_visit_count(const struct watch_visit *visit, bool takes_back);

/* watch_blocks.c: the first block that ends after address, or NULL, with its index. Under lock. */
struct watch_block *watch_block_from(struct tol_watch *watch, CUdeviceptr address, size_t *index);
/* Whether a label fits a rule's pattern. */
bool watch_label_fits(const char *pattern, const char *label);
/* Counts what a call does with the block, or takes it back. */
void watch_count(const struct watch_deed *deed, const struct watch_found *found, bool takes_back);

/* watch_kernels.c. All under the lock, which note takes for writing. */
void watch_kernel_note(struct tol_watch *watch, const struct tol_interpose_call *call);
struct watch_kernel *watch_kernel_find(const struct tol_watch *watch, CUfunction function);
/* Calls use for each 8-byte word of a launch's parameters. false: they are not known. */
bool watch_kernel_words(const struct watch_kernel *kernel, const struct watch_launch *launch,
                        void (*use)(uint64_t word, void *user), void *user);
void watch_kernels_free(struct tol_watch *watch);

/* watch_graphs.c: what a launch of an executable graph does; under the lock. false: the watch has
 * not seen how it was made. note takes the lock. */
bool watch_graph_visit(struct watch_visit *visit, CUgraphExec exec);
void watch_graph_note(struct tol_watch *watch, const struct tol_interpose_call *call);
void watch_graphs_free(struct tol_watch *watch);

/* watch_shares.c: blocks whose memory a call gives to others; under the lock. note takes it. */
void watch_share_visit(struct watch_visit *visit, const struct tol_interpose_call *call);
void watch_share_note(struct tol_watch *watch, const struct tol_interpose_call *call);
void watch_shares_free(struct tol_watch *watch);

/* watch_rules.c: reads rules; *rules is the caller's. */
tol_status watch_rules_read(const char *text, struct watch_rule **rules, size_t *count);

/* watch_baseline.c: windows to learn for a rate of false alarms; adds what a call did and returns
 * the value that is unusual, or WATCH_VALUES. *seen and *limit: that value and the largest usual
 * one. */
uint64_t watch_windows_for(double false_alarms);
enum watch_value watch_baseline_add(struct watch_baseline *baseline, uint64_t now_ns,
                                    const uint64_t add[WATCH_VALUES], uint64_t *seen,
                                    uint64_t *limit);

/* watch_judge.c. Sets the rules that look at each effect. Once, when the rules are read. */
void watch_judge_prepare(struct tol_watch *watch);
/* Whether a rule's time is compared, so that milliseconds are too coarse. */
bool watch_judge_needs_clock(const struct tol_watch *watch);
/* A bit for each rule that must judge what was found; then these rules do. true: one refuses it. */
uint64_t watch_judge_rules(const struct tol_watch *watch, const struct watch_found *found);
bool watch_judge(struct tol_watch *watch, uint64_t rules, const struct watch_deed *deed);

/* watch_alarm.c: counts an alarm and hands it on. */
void watch_alarm(struct tol_watch *watch, const struct watch_rule *rule,
                 const struct watch_deed *deed, double value, double limit, const char *unit);

#endif
