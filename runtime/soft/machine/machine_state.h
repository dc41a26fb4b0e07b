/*
 * Machine: a launch, its CTAs, their warps, and the splits and frames of a warp, while they run.
 *
 * This file has only the types. All of a CTA's state is here, not on a host stack, so a CTA that
 * spins or has used up its turn can be put aside and another one run in its place. One host thread
 * runs a CTA at a time.
 */
#ifndef SOFT_MACHINE_STATE_H
#define SOFT_MACHINE_STATE_H

#include "lower/code.h"
#include "base/report.h"

#include <pthread.h>
#include <stdatomic.h>

struct soft_module;
struct soft_race;
struct soft_race_cta;
struct soft_reach;
struct soft_touched;
struct soft_footprint;
struct soft_prior;
struct soft_alloca;
struct soft_async;
struct soft_wgmma;
struct soft_layouts;
struct soft_inits;
struct soft_cta;
struct soft_view;

/* Why a split does not run. */
enum soft_split_state {
    SOFT_SPLIT_FREE,
    SOFT_SPLIT_READY,
    SOFT_SPLIT_BARRIER, /* it waits at a CTA barrier */
    SOFT_SPLIT_SYNC,    /* it waits for the other lanes of a .sync operation */
    SOFT_SPLIT_POLL,    /* it has tested an mbarrier and is set aside for a while */
    SOFT_SPLIT_CLUSTER  /* it waits at the barrier of its cluster */
};

struct soft_join {
    const struct soft_instruction *at;
    uint32_t expected; /* the lanes still to meet here */
    uint32_t arrived;  /* those that wait */
    struct soft_frame *frame;
    struct soft_join *outer;
};

/* The registers and the local memory of one call of a function, by the lanes that called it
 * together. Lanes that call at different times, or call other functions, have separate frames. */
struct soft_frame {
    uint8_t *slots;
    const struct soft_code *code;
    struct soft_frame *caller;             /* NULL: the kernel's own */
    const struct soft_instruction *resume; /* in the caller */
    uint32_t users;      /* the splits and joins in this call, and the calls made from it */
    uint32_t depth;      /* calls below this one */
    uint64_t local_base; /* the local address of its first variable; the same in all lanes */
    uint8_t *local;      /* local_bytes per thread, in order */
    uint8_t *local_shadow;
    struct soft_alloca *allocas; /* NULL: it has made none */
    uint64_t cta;                /* the number of the CTA its slots are filled for */
    struct soft_frame *next;     /* in the list of free ones, or of all */
    struct soft_frame *older;
};

struct soft_split {
    enum soft_split_state state;
    uint32_t mask;
    const struct soft_instruction *pc;
    struct soft_join *join;
    struct soft_frame *frame;
    uint32_t sync_members; /* SYNC: the member mask it waits with */
    uint32_t barrier;      /* BARRIER: which one; POLL: where in shared memory, or WARPGROUP */
    bool arrives_only;     /* BARRIER: it continues when the rest of its warp is there */
    bool timed_out;        /* it was in POLL, and continues whatever the test's result */
};

/* POLL without an mbarrier: other warps of the warpgroup have not issued a product. */
#define SOFT_POLL_WARPGROUP (UINT32_MAX - 1)

enum { SOFT_SPLITS_MAX = 32, SOFT_JOINS_AT_ONCE = 64 };

struct soft_joins {
    struct soft_joins *next;
    struct soft_join items[SOFT_JOINS_AT_ONCE];
};

/* The part of a turn that a backward branch uses up in a loop that may wait for other threads. */
enum { SOFT_POLL_COST = 32 };

/* Why a warp stopped running. */
enum soft_stop {
    SOFT_STOP_NONE,
    SOFT_STOP_SWITCH,  /* the current split cannot continue; another one may */
    SOFT_STOP_YIELD,   /* its quantum is used up */
    SOFT_STOP_BLOCKED, /* no split can continue until a barrier opens; of a CTA: until another CTA
                        * acts */
    SOFT_STOP_TAINT,   /* the current split continues in soft_taint_run */
    SOFT_STOP_DONE,    /* all threads have exited */
    SOFT_STOP_FAULT    /* the launch has failed; the grid has the report */
};

