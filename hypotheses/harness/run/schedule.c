/*
 * Neighbours that can share the device are one part of the run; every other claim is one alone.
 */
#include "schedule.h"

#include "console.h"
#include "lanes.h"
#include "limits.h"
#include "runner.h"
#include "severity.h"
#include "trial.h"
#include "watch.h"

#include <stdio.h>

struct part {
    struct hyp_run *run;
    struct hyp_watch *watch;
    const struct hyp_claim *claims[HYP_CLAIMS_MAX];
    size_t count;
};

/* The chosen claims from *next on that run together. Moves *next behind them. */
static void collect(struct part *part, size_t *next) {
    part->count = 0;
    for (; *next < hyp_claim_count(); (*next)++) {
        const struct hyp_claim *claim = &hyp_claims()[*next];
        if (!part->run->chosen[*next]) continue;
        const bool alone = hyp_claim_runs_alone(claim);
        if (alone && part->count > 0) return;
        part->claims[part->count++] = claim;
        if (!alone) continue;
        (*next)++;
        return;
    }
}

static bool try_claim(void *user, size_t job) {
    const struct part *part = user;
    return hyp_trial_run(part->run, part->claims[job], part->watch);
}

static bool tell_verdict(void *user, size_t job) {
    const struct part *part = user;
    char left[48];
    hyp_watch_pause(part->watch);
    hyp_watch_verdict(part->watch, part->run->verdicts[part->claims[job]->number - 1].kind);
    hyp_watch_left(part->watch, left, sizeof left);
    hyp_console_verdict(part->run, part->claims[job], left);
    hyp_watch_resume(part->watch);
    return true;
}

static bool find_verdicts(struct hyp_run *run, struct hyp_watch *watch) {
    static struct part part;
    bool ok = true;
    part = (struct part){.run = run, .watch = watch};
    for (size_t next = 0; ok && next < hyp_claim_count();) {
        size_t steps = 0;
        collect(&part, &next);
        for (size_t i = 0; i < part.count; i++) steps += hyp_trial_steps(run, part.claims[i]);
        hyp_watch_part(watch, steps);
        ok = hyp_lanes_run(
            &(struct hyp_lanes){run->jobs, part.count, try_claim, tell_verdict, &part});
        hyp_watch_part_end(watch);
    }
    return ok;
}

static bool find_limits(struct hyp_run *run, struct hyp_watch *watch) {
    bool ok = true;
    for (size_t i = 0; ok && i < hyp_claim_count() && !hyp_runner_interrupted(); i++) {
        const struct hyp_claim *claim = &hyp_claims()[i];
        const size_t steps = run->chosen[i] ? hyp_limits_steps(run, claim) : 0;
        if (steps == 0) continue;
        hyp_watch_part(watch, steps);
        ok = hyp_limits_measure(run, claim, watch);
        hyp_watch_part_end(watch);
        if (ok) hyp_console_limits(run, claim);
    }
    return ok;
}

bool hyp_schedule_run(struct hyp_run *run, bool verbose) {
    struct hyp_watch watch;
    size_t steps = 0, behind = 0;
    for (size_t i = 0; i < hyp_claim_count(); i++) {
        const struct hyp_claim *claim = &hyp_claims()[i];
        if (!run->chosen[i]) continue;
        steps += hyp_trial_steps(run, claim);
        behind += hyp_severity_steps(run, claim) + hyp_limits_steps(run, claim);
    }
    hyp_watch_begin(&watch, stderr, steps + behind, verbose);
    bool ok = find_verdicts(run, &watch);
    if (ok && behind > 0) hyp_console_say("\n");
    ok = ok && (!run->sabotage || hyp_severity_measure(run, &watch, hyp_console_severity));
    ok = ok && (!run->limits || find_limits(run, &watch));
    hyp_watch_end(&watch);
    return ok;
}
