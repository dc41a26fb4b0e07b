/*
 * Neighbours that can share the device are one part of the run; every other claim is one alone.
 */
#include "schedule.h"

#include "console.h"
#include "files/atomic_file.h"
#include "lanes.h"
#include "limits.h"
#include "runner.h"
#include "severity.h"
#include "trial.h"
#include "progress.h"

#include <stdlib.h>

/* One process with attacks of a claim; or, without a pass, a claim that has none. */
struct job {
    const struct hyp_claim *claim;
    unsigned pass;
    bool has_pass, is_last; /* of its claim and phase */
};

/* Claims that are tried together, with the first seed or with all others. */
struct part {
    struct hyp_run *run;
    struct hyp_progress *watch;
    bool others;
    const struct hyp_claim *claims[HYP_CLAIMS_MAX];
    size_t count;
    struct job *jobs;
    size_t job_count;
};

/* The passes of a claim in the part's phase: from *first to the returned end. Those of a claim
 * about times are processes of one verdict and belong together. */
static unsigned schedule_passes_of(const struct part *part, const struct hyp_claim *claim,
                                   unsigned *first) {
    const struct hyp_verdict *verdict = &part->run->verdicts[claim->number - 1];
    const bool seeds = verdict->planned_seeds > 1;
    const unsigned all = verdict->outcomes != NULL ? hyp_runner_passes(verdict) : 0;
    *first = part->others ? (seeds ? 1 : all) : 0;
    return part->others || !seeds ? all : 1;
}

/* Whether the part's phase has something to do for a claim. */
static bool schedule_has_work(const struct part *part, const struct hyp_claim *claim) {
    unsigned first;
    return !part->others || schedule_passes_of(part, claim, &first) > first;
}

/* The chosen claims from *next on that run together. Moves *next past them. */
static void schedule_collect(struct part *part, size_t *next) {
    part->count = 0;
    for (; *next < hyp_claim_count(); (*next)++) {
        const struct hyp_claim *claim = &hyp_claims()[*next];
        if (!part->run->chosen[*next] || !schedule_has_work(part, claim)) continue;
        const bool alone = hyp_claim_runs_alone(claim);
        if (alone && part->count > 0) return;
        part->claims[part->count++] = claim;
        if (!alone) continue;
        (*next)++;
        return;
    }
}

/* Begins or continues the trials of a part, and lists the passes. */
static bool schedule_list_jobs(struct part *part) {
    part->job_count = 0;
    for (size_t i = 0; i < part->count; i++) {
        unsigned first;
        if (!part->others && !hyp_trial_begin(part->run, part->claims[i])) return false;
        const unsigned end = schedule_passes_of(part, part->claims[i], &first);
        const bool has_pass = end > first;
        const unsigned jobs = has_pass ? end - first : 1;
        struct job *more = realloc(part->jobs, (part->job_count + jobs) * sizeof *more);
        if (more == NULL) return hyp_fail("out of memory for %u passes", jobs);
        part->jobs = more;
        for (unsigned job = 0; job < jobs; job++) {
            part->jobs[part->job_count++] =
                (struct job){part->claims[i], first + job, has_pass, job + 1 == jobs};
        }
    }
    return true;
}

static bool schedule_run_pass(void *user, size_t number) {
    const struct part *part = user;
    const struct job *job = &part->jobs[number];
    return !job->has_pass || hyp_trial_pass(part->run, job->claim, job->pass, part->watch);
}

/* The last pass of a claim is taken after all its others: then the claim has its verdict. */
static bool take_pass(void *user, size_t number) {
    const struct part *part = user;
    const struct job *job = &part->jobs[number];
    const struct hyp_verdict *verdict = &part->run->verdicts[job->claim->number - 1];
    const int was = part->others ? (int)verdict->kind : -1;
    char left[48];
    if (!job->is_last) return true;
    if (!hyp_trial_end(part->run, job->claim, job->pass + 1, part->watch)) return false;
    hyp_progress_pause(part->watch);
    hyp_progress_verdict(part->watch, was, (int)verdict->kind);
    hyp_progress_left(part->watch, left, sizeof left);
    hyp_console_verdict(part->run, job->claim, left);
    hyp_progress_resume(part->watch);
    return true;
}

/* The number of attacks of the part. */
static size_t count_steps(const struct part *part) {
    size_t steps = 0;
    for (size_t i = 0; i < part->job_count; i++) {
        const struct job *job = &part->jobs[i];
        const struct hyp_verdict *verdict = &part->run->verdicts[job->claim->number - 1];
        if (job->has_pass) steps += verdict->planned_count / hyp_runner_passes(verdict);
    }
    return steps;
}

static bool run_phase(struct part *part) {
    bool ok = true;
    for (size_t next = 0; ok && next < hyp_claim_count();) {
        schedule_collect(part, &next);
        if (part->count == 0) break;
        const bool alone = part->count == 1 && hyp_claim_runs_alone(part->claims[0]);
        ok = schedule_list_jobs(part);
        hyp_progress_part(part->watch, count_steps(part));
        ok = ok && hyp_lanes_run(&(struct hyp_lanes){alone ? 1 : part->run->jobs, part->job_count,
                                                     schedule_run_pass, take_pass, part});
        hyp_progress_part_end(part->watch);
    }
    return ok;
}

/* Whether a chosen claim is to be tried with more seeds than the first. */
static bool has_others(const struct hyp_run *run) {
    for (size_t i = 0; i < hyp_claim_count(); i++) {
        if (run->chosen[i] && run->verdicts[i].planned_seeds > 1) return true;
    }
    return false;
}

/* All claims have a verdict under the first seed before any is tried with another: a user who waits
 * sees the whole table early. */
static bool find_verdicts(struct hyp_run *run, struct hyp_progress *watch) {
    static struct part part;
    char seeds[64];
    part = (struct part){.run = run, .watch = watch};
    bool ok = run_phase(&part);
    if (ok && has_others(run) && !hyp_runner_interrupted()) {
        hyp_console_say("\nWith %s\n", hyp_run_seeds(run, seeds, sizeof seeds));
        part.others = true;
        ok = run_phase(&part);
    }
    free(part.jobs);
    return ok;
}

bool hyp_schedule_run(struct hyp_run *run, bool verbose) {
    struct hyp_progress watch;
    size_t steps = 0, later = 0;
    for (size_t i = 0; i < hyp_claim_count(); i++) {
        const struct hyp_claim *claim = &hyp_claims()[i];
        if (!run->chosen[i]) continue;
        steps += hyp_trial_steps(run, claim);
        later += hyp_severity_steps(run, claim) + hyp_limits_steps(run, claim);
    }
    hyp_progress_begin(&watch, stderr, steps + later, verbose);
    bool ok = find_verdicts(run, &watch);
    if (ok && later > 0) hyp_console_say("\n");
    ok = ok && (!run->sabotage || hyp_severity_measure(run, &watch, hyp_console_severity));
    ok = ok && (!run->limits || hyp_limits_measure(run, &watch, hyp_console_limits));
    hyp_progress_end(&watch);
    return ok;
}
