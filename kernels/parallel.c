/*
 * A free thread runs the next iteration, since rows differ in length.
 */
#include "parallel.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

/* What a thread must have to do: ten times what it takes to make and to join one. */
static const double THREAD_NS = 200000;

static _Atomic unsigned forced;
static _Thread_local bool is_in_turn;

struct loop {
    size_t count;
    _Atomic size_t next;
    void (*turn)(void *user, size_t index);
    void *user;
};

static void *parallel_take_turns(void *argument) {
    struct loop *loop = argument;
    is_in_turn = true;
    for (size_t i; (i = atomic_fetch_add(&loop->next, 1)) < loop->count;) loop->turn(loop->user, i);
    is_in_turn = false;
    return NULL;
}

static unsigned processor_count(void) {
    cpu_set_t set;
    /* More processors than a cpu_set_t has places are more than are asked for. */
    if (sched_getaffinity(0, sizeof set, &set) != 0) return KN_PARALLEL_THREADS_MAX;
    return (unsigned)CPU_COUNT(&set);
}

static unsigned parallel_thread_count(size_t count, double work_ns) {
    unsigned threads = atomic_load(&forced);
    if (is_in_turn || count < 2) return 1;
    if (threads == 0) {
        if (work_ns < 2 * THREAD_NS) return 1;
        threads = processor_count();
        if (threads > work_ns / THREAD_NS) threads = (unsigned)(work_ns / THREAD_NS);
    }
    if (threads > count) threads = (unsigned)count;
    return threads < KN_PARALLEL_THREADS_MAX ? threads : KN_PARALLEL_THREADS_MAX;
}

void kn_parallel_for(size_t count, double work_ns, void (*turn)(void *user, size_t index),
                     void *user) {
    pthread_t others[KN_PARALLEL_THREADS_MAX];
    struct loop loop = {.count = count, .turn = turn, .user = user};
    const bool was_in_turn = is_in_turn;
    const unsigned threads = parallel_thread_count(count, work_ns);
    unsigned made = 0;
    while (made + 1 < threads &&
           pthread_create(&others[made], NULL, parallel_take_turns, &loop) == 0) {
        made++;
    }
    parallel_take_turns(&loop);
    is_in_turn = was_in_turn;
    for (unsigned i = 0; i < made; i++) pthread_join(others[i], NULL);
}

void kn_parallel_force(unsigned threads) {
    atomic_store(&forced, threads);
}