struct soft_warp {
    uint8_t *slots;   /* the current frame's: every operand is an offset from here */
    uint32_t mask;    /* the active lanes: a guard narrows it for one instruction */
    uint32_t partial; /* 0 when mask is all lanes: which handler of an instruction to run */
    struct soft_view *views;
    struct soft_cta *cta;
    struct soft_split *split;
    int64_t executed; /* PTX instructions since the last query; see soft_code_number */
    int32_t quantum;  /* backward branches left in this turn */
    int32_t turn;     /* backward branches in a turn */
    uint32_t alive;   /* the lanes that have not exited */
    enum soft_stop stop;
    uint64_t dice;            /* 0: splits take turns in the usual order */
    uint32_t index;           /* in the CTA */
    uint32_t threads;         /* the lanes that exist: fewer than 32 in a last warp */
    uint32_t rounds;          /* quanta used up without any lane leaving a join */
    uint32_t syncing;         /* splits in the state SYNC */
    int split_end;            /* splits from here on are free */
    bool parted;              /* joins have been taken since the warp began */
    bool waited;              /* after a griddepcontrol.wait, its own or another's: prior.h */
    uint32_t polling;         /* in the state POLL */
    uint32_t cluster_arrived; /* the lanes that have arrived at the cluster barrier, this time */
    uint32_t cluster_owed;    /* those that have and have not waited since */
    struct soft_frame bottom;
    struct soft_frame *frames; /* all others, used and free */
    struct soft_frame *free_frames;
    size_t frame_bytes;                     /* of all those */
    _Alignas(64) uint32_t lane[SOFT_LANES]; /* all ones where mask has the lane */
    struct soft_split splits[SOFT_SPLITS_MAX];
    struct soft_joins joins;
    struct soft_joins *more_joins; /* for recursion that diverges at every depth */
    struct soft_join *free_join;   /* linked through outer */
    struct soft_taint *taint;      /* NULL: it has loaded nothing that was never written */
    struct soft_async *async;      /* NULL: it has begun no copies */
    struct soft_wgmma *wgmma;      /* NULL: it has begun no products */
};

/* The slot of warp at an offset, as an array of 32 lanes. */
#define SLOT(type, offset) ((type *)(void *)(warp->slots + (offset)))

/* ---- CTAs ---- */

enum { SOFT_WARPS_MAX = 32, SOFT_BARRIERS = 16 };

/* The largest clusters, without and with the function attribute. */
enum { SOFT_CLUSTER_PORTABLE = 8, SOFT_CLUSTER_MAX = 16 };

/* The CTAs of a cluster, in the order of their ranks. They begin together, one host thread runs
 * them all, and they are freed together: the shared memory of one that has ended remains, but must
 * not be used. */
struct soft_cluster {
    uint32_t count;
    struct soft_cta *members[SOFT_CLUSTER_MAX];
};

struct soft_barrier {
    uint32_t arrived;                /* threads, in whole warps */
    uint32_t expected;               /* threads; 0: all of the CTA that have not exited */
    uint32_t waiting;                /* warps that wait, a bit each */
    uint32_t red_threads, red_count; /* of barrier.red: arrived threads, and those with a true
                                      * predicate */
};

/* The registers of a warpgroup, four warps. */
enum { SOFT_WARPGROUP = 4, SOFT_WARPGROUPS_MAX = SOFT_WARPS_MAX / SOFT_WARPGROUP };
struct soft_warpgroup {
    const struct soft_instruction *in; /* the setmaxnreg that some of its warps have executed */
    uint32_t warps;                    /* those, a bit each; 0: none, or all of them */
    uint32_t registers;                /* of a thread, by the last one that all have; 0: none */
};

