/*
 * Thread stress: threads share one context, each with its own stream, and check each other's
 * results.
 *
 * Every launch adds a number to a slot of its own and one for each of its threads to a total that
 * all share, so a launch that is lost, made twice, or writes to a foreign place shows. Meanwhile
 * the threads load and unload modules, look up kernels, create and destroy events, allocate and
 * free blocks of one pool whose words must stay their own, and launch batches.
 *
 * It does not need Criterion: `tollens threads` runs it in its own process, for tools that watch a
 * process.
 */
#ifndef HYP_THREAD_STRESS_H
#define HYP_THREAD_STRESS_H

#include "tollens.h"

enum { HYP_THREAD_STRESS_THREADS_MAX = 16, HYP_THREAD_STRESS_TROUBLES_MAX = 4 };

struct hyp_thread_stress_options {
    unsigned threads;    /* 1 to HYP_THREAD_STRESS_THREADS_MAX */
    unsigned launches;   /* of each thread */
    unsigned pause;      /* launches between two rounds of everything else; 0: 16 */
    bool singly;         /* no launches in batches */
    unsigned patience_s; /* how long a thread may take; 0: 60 */
    uint64_t seed;
};

struct hyp_thread_stress {
    uint64_t checks, violations;
    char troubles[HYP_THREAD_STRESS_TROUBLES_MAX]
                 [256]; /* the first violations, in words; "" past the end */
};

/* Runs them and waits for them. false: a thread did not end in time. It keeps running with what it
 * uses, and stress reports it. */
bool hyp_thread_stress_run(struct tol_context *context,
                           const struct hyp_thread_stress_options *options,
                           struct hyp_thread_stress *stress);

/* Threads meet and look up the same kernels, which nobody has looked up before: each name must have
 * one handle. */
bool hyp_thread_stress_look_up(struct tol_context *context,
                               const struct hyp_thread_stress_options *options,
                               struct hyp_thread_stress *stress);

/* A host function blocks one thread's stream, and those of the others must finish meanwhile.
 * Nothing is queued after the host function until then: it could block a queue of the driver that
 * several streams share, which no thread causes. */
bool hyp_thread_stress_pass_by(struct tol_context *context,
                               const struct hyp_thread_stress_options *options,
                               struct hyp_thread_stress *stress);

#endif
