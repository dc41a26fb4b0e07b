/*
 * Warp: 32 threads that share instructions, and the splits they part into.
 *
 * A split is a set of lanes at one place in the code. A branch on which the lanes differ makes two
 * of one, with a join between them: a note that these lanes should meet again at the branch's
 * immediate post-dominator. A split that arrives there waits in the join until the rest has come,
 * and they go on as one. So far this is the classic reconvergence stack, and as fast. But splits
 * take turns: after a quantum of backward branches the next one runs, and after a few quanta lanes
 * that wait in a join are let go alone. That gives what Volta and its successors promise, that
 * every thread eventually goes on, also when the thread it waits for is in the same warp. Source:
 * CUDA Programming Guide, independent thread scheduling; PTX ISA 9.0, section 3.1.
 */
#ifndef SOFT_WARP_H
#define SOFT_WARP_H

#include "code.h"

struct soft_cta;
struct soft_view;

/* Why a split does not run. */
enum soft_split_state {
    SOFT_SPLIT_FREE,
    SOFT_SPLIT_READY,
    SOFT_SPLIT_BARRIER, /* it waits at a CTA barrier */
    SOFT_SPLIT_SYNC     /* it waits for the other lanes of a .sync operation */
};

struct soft_join {
    const struct soft_instruction *at; /* NULL: this slot is free */
    uint32_t expected;                 /* the lanes still to meet here */
    uint32_t arrived;                  /* those that wait */
    struct soft_frame *frame;
    struct soft_join *outer;
};

/* The registers of one call of a function. */
struct soft_frame {
    uint8_t *slots;
    const struct soft_code *code;
    struct soft_frame *caller;
    const struct soft_instruction *resume; /* in the caller */
    struct soft_join *caller_join;         /* the split's join there */
    uint32_t users;                        /* how many splits and joins are in this call */
    uint32_t local_base;  /* where its local variables begin in each thread's local memory */
    uint32_t slots_bytes; /* what was allocated */
    uint8_t *parameters;  /* .param space of the call: this frame's outgoing arguments */
};

struct soft_split {
    enum soft_split_state state;
    uint32_t mask;
    const struct soft_instruction *pc;
    struct soft_join *join;
    struct soft_frame *frame;
    uint32_t sync_members; /* SYNC: the member mask it waits with */
    uint32_t barrier;      /* BARRIER: which one */
};

enum { SOFT_SPLITS_MAX = 32, SOFT_JOINS_MAX = 64 };

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
    uint64_t executed; /* warp instructions, counted at branches */
    int32_t quantum;   /* backward branches left */
    uint32_t alive;    /* the lanes that have not exited */
    enum soft_stop stop;
    uint32_t index;   /* in the CTA */
    uint32_t threads; /* the lanes that exist: fewer than 32 in a last warp */
    uint32_t rounds;  /* quanta used up without any lane leaving a join */
    struct soft_frame bottom;
    _Alignas(64) uint32_t lane[SOFT_LANES]; /* all ones where mask has the lane */
    struct soft_split splits[SOFT_SPLITS_MAX];
    struct soft_join joins[SOFT_JOINS_MAX];
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

/* The current split is at a place where splits may meet. Returns where to go on, NULL to wait. */
const struct soft_instruction *soft_warp_meet(struct soft_warp *warp,
                                              const struct soft_instruction *join);

/* The lanes that run now exit. Returns where the rest of the split goes on, NULL for nowhere. */
const struct soft_instruction *soft_warp_exit(struct soft_warp *warp,
                                              const struct soft_instruction *next);

/* Stops running the current split, which is to go on at pc. */
const struct soft_instruction *soft_warp_stop(struct soft_warp *warp, enum soft_stop why,
                                              const struct soft_instruction *pc);

#endif
