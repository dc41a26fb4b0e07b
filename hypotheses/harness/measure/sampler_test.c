/*
 * The sampler over a machine that is made up, whose true effect is therefore known: how often the
 * verdict is wrong, and that an unfit machine gets none.
 */
#include "harness/sampler.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* A machine as real ones are: its speed drifts, it is slowed for a while now and then, single
 * batches are hit, and every batch has noise of its own. */
struct machine {
    uint64_t random;
    double drift;                              /* of the logarithm of its speed */
    double slowed;                             /* batches left of a slow spell */
    double ratio, added_ns;                    /* the truth: subject = ratio * baseline + added */
    double noise, drift_step, spells, strikes; /* how bad it is */
    double subject_noise;                      /* beyond the baseline's */
    double shared;                             /* how likely another has a turn in a microsecond */
    bool waits_are_counted;                    /* by the system */
    unsigned batches, fails_at;
    double control_bias; /* of the batches that act as the subject in the control */
    bool swapped;        /* the order that was drawn last */
};

static double uniform(struct machine *m) {
    m->random = m->random * 6364136223846793005u + 1442695040888963407u;
    return ((double)(m->random >> 11) + 0.5) * 0x1p-53;
}

/* Near enough to normal: the sum of four, made as wide. */
static double normal(struct machine *m) {
    double sum = -2;
    for (int i = 0; i < 4; i++) sum += uniform(m);
    return sum * 1.7320508;
}

static uint64_t draw(void *user) {
    struct machine *m = user;
    uint64_t value = (uint64_t)(uniform(m) * 0x1p53);
    m->swapped = value % 2 != 0;
    return value;
}

/* Whether the next batch acts as the subject in a control: four batches after four. */
static bool is_control_subject(const struct machine *m) {
    unsigned place = m->batches % 8;
    bool outer = place == 4 || place == 7;
    return place >= 4 && outer == m->swapped;
}

static double batch(void *user, enum hyp_side side, unsigned calls) {
    struct machine *m = user;
    m->drift = 0.98 * m->drift + m->drift_step * normal(m);
    if (m->slowed > 0) {
        m->slowed--;
    } else if (uniform(m) < m->spells) {
        m->slowed = 40 * uniform(m);
    }
    double ns = 1000.0 * calls * exp(m->drift + m->noise * normal(m)) * (m->slowed > 0 ? 1.3 : 1);
    if (uniform(m) < m->strikes) ns *= 1 + 5 * uniform(m);
    if (is_control_subject(m)) ns *= 1 + m->control_bias;
    if (side == HYP_SUBJECT) {
        ns = ns * m->ratio * exp(m->subject_noise * normal(m)) + m->added_ns * calls;
    }
    /* The longer a batch, the surer it is cut; the other's turn is as long as two of ours. */
    if (uniform(m) < 1 - exp(-m->shared * ns * 1e-3 / calls)) {
        if (m->waits_are_counted) hyp_sampler_waited(2 * ns);
        ns *= 3;
    }
    return ++m->batches == m->fails_at ? -1 : ns;
}

static const struct machine quiet = {.noise = 0.005, .drift_step = 0.001};
static const struct machine busy = {
    .noise = 0.03, .drift_step = 0.01, .spells = 0.002, .strikes = 0.01};

static struct hyp_pair pair_of_ratio(struct machine *machine) {
    return (struct hyp_pair){.name = "made_up",
                             .is_ratio = true,
                             .rule = {.threshold = 1.05, .direction = HYP_AT_MOST, .family = 1},
                             .calls = 50,
                             .batch = batch,
                             .user = machine};
}

/* As H4: at most 2 us a call. */
static struct hyp_pair pair_of_difference(struct machine *machine) {
    return (struct hyp_pair){.name = "made_up",
                             .scale = 1e-3,
                             .rule = {.threshold = 2, .direction = HYP_AT_MOST, .family = 1},
                             .calls = 32,
                             .batch = batch,
                             .user = machine};
}

static struct hyp_sample sample;

struct tally {
    unsigned holds, falls, open;
};

/* Many comparisons of a known truth, each on a machine of its own. */
static struct tally simulate(const struct machine *kind, double ratio, unsigned turns) {
    struct tally tally = {0};
    for (unsigned turn = 0; turn < turns; turn++) {
        struct machine machine = *kind;
        machine.random = 1000003u * (turn + 1) + (uint64_t)(ratio * 1e4);
        machine.ratio = ratio;
        struct hyp_pair pair = pair_of_ratio(&machine);
        cr_assert(hyp_sampler_run(&pair, draw, NULL, &machine, &sample));
        bool counts = sample.code[0] == '\0';
        tally.holds += counts && sample.decision == HYP_HOLDS;
        tally.falls += counts && sample.decision == HYP_FALLS;
        tally.open += !counts;
    }
    return tally;
}

