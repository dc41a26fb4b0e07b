/*
 * Jobs: the submitted jobs, which one may be handed out next, and the state of each; with the
 * journal.
 *
 * A job waits, is at a worker, or is answered. Answers are kept until they are delivered.
 */
#ifndef TOLLENS_GUARD_JOBS_H
#define TOLLENS_GUARD_JOBS_H

#include "guard/guard_journal.h"
#include "tollens/guard.h"

struct guard_text {
    char *bytes; /* followed by a NUL; NULL: none */
    size_t count;
};

enum guard_stage { GUARD_WAITS, GUARD_AT_WORKER, GUARD_IS_ANSWERED };

struct guard_job {
    enum guard_stage stage;
    bool is_failed, is_delivered;
    struct guard_text work, parts, answer; /* work and parts until it is answered */
    size_t work_count;                     /* of work's bytes, and their sum, for ever */
    uint32_t work_sum;
    unsigned lost;    /* workers that it ended, or that ended beneath it */
    size_t lost_by;   /* the device of the latest of them */
    uint64_t lost_ns; /* when that was noticed; 0: it has been handed out since */
};

struct guard_jobs {
    struct guard_job *job; /* number n is job[n - 1] */
    size_t count, room;
    size_t submitted; /* of count; the others are the journal's */
    size_t fresh;     /* job[fresh] and later jobs were never handed out by this process */
    size_t *back;     /* jobs that came back, by index */
    size_t back_count, back_room;
    size_t *order; /* answered, in the order of their answers, by index */
    size_t answered;
    size_t delivered; /* of order, or of job if in_order */
    uint64_t failed, restored;
    bool in_order;
    unsigned attempts;
    struct guard_journal *journal; /* NULL: none */
};

/* Reads the journal of the options, if there is one. Clear *jobs on failure, too. */
tol_status guard_jobs_open(struct guard_jobs *jobs, const struct tol_guard_options *options);
void guard_jobs_clear(struct guard_jobs *jobs);

/* As tol_guard_submit. */
tol_status guard_jobs_submit(struct guard_jobs *jobs, const void *bytes, size_t count,
                             uint64_t *number);

/* The next job for a device, which is then at a worker; NULL: none. A job is not handed to the
 * device that lost it, unless is_alone. */
struct guard_job *guard_jobs_next(struct guard_jobs *jobs, size_t device, bool is_alone);
uint64_t guard_jobs_number(const struct guard_jobs *jobs, const struct guard_job *job);

/* For a job at a worker: keeps a part; takes its answer; puts it back, or fails it if that was its
 * last attempt. Each is written to the journal first: TOL_UNWRITABLE, and nothing has changed. */
tol_status guard_jobs_keep(struct guard_jobs *jobs, struct guard_job *job, const void *bytes,
                           size_t count);
tol_status guard_jobs_answer(struct guard_jobs *jobs, struct guard_job *job, bool is_failed,
                             const void *bytes, size_t count);
tol_status guard_jobs_lose(struct guard_jobs *jobs, struct guard_job *job, size_t device,
                           uint64_t now_ns, const char *reason);

/* The job waits again, and is not counted as lost, because the guard itself ends its worker. 0 is a
 * no-op. */
void guard_jobs_put_back(struct guard_jobs *jobs, uint64_t number);

/* Delivers what can be. */
tol_status guard_jobs_deliver(struct guard_jobs *jobs, const struct tol_guard_options *options);

bool guard_jobs_are_done(const struct guard_jobs *jobs);

/* A fault that the suite plants, to check that its tests detect it: 0 none, 1 an answer is
 * delivered twice, 2 a job is lost with its worker, 3 an answer is not in the journal. */
extern int guard_jobs_planted;

#endif
