/*
 * Warp: 32 threads that execute together, and the splits of a diverged warp.
 *
 * A split is a set of lanes at one instruction. A branch that diverges divides a split in two, with
 * a join between them: the lanes should reconverge at the branch's immediate post-dominator. A
 * split that arrives there waits in the join for the rest, and they continue as one. This is the
 * classic reconvergence stack, and as fast. In addition, splits take turns: after a quantum of
 * backward branches the next one runs, and after a few quanta the lanes that wait in a join
 * continue alone. So every thread eventually makes progress, as on Volta and later, even if it
 * waits for a thread of its own warp. Source: CUDA Programming Guide, independent thread
 * scheduling; PTX ISA 9.0, section 3.1.
 * Asserted by the operations: soft_split_is_valid, soft_warp_is_valid.
 */
#ifndef SOFT_WARP_H
#define SOFT_WARP_H

#include "lower/code.h"

struct soft_alloca;
struct soft_async;
struct soft_cta;
struct soft_view;

/* Why a split does not run. */
enum soft_split_state {
    SOFT_SPLIT_FREE,
    SOFT_SPLIT_READY,
    SOFT_SPLIT_BARRIER, /* it waits at a CTA barrier */
    SOFT_SPLIT_SYNC,    /* it waits for the other lanes of a .sync operation */
    SOFT_SPLIT_POLL,    /* it has tested an mbarrier, and is set aside for a while */
    SOFT_SPLIT_CLUSTER  /* it waits at the barrier of its cluster */
};

struct soft_join {
    const struct soft_instruction *at;
    uint32_t expected; /* the lanes still to meet here */
    uint32_t arrived;  /* those that wait */
    struct soft_frame *frame;
    struct soft_join *outer;
};

/* The registers and the local memory of one call of a function, by the lanes that made it together.
 * Lanes that call at different times, or other functions, have frames of their own. */
struct soft_frame {
    uint8_t *slots;
    const struct soft_code *code;
    struct soft_frame *caller;             /* NULL: the kernel's own */
    const struct soft_instruction *resume; /* in the caller */
    uint32_t users;      /* the splits and joins in this call, and the calls made from it */
    uint32_t depth;      /* calls below this one */
    uint64_t local_base; /* the local address of its first variable; the same in all lanes */
    uint8_t *local;      /* a thread's local_bytes, one behind the other */
    uint8_t *local_shadow;
    struct soft_alloca *allocas; /* NULL: it has made none */
    uint64_t cta;                /* the number of the CTA its slots are filled for */
    struct soft_frame *next;     /* in the list of those that are free, or of all */
    struct soft_frame *older;
};

struct soft_split {
    enum soft_split_state state;
    uint32_t mask;
    const struct soft_instruction *pc;
    struct soft_join *join;
    struct soft_frame *frame;
    uint32_t sync_members; /* SYNC: the member mask it waits with */
    uint32_t barrier;      /* BARRIER: which one; POLL: where in shared memory */
    bool arrives_only;     /* BARRIER: it goes on when the rest of its warp is there */
    bool timed_out;        /* it was in POLL, and is to go on whatever the test says */
};

enum { SOFT_SPLITS_MAX = 32, SOFT_JOINS_AT_ONCE = 64 };

struct soft_joins {
    struct soft_joins *next;
    struct soft_join items[SOFT_JOINS_AT_ONCE];
};

/* A backward branch of a loop that may be waiting for other threads uses up so much of a turn. */
enum { SOFT_POLL_COST = 32 };

/* Why a warp stopped running. */
enum soft_stop {
    SOFT_STOP_NONE,
    SOFT_STOP_SWITCH,  /* the current split cannot go on; another one may */
    SOFT_STOP_YIELD,   /* its quantum is used up */
    SOFT_STOP_BLOCKED, /* no split can go on until a barrier opens */
    SOFT_STOP_DONE,    /* all threads have exited */
    SOFT_STOP_FAULT    /* the launch has failed; the grid has the report */
};

