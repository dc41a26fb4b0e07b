/*
 * Each saboteur of each claim is a job. Their results are counted in the order of claims.
 */
#include "severity.h"

#include "harness/clock.h"
#include "command.h"
#include "evidence.h"
#include "files/atomic_file.h"
#include "lanes.h"
#include "runner.h"
#include "harness/sabotage.h"

#include <stdio.h>
#include <stdlib.h>

/* A claim under one of its saboteurs. */
struct sabotage_job {
    const struct hyp_claim *claim;
    const struct hyp_saboteur *saboteur;
    bool is_last; /* of its claim */
    bool is_untried;
    uint64_t until_ns; /* when its attacks, all together, must have ended */
    double seconds;
    struct hyp_verdict sabotaged;
};

struct measure {
    struct hyp_run *run;
    struct hyp_progress *watch;
    hyp_severity_shown *show;
    struct sabotage_job *jobs;
};

static bool severity_attack(const struct measure *measure, const struct sabotage_job *job,
                            const struct hyp_session *session, struct hyp_verdict *verdict) {
    char folder[1000];
    snprintf(folder, sizeof folder, "%s/%s/sabotage/%s", measure->run->folder, job->claim->id,
             job->saboteur->name);
    const struct hyp_task task = {.claim = job->claim,
                                  .session = session,
                                  .folder = folder,
                                  .saboteur = job->saboteur->name,
                                  .seeds = 1,
                                  .first_is_enough = job->saboteur->forced == HYP_MUST_FALSIFY,
                                  .until_ns = job->until_ns,
                                  .watch = measure->watch};
    return hyp_runner_run(&task, verdict);
}

/* A saboteur that hangs does not take the time of later ones. The default is far above what any
 * needs on a slow and busy machine. */
static uint64_t severity_limit_s(const struct hyp_run *run) {
    if (run->saboteur_s > 0) return run->saboteur_s;
    return run->session.full ? 3600 : 600;
}

/* Whether a verdict is the one that the saboteur must force. */
static bool is_forced(enum hyp_forced forced, enum hyp_verdict_kind kind) {
    return forced == HYP_MUST_FALSIFY       ? kind == HYP_FALSIFIED
           : forced == HYP_MUST_NOT_FALSIFY ? kind != HYP_FALSIFIED
                                            : kind != HYP_SURVIVED;
}

static void count_sabotaged(const struct hyp_claim *claim, const struct hyp_saboteur *saboteur,
                            const struct hyp_verdict *sabotaged, bool right,
                            struct hyp_verdict *verdict) {
    if (saboteur->forced != HYP_MUST_FALSIFY) {
        verdict->borderline++;
        verdict->borderline_right += right;
    } else {
        verdict->caught += right;
        if (!right && hyp_verdict_could_not_tell(sabotaged)) {
            verdict->untold++;
            return;
        }
    }
    if (right) return;
    hyp_command_complain("%s was %s under %s, expected %s", claim->id,
                         hyp_verdict_words(sabotaged->kind), saboteur->name,
                         hyp_forced_words(saboteur->forced));
    hyp_command_next("%s run %s --under %s", hyp_command_program(), claim->id, saboteur->name);
}

/* Whether attacks that are not the whole claim's say what there is to say; else their verdict is
 * forgotten. */
static bool is_decided(const struct sabotage_job *job, struct hyp_verdict *verdict) {
    if (verdict->kind == HYP_FALSIFIED || hyp_runner_interrupted()) return true;
    if (hyp_clock_ns() >= job->until_ns) return true;
    hyp_verdict_end(verdict);
    return false;
}

/* Tries the quick attacks that are made for the saboteur, then all quick ones: the full ones have
 * more sizes, rounds and processes and would notice the same fault. The full ones run if the quick
 * ones noticed nothing or could not decide. In either mode one attack that notices is enough. */
static bool attack_sabotaged(const struct measure *measure, const struct sabotage_job *job,
                             struct hyp_verdict *verdict) {
    const struct hyp_session *session = &measure->run->session;
    struct hyp_session quick = *session;
    quick.full = false;
    if (job->saboteur->forced == HYP_MUST_FALSIFY) {
        quick.filter = hyp_claim_first_attacks(job->claim, job->saboteur->name);
        if (quick.filter != NULL) {
            if (!severity_attack(measure, job, &quick, verdict)) return false;
            if (is_decided(job, verdict)) return true;
            quick.filter = NULL;
        }
        if (session->full) {
            if (!severity_attack(measure, job, &quick, verdict)) return false;
            if (is_decided(job, verdict)) return true;
        }
    }
    return severity_attack(measure, job, session, verdict);
}

