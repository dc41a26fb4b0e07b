/*
 * A step of a ladder counts as noticed if the claim is falsified under each of two seeds, because a
 * rare fault is placed by the seed and one seed may be lucky. Each ladder of each claim is a job;
 * its steps are tried one after another, because each depends on the previous one.
 */
#include "limits.h"

#include "evidence.h"
#include "files/atomic_file.h"
#include "harness/clock.h"
#include "harness/sabotage.h"
#include "lanes.h"
#include "runner.h"

#include <stdio.h>
#include <stdlib.h>

/* The search halves a ladder: about this many of its steps are tried. */
enum { SEEDS = 2, TRIED_OF_A_LADDER = 3 };

struct search {
    struct hyp_run *run;
    const struct hyp_claim *claim;
    struct hyp_progress *watch;
};

/* The verdict under a saboteur with one seed. */
static bool limits_attack(const struct search *search, const struct hyp_session *session,
                          const char *saboteur, struct hyp_verdict *verdict) {
    char folder[1000];
    snprintf(folder, sizeof folder, "%s/%s/limits/%s/%s%llu", search->run->folder,
             search->claim->id, saboteur, session->full ? "full" : "quick",
             (unsigned long long)session->seed);
    const struct hyp_task task = {.claim = search->claim,
                                  .session = session,
                                  .folder = folder,
                                  .saboteur = saboteur,
                                  .seeds = 1,
                                  .first_is_enough = true,
                                  .watch = search->watch};
    return hyp_runner_run(&task, verdict);
}

/* The quick attacks come first: what they notice, the full ones would. */
static bool try_seed(const struct search *search, const char *saboteur, uint64_t seed,
                     struct hyp_verdict *verdict) {
    struct hyp_session session = search->run->session;
    session.seed = seed;
    session.full = false;
    if (!limits_attack(search, &session, saboteur, verdict)) return false;
    if (!search->run->session.full || verdict->kind == HYP_FALSIFIED || hyp_runner_interrupted()) {
        return true;
    }
    hyp_verdict_end(verdict);
    session.full = true;
    return limits_attack(search, &session, saboteur, verdict);
}

static bool try_step(void *user, const char *saboteur, bool *noticed) {
    const struct search *search = user;
    const struct hyp_session *session = &search->run->session;
    const uint64_t begin_ns = hyp_clock_ns();
    *noticed = true;
    for (uint64_t i = 0; i < SEEDS && *noticed && !hyp_runner_interrupted(); i++) {
        struct hyp_verdict verdict;
        /* After the largest seed comes 0. */
        const uint64_t seed = (session->seed + i) & HYP_SEED_MAX;
        if (!try_seed(search, saboteur, seed, &verdict)) return false;
        *noticed = verdict.kind == HYP_FALSIFIED;
        bool ok = hyp_evidence_limit(search->run, search->claim, saboteur, seed, &verdict);
        hyp_verdict_end(&verdict);
        if (!ok) return false;
    }
    /* Of a step that was interrupted nothing is known. */
    if (hyp_runner_interrupted()) return true;
    hyp_progress_pause(search->watch);
    hyp_progress_limit(search->watch, search->claim->id, saboteur, *noticed,
                       (double)(hyp_clock_ns() - begin_ns) * 1e-9);
    hyp_progress_resume(search->watch);
    return true;
}

size_t hyp_limits_steps(const struct hyp_run *run, const struct hyp_claim *claim) {
    const char *const *ladders = NULL;
    if (!run->limits || claim->words == NULL) return 0;
    return TRIED_OF_A_LADDER * hyp_claim_ladders(claim, &ladders);
}

/* One ladder of a claim. */
struct ladder_job {
    const struct hyp_claim *claim;
    const char *ladder;
    bool is_last; /* of its claim */
    struct hyp_limit limit;
};

struct ladders {
    struct hyp_run *run;
    struct hyp_progress *watch;
    hyp_limits_shown *show;
    struct ladder_job *jobs;
};

static bool limits_run_job(void *user, size_t number) {
    const struct ladders *all = user;
    struct ladder_job *job = &all->jobs[number];
    struct search search = {all->run, job->claim, all->watch};
    struct hyp_ladder ladder;
    if (hyp_runner_interrupted()) return true;
    return hyp_ladder_read(job->ladder, &ladder) &&
           hyp_limit_search(&ladder, try_step, &search, &job->limit);
}

/* Keeps what came of a job; with the last of a claim, writes the claim's evidence. */
static bool limits_take_job(void *user, size_t number) {
    const struct ladders *all = user;
    const struct ladder_job *job = &all->jobs[number];
    struct hyp_verdict *verdict = &all->run->verdicts[job->claim->number - 1];
    verdict->limits[verdict->limit_count++] = job->limit;
    if (!job->is_last) return true;
    /* A ladder that was interrupted has no limit. */
    if (hyp_runner_interrupted()) verdict->limit_count = 0;
    verdict->has_limits = verdict->limit_count > 0;
    if (!hyp_evidence_claim(all->run, job->claim)) return false;
    hyp_progress_pause(all->watch);
    all->show(all->run, job->claim);
    hyp_progress_resume(all->watch);
    return true;
}

/* Lists the ladders of the claims that share the device, or of those that do not. */
static size_t limits_list_jobs(const struct hyp_run *run, bool alone, struct ladder_job *jobs) {
    size_t listed = 0;
    for (size_t i = 0; i < hyp_claim_count(); i++) {
        const struct hyp_claim *claim = &hyp_claims()[i];
        const enum hyp_verdict_kind kind = run->verdicts[i].kind;
        const char *const *ladders = NULL;
        if (!run->chosen[i] || claim->words == NULL || hyp_claim_runs_alone(claim) != alone ||
            kind == HYP_NOT_TESTED || kind == HYP_FALSIFIED) {
            continue;
        }
        const size_t count = hyp_claim_ladders(claim, &ladders);
        for (size_t k = 0; k < count; k++, listed++) {
            if (jobs == NULL) continue;
            jobs[listed] = (struct ladder_job){
                .claim = claim, .ladder = ladders[k], .is_last = k + 1 == count};
        }
    }
    return listed;
}

bool hyp_limits_measure(struct hyp_run *run, struct hyp_progress *watch, hyp_limits_shown *show) {
    bool ok = true;
    for (int alone = 0; ok && alone <= 1 && !hyp_runner_interrupted(); alone++) {
        struct ladders all = {.run = run, .watch = watch, .show = show};
        const size_t count = limits_list_jobs(run, alone, NULL);
        all.jobs = calloc(count + 1, sizeof *all.jobs);
        if (all.jobs == NULL) return hyp_fail("out of memory for %zu ladders", count);
        (void)limits_list_jobs(run, alone, all.jobs);
        hyp_progress_part(watch, TRIED_OF_A_LADDER * count);
        ok = hyp_lanes_run(&(struct hyp_lanes){alone ? 1 : run->jobs, count, limits_run_job,
                                               limits_take_job, &all});
        hyp_progress_part_end(watch);
        free(all.jobs);
    }
    return ok;
}
