/*
 * An array of jobs, a list of returned ones, and the order of the answers.
 */
#include "guard_jobs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REASON_BYTES = 700, NO_DEVICE = -1 };

int guard_jobs_planted;

/* ---- memory ---- */

static void *guard_jobs_grown(void *array, size_t *room, size_t count, size_t element) {
    if (count < *room) return array;
    const size_t more = *room > 0 ? 2 * *room : 64;
    void *made = realloc(array, more * element);
    if (made != NULL) *room = more;
    return made;
}

static void guard_jobs_drop(struct guard_text *text) {
    free(text->bytes);
    *text = (struct guard_text){.bytes = NULL};
}

static tol_status guard_jobs_append(struct guard_text *text, const void *bytes, size_t count) {
    tol_status status = TOL_OK;
    char *made = realloc(text->bytes, text->count + count + 1);
    TOL_CHECK(made != NULL, TOL_OUT_OF_HOST_MEMORY, "%zu bytes of a job", text->count + count);
    if (count > 0) memcpy(made + text->count, bytes, count);
    text->bytes = made;
    text->count += count;
    made[text->count] = '\0';
out:
    return status;
}

static tol_status add_job(struct guard_jobs *jobs, const void *bytes, size_t count) {
    tol_status status = TOL_OK;
    size_t room = jobs->room;
    struct guard_job job = {.lost_by = (size_t)NO_DEVICE, .work_count = count};
    struct guard_job *array = guard_jobs_grown(jobs->job, &room, jobs->count, sizeof job);
    TOL_CHECK(array != NULL, TOL_OUT_OF_HOST_MEMORY, "%zu jobs", jobs->count + 1);
    jobs->job = array;
    size_t *order = room != jobs->room ? realloc(jobs->order, room * sizeof *order) : jobs->order;
    TOL_CHECK(order != NULL, TOL_OUT_OF_HOST_MEMORY, "%zu jobs", jobs->count + 1);
    jobs->order = order;
    jobs->room = room;
    TOL_TRY(guard_jobs_append(&job.work, bytes, count));
    job.work_sum = guard_sum(0, bytes, count);
    jobs->job[jobs->count++] = job;
out:
    return status;
}

/* ---- the journal ---- */

static void be_answered(struct guard_jobs *jobs, struct guard_job *job, bool is_failed) {
    job->stage = GUARD_IS_ANSWERED;
    job->is_failed = is_failed;
    jobs->failed += is_failed;
    jobs->order[jobs->answered++] = (size_t)(job - jobs->job);
    guard_jobs_drop(&job->work);
    guard_jobs_drop(&job->parts);
}

/* A record of an earlier guard. */
static tol_status guard_jobs_restore(void *user, const struct guard_record *record) {
    tol_status status = TOL_OK;
    struct guard_jobs *jobs = user;
    if (record->kind == GUARD_TAKEN) {
        TOL_CHECK(record->job == jobs->count + 1, TOL_INVALID_FILE,
                  "the journal has job %llu after job %zu", (unsigned long long)record->job,
                  jobs->count);
        return add_job(jobs, record->bytes, record->count);
    }
    TOL_CHECK(record->job >= 1 && record->job <= jobs->count && record->kind != GUARD_HEAD,
              TOL_INVALID_FILE, "the journal has a record of job %llu, which it lacks",
              (unsigned long long)record->job);
    struct guard_job *job = &jobs->job[record->job - 1];
    TOL_CHECK(job->stage != GUARD_IS_ANSWERED, TOL_INVALID_FILE,
              "the journal has a record of job %llu after its answer",
              (unsigned long long)record->job);
    if (record->kind == GUARD_LOST) {
        job->lost++;
    } else if (record->kind == GUARD_PART) {
        TOL_TRY(guard_jobs_append(&job->parts, record->bytes, record->count));
    } else {
        TOL_TRY(guard_jobs_append(&job->answer, record->bytes, record->count));
        be_answered(jobs, job, record->kind == GUARD_FAILED);
        jobs->restored++;
    }
out:
    return status;
}

