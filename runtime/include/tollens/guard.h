/*
 * Guard: jobs on several devices, one worker process per device, each job answered exactly once.
 *
 *     tol_guard_open(&options, &guard);
 *     tol_guard_submit(guard, bytes, count, &job);          for each job
 *     tol_guard_run(guard);                                 until all are answered
 *     tol_guard_close(guard);
 *
 * NVIDIA's driver ends all contexts of a process when a kernel faults on one device, so what must
 * outlive a device must be in separate processes. The guard starts the same program once for each
 * device and hands it jobs, one at a time (runtime/driver/guard/README.md has the protocol;
 * guard_worker.h speaks it). A worker whose device faults, that hangs, that breaks the protocol or
 * that dies is killed, and its job goes to another device. A separate process probes the device,
 * which then gets a new worker or is fenced, with the reason.
 *
 * Exactly once: a job has one answer, `deliver` is called once for it, and two workers never have
 * it at the same time. A worker may die in the middle of a job, so a job may be *begun* several
 * times, and so may its side effects.
 *
 * With a journal, what was submitted and answered survives the death of this process, by SIGKILL
 * too: open the same journal, submit the same jobs in the same order, and those with an answer
 * are not run again.
 *
 * Threads: a guard is for one thread, and its workers die when that thread ends (Linux's parent
 * death signal). tol_guard_stop may be called from any thread and from a signal handler.
 * Descriptors: all that the guard opens are closed on exec. Linux only.
 * Source: spec 002 recovery, RF-15.
 */
#ifndef TOLLENS_GUARD_H
#define TOLLENS_GUARD_H

#include "status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tol_guard;
struct tol_hdr;

enum { TOL_GUARD_DEVICES_MAX = 256, TOL_GUARD_BYTES_MAX = 64 << 20 /* of a job or an answer */ };

/* How a guard and its workers talk. */
enum tol_guard_talk {
    TOL_GUARD_FRAMES, /* the protocol: hello, heartbeats, parts, answers, faults */
    TOL_GUARD_LINES   /* a line in, a line out; for programs that know nothing of guards */
};

/* A job's answer. Valid during the call of deliver. */
struct tol_guard_answer {
    uint64_t job;      /* as tol_guard_submit numbered it: 1, 2, ... */
    bool is_failed;    /* the worker refused it, or it ended too many workers; bytes say why */
    const void *bytes; /* count of them, followed by a NUL */
    size_t count;
};

/* Something that happened to a device, for people. Valid during the call of note. */
struct tol_guard_note {
    const char *device;
    const char *from, *event, *to; /* states and event, by guard_states.def's words */
    uint64_t job;                  /* that the device has; 0: none */
    const char *reason;            /* "" if the event says all */
};

/* All zero are the defaults, but for program and devices. Times are in milliseconds. */
struct tol_guard_options {
    const char *const *program; /* arguments, NULL at the end; looked for in PATH */
    /* Likewise; run before the worker is started, with the worker's environment. Exit code 0: the
     * device works. Else the first line that it prints is the reason. NULL: no probe. */
    const char *const *probe;
    /* "cuda:N" (the N-th visible one) and "cuda:UUID" are in the worker's CUDA_VISIBLE_DEVICES,
     * where it is the only one, cuda:0 of TOLLENS_DEVICE. Another name with a colon, "soft:N", is
     * in TOLLENS_DEVICE. TOLLENS_GUARD_DEVICE has every name. */
    const char *const *devices;
    size_t device_count;
    enum tol_guard_talk talk;
    const char *journal; /* the path of its file; NULL: none */
    bool is_synced;      /* the journal is flushed to the disk for each record */
    bool in_order;       /* answers are delivered by number; else as they come */
    uint64_t delivered; /* with a journal: how many answers the caller has; they are not repeated */
    unsigned hello_ms;  /* from start to hello; 30000 */
    unsigned beat_ms;   /* between two signs of life; 0: 10000. Frames alone */
    unsigned job_ms;    /* from job to answer, or between two parts of it; 60000 */
    unsigned probe_ms;  /* 30000 */
    unsigned end_ms;    /* from SIGKILL, or from the end of input, to the death; 10000 */
    unsigned rest_ms;   /* the first pause after a failure; 10. It doubles, to 5 s at most */
    unsigned failures;  /* in a row, without an answer between, after which a device is fenced; 3 */
    unsigned attempts;  /* workers that a job may end before it is failed; 3 */
    void *user;
    /* Takes an answer. A failure ends tol_guard_run, and the answer is delivered again later. */
    tol_status (*deliver)(void *user, const struct tol_guard_answer *answer);
    void (*note)(void *user, const struct tol_guard_note *note); /* NULL: none */
};

