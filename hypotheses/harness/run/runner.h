/*
 * Runner: starts a worker for one claim, follows it, and gathers what its attacks left behind.
 */
#ifndef HYP_RUNNER_H
#define HYP_RUNNER_H

#include "harness/session.h"
#include "judge/verdict.h"
#include "watch.h"

struct hyp_task {
    const struct hyp_claim *claim;
    const struct hyp_session *session; /* the device is resolved: cuda or soft */
    const char *folder;                /* where the evidence goes; made if it is not there */
    const char *saboteur;              /* NULL: none */
    bool first_is_enough; /* once the claim falls by an attack's violations, no other is made */
    struct hyp_watch *watch;
};

/* Runs all attacks of a claim and judges them. false: the worker could not be started, or there is
 * no memory; hyp_error(). The verdict is the caller's to end. */
bool hyp_runner_run(const struct hyp_task *task, struct hyp_verdict *verdict);

/* Whether the person asked to stop (SIGINT, SIGTERM, SIGHUP) since the program began; installs the
 * handlers when first called. */
bool hyp_runner_interrupted(void);

#endif
