/*
 * Left books: what a process and its device have, as told by those who keep it: the driver
 * (cuMemGetInfo), NVML, the kernel (/proc/self) and the C library (mallinfo2). Nothing is counted
 * at the driver table, so a call that the driver lost shows.
 *
 * A round is a number of equal lives. What is lost in each life grows in each round; caches, and
 * tables that grow by doubling, do not. So the least growth of several rounds is judged, and of the
 * numbers that are exact also the growth over all rounds.
 */
#ifndef HYP_LEFT_BOOKS_H
#define HYP_LEFT_BOOKS_H

#include "harness/plugin.h"

struct left_books {
    uint64_t device; /* bytes in use on the device */
    int64_t process; /* those of the process by NVML; -1: it does not say */
    uint64_t heap;   /* bytes in use of malloc; 0: they are not counted */
    uint64_t mapped; /* bytes of addresses that the process has mapped */
    unsigned files, threads;
};

struct left_lives {
    struct hyp_attack *attack;
    struct tol_stream *stream;
    struct tol_module *module;
    struct tol_kernel *fill;
    struct tol_buffer *buffer;
    void *user; /* of a life */
};

/* One life: creates, uses and destroys. false: a violation was recorded. */
typedef bool left_life(struct left_lives *lives);

/* What all lives use; and plants the saboteur. false: a violation was recorded. End it in either
 * case. */
bool left_lives_begin(struct hyp_attack *attack, struct left_lives *lives);
void left_lives_end(struct left_lives *lives);

/* Waits for the work of the context, and reads the books. false: a violation was recorded. */
bool left_books_read(struct hyp_attack *attack, struct left_books *books);

/* Runs rounds of count lives each and checks that the books are as before. */
void left_lives_run(struct left_lives *lives, const char *what, unsigned count, left_life *life);

#endif
