/*
 * Attack, confirm, sabotage.
 */
#include "trial.h"

#include "harness/clock.h"
#include "command.h"
#include "evidence.h"
#include "limits.h"
#include "runner.h"
#include "harness/sabotage.h"

#include <stdio.h>

static bool attack(struct hyp_run *run, const struct hyp_session *session,
                   const struct hyp_claim *claim, const struct hyp_saboteur *saboteur,
                   struct hyp_watch *watch, struct hyp_verdict *verdict) {
    char folder[1000];
    if (saboteur == NULL) {
        snprintf(folder, sizeof folder, "%s/%s", run->folder, claim->id);
    } else {
        snprintf(folder, sizeof folder, "%s/%s/sabotage/%s", run->folder, claim->id,
                 saboteur->name);
    }
    const struct hyp_task task = {.claim = claim,
                                  .session = session,
                                  .folder = folder,
                                  .saboteur = saboteur != NULL ? saboteur->name : run->under,
                                  .seeds = saboteur != NULL ? 1 : run->seeds,
                                  .first_is_enough =
                                      saboteur != NULL && saboteur->forced == HYP_MUST_FALSIFY,
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

/* Tries the quick attacks first: the full ones have more sizes, rounds and processes and would
 * notice the same fault. The full ones run if the quick ones noticed nothing or could not
 * decide. In either mode one attack that notices is enough. */
static bool attack_sabotaged(struct hyp_run *run, const struct hyp_claim *claim,
                             const struct hyp_saboteur *saboteur, struct hyp_watch *watch,
                             struct hyp_verdict *verdict) {
    struct hyp_session quick = run->session;
    quick.full = false;
    if (run->session.full && saboteur->forced == HYP_MUST_FALSIFY) {
        if (!attack(run, &quick, claim, saboteur, watch, verdict)) return false;
        if (verdict->kind == HYP_FALSIFIED || hyp_runner_interrupted()) return true;
        hyp_verdict_end(verdict);
    }
    return attack(run, &run->session, claim, saboteur, watch, verdict);
}

/* Attacks the claim under each of its saboteurs, and counts how many are noticed. */
static bool measure_severity(struct hyp_run *run, const struct hyp_claim *claim,
                             struct hyp_watch *watch, struct hyp_verdict *verdict) {
    size_t count = 0;
    const struct hyp_saboteur *saboteurs = hyp_claim_saboteurs(claim, &count);
    verdict->has_severity = count > 0;
    for (size_t i = 0; i < count && !hyp_runner_interrupted(); i++) {
        struct hyp_verdict sabotaged;
        uint64_t begin_ns = hyp_clock_ns();
        verdict->saboteurs += saboteurs[i].forced == HYP_MUST_FALSIFY;
        if (!attack_sabotaged(run, claim, &saboteurs[i], watch, &sabotaged)) return false;
        if (hyp_runner_interrupted()) {
            hyp_verdict_end(&sabotaged);
            break;
        }
        bool right = is_forced(saboteurs[i].forced, sabotaged.kind);
        count_sabotaged(claim, &saboteurs[i], &sabotaged, right, verdict);
        hyp_watch_sabotaged(watch, claim->id, saboteurs[i].name, hyp_verdict_words(sabotaged.kind),
                            right, (double)(hyp_clock_ns() - begin_ns) * 1e-9);
        bool ok = hyp_evidence_saboteur(run, claim, &saboteurs[i], &sabotaged, right);
        hyp_verdict_end(&sabotaged);
        if (!ok) return false;
    }
    if (hyp_runner_interrupted()) verdict->has_severity = false; /* not all were tried */
    return true;
}

size_t hyp_trial_steps(const struct hyp_run *run, const struct hyp_claim *claim) {
    const struct hyp_task task = {
        .claim = claim, .session = &run->session, .saboteur = run->under, .seeds = run->seeds};
    return claim->words != NULL ? hyp_runner_steps(&task) : 0;
}

size_t hyp_trial_sabotages(const struct hyp_run *run, const struct hyp_claim *claim) {
    /* A search for a limit halves a ladder: about so many of its steps are tried. */
    enum { TRIED_OF_A_LADDER = 3 };
    const char *const *ladders = NULL;
    size_t saboteurs = 0;
    if (claim->words == NULL) return 0;
    (void)hyp_claim_saboteurs(claim, &saboteurs);
    return (run->sabotage ? saboteurs : 0) +
           (run->limits ? TRIED_OF_A_LADDER * hyp_claim_ladders(claim, &ladders) : 0);
}

bool hyp_trial_run(struct hyp_run *run, const struct hyp_claim *claim, struct hyp_watch *watch) {
    struct hyp_verdict *verdict = &run->verdicts[claim->number - 1];
    if (claim->words == NULL) {
        hyp_verdict_not_tested(verdict, "not_implemented", "not implemented yet");
    } else if (hyp_runner_interrupted()) {
        hyp_verdict_not_tested(verdict, "interrupted", "the run was interrupted");
    } else if (!attack(run, &run->session, claim, NULL, watch, verdict) ||
               !confirm(run, claim, watch, verdict)) {
        return false;
    }
    return hyp_evidence_claim(run, claim);
}

bool hyp_trial_sabotage(struct hyp_run *run, const struct hyp_claim *claim,
                        struct hyp_watch *watch) {
    struct hyp_verdict *verdict = &run->verdicts[claim->number - 1];
    if (verdict->kind == HYP_NOT_TESTED || hyp_runner_interrupted()) return true;
    if (run->sabotage && !measure_severity(run, claim, watch, verdict)) return false;
    /* Attacks that falsify the claim without a fault would seem to notice every one. */
    if (run->limits && verdict->kind != HYP_FALSIFIED && !hyp_limits_measure(run, claim, watch)) {
        return false;
    }
    return hyp_evidence_claim(run, claim);
}