/* Answers that the caller has need no memory. */
static tol_status skip_delivered(struct guard_jobs *jobs, uint64_t delivered) {
    tol_status status = TOL_OK;
    TOL_CHECK(delivered <= jobs->answered, TOL_MISMATCH,
              "%llu answers are there already, and the journal has %zu: it is another's",
              (unsigned long long)delivered, jobs->answered);
    for (; jobs->delivered < delivered; jobs->delivered++) {
        const size_t at = jobs->in_order ? jobs->delivered : jobs->order[jobs->delivered];
        TOL_CHECK(jobs->job[at].stage == GUARD_IS_ANSWERED, TOL_MISMATCH,
                  "%llu answers are there already, and the journal has none for job %zu",
                  (unsigned long long)delivered, at + 1);
        guard_jobs_drop(&jobs->job[at].answer);
    }
out:
    return status;
}

tol_status guard_jobs_open(struct guard_jobs *jobs, const struct tol_guard_options *options) {
    tol_status status = TOL_OK;
    *jobs = (struct guard_jobs){.in_order = options->in_order, .attempts = options->attempts};
    if (options->journal != NULL) {
        TOL_TRY(guard_journal_open(options->journal, options->is_synced, guard_jobs_restore, jobs,
                                   &jobs->journal));
        TOL_TRY(skip_delivered(jobs, options->delivered));
    }
out:
    return status;
}

void guard_jobs_clear(struct guard_jobs *jobs) {
    for (size_t i = 0; i < jobs->count; i++) {
        guard_jobs_drop(&jobs->job[i].work);
        guard_jobs_drop(&jobs->job[i].parts);
        guard_jobs_drop(&jobs->job[i].answer);
    }
    free(jobs->job);
    free(jobs->back);
    free(jobs->order);
    guard_journal_close(jobs->journal);
    *jobs = (struct guard_jobs){.job = NULL};
}

static tol_status guard_jobs_record(struct guard_jobs *jobs, enum guard_kind kind, uint64_t number,
                                    const void *bytes, size_t count) {
    if (jobs->journal == NULL) return TOL_OK;
    if (guard_jobs_planted == 3 && kind == GUARD_ANSWERED && number % 7 == 0) return TOL_OK;
    return guard_journal_add(jobs->journal, &(struct guard_record){kind, number, bytes, count});
}

/* ---- the life of a job ---- */

tol_status guard_jobs_submit(struct guard_jobs *jobs, const void *bytes, size_t count,
                             uint64_t *number) {
    tol_status status = TOL_OK;
    TOL_CHECK(count <= TOL_GUARD_BYTES_MAX, TOL_OVER_LIMIT, "a job of %zu bytes; at most %d", count,
              TOL_GUARD_BYTES_MAX);
    if (jobs->submitted < jobs->count) {
        const struct guard_job *known = &jobs->job[jobs->submitted];
        TOL_CHECK(known->work_count == count && known->work_sum == guard_sum(0, bytes, count),
                  TOL_MISMATCH,
                  "job %zu is not the journal's job %zu: start with the same jobs, or with another "
                  "journal",
                  jobs->submitted + 1, jobs->submitted + 1);
    } else {
        TOL_TRY(guard_jobs_record(jobs, GUARD_TAKEN, jobs->count + 1, bytes, count));
        TOL_TRY(add_job(jobs, bytes, count));
    }
    *number = ++jobs->submitted;
out:
    return status;
}

uint64_t guard_jobs_number(const struct guard_jobs *jobs, const struct guard_job *job) {
    return (uint64_t)(job - jobs->job) + 1;
}

struct guard_job *guard_jobs_next(struct guard_jobs *jobs, size_t device, bool is_alone) {
    struct guard_job *job = NULL;
    for (size_t i = 0; i < jobs->back_count && job == NULL; i++) {
        struct guard_job *back = &jobs->job[jobs->back[i]];
        if (back->lost_by == device && !is_alone) continue;
        if (back->stage == GUARD_WAITS) job = back; /* else it was found among the fresh */
        jobs->back[i--] = jobs->back[--jobs->back_count];
    }
    while (job == NULL && jobs->fresh < jobs->count) {
        struct guard_job *fresh = &jobs->job[jobs->fresh++];
        if (fresh->stage == GUARD_WAITS) job = fresh;
    }
    if (job != NULL) job->stage = GUARD_AT_WORKER;
    return job;
}