struct soft_cta {
    struct soft_launch *launch;      /* the one its frames are filled for */
    struct soft_cta *next;           /* in a list of idle or parked ones */
    uint32_t index[SOFT_CTA_VALUES]; /* %ctaid and so on */
    uint64_t number;                 /* the same as one number */
    uint64_t dice;                   /* 0: warps take turns in the usual order */
    struct soft_cluster *cluster;    /* NULL: it has one CTA */
    uint32_t rank;                   /* in that */
    uint32_t warp_count;
    uint32_t warp_room; /* how many its memory can hold */
    uint32_t warps_alive;
    struct soft_warp *warps;
    uint8_t *slots; /* the first frames of all warps, in order */
    uint8_t *shared;
    uint8_t *shared_shadow; /* a byte for each four; NULL where writes are not tracked */
    uint32_t shared_bytes;
    struct soft_barrier barriers[SOFT_BARRIERS];
    uint32_t barriers_used; /* those that warps have arrived at, one bit each */
    bool multiplies;        /* a warp has begun a wgmma */
    uint32_t blocked;       /* warps that wait for a barrier, one bit each */
    bool cluster_begun;     /* some threads have arrived at the cluster barrier */
    bool cluster_met;       /* some have passed it: the other CTAs have begun */
    bool triggered;         /* a thread has executed griddepcontrol.launch_dependents */
    bool waited;            /* some are after a griddepcontrol.wait: prior.h */
    struct soft_warpgroup warpgroups[SOFT_WARPGROUPS_MAX];
    bool stalls;          /* its last turn ended in loops that read the workspace: grid/stall.h */
    uint64_t stall_round; /* in which whole turns did nothing else */
    uint32_t stall_turns; /* how many */
    uint32_t idle;        /* how often only tests of mbarriers could continue */
    size_t memory_bytes;
    struct soft_race_cta *race;            /* NULL where races are not looked for */
    struct soft_layouts *layouts;          /* NULL: no boxes of tensors have come */
    struct soft_inits *inits;              /* NULL: no mbarriers were initialised in a cluster */
    uint32_t cluster_phase, cluster_known; /* its barrier's openings: all, those waited for */
};

/* ---- launches ---- */

enum { SOFT_NOTES_MAX = 32 };

/* The bytes of a cooperative launch's workspace. */
enum { SOFT_WORKSPACE_BYTES = 64 };

/* The number of grids that prior.h records as overlapping a launch. */
enum { SOFT_PRIORS_MAX = 8 };

struct soft_launch {
    const struct soft_code *code;
    struct soft_module *module; /* held until the launch is over */
    uint32_t grid[3], block[3];
    uint32_t cluster[3];     /* CTAs; one each where there are none */
    uint32_t cluster_ctas;   /* in one cluster */
    bool explicit_clusters;  /* requested by the program */
    uint32_t shared_bytes;   /* static and dynamic */
    uint32_t dynamic_shared; /* dynamic alone */
    uint64_t id; /* its number in the order of queueing, from 1 */
    const struct soft_reach *reach; /* of the context it runs in */
    uint64_t dice;                  /* of the order that its CTAs run in; 0: one by one */
    uint64_t workspace; /* of a cooperative launch: the counter that its blocks synchronise with; or
                         * 0 */
    _Atomic uint64_t stall_round; /* of a cooperative launch: grid/stall.h */
    uint64_t budget;              /* warp instructions; 0 is no end */
    _Atomic int64_t executed;     /* so far; negative if CTAs jumped ahead */
    uint64_t ctas;
    uint64_t clusters;      /* the following fields count clusters; without clusters, CTAs */
    _Atomic uint64_t next;  /* the next one nobody has begun */
    _Atomic uint64_t ended; /* those that are done */
    atomic_bool failed;     /* all others stop where they are */
    pthread_mutex_t lock;   /* guards all below */
    struct soft_cta *parked;
    uint64_t stalled; /* clusters that only read the workspace in this round */
    uint8_t stall_seen[SOFT_WORKSPACE_BYTES]; /* the workspace, at the end of the last turn */
    struct soft_noted {
        const struct soft_instruction *instruction, *beside;
        const char *kind;
    } noted[SOFT_NOTES_MAX]; /* findings already reported */
    unsigned noted_count;
    struct soft_race *race;       /* NULL where races are not looked for */
    struct soft_report report;    /* of the first failure */
    struct soft_touched *touched; /* if the order of streams is checked, or accesses are traced;
                                   * else NULL */
    bool is_told;                 /* its accesses are, when it has ended */
    struct soft_launch *older;    /* in a list of free ones */
    /* Programmatic dependencies; see prior.h. While it runs, only waited changes. */
    struct soft_prior *prior;                       /* its accesses; NULL: not recorded */
    struct soft_prior *after[SOFT_PRIORS_MAX];      /* it may begin before these have ended */
    struct soft_footprint *hidden[SOFT_PRIORS_MAX]; /* what must not be used without a wait */
    uint32_t after_count, hidden_count;
    atomic_bool waited;         /* some thread has executed griddepcontrol.wait */
    atomic_bool told_of_exited; /* threads that exited before a barrier have been noted */
    uint8_t *parameters;
};

/* Stops running the current split, which will continue at pc. */
static inline const struct soft_instruction *
soft_warp_stop(struct soft_warp *warp, enum soft_stop why, const struct soft_instruction *pc) {
    warp->stop = why;
    warp->split->pc = pc;
    return NULL;
}

#endif
