/*
 * A step of a ladder counts as noticed if the claim is falsified under each of two seeds, because a
 * rare fault is placed by the seed and one seed may be lucky.
 */
#include "limits.h"

#include "evidence.h"
#include "harness/clock.h"
#include "harness/sabotage.h"
#include "runner.h"

#include <stdio.h>

enum { SEEDS = 2 };

struct search {
    struct hyp_run *run;
    const struct hyp_claim *claim;
    struct hyp_progress *watch;
};

/* The verdict under a saboteur with one seed. */
static bool attack(const struct search *search, const struct hyp_session *session,
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
    if (!attack(search, &session, saboteur, verdict)) return false;
    if (!search->run->session.full || verdict->kind == HYP_FALSIFIED || hyp_runner_interrupted()) {
        return true;
    }
    hyp_verdict_end(verdict);
    session.full = true;
    return attack(search, &session, saboteur, verdict);
}

static bool try_step(void *user, const char *saboteur, bool *noticed) {
    const struct search *search = user;
    const struct hyp_session *session = &search->run->session;
    const uint64_t begin_ns = hyp_clock_ns();
    *noticed = true;
    for (uint64_t i = 0; i < SEEDS && *noticed && !hyp_runner_interrupted(); i++) {
        struct hyp_verdict verdict;
        /* The seeds go round at the largest. */
        const uint64_t seed = (session->seed + i) & HYP_SEED_MAX;
        if (!try_seed(search, saboteur, seed, &verdict)) return false;
        *noticed = verdict.kind == HYP_FALSIFIED;
        bool ok = hyp_evidence_limit(search->run, search->claim, saboteur, seed, &verdict);
        hyp_verdict_end(&verdict);
        if (!ok) return false;
    }
    hyp_progress_clear(search->watch);
    hyp_progress_limit(search->watch, search->claim->id, saboteur, *noticed,
                       (double)(hyp_clock_ns() - begin_ns) * 1e-9);
    return true;
}

size_t hyp_limits_steps(const struct hyp_run *run, const struct hyp_claim *claim) {
    /* The search halves a ladder: about so many of its steps are tried. */
    enum { TRIED_OF_A_LADDER = 3 };
    const char *const *ladders = NULL;
    if (!run->limits || claim->words == NULL) return 0;
    return TRIED_OF_A_LADDER * hyp_claim_ladders(claim, &ladders);
}

bool hyp_limits_measure(struct hyp_run *run, const struct hyp_claim *claim,
                        struct hyp_progress *watch) {
    struct search search = {run, claim, watch};
    struct hyp_verdict *verdict = &run->verdicts[claim->number - 1];
    const char *const *ladders = NULL;
    if (verdict->kind == HYP_NOT_TESTED || verdict->kind == HYP_FALSIFIED) return true;
    const size_t count = hyp_claim_ladders(claim, &ladders);
    for (size_t i = 0; i < count && !hyp_runner_interrupted(); i++) {
        struct hyp_ladder ladder;
        if (!hyp_ladder_read(ladders[i], &ladder) ||
            !hyp_limit_search(&ladder, try_step, &search, &verdict->limits[i])) {
            return false;
        }
        verdict->limit_count = i + 1;
    }
    /* A ladder that was interrupted has no limit. */
    if (hyp_runner_interrupted()) verdict->limit_count = 0;
    verdict->has_limits = verdict->limit_count > 0;
    return hyp_evidence_claim(run, claim);
}
