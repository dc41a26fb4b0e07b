/*
 * Hot pairs: a free and an allocation of the same size, by one thread and by four, with all
 * allocators open and their rows measured alternately (pool_rounds.h).
 *
 * The threads exist as long as the rows, because a new thread has to fill an allocator's caches.
 * Threads that a row does not need sleep.
 */
#include "pool_bench.h"
#include "pool_rounds.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static const size_t sizes[] = {1024, 5 * MIB, 20 * MIB};
enum { SIZES = sizeof sizes / sizeof sizes[0], SIDES = 2, ROWS = KINDS * SIZES * SIDES };

/* What the threads do now. */
struct crew {
    struct allocator allocators[KINDS];
    struct allocator *allocator; /* NULL: they end */
    size_t bytes;
    int threads, pairs;
    atomic_int lined_up;
    sem_t done;
};

struct member {
    struct crew *crew;
    sem_t start;
    pthread_t id;
    double ns; /* a pair */
};

static void make_pairs(const struct crew *crew, struct tol_stream *stream, int pairs) {
    union memory memory;
    for (int i = 0; i < pairs; i++) {
        if (!take(crew->allocator, crew->bytes, stream, &memory)) exit(2);
        give(crew->allocator, memory, stream);
    }
}

/* Who is awake and warm waits for the others awake: some 50 us lie between the first and the last
 * that is woken, of a round of a millisecond. */
static void line_up(struct crew *crew) {
    atomic_fetch_add(&crew->lined_up, 1);
    while (atomic_load(&crew->lined_up) < crew->threads) sched_yield();
}

static void *run_member(void *user) {
    struct member *member = user;
    struct crew *crew = member->crew;
    struct tol_stream *stream = NULL;
    must(tol_stream_create(bench.context, NULL, &stream), "a stream");
    for (;;) {
        while (sem_wait(&member->start) != 0) continue;
        if (crew->allocator == NULL) break;
        make_pairs(crew, stream, crew->pairs / 20 + 1);
        line_up(crew);
        const double begin = (double)tol_now_ns();
        make_pairs(crew, stream, crew->pairs);
        member->ns = ((double)tol_now_ns() - begin) / crew->pairs;
        sem_post(&crew->done);
    }
    must(tol_stream_synchronize(stream), "a wait");
    tol_stream_destroy(stream);
    return NULL;
}

static int threads_of(size_t row) {
    return row % SIDES == 0 ? 1 : THREADS_MAX;
}

static enum kind pool_bench_kind_of(size_t row) {
    return (enum kind)(row / SIDES / SIZES);
}

/* A round of a row: nanoseconds per pair, for each of its threads. */
static void pool_bench_measure(void *user, size_t row, double *values) {
    struct member *members = user;
    struct crew *crew = members->crew;
    const enum kind kind = pool_bench_kind_of(row);
    crew->allocator = &crew->allocators[kind];
    crew->bytes = sizes[row / SIDES % SIZES];
    crew->threads = threads_of(row);
    crew->pairs = kind == DRIVER_SYNC && bench.pairs > 200 ? 200 : bench.pairs;
    atomic_store(&crew->lined_up, 0);
    for (int i = 0; i < crew->threads; i++) sem_post(&members[i].start);
    for (int i = 0; i < crew->threads; i++) {
        while (sem_wait(&crew->done) != 0) continue;
    }
    for (int i = 0; i < THREADS_MAX; i++) values[i] = i < crew->threads ? members[i].ns : 0;
}

/* The mean over threads. */
static double pair_ns(double medians[ROWS][THREADS_MAX], size_t row) {
    double sum = 0;
    for (int i = 0; i < threads_of(row); i++) sum += medians[row][i];
    return sum / threads_of(row);
}

static void print_rows(double medians[ROWS][THREADS_MAX]) {
    for (size_t row = 0; row < ROWS; row += SIDES) {
        const double one = pair_ns(medians, row), four = pair_ns(medians, row + 1);
        const size_t bytes = sizes[row / SIDES % SIZES];
        const char *name = kind_name(pool_bench_kind_of(row));
        if (bench.is_json) {
            printf("{\"hot_bytes\": %zu, \"allocator\": \"%s\", \"pair_ns_1_thread\": %.1f, "
                   "\"pair_ns_4_threads\": %.1f, \"throughput_4_to_1\": %.2f}\n",
                   bytes, name, one, four, 4 * one / four);
        } else {
            printf("%-8zu %-16s %12.1f %12.1f %12.2f\n", bytes, name, one, four, 4 * one / four);
        }
    }
    fflush(stdout);
}

/* Keeps thread i on processor i * apart of those that the process may use. */
static void keep_apart(const struct member *members) {
    cpu_set_t all, one;
    if (sched_getaffinity(0, sizeof all, &all) != 0) exit(2);
    size_t cpu = 0;
    for (int i = 0, seen = -1; i < THREADS_MAX; i++) {
        for (; cpu < CPU_SETSIZE; cpu++) {
            if (CPU_ISSET(cpu, &all) && ++seen == i * bench.apart) break;
        }
        if (cpu == CPU_SETSIZE) {
            fprintf(stderr, "bench-pool: --apart %d needs %d processors\n", bench.apart,
                    (THREADS_MAX - 1) * bench.apart + 1);
            exit(2);
        }
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        if (pthread_setaffinity_np(members[i].id, sizeof one, &one) != 0) {
            fprintf(stderr, "bench-pool: a thread cannot be kept on processor %zu\n", cpu);
            exit(2);
        }
        cpu++;
    }
}

void print_hot(void) {
    static struct crew crew;
    static struct member members[THREADS_MAX];
    static double medians[ROWS][THREADS_MAX];
    sem_init(&crew.done, 0, 0);
    for (enum kind kind = 0; kind < KINDS; kind++) open_allocator(&crew.allocators[kind], kind);
    for (int i = 0; i < THREADS_MAX; i++) {
        members[i].crew = &crew;
        sem_init(&members[i].start, 0, 0);
        if (pthread_create(&members[i].id, NULL, run_member, &members[i]) != 0) exit(2);
    }
    if (bench.apart > 0) keep_apart(members);
    if (!pool_rounds_take(ROWS, THREADS_MAX, pool_bench_measure, members, medians[0])) exit(2);
    crew.allocator = NULL;
    for (int i = 0; i < THREADS_MAX; i++) sem_post(&members[i].start);
    for (int i = 0; i < THREADS_MAX; i++) {
        pthread_join(members[i].id, NULL);
        sem_destroy(&members[i].start);
    }
    sem_destroy(&crew.done);
    for (enum kind kind = 0; kind < KINDS; kind++) close_allocator(&crew.allocators[kind]);
    print_rows(medians);
}