static bool severity_run_job(void *user, size_t number) {
    const struct measure *measure = user;
    struct sabotage_job *job = &measure->jobs[number];
    const uint64_t begin_ns = hyp_clock_ns();
    job->is_untried = hyp_runner_interrupted();
    if (job->is_untried) return true;
    job->until_ns = begin_ns + 1000000000u * severity_limit_s(measure->run);
    if (!attack_sabotaged(measure, job, &job->sabotaged)) return false;
    job->is_untried = hyp_runner_interrupted();
    job->seconds = (double)(hyp_clock_ns() - begin_ns) * 1e-9;
    return true;
}

/* Counts what came of a job and writes it down; with the last of a claim, the claim's evidence. */
static bool severity_take_job(void *user, size_t number) {
    const struct measure *measure = user;
    const struct sabotage_job *job = &measure->jobs[number];
    struct hyp_run *run = measure->run;
    struct hyp_verdict *verdict = &run->verdicts[job->claim->number - 1];
    char left[48];
    bool ok = true;
    verdict->has_severity = true;
    verdict->saboteurs += job->saboteur->forced == HYP_MUST_FALSIFY;
    hyp_progress_pause(measure->watch);
    if (!job->is_untried) {
        const bool right = is_forced(job->saboteur->forced, job->sabotaged.kind);
        count_sabotaged(job->claim, job->saboteur, &job->sabotaged, right, verdict);
        hyp_progress_sabotaged(measure->watch, job->claim->id, job->saboteur->name,
                               hyp_verdict_words(job->sabotaged.kind), right, job->seconds);
        ok = hyp_evidence_saboteur(run, job->claim, job->saboteur, &job->sabotaged, right);
    }
    if (job->is_last) {
        if (hyp_runner_interrupted()) verdict->has_severity = false; /* not all were tried */
        ok = ok && hyp_evidence_claim(run, job->claim);
        hyp_progress_left(measure->watch, left, sizeof left);
        if (ok) measure->show(run, job->claim, left);
    }
    hyp_progress_resume(measure->watch);
    return ok;
}

/* Lists the saboteurs of the claims that share the device, or of those that do not. */
static size_t severity_list_jobs(const struct hyp_run *run, bool alone, struct sabotage_job *jobs) {
    size_t listed = 0;
    for (size_t i = 0; i < hyp_claim_count(); i++) {
        const struct hyp_claim *claim = &hyp_claims()[i];
        size_t count = hyp_severity_steps(run, claim);
        const struct hyp_saboteur *saboteurs = hyp_claim_saboteurs(claim, &(size_t){0});
        if (hyp_claim_runs_alone(claim) != alone || run->verdicts[i].kind == HYP_NOT_TESTED) {
            continue;
        }
        for (size_t k = 0; k < count; k++, listed++) {
            if (jobs == NULL) continue;
            jobs[listed] = (struct sabotage_job){
                .claim = claim, .saboteur = &saboteurs[k], .is_last = k + 1 == count};
        }
    }
    return listed;
}

size_t hyp_severity_steps(const struct hyp_run *run, const struct hyp_claim *claim) {
    size_t saboteurs = 0;
    if (!run->sabotage || !run->chosen[claim->number - 1] || claim->words == NULL) return 0;
    (void)hyp_claim_saboteurs(claim, &saboteurs);
    return saboteurs;
}

bool hyp_severity_measure(struct hyp_run *run, struct hyp_progress *watch,
                          hyp_severity_shown *show) {
    bool ok = true;
    for (int alone = 0; ok && alone <= 1 && !hyp_runner_interrupted(); alone++) {
        struct measure measure = {.run = run, .watch = watch, .show = show};
        const size_t count = severity_list_jobs(run, alone, NULL);
        measure.jobs = calloc(count + 1, sizeof *measure.jobs);
        if (measure.jobs == NULL) return hyp_fail("out of memory for %zu saboteurs", count);
        (void)severity_list_jobs(run, alone, measure.jobs);
        hyp_progress_part(watch, count);
        ok = hyp_lanes_run(&(struct hyp_lanes){alone ? 1 : run->jobs, count, severity_run_job,
                                               severity_take_job, &measure});
        hyp_progress_part_end(watch);
        for (size_t i = 0; i < count; i++) hyp_verdict_end(&measure.jobs[i].sabotaged);
        free(measure.jobs);
    }
    return ok;
}