tol_status guard_jobs_keep(struct guard_jobs *jobs, struct guard_job *job, const void *bytes,
                           size_t count) {
    tol_status status = TOL_OK;
    TOL_CHECK(job->parts.count + count <= TOL_GUARD_BYTES_MAX, TOL_OVER_LIMIT,
              "parts of %zu bytes; at most %d", job->parts.count + count, TOL_GUARD_BYTES_MAX);
    TOL_TRY(guard_jobs_record(jobs, GUARD_PART, guard_jobs_number(jobs, job), bytes, count));
    TOL_TRY(guard_jobs_append(&job->parts, bytes, count));
out:
    return status;
}

tol_status guard_jobs_answer(struct guard_jobs *jobs, struct guard_job *job, bool is_failed,
                             const void *bytes, size_t count) {
    tol_status status = TOL_OK;
    struct guard_text answer = {.bytes = NULL};
    TOL_TRY(guard_jobs_append(&answer, bytes, count));
    TOL_TRY(guard_jobs_record(jobs, is_failed ? GUARD_FAILED : GUARD_ANSWERED,
                              guard_jobs_number(jobs, job), bytes, count));
    guard_jobs_drop(&job->answer);
    job->answer = answer;
    answer = (struct guard_text){.bytes = NULL};
    be_answered(jobs, job, is_failed);
out:
    guard_jobs_drop(&answer);
    return status;
}

tol_status guard_jobs_lose(struct guard_jobs *jobs, struct guard_job *job, size_t device,
                           uint64_t now_ns, const char *reason) {
    tol_status status = TOL_OK;
    char why[REASON_BYTES];
    size_t *back = guard_jobs_grown(jobs->back, &jobs->back_room, jobs->back_count, sizeof *back);
    TOL_CHECK(back != NULL, TOL_OUT_OF_HOST_MEMORY, "%zu jobs", jobs->back_count + 1);
    jobs->back = back;
    TOL_TRY(
        guard_jobs_record(jobs, GUARD_LOST, guard_jobs_number(jobs, job), reason, strlen(reason)));
    job->lost++;
    if (job->lost >= jobs->attempts) {
        const int length =
            snprintf(why, sizeof why, "it ended %u workers; the latest: %s", job->lost, reason);
        return guard_jobs_answer(jobs, job, true, why,
                                 (size_t)length < sizeof why ? (size_t)length : sizeof why - 1);
    }
    job->lost_by = device;
    job->lost_ns = now_ns;
    job->stage = GUARD_WAITS;
    if (guard_jobs_planted == 2 && guard_jobs_number(jobs, job) % 2 == 0) {
        be_answered(jobs, job, false);
        job->is_delivered = true;
        return TOL_OK;
    }
    jobs->back[jobs->back_count++] = (size_t)(job - jobs->job);
out:
    return status;
}

void guard_jobs_put_back(struct guard_jobs *jobs, uint64_t number) {
    if (number == 0) return;
    jobs->job[number - 1].stage = GUARD_WAITS;
    jobs->fresh = 0; /* looks through all again */
}

/* ---- delivery ---- */

tol_status guard_jobs_deliver(struct guard_jobs *jobs, const struct tol_guard_options *options) {
    tol_status status = TOL_OK;
    for (;;) {
        if (jobs->delivered == (jobs->in_order ? jobs->count : jobs->answered)) break;
        const size_t at = jobs->in_order ? jobs->delivered : jobs->order[jobs->delivered];
        struct guard_job *job = &jobs->job[at];
        if (job->stage != GUARD_IS_ANSWERED) break;
        const struct tol_guard_answer answer = {at + 1, job->is_failed, job->answer.bytes,
                                                job->answer.count};
        if (!job->is_delivered) TOL_TRY(options->deliver(options->user, &answer));
        if (guard_jobs_planted == 1 && at % 11 == 3) {
            TOL_TRY(options->deliver(options->user, &answer));
        }
        job->is_delivered = true;
        jobs->delivered++;
        guard_jobs_drop(&job->answer);
    }
out:
    return status;
}

bool guard_jobs_are_done(const struct guard_jobs *jobs) {
    return jobs->delivered == jobs->count;
}
