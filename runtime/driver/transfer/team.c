/*
 * Waking helpers, joining the work, and ending it.
 */
#include "team.h"

#include "core/monotonic.h"

#include <sched.h>
#include <string.h>

/* Helpers that still work when the caller is done finish soon. */
enum { LOOKS = 1000 };

/* Polls for something that another thread is about to change. */
static void look_away(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#else
    sched_yield();
#endif
}

static bool team_has_work(const struct tol_team *team) {
    return atomic_load_explicit(&team->wanted, memory_order_relaxed) > 0 ||
           atomic_load_explicit(&team->is_ending, memory_order_relaxed);
}

/* Waits for work. The caller holds the lock, which is released meanwhile. A helper that is woken
 * without work polls again. */
static void wait_for_work(struct tol_team *team) {
    for (;;) {
        if (!team_has_work(team) && team->spinning < team->spinners) {
            const uint64_t begin = tol_now_ns();
            team->spinning++;
            pthread_mutex_unlock(&team->lock);
            while (!team_has_work(team) && tol_now_ns() - begin < team->spin_ns) look_away();
            pthread_mutex_lock(&team->lock);
            team->spinning--;
        }
        if (team_has_work(team)) return;
        team->sleeping++;
        pthread_cond_wait(&team->wake, &team->lock);
        team->sleeping--;
    }
}

static void *team_help(void *argument) {
    struct tol_team *team = argument;
    pthread_mutex_lock(&team->lock);
    for (;;) {
        wait_for_work(team);
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

void tol_team_open(struct tol_team *team, unsigned spinners, uint64_t spin_ns) {
    memset((void *)team, 0, sizeof *team);
    team->spinners = spinners;
    team->spin_ns = spin_ns;
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

/* Starts helpers up to count, as far as the system allows. The caller holds the lock. */
static void team_start(struct tol_team *team, unsigned count) {
    while (team->count < count &&
           pthread_create(&team->threads[team->count], NULL, team_help, team) == 0) {
        team->count++;
    }
}

static void team_wake(struct tol_team *team, unsigned count) {
    for (unsigned i = 0; i < count && i < team->sleeping; i++) pthread_cond_signal(&team->wake);
}

/* Hands work out. The caller holds the lock, and the team is not busy. */
static void team_offer(struct tol_team *team, unsigned helpers, bool is_small) {
    if (!is_small) team_start(team, helpers);
    const unsigned most = is_small ? team->spinning : team->count;
    const unsigned wanted = helpers < most ? helpers : most;
    const unsigned awake = team->spinning < wanted ? team->spinning : wanted;
    team->wanted = wanted;
    if (!is_small) team_wake(team, wanted - awake);
}

void tol_team_run(struct tol_team *team, unsigned helpers, bool is_small, void (*work)(void *user),
                  void *user) {
    if (helpers > TOL_TEAM_THREADS) helpers = TOL_TEAM_THREADS;
    pthread_mutex_lock(&team->lock);
    const bool mine = helpers > 0 && !team->is_busy;
    if (mine) {
        team->is_busy = true;
        team->work = work;
        team->user = user;
        team_offer(team, helpers, is_small);
    }
    pthread_mutex_unlock(&team->lock);
    work(user);
    if (!mine) return;
    pthread_mutex_lock(&team->lock);
    team->wanted = 0; /* a helper that has not joined by now has nothing left to do */
    pthread_mutex_unlock(&team->lock);
    for (int i = 0; i < LOOKS && team->running > 0; i++) look_away();
    pthread_mutex_lock(&team->lock);
    while (team->running > 0) pthread_cond_wait(&team->done, &team->lock);
    team->is_busy = false;
    pthread_mutex_unlock(&team->lock);
}

void tol_team_stir(struct tol_team *team, unsigned count) {
    pthread_mutex_lock(&team->lock);
    if (count > team->spinners) count = team->spinners;
    team_start(team, count);
    const unsigned awake = team->spinning + team->running;
    if (awake < count) team_wake(team, count - awake);
    pthread_mutex_unlock(&team->lock);
}