/* Goal: at most 2.5 verdicts in a hundred are wrong on either side, for any true effect and however
 * busy the machine, and far from the threshold verdicts are reached. */
Test(sampler, wrong_verdicts_are_rarer_than_promised, .timeout = 600) {
    static const double truths[] = {1.00, 1.03, 1.05, 1.055, 1.08};
    enum { TURNS = 500 };
    for (int kind = 0; kind < 2; kind++) {
        for (size_t i = 0; i < sizeof truths / sizeof truths[0]; i++) {
            struct tally tally = simulate(kind == 0 ? &quiet : &busy, truths[i], TURNS);
            unsigned wrong = truths[i] <= 1.05 ? tally.falls : tally.holds;
            cr_log_info("%s machine, true ratio %.3f: %u hold, %u fall, %u open",
                        kind == 0 ? "quiet" : "busy", truths[i], tally.holds, tally.falls,
                        tally.open);
            cr_assert(wrong <= 0.025 * TURNS, "%.3f: %u of %d are wrong", truths[i], wrong, TURNS);
            if (truths[i] == 1.00) cr_assert(tally.holds >= 0.95 * TURNS, "%u hold", tally.holds);
            if (truths[i] == 1.08) cr_assert(tally.falls >= 0.95 * TURNS, "%u fall", tally.falls);
        }
    }
}

/* The same for six processes, each of which has an offset of its own that no number of blocks
 * inside one would show. */
Test(sampler, processes_with_offsets_of_their_own_do_not_mislead) {
    static const double truths[] = {1.00, 1.04, 1.05, 1.06, 1.10};
    enum { TURNS = 60 };
    for (size_t i = 0; i < sizeof truths / sizeof truths[0]; i++) {
        unsigned wrong = 0, right = 0;
        for (unsigned turn = 0; turn < TURNS; turn++) {
            double medians[HYP_PROCESSES];
            struct machine offsets = {.random = turn * 977 + i};
            struct hyp_pair pair = {0};
            for (int p = 0; p < HYP_PROCESSES; p++) {
                struct machine machine = quiet;
                machine.random = turn * 6151 + (uint64_t)p * 389 + 7;
                machine.ratio = truths[i] * (1 + 0.01 * normal(&offsets));
                pair = pair_of_ratio(&machine);
                cr_assert(hyp_sampler_run(&pair, draw, NULL, &machine, &sample));
                medians[p] = sample.effect.median;
            }
            enum hyp_decision decision = hyp_decide_processes(&pair.rule, medians, HYP_PROCESSES);
            enum hyp_decision truth = truths[i] <= 1.05 ? HYP_HOLDS : HYP_FALLS;
            wrong += decision != HYP_UNDECIDED && decision != truth;
            right += decision == truth;
        }
        /* At the threshold itself each side comes once in 64; 60 turns may well show three. */
        cr_assert(wrong <= (truths[i] == 1.05 ? 3 : 1), "%.2f: %u of %d", truths[i], wrong, TURNS);
        if (truths[i] == 1.00 || truths[i] == 1.10) cr_assert(right == TURNS, "%u", right);
    }
}

Test(sampler, a_difference_is_told_in_the_claims_unit) {
    struct machine machine = quiet;
    machine.ratio = 1;
    machine.added_ns = 500;
    struct hyp_pair pair = pair_of_difference(&machine);
    cr_assert(hyp_sampler_run(&pair, draw, NULL, &machine, &sample));
    cr_assert(fabs(sample.effect.median - 0.5) < 0.02, "%g us", sample.effect.median);
    cr_assert(fabs(sample.control.median) < 0.02, "%g us", sample.control.median);
    cr_assert(fabs(sample.baseline_ns - 1000) < 50 && fabs(sample.subject_ns - 1500) < 50);
    cr_assert(sample.decision == HYP_HOLDS && sample.count == 50 && sample.code[0] == '\0');
    machine.added_ns = 2500;
    cr_assert(hyp_sampler_run(&pair, draw, NULL, &machine, &sample));
    cr_assert(sample.decision == HYP_FALLS, "%g", sample.effect.low);
}

