/*
 * Verdict: what follows from what the attacks found, and no more.
 *
 * A claim is never proved: it survived this attack, here, today. No device is no pass, and neither
 * is a worker that crashed: the first is "not tested", the second "inconclusive".
 */
#ifndef HYP_VERDICT_H
#define HYP_VERDICT_H

#include "harness/claim.h"
#include "record/record.h"

enum hyp_verdict_kind { HYP_SURVIVED, HYP_FALSIFIED, HYP_INCONCLUSIVE, HYP_NOT_TESTED };

/* How the process of one attack ended, as its runner saw it. */
enum hyp_ending {
    HYP_NEVER_RAN,
    HYP_PASSED,
    HYP_FAILED,
    HYP_SKIPPED,
    HYP_CRASHED, /* a signal, or an exit it should not have made */
    HYP_OVERDUE  /* killed at its deadline */
};

struct hyp_outcome {
    char name[96];
    unsigned process; /* which of the claim's fresh processes, from 1 */
    enum hyp_ending ending;
    char detail[512]; /* of a crash: the signal; of a failure without a record: the assertion */
    bool has_record;
    struct hyp_record record; /* when has_record; without series */
};

struct hyp_verdict {
    enum hyp_verdict_kind kind;
    char code[32];    /* the reason's code, "worker_crashed"; "" when it survived or fell */
    char reason[768]; /* the reason, or the first counterexample; "" when it survived */
    bool broken;      /* the harness failed, and not the claim: exit code 2 */
    bool has_effect;
    double effect;
    char label[32];    /* how an attack differs from what the claim says, "scaled"; "": none does */
    bool has_interval; /* of a timed claim */
    double low, high;
    unsigned processes; /* how many fresh ones the attacks ran in; fewer than 6 is labelled */
    uint64_t samples;
    double duration_s;
    bool has_severity;
    unsigned caught, saboteurs;            /* of those under which the claim must be falsified */
    unsigned untold;                       /* of them, where the machine could not tell: no miss */
    unsigned borderline, borderline_right; /* those close to the threshold */
    struct hyp_outcome *outcomes;          /* the attacks, in the order they ran; owned */
    size_t outcome_count;
    size_t left_out; /* attacks that --filter left out: without them no claim survives */
};

/* "survived", "not_tested": as results.json has it. */
const char *hyp_verdict_name(enum hyp_verdict_kind kind);
/* "survived", "not tested": for people. */
const char *hyp_verdict_words(enum hyp_verdict_kind kind);

/* Whether a claim is inconclusive because this machine, at this time, could not tell: it is unfit,
 * or the effect is too close to the threshold. */
bool hyp_verdict_could_not_tell(const struct hyp_verdict *verdict);

/* Judges the outcomes in verdict->outcomes. findings is how many lines the soft device's own report
 * has: accesses it objected to although no attack meant them. */
void hyp_verdict_judge(const struct hyp_claim *claim, size_t findings, struct hyp_verdict *verdict);

/* A verdict without an attack. */
void hyp_verdict_not_tested(struct hyp_verdict *verdict, const char *code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Judges what a timed claim's attacks compared, after all else was found in order. */
void hyp_verdict_judge_effects(const struct hyp_claim *claim, struct hyp_verdict *verdict);

/*
 * What a falsified comparison comes to after a second run of the same: one may be chance, or a
 * machine that was disturbed, so a fresh process must find the same before a claim is red.
 */
void hyp_verdict_confirm(struct hyp_verdict *verdict, const struct hyp_verdict *second);

/* Sets the kind, the code and the reason. */
void hyp_verdict_set(struct hyp_verdict *verdict, enum hyp_verdict_kind kind, const char *code,
                     const char *format, ...) __attribute__((format(printf, 4, 5)));

void hyp_verdict_end(struct hyp_verdict *verdict);

#endif
