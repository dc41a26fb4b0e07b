/*
 * Attack, confirm.
 */
#include "trial.h"

#include "evidence.h"
#include "judge/verdict_judge.h"
#include "runner.h"

#include <stdio.h>

static struct hyp_task task_of(const struct hyp_run *run, const struct hyp_claim *claim,
                               const char *folder, struct hyp_progress *watch) {
    return (struct hyp_task){.claim = claim,
                             .session = &run->session,
                             .folder = folder,
                             .saboteur = run->under,
                             .seeds = run->seeds,
                             .watch = watch};
}

static void put_folder(const struct hyp_run *run, const struct hyp_claim *claim, char *folder,
                       size_t bytes) {
    snprintf(folder, bytes, "%s/%s", run->folder, claim->id);
}

/* Runs a falsified comparison once more. A violation needs no second run: one counterexample is
 * enough. */
static bool trial_confirm(struct hyp_run *run, const struct hyp_claim *claim,
                          struct hyp_progress *watch, struct hyp_verdict *verdict) {
    char folder[1000];
    struct hyp_verdict second;
    if (verdict->kind != HYP_FALSIFIED || !verdict->has_interval || hyp_runner_interrupted()) {
        return true;
    }
    snprintf(folder, sizeof folder, "%s/%s/confirm", run->folder, claim->id);
    const struct hyp_task task = {.claim = claim,
                                  .session = &run->session,
                                  .folder = folder,
                                  .saboteur = run->under,
                                  .watch = watch};
    if (!hyp_runner_run(&task, &second)) return false;
    hyp_verdict_confirm(verdict, &second);
    hyp_verdict_end(&second);
    return true;
}

size_t hyp_trial_steps(const struct hyp_run *run, const struct hyp_claim *claim) {
    const struct hyp_task task = {
        .claim = claim, .session = &run->session, .saboteur = run->under, .seeds = run->seeds};
    return claim->words != NULL ? hyp_runner_steps(&task) : 0;
}

bool hyp_trial_begin(struct hyp_run *run, const struct hyp_claim *claim) {
    char folder[1000];
    struct hyp_verdict *verdict = &run->verdicts[claim->number - 1];
    if (claim->words == NULL) {
        hyp_verdict_not_tested(verdict, "not_implemented", "not implemented yet");
        return true;
    }
    if (hyp_runner_interrupted()) {
        hyp_verdict_not_tested(verdict, "interrupted", "the run was interrupted");
        return true;
    }
    put_folder(run, claim, folder, sizeof folder);
    const struct hyp_task task = task_of(run, claim, folder, NULL);
    return hyp_runner_begin(&task, verdict);
}

bool hyp_trial_pass(struct hyp_run *run, const struct hyp_claim *claim, unsigned pass,
                    struct hyp_progress *watch) {
    char folder[1000];
    if (hyp_runner_interrupted()) return true;
    put_folder(run, claim, folder, sizeof folder);
    const struct hyp_task task = task_of(run, claim, folder, watch);
    return hyp_runner_pass(&task, &run->verdicts[claim->number - 1], pass);
}

/* Whether any attack was run, if not to its end. */
static bool has_begun(const struct hyp_verdict *verdict) {
    for (size_t i = 0; i < verdict->planned_count; i++) {
        const struct hyp_outcome *outcome = &verdict->outcomes[i];
        if (outcome->ending != HYP_NEVER_RAN || outcome->detail[0] != '\0') return true;
    }
    return false;
}

bool hyp_trial_end(struct hyp_run *run, const struct hyp_claim *claim, unsigned passes,
                   struct hyp_progress *watch) {
    char folder[1000];
    struct hyp_verdict *verdict = &run->verdicts[claim->number - 1];
    put_folder(run, claim, folder, sizeof folder);
    const struct hyp_task task = task_of(run, claim, folder, watch);
    if (hyp_runner_interrupted() && !has_begun(verdict)) {
        hyp_verdict_end(verdict);
        hyp_verdict_not_tested(verdict, "interrupted", "the run was interrupted");
    } else if (verdict->outcomes != NULL) {
        hyp_runner_end(&task, passes, verdict);
        if (!trial_confirm(run, claim, watch, verdict)) return false;
    }
    return hyp_evidence_claim(run, claim);
}