Test(sampler, the_order_is_drawn_and_both_orders_mean_the_same) {
    struct machine machine = quiet;
    unsigned swapped = 0;
    machine.ratio = 1.2;
    struct hyp_pair pair = pair_of_ratio(&machine);
    cr_assert(hyp_sampler_run(&pair, draw, NULL, &machine, &sample));
    for (size_t i = 0; i < sample.count; i++) {
        double effect = hyp_block_effect(&pair, &sample.blocks[i], false);
        swapped += sample.blocks[i].swapped;
        cr_assert(effect > 1.15 && effect < 1.25, "block %zu: %g", i, effect);
    }
    cr_assert(swapped > 10 && swapped < 40, "%u of %zu", swapped, sample.count);
}

/* A machine on which baseline batches differ from each other cannot judge others, however
 * noisy it is. */
Test(sampler, a_control_that_finds_something_forbids_a_verdict) {
    static const double noises[] = {0.005, 0.03, 0.1};
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct machine machine = quiet;
        machine.random = seed * 104729;
        machine.ratio = 1;
        machine.noise = noises[seed % 3];
        machine.control_bias = seed % 2 == 0 ? 0.04 : -0.04;
        struct hyp_pair pair = pair_of_ratio(&machine);
        cr_assert(hyp_sampler_run(&pair, draw, NULL, &machine, &sample));
        cr_assert_str_eq(sample.code, "unfit_control");
        cr_assert(!sample.is_steady && sample.count == HYP_BLOCKS_MAX &&
                  sample.sentence[0] != '\0');
    }
}

/* Six series in six processes have 36 controls, and noise that is the same everywhere must not let
 * one of them fail. Goal: at most one run in 20, where 800 blocks leave intervals 2 % wide. */
Test(sampler, a_control_does_not_fail_by_chance_in_a_run_of_many) {
    enum { RUNS = 60, CONTROLS = 36 };
    unsigned failed = 0;
    for (uint64_t run = 0; run < RUNS; run++) {
        bool is_fit = true;
        for (uint64_t i = 0; i < CONTROLS; i++) {
            struct machine machine = quiet;
            machine.random = (run * CONTROLS + i) * 15485863;
            machine.ratio = 1;
            machine.noise = 0.1;
            struct hyp_pair pair = pair_of_ratio(&machine);
            pair.rule.family = 6;
            cr_assert(hyp_sampler_run(&pair, draw, NULL, &machine, &sample));
            is_fit = is_fit && strcmp(sample.code, "unfit_control") != 0;
        }
        failed += !is_fit;
    }
    cr_assert(failed <= RUNS / 20, "%u of %d", failed, RUNS);
}

/* Noise so large that the control shows nothing shows nothing of the subject either. */
Test(sampler, noise_beyond_all_bounds_forbids_a_verdict) {
    struct machine machine = quiet;
    machine.ratio = 1;
    machine.noise = 0.4;
    struct hyp_pair pair = pair_of_ratio(&machine);
    cr_assert(hyp_sampler_run(&pair, draw, NULL, &machine, &sample));
    cr_assert(strncmp(sample.code, "unfit_", 6) == 0, "%s", sample.code);
    cr_assert(!sample.is_steady && sample.count == HYP_BLOCKS_MAX);
}

Test(sampler, blocks_that_disagree_forbid_a_verdict) {
    struct machine machine = quiet;
    machine.ratio = 0.5;
    machine.subject_noise = 0.6; /* the control stays quiet, and all blocks lie below 1.05 */
    struct hyp_pair pair = pair_of_ratio(&machine);
    cr_assert(hyp_sampler_run(&pair, draw, NULL, &machine, &sample));
    cr_assert(sample.decision == HYP_HOLDS && !sample.is_steady, "%g", sample.effect.spread);
    cr_assert_str_eq(sample.code, "unfit_spread");
}

/* A processor shared with others stretches what the subject does more, now once and now thrice: the
 * median of the blocks may lie above the threshold where the truth does not. */
Test(sampler, a_stretched_difference_does_not_make_a_claim_fall) {
    for (unsigned seed = 0; seed < 80; seed++) {
        struct machine machine = {.noise = 0.005, .random = seed, .added_ns = 1700, .shared = 0.2};
        machine.ratio = 1;
        machine.waits_are_counted = seed % 2 == 1;
        struct hyp_pair pair = pair_of_difference(&machine);
        cr_assert(hyp_sampler_run(&pair, draw, NULL, &machine, &sample));
        cr_assert(sample.code[0] != '\0' || sample.decision == HYP_HOLDS, "seed %u: %g to %g", seed,
                  sample.effect.low, sample.effect.high);
    }
}

