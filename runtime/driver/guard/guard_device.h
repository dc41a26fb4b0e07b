/*
 * Device: one device of a guard: the state of its machine, its process, its job, its deadlines.
 */
#ifndef TOLLENS_GUARD_DEVICE_H
#define TOLLENS_GUARD_DEVICE_H

#include "guard/guard_child.h"
#include "guard/guard_frame.h"
#include "guard/guard_jobs.h"
#include "guard/guard_machine.h"
#include "tollens/guard.h"
#include "tollens/hdr.h"

enum { GUARD_REASON_BYTES = 512 };

struct guard_device {
    char *name;
    size_t index;
    enum guard_state state;
    struct guard_child child;
    struct guard_input input;
    struct guard_output output;
    uint64_t job;        /* that its worker has; 0: none */
    bool is_probe;       /* the child is one */
    bool is_deaf;        /* what the worker writes from now on is not believed */
    uint64_t late_ns;    /* when the state's deadline passes; 0: never */
    uint64_t beat_ns;    /* when the next sign of life is overdue; 0: never */
    uint64_t noticed_ns; /* when the failure was noticed that it recovers from; 0: none */
    unsigned failures;   /* in a row */
    char late[80];       /* what the deadline is of */
    char reason[GUARD_REASON_BYTES];
};

/* The fields of the public handle. */
struct tol_guard {
    struct tol_guard_options options; /* with defaults in place of zeros */
    struct guard_jobs jobs;
    struct guard_device *device;
    size_t device_count;
    struct tol_hdr *recoveries, *handovers;
    struct tol_guard_stats stats;
    int stop; /* an eventfd */
    bool is_closing;
    tol_status broken; /* why it cannot go on: the journal, memory */
    char message[GUARD_REASON_BYTES * 2];
};

/* How often each row of the table has occurred in this process. */
extern uint64_t guard_move_counts[];

/* Handles an event of a device: a transition of the machine and its action. reason may be "". */
void guard_device_event(struct tol_guard *guard, struct guard_device *device,
                        enum guard_event event, const char *reason);

/* Checks a device: what it wrote, whether its process is alive, whether a deadline has passed. */
void guard_device_look(struct tol_guard *guard, struct guard_device *device, uint64_t now_ns);

/* Hands it the next job, if it is ready and there is one. */
void guard_device_feed(struct tol_guard *guard, struct guard_device *device, bool is_alone);

/* The time at which guard_device_look has work without input; UINT64_MAX: never. */
uint64_t guard_device_due(const struct guard_device *device);

/* ---- between guard_device.c and guard_talk.c ---- */

/* Reads what its process has written; the output of a probe stays in the input. */
void guard_device_read(struct tol_guard *guard, struct guard_device *device);

/* Its deadline, and what it is of; its next sign of life. */
void guard_device_set_late(struct guard_device *device, unsigned ms, const char *what);
void guard_device_set_beat(const struct tol_guard *guard, struct guard_device *device);

/* The job that its worker has; NULL: none. */
struct guard_job *guard_device_job(struct tol_guard *guard, const struct guard_device *device);

/* The guard cannot continue if status is not TOL_OK: the first reason is kept. */
void guard_device_break(struct tol_guard *guard, tol_status status);

#endif
