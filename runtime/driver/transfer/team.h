/*
 * Team: threads that help the calling one, because one host thread copies a fifth of what PCI
 * Express carries. They are started when first needed. Some of them poll for the next work for a
 * while, and then all sleep. Waking one costs the caller some microseconds, and it starts about 50
 * us later. So small work is shared only with threads that are awake, and the caller wakes the
 * others for later work while it has to wait anyway.
 */
#ifndef TOLLENS_TEAM_H
#define TOLLENS_TEAM_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { TOL_TEAM_THREADS = 32 };

struct tol_team {
    pthread_mutex_t lock; /* guards all below; spinning threads read the atomic ones without it */
    pthread_cond_t wake, done;
    pthread_t threads[TOL_TEAM_THREADS];
    unsigned count;    /* of helper threads */
    unsigned spinners; /* the most of them that may spin */
    uint64_t spin_ns;  /* for so long */
    unsigned spinning; /* that do now */
    unsigned sleeping;
    _Atomic(unsigned) wanted;  /* helpers that the current work still needs */
    _Atomic(unsigned) running; /* helpers that run the current work */
    void (*work)(void *user);
    void *user;
    bool is_busy;
    atomic_bool is_ending;
};

/* The number of helpers that spin without work, and for how long. */
void tol_team_open(struct tol_team *team, unsigned spinners, uint64_t spin_ns);

/* Ends the threads. No work may be running. */
void tol_team_close(struct tol_team *team);

/* Runs work(user) on the calling thread and on up to helpers other threads at once, and returns
 * when all have finished. Fewer help if the team is busy or a thread cannot be created. is_small:
 * none is woken for it. */
void tol_team_run(struct tol_team *team, unsigned helpers, bool is_small, void (*work)(void *user),
                  void *user);

/* Wakes sleeping helpers that may poll for work, and starts up to count of them. */
void tol_team_stir(struct tol_team *team, unsigned count);

#endif