struct soft_warp {
    uint8_t *slots;   /* the current frame's: every operand is an offset from here */
    uint32_t mask;    /* the lanes that run now: a guard narrows it for one instruction */
    uint32_t partial; /* 0 when mask is all lanes: which handler of an instruction to run */
    struct soft_view *views;
    struct soft_cta *cta;
    struct soft_split *split;
    int64_t executed; /* PTX instructions since it was last asked; see soft_code_number */
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
    uint32_t polling;         /* in the state POLL */
    uint32_t cluster_arrived; /* the lanes that have come to the cluster's barrier, this time */
    uint32_t cluster_owed;    /* those that have and have not waited since */
    struct soft_frame bottom;
    struct soft_frame *frames; /* all others, used and free */
    struct soft_frame *free_frames;
    size_t frame_bytes;                     /* of all those */
    _Alignas(64) uint32_t lane[SOFT_LANES]; /* all ones where mask has the lane */
    struct soft_split splits[SOFT_SPLITS_MAX];
    struct soft_joins joins;
    struct soft_joins *more_joins; /* for recursion that parts its lanes at every depth */
    struct soft_join *free_join;   /* linked through outer */
    struct soft_async *async;      /* NULL: it has begun no copies */
};

/* Sets which lanes run. */
void soft_warp_set_mask(struct soft_warp *warp, uint32_t mask);

/* Puts all threads of the warp at an instruction. */
void soft_warp_begin(struct soft_warp *warp, const struct soft_instruction *entry);

/* Runs until the warp is blocked, done or has failed, or has used up its quantum with another split
 * or warp to go to. */
enum soft_stop soft_warp_run(struct soft_warp *warp);

/* The lanes of the current split part: those of taken go to target, the others go on behind the
 * branch. Returns where to go on. */
const struct soft_instruction *soft_warp_part(struct soft_warp *warp,
                                              const struct soft_instruction *branch,
                                              const struct soft_instruction *target,
                                              uint32_t taken);

/* The same for a branch of many ways: each lane's target is the instruction of that number in code,
 * of which at least two differ. Returns where to go on. */
const struct soft_instruction *soft_warp_scatter(struct soft_warp *warp,
                                                 const struct soft_instruction *branch,
                                                 const struct soft_instruction *const targets[]);

/* Opens the place where lanes that are about to part will meet; NULL: they will not. */
void soft_warp_open_join(struct soft_warp *warp, const struct soft_instruction *meet);

/* The current split is at a place where splits may meet. Returns where to go on, NULL to wait. */
const struct soft_instruction *soft_warp_meet(struct soft_warp *warp,
                                              const struct soft_instruction *join);

/* The lanes that run now exit. Returns where the rest of the split goes on, NULL for nowhere. */
const struct soft_instruction *soft_warp_exit(struct soft_warp *warp,
                                              const struct soft_instruction *next);

/* A free split, for lanes of one that parts. */
struct soft_split *soft_warp_split(struct soft_warp *warp);

/* together.c: the current split is at a .sync operation with the member masks given, a word a lane,
 * and they differ or other members are missing. Runs it for the lanes that are complete. Returns
 * where to go on, NULL if some must wait or the masks make no sense. */
const struct soft_instruction *soft_warp_gather(struct soft_warp *warp,
                                                const struct soft_instruction *in,
                                                const uint32_t *members);

/* The same for an operation that takes all lanes of the warp, where some are elsewhere. Returns
 * NULL: they are waited for, or have exited, and the launch has failed. */
const struct soft_instruction *soft_warp_whole(struct soft_warp *warp,
                                               const struct soft_instruction *in);

/* Runs the .sync operations that wait and whose members are all there. true: there were some. */
bool soft_warp_exchange(struct soft_warp *warp);

/* Lets the splits that are set aside in POLL go on. */
void soft_warp_time_out(struct soft_warp *warp);

/* Stops running the current split, which is to go on at pc. */
const struct soft_instruction *soft_warp_stop(struct soft_warp *warp, enum soft_stop why,
                                              const struct soft_instruction *pc);

/* ---- warp_valid.c, for asserts (base/deep_assert.h): not with NDEBUG ---- */

/* Whether the split that is about to run has lanes that are alive, and the warp runs those. */
bool soft_split_is_valid(const struct soft_warp *warp, const struct soft_split *split);

/* Whether each lane that is alive is in one split or waits in one join, and the counters agree.
 * Walks all splits and their joins. Not after a fault. */
bool soft_warp_is_valid(const struct soft_warp *warp);

#endif
