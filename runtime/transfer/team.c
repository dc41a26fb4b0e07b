/*
 * Waking, joining in, and being done.
 */
#include "team.h"

static void *help(void *argument) {
    struct tol_team *team = argument;
    pthread_mutex_lock(&team->lock);
    for (;;) {
        while (team->wanted == 0 && !team->is_ending) {
            pthread_cond_wait(&team->wake, &team->lock);
        }
        if (team->is_ending) break;
        team->wanted--;
        team->running++;
        void (*work)(void *user) = team->work;
        void *user = team->user;
        pthread_mutex_unlock(&team->lock);
        work(user);
        pthread_mutex_lock(&team->lock);
        if (--team->running == 0) pthread_cond_signal(&team->done);
    }
    pthread_mutex_unlock(&team->lock);
    return NULL;
}

void tol_team_open(struct tol_team *team) {
    *team = (struct tol_team){0};
    pthread_mutex_init(&team->lock, NULL);
    pthread_cond_init(&team->wake, NULL);
    pthread_cond_init(&team->done, NULL);
}

void tol_team_close(struct tol_team *team) {
    pthread_mutex_lock(&team->lock);
    team->is_ending = true;
    pthread_cond_broadcast(&team->wake);
    pthread_mutex_unlock(&team->lock);
    for (unsigned i = 0; i < team->count; i++) pthread_join(team->threads[i], NULL);
    pthread_cond_destroy(&team->done);
    pthread_cond_destroy(&team->wake);
    pthread_mutex_destroy(&team->lock);
}

void tol_team_run(struct tol_team *team, unsigned helpers, void (*work)(void *user), void *user) {
    if (helpers > TOL_TEAM_THREADS) helpers = TOL_TEAM_THREADS;
    pthread_mutex_lock(&team->lock);
    bool mine = helpers > 0 && !team->is_busy;
    if (mine) {
        team->is_busy = true;
        while (team->count < helpers &&
               pthread_create(&team->threads[team->count], NULL, help, team) == 0) {
            team->count++;
        }
        team->work = work;
        team->user = user;
        team->wanted = helpers < team->count ? helpers : team->count;
        pthread_cond_broadcast(&team->wake);
    }
    pthread_mutex_unlock(&team->lock);
    work(user);
    if (!mine) return;
    pthread_mutex_lock(&team->lock);
    team->wanted = 0; /* who has not come by now has nothing left to do */
    while (team->running > 0) pthread_cond_wait(&team->done, &team->lock);
    team->is_busy = false;
    pthread_mutex_unlock(&team->lock);
}
