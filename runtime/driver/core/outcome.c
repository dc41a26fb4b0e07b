/*
 * Keeps the first failure, and the list of calls.
 */
#include "outcome.h"

#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Thread_local bool tol_inside_host_function;

struct tol_outcome *tol_outcome_create(unsigned stream_number) {
    struct tol_outcome *outcome = calloc(1, sizeof *outcome);
    if (outcome == NULL) return NULL;
    pthread_mutex_init(&outcome->lock, NULL);
    outcome->stream_number = stream_number;
    return outcome;
}

void tol_outcome_destroy(struct tol_outcome *outcome) {
    if (outcome == NULL) return;
    while (outcome->calls != NULL) {
        struct tol_host_call *call = outcome->calls;
        outcome->calls = call->next;
        free(call);
    }
    pthread_mutex_destroy(&outcome->lock);
    free(outcome);
}

tol_status tol_outcome_take(struct tol_outcome *outcome, char *message, size_t bytes) {
    pthread_mutex_lock(&outcome->lock);
    tol_status status = outcome->status;
    if (status != TOL_OK) snprintf(message, bytes, "%s", outcome->message);
    outcome->status = TOL_OK;
    pthread_mutex_unlock(&outcome->lock);
    return status;
}

void tol_outcome_put(struct tol_outcome *outcome, tol_status status, const char *message) {
    pthread_mutex_lock(&outcome->lock);
    if (outcome->status == TOL_OK) {
        outcome->status = status;
        snprintf(outcome->message, sizeof outcome->message, "%s", message);
    }
    pthread_mutex_unlock(&outcome->lock);
}

tol_status tol_outcome_deliver(struct tol_outcome *outcome) {
    char message[TOL_OUTCOME_BYTES];
    tol_status status = tol_outcome_take(outcome, message, sizeof message);
    return status == TOL_OK ? TOL_OK : tol_fail(__FILE__, __LINE__, status, "%s", message);
}

bool tol_outcome_has_calls(struct tol_outcome *outcome) {
    pthread_mutex_lock(&outcome->lock);
    bool has = outcome->calls != NULL;
    pthread_mutex_unlock(&outcome->lock);
    return has;
}

void tol_outcome_list(struct tol_host_call *call) {
    struct tol_outcome *outcome = call->outcome;
    pthread_mutex_lock(&outcome->lock);
    call->next = outcome->calls;
    if (call->next != NULL) call->next->previous = call;
    outcome->calls = call;
    pthread_mutex_unlock(&outcome->lock);
}

void tol_outcome_unlist(struct tol_host_call *call) {
    struct tol_outcome *outcome = call->outcome;
    pthread_mutex_lock(&outcome->lock);
    if (call->next != NULL) call->next->previous = call->previous;
    if (call->previous != NULL) {
        call->previous->next = call->next;
    } else {
        outcome->calls = call->next;
    }
    pthread_mutex_unlock(&outcome->lock);
    free(call);
}
