/*
 * Crowd: threads that share one context, each with a stream of its own, and what they must find.
 *
 * Every launch adds a number to a slot of its own and one for each of its threads to a total that
 * all share, so a launch that is lost, made twice, or writes to a foreign place shows. Meanwhile
 * the threads load and unload modules, look kernels up, make and end events, take and give blocks
 * of one pool whose words must stay their own, and launch batches.
 *
 * It needs no Criterion: `tollens crowd` runs it in a process of its own, under whatever watches.
 */
#ifndef HYP_CROWD_H
#define HYP_CROWD_H

#include "tollens.h"

enum { HYP_CROWD_THREADS_MAX = 16, HYP_CROWD_TROUBLES_MAX = 4 };

struct hyp_crowd_options {
    unsigned threads;    /* 1 to HYP_CROWD_THREADS_MAX */
    unsigned launches;   /* of each thread */
    unsigned pause;      /* launches between two rounds of everything else; 0: 16 */
    unsigned patience_s; /* how long a thread may take; 0: 60 */
    uint64_t seed;
};

struct hyp_crowd {
    uint64_t checks, violations;
    char troubles[HYP_CROWD_TROUBLES_MAX]
                 [256]; /* the first violations, in words; "" past the end */
};

/* Runs them and waits for them. false: a thread did not end in time; it is left behind with what it
 * uses, and the crowd says so. */
bool hyp_crowd_run(struct tol_context *context, const struct hyp_crowd_options *options,
                   struct hyp_crowd *crowd);

/* Threads meet and look the same kernels up that nobody has looked up before, so many times: each
 * name must have one handle. */
bool hyp_crowd_look_up(struct tol_context *context, const struct hyp_crowd_options *options,
                       struct hyp_crowd *crowd);

/* One thread's stream is held up by a host function, and those of the others must come to their
 * end meanwhile. Nothing is queued behind the host function until then: what waits there may hold a
 * queue of the driver's up that several streams share, which is not the threads' doing. */
bool hyp_crowd_pass_by(struct tol_context *context, const struct hyp_crowd_options *options,
                       struct hyp_crowd *crowd);

#endif
