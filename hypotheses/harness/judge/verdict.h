/*
 * Verdict: the conclusion from what the attacks found.
 *
 * A claim is never proved: it survived these attacks, on this machine, today. A missing device
 * gives "not tested", a crashed worker "inconclusive"; neither is a pass.
 */
#ifndef HYP_VERDICT_H
#define HYP_VERDICT_H

#include "harness/claim.h"
#include "limit.h"
#include "record/record.h"

enum hyp_verdict_kind { HYP_SURVIVED, HYP_FALSIFIED, HYP_INCONCLUSIVE, HYP_NOT_TESTED };

/* How the process of one attack ended, as its runner saw it. */
enum hyp_ending {
    HYP_NEVER_RAN,
    HYP_PASSED,
    HYP_FAILED,
    HYP_SKIPPED,
    HYP_CRASHED, /* by a signal, or an unexpected exit */
    HYP_OVERDUE  /* killed at its deadline */
};

struct hyp_outcome {
    char name[96];
    unsigned process; /* which of the claim's fresh processes, from 1 */
    uint64_t seed;    /* of its random choices */
    char folder[32];  /* below the claim's: "", "process2", "seed7" */
    enum hyp_ending ending;
    char detail[512]; /* of a crash: the signal; of a failure without a record: the assertion */
    bool has_record;
    struct hyp_record record; /* when has_record; without series */
};

struct hyp_verdict {
    enum hyp_verdict_kind kind;
    char code[32];    /* of the reason, "worker_crashed"; "" if survived or falsified */
    char reason[768]; /* or the first counterexample; "" if survived */
    bool broken;      /* the harness failed, not the claim: exit code 2 */
    bool has_effect;
    double effect;
    char label[32];    /* how an attack differs from the claim, "scaled"; "": it does not */
    bool has_interval; /* of a timed claim */
    double low, high;
    unsigned processes; /* the number of fresh processes; fewer than 6 is labelled */
    unsigned seeds;     /* the number of seeds that a claim without times was attacked with */
    bool has_worst_seed;
    uint64_t worst_seed; /* of the first violation, or of the worst number */
    uint64_t samples;
    double duration_s;
    bool has_severity;
    unsigned caught, saboteurs; /* of those under which the claim must be falsified */
    unsigned untold;            /* of them, where the machine could not decide: not a miss */
    unsigned borderline, borderline_right; /* of the borderline pair */
    bool has_limits;
    struct hyp_limit limits[HYP_CLAIM_LADDERS_MAX]; /* the smallest faults that were noticed */
    size_t limit_count;
    struct hyp_outcome *outcomes;          /* the attacks, in the order they ran; owned */
    size_t outcome_count;
    size_t planned_count;   /* of outcomes after all seeds; the capacity of outcomes */
    unsigned planned_seeds; /* their number */
    size_t left_out; /* attacks left out by --filter; if any, the claim cannot survive */
};

/* "survived", "not_tested": for results.json. */
const char *hyp_verdict_name(enum hyp_verdict_kind kind);
/* "survived", "not tested": for people. */
const char *hyp_verdict_words(enum hyp_verdict_kind kind);

/* Whether a claim is inconclusive because the machine could not decide: it was unfit, or the
 * effect is too close to the threshold. */
bool hyp_verdict_could_not_tell(const struct hyp_verdict *verdict);

/* Sets the verdict of a claim that was not attacked. */
void hyp_verdict_not_tested(struct hyp_verdict *verdict, const char *code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Sets the kind, the code and the reason. */
void hyp_verdict_set(struct hyp_verdict *verdict, enum hyp_verdict_kind kind, const char *code,
                     const char *format, ...) __attribute__((format(printf, 4, 5)));

void hyp_verdict_end(struct hyp_verdict *verdict);

#endif