/*
 * Opens a guard; no process is started yet. The caller closes *guard. Strings are copied, except
 * program's and probe's. TOL_INVALID_ARGUMENT. TOL_UNREADABLE: the journal cannot be opened, or
 * another guard has it. TOL_INVALID_FILE: it is no journal, or damaged before its last record; a
 * last record that was not written whole is dropped. TOL_OUT_OF_HOST_MEMORY.
 */
TOL_API tol_status tol_guard_open(const struct tol_guard_options *options,
                                  struct tol_guard **guard);

/* Kills what runs, and waits for its end. NULL is a no-op. */
TOL_API void tol_guard_close(struct tol_guard *guard);

/*
 * Adds a job of count bytes, which are copied; *job is its number. With a journal that has jobs,
 * the first ones submitted must be the same: TOL_MISMATCH. TOL_OVER_LIMIT: it is too large.
 * TOL_INVALID_ARGUMENT: a line break in a job of lines. TOL_UNWRITABLE: the journal cannot grow;
 * the job was not taken. TOL_OUT_OF_HOST_MEMORY.
 */
TOL_API tol_status tol_guard_submit(struct tol_guard *guard, const void *bytes, size_t count,
                                    uint64_t *job);

/*
 * Runs until every job is answered and delivered; then the workers have ended, too. More jobs may
 * be submitted and run afterwards. On failure the workers were killed, and what was answered so far
 * has been delivered. TOL_NO_DEVICE: every device is fenced; the message has the reasons.
 * TOL_CANCELLED: tol_guard_stop. TOL_UNWRITABLE: the journal cannot grow. Else what deliver said.
 */
TOL_API tol_status tol_guard_run(struct tol_guard *guard);

/* Makes tol_guard_run end with TOL_CANCELLED. Safe in signal handlers. */
TOL_API void tol_guard_stop(struct tol_guard *guard);

/* What happened so far. */
struct tol_guard_stats {
    uint64_t jobs, answered, failed, delivered;
    uint64_t begun;                       /* jobs handed to workers, again and again counted */
    uint64_t restored;                    /* of answered: from the journal */
    uint64_t parts;                       /* received */
    uint64_t workers, probes, kills;      /* processes started, SIGKILLs sent */
    uint64_t faults, late, garbage, gone; /* failures by how they were noticed */
    uint64_t fenced;                      /* devices */
};
TOL_API void tol_guard_stats(const struct tol_guard *guard, struct tol_guard_stats *stats);

/* Nanoseconds from the moment that a failure is noticed: until its device has a worker that said
 * hello again, and until its job is handed to a worker again. Valid until the guard closes. */
TOL_API const struct tol_hdr *tol_guard_recoveries(const struct tol_guard *guard);
TOL_API const struct tol_hdr *tol_guard_handovers(const struct tol_guard *guard);

/* A device: its state by name, and the reason of its latest failure ("" if there was none). false:
 * index is not below the count. The strings are the guard's; valid until the next call. */
TOL_API bool tol_guard_device(const struct tol_guard *guard, size_t index, const char **device,
                              const char **state, const char **reason);

/* Calls visit for each row of the table of states, with how often guards of this process went
 * through it. Not while a guard runs in another thread. */
TOL_API void tol_guard_moves(void (*visit)(void *user, const char *from, const char *event,
                                           const char *to, uint64_t count),
                             void *user);

#ifdef __cplusplus
}
#endif
#endif