/* Others' turns hide nothing where the system counts them. */
Test(sampler, a_shared_processor_does_not_hide_what_makes_a_claim_fall) {
    unsigned falls[2] = {0};
    for (unsigned seed = 0; seed < 80; seed++) {
        struct machine machine = {.noise = 0.005, .random = seed, .added_ns = 3000, .shared = 0.15};
        machine.ratio = 1;
        machine.waits_are_counted = seed % 2 == 1;
        struct hyp_pair pair = pair_of_difference(&machine);
        cr_assert(hyp_sampler_run(&pair, draw, NULL, &machine, &sample));
        if (sample.code[0] == '\0') falls[seed % 2] += sample.decision == HYP_FALLS;
    }
    cr_assert(falls[1] == 40 && falls[0] < 20, "%u and %u of 40", falls[1], falls[0]);
}

/* What costs the subject its processor is a cost of the subject, so the time without it is no
 * verdict; nor is the time with it, which may be another's fault. */
Test(sampler, with_and_without_others_turns_the_rule_must_decide_the_same) {
    struct machine machine = {.noise = 0.005, .added_ns = 1500, .shared = 0.6};
    machine.ratio = 1;
    machine.waits_are_counted = true;
    struct hyp_pair pair = pair_of_difference(&machine);
    cr_assert(hyp_sampler_run(&pair, draw, NULL, &machine, &sample));
    cr_assert(sample.effect.low > 2 && sample.own.high < 2, "%g, %g", sample.effect.low,
              sample.own.high);
    cr_assert(sample.decision == HYP_UNDECIDED && fabs(sample.own.median - 1.5) < 0.02);
    cr_assert_str_eq(sample.code, "undecided");
}

Test(sampler, what_lies_at_the_threshold_stays_undecided) {
    struct machine machine = quiet;
    machine.ratio = 1.05;
    machine.random = 3;
    struct hyp_pair pair = pair_of_ratio(&machine);
    cr_assert(hyp_sampler_run(&pair, draw, NULL, &machine, &sample));
    cr_assert(sample.count == HYP_BLOCKS_MAX && sample.decision == HYP_UNDECIDED);
    cr_assert_str_eq(sample.code, "undecided");
}

Test(sampler, a_call_that_fails_ends_it) {
    struct machine machine = quiet;
    machine.ratio = 1;
    machine.fails_at = 70;
    struct hyp_pair pair = pair_of_ratio(&machine);
    cr_assert(!hyp_sampler_run(&pair, draw, NULL, &machine, &sample));
    cr_assert(sample.count == 8 && sample.decision == HYP_UNDECIDED, "%zu", sample.count);
    cr_assert_str_eq(sample.code, "samples_lost");
    machine.batches = 0;
    machine.fails_at = 1;
    pair.warm_calls = 10;
    cr_assert(!hyp_sampler_run(&pair, draw, NULL, &machine, &sample), "in the warm-up");
}

Test(sampler, a_minimum_of_blocks_is_kept) {
    struct machine machine = quiet;
    machine.ratio = 1;
    struct hyp_pair pair = pair_of_ratio(&machine);
    pair.blocks_min = 100;
    cr_assert(hyp_sampler_run(&pair, draw, NULL, &machine, &sample));
    cr_assert(sample.count == 100 && sample.decision == HYP_HOLDS);
    machine.ratio = 1.05;
    pair.recorded_only = true;
    cr_assert(hyp_sampler_run(&pair, draw, NULL, &machine, &sample));
    cr_assert(sample.count == 100, "what is only recorded needs no verdict");
}

/* The system's count of waits and the clock are not read at the same moment. */
Test(sampler, a_wait_longer_than_its_batch_says_nothing) {
    struct machine machine = quiet;
    const struct hyp_pair pair = pair_of_ratio(&machine);
    struct hyp_block block = {.ns = {100, 110, 120, 100}};
    cr_assert_eq(hyp_block_own_effect(&pair, &block), hyp_block_effect(&pair, &block, false));
    block.waited_ns[1] = 10;
    cr_assert_eq(hyp_block_own_effect(&pair, &block), 220.0 / 200);
    for (int i = 0; i < 4; i++) block.waited_ns[i] = 150;
    cr_assert_eq(hyp_block_own_effect(&pair, &block), 230.0 / 200);
    block.ns[2] = -1;
    cr_assert(isnan(hyp_block_own_effect(&pair, &block)), "a batch that failed has no effect");
    for (int i = 0; i < 4; i++) {
        struct hyp_block failed = {.ns = {100, 110, 120, 100}};
        failed.ns[i] = -1;
        cr_assert(isnan(hyp_block_effect(&pair, &failed, false)), "batch %d", i);
    }
}
