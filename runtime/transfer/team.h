/*
 * Team: threads that help the calling one, because one host thread copies a fifth of what PCI
 * Express carries. They are started when first needed and sleep in between.
 */
#ifndef TOLLENS_TEAM_H
#define TOLLENS_TEAM_H

#include <pthread.h>
#include <stdbool.h>

enum { TOL_TEAM_THREADS = 32 };

struct tol_team {
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t wake, done;
    pthread_t threads[TOL_TEAM_THREADS];
    unsigned count;   /* of helper threads */
    unsigned wanted;  /* helpers that the current work still needs */
    unsigned running; /* helpers that run the current work */
    void (*work)(void *user);
    void *user;
    bool is_busy, is_ending;
};

void tol_team_open(struct tol_team *team);

/* Ends the threads. No work may be running. */
void tol_team_close(struct tol_team *team);

/* Runs work(user) on the calling thread and on up to helpers other threads at once, and returns
 * when all have finished. Fewer help if the team is busy or a thread cannot be created. */
void tol_team_run(struct tol_team *team, unsigned helpers, void (*work)(void *user), void *user);

#endif
