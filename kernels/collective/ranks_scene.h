/*
 * Collective ranks: tests whose ranks are processes of their own. Internal to the tests.
 *
 * The test process forks before it has opened a driver, since one that has cannot go on as a fork.
 * Children share memory with it, and have no assertions: their bodies return false, with words.
 */
#ifndef KN_COLLECTIVE_RANKS_H
#define KN_COLLECTIVE_RANKS_H

#include "collective/collective.h"

#include <stdio.h>
#include <sys/types.h>

enum { RANKS_TEXT = 500, RANKS_DATA = 1 << 20, RANKS_WINDOW = 1 << 20, RANKS_HALF = 1 << 19 };

/* What a child leaves for its test. */
struct ranks_shared {
    char text[RANKS_TEXT]; /* what went wrong */
    unsigned char data[RANKS_DATA];
};

struct ranks_child {
    unsigned rank, ranks;
    const char *path; /* of the collective */
    struct tol_context *context;
    struct tol_stream *stream;
    struct kn_collective *collective;
    struct ranks_shared *shared, *all;
};

typedef bool ranks_body(struct ranks_child *child);

/* Runs body in a number of processes, each with its own device, waits, and fails the test unless
 * all returned true and ended with 0; but for `killed`, which must die by SIGKILL (ranks: none).
 * Skips the test where a machine has fewer devices. Returns what they left, one entry a rank. */
struct ranks_shared *ranks_run(unsigned ranks, ranks_body *body, unsigned killed);
void ranks_end(struct ranks_shared *shared, unsigned ranks);

/* Joins the collective of the test, with windows of RANKS_WINDOW bytes. */
tol_status ranks_join(struct ranks_child *child, enum kn_collective_way way);
/* In at the beginning of the window, out at RANKS_HALF. */
struct kn_collective_part ranks_part(const struct ranks_child *child, bool in_place);
tol_status ranks_write(const struct ranks_child *child, CUdeviceptr address, const void *from,
                       size_t bytes);
tol_status ranks_read(const struct ranks_child *child, CUdeviceptr address, void *to, size_t bytes);

#define NEED(child, call)                                                                          \
    do {                                                                                           \
        const tol_status need_status = (call);                                                     \
        if (need_status != TOL_OK) {                                                               \
            snprintf((child)->shared->text, RANKS_TEXT, "%s: %s: %.300s", #call,                   \
                     tol_status_name(need_status), tol_message());                                 \
            return false;                                                                          \
        }                                                                                          \
    } while (0)

/* The call must fail with this status, and say this. */
#define NEED_FAIL(child, call, expected, words)                                                    \
    do {                                                                                           \
        const tol_status need_status = (call);                                                     \
        if (need_status != (expected) || strstr(tol_message(), words) == NULL) {                   \
            snprintf((child)->shared->text, RANKS_TEXT, "%s: %s: %.300s; expected %s", #call,      \
                     tol_status_name(need_status), need_status == TOL_OK ? "" : tol_message(),     \
                     words);                                                                       \
            return false;                                                                          \
        }                                                                                          \
    } while (0)

#define NEED_TRUE(child, condition)                                                                \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            snprintf((child)->shared->text, RANKS_TEXT, "line %d: %s", __LINE__, #condition);      \
            return false;                                                                          \
        }                                                                                          \
    } while (0)

#endif
