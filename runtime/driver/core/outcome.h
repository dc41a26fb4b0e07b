/*
 * Outcome: the results of the host functions of a stream or of a captured graph.
 *
 * Its calls are listed, so that calls that never run, because the context is lost, are freed with
 * it. host_function.c makes the calls. Thread-safe.
 */
#ifndef TOLLENS_OUTCOME_H
#define TOLLENS_OUTCOME_H

#include "tollens/status.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

enum { TOL_REASON_BYTES = 256, TOL_OUTCOME_BYTES = TOL_REASON_BYTES + 128 };

struct tol_host_call {
    tol_status (*function)(void *user, char *reason, size_t bytes); /* tol_host_function */
    void *user;
    struct tol_outcome *outcome; /* whose list it is in, and which gets a failure */
    struct tol_outcome *from;    /* of a relay: what is handed on */
    bool is_kept;                /* it is a graph's, and may run again */
    struct tol_host_call *next, *previous;
};

struct tol_outcome {
    pthread_mutex_t lock; /* guards all below */
    struct tol_host_call *calls;
    unsigned stream_number; /* 0: of a graph */
    tol_status status;
    char message[TOL_OUTCOME_BYTES];
};

/* Whether this thread is in a host function, where no driver call may be made. */
extern _Thread_local bool tol_inside_host_function;

/* NULL when the host has no memory. */
struct tol_outcome *tol_outcome_create(unsigned stream_number);
void tol_outcome_destroy(struct tol_outcome *outcome);

/* Adds a call that malloc gave; takes it out again and frees it. */
void tol_outcome_list(struct tol_host_call *call);
void tol_outcome_unlist(struct tol_host_call *call);
bool tol_outcome_has_calls(struct tol_outcome *outcome);

/* Keeps a failure if it is the first since the last take. */
void tol_outcome_put(struct tol_outcome *outcome, tol_status status, const char *message);

/* The first failure since the last time, which is forgotten: as a status and its message, or as the
 * calling thread's failure. */
tol_status tol_outcome_take(struct tol_outcome *outcome, char *message, size_t bytes);
tol_status tol_outcome_deliver(struct tol_outcome *outcome);

#endif
