/*
 * A team of threads that help the calling one: one thread of the host copies a fifth of what PCI
 * Express carries. They are started when they are first wanted and sleep in between.
 * Internal: not installed.
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
    unsigned count;   /* helpers there are */
    unsigned wanted;  /* of them that the work in hand still takes on */
    unsigned running; /* of them that are at it */
    void (*work)(void *user);
    void *user;
    bool is_busy, is_ending;
};

void tol_team_open(struct tol_team *team);

/* Ends the threads. No work may be in hand. */
void tol_team_close(struct tol_team *team);

/* Runs work(user) on the calling thread and on up to helpers others at once, and returns when all
 * of them have. Where the team is at other work, or no thread can be made, fewer help. */
void tol_team_run(struct tol_team *team, unsigned helpers, void (*work)(void *user), void *user);

#endif
