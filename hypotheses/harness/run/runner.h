/*
 * Runner: starts a worker for one claim, follows it, and collects the records of its attacks.
 */
#ifndef HYP_RUNNER_H
#define HYP_RUNNER_H

#include "harness/session.h"
#include "judge/verdict.h"
#include "progress.h"

struct hyp_task {
    const struct hyp_claim *claim;
    const struct hyp_session *session; /* its device is cuda or soft, not auto */
    const char *folder;                /* of the evidence; created if it does not exist */
    const char *saboteur;              /* NULL: none */
    unsigned seeds;       /* that a claim without times is attacked with, from the session's on */
    bool first_is_enough; /* stop once an attack's violations falsify the claim */
    uint64_t until_ns;    /* hyp_clock_ns() at which what still runs is killed; 0: never */
    struct hyp_progress *watch;
};

/* The number of attacks that hyp_runner_run runs: each once per process or seed. */
size_t hyp_runner_steps(const struct hyp_task *task);

/* The steps of hyp_runner_run, for callers that run passes side by side: begin, each pass once,
 * end. A pass is one process of attacks, with a seed of its own or the same as others; passes of
 * one verdict may run on several threads. end may be called twice: after the pass of the first
 * seed, for its verdict, and after all passes. false: as there. */
bool hyp_runner_begin(const struct hyp_task *task, struct hyp_verdict *verdict);
unsigned hyp_runner_passes(const struct hyp_verdict *verdict);
bool hyp_runner_pass(const struct hyp_task *task, struct hyp_verdict *verdict, unsigned pass);
void hyp_runner_end(const struct hyp_task *task, unsigned passes, struct hyp_verdict *verdict);

/* Runs all attacks of a claim and judges them. false: the worker could not be started, or memory
 * ran out; hyp_error(). The caller must call hyp_verdict_end. */
bool hyp_runner_run(const struct hyp_task *task, struct hyp_verdict *verdict);

/* Whether SIGINT, SIGTERM or SIGHUP has arrived since the first call, which installs the
 * handlers. */
bool hyp_runner_interrupted(void);

#endif
