/*
 * Child: one process of the guard, with its input and output, from start until it is reaped.
 *
 * It leads a process group, so that the processes it started end with it, and the system kills it
 * if the thread that started it ends. It inherits nothing of the guard but stderr.
 */
#ifndef TOLLENS_GUARD_CHILD_H
#define TOLLENS_GUARD_CHILD_H

#include "core/check.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct guard_child {
    pid_t id;  /* 0: there is none */
    int event; /* a pidfd, readable once it is dead; -1: the kernel has none, ask guard_child_end */
    int in;    /* its input, for writing; -1: closed. Does not block */
    int out;   /* its output, for reading; likewise */
};

/* No process. */
#define GUARD_NO_CHILD ((struct guard_child){.event = -1, .in = -1, .out = -1})

/*
 * Starts a program. device is as in tol_guard_options; beat_ms is passed to it. TOL_NOT_FOUND: it
 * cannot be executed; the message says why. TOL_OUT_OF_HOST_MEMORY: no process, descriptor or
 * memory.
 */
tol_status guard_child_start(const char *const *program, const char *device, unsigned beat_ms,
                             struct guard_child *child);

/* SIGKILL to the process and its group. */
void guard_child_kill(const struct guard_child *child);

/* Whether it is dead; then its group is killed, it is reaped, and how has a clause: "it ended with
 * exit code 3". The output stays open. Never waits. */
bool guard_child_end(struct guard_child *child, bool *is_good, char *how, size_t bytes);

/* Closes its descriptors. A live process is killed and waited for. */
void guard_child_close(struct guard_child *child);

#endif
