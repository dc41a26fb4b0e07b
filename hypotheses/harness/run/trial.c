/*
 * Attack, confirm.
 */
#include "trial.h"

#include "evidence.h"
#include "runner.h"

#include <stdio.h>

static bool attack(struct hyp_run *run, const struct hyp_claim *claim, struct hyp_watch *watch,
                   struct hyp_verdict *verdict) {
    char folder[1000];
    snprintf(folder, sizeof folder, "%s/%s", run->folder, claim->id);
    const struct hyp_task task = {.claim = claim,
                                  .session = &run->session,
                                  .folder = folder,
                                  .saboteur = run->under,
                                  .seeds = run->seeds,
                                  .watch = watch};
    return hyp_runner_run(&task, verdict);
}

/* Runs a falsified comparison once more. A violation needs no second run: one counterexample is
 * enough. */
static bool confirm(struct hyp_run *run, const struct hyp_claim *claim, struct hyp_watch *watch,
                    struct hyp_verdict *verdict) {
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

bool hyp_trial_run(struct hyp_run *run, const struct hyp_claim *claim, struct hyp_watch *watch) {
    struct hyp_verdict *verdict = &run->verdicts[claim->number - 1];
    if (claim->words == NULL) {
        hyp_verdict_not_tested(verdict, "not_implemented", "not implemented yet");
    } else if (hyp_runner_interrupted()) {
        hyp_verdict_not_tested(verdict, "interrupted", "the run was interrupted");
    } else if (!attack(run, claim, watch, verdict) || !confirm(run, claim, watch, verdict)) {
        return false;
    }
    return hyp_evidence_claim(run, claim);
}
