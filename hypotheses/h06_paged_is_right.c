/*
 * H6's attacks on attention over paged sequences (kernels/attention_paged): prompts whose keys and
 * values are in pages of every size and layout, in no order, some of NaN and infinities, which must
 * have no effect on the others.
 */
#include "attack/accuracy.h"
#include "harness/attack.h"
#include "harness/claim.h"
#include "harness/sabotage.h"
#include "attention_paged/attention_paged_trial.h"

#include <stdio.h>
#include <string.h>

/* What describes a trial in the error table. */
static const char columns[] =
    "distribution,values,scale,causal,window,sequences,heads,kv_heads,rows,keys,head_size,inside,"
    "gap,skew,page,layout,seed";

enum { SEQUENCES_MAX = 5 };

/* A problem with the places that its pointers name. */
struct paged_problem {
    struct kn_attention_paged_trial trial;
    int q_begins[SEQUENCES_MAX + 1], kv_begins[SEQUENCES_MAX + 1];
    bool is_poisoned[SEQUENCES_MAX];
};

static bool is_hopper(const struct hyp_attack *attack) {
    return tol_context_device(attack->context)->compute_capability == 90;
}

/* Under a saboteur called paged_DEFECT all problems that the kernel of that defect serves are
 * solved by it. On devices other than those of compute capability 9.0 a table repeats a page. */
static void plant(const struct hyp_attack *attack, struct kn_attention_paged_trial *trial) {
    const char *mistake = hyp_sabotage_mistake(attack->session.sabotage, "paged");
    const struct kn_attention_packed_trial *t = &trial->sequences;
    const struct kn_attention *x = &t->packed.attention;
    if (mistake == NULL || x->type != KN_F16 || x->head_size != 64) return;
    if (t->skew != 0 || t->gap % 8 != 0 || trial->layout == KN_PAGED_PIECES) return;
    if (!is_hopper(attack)) {
        trial->repeats_page = (size_t)(t->kv_begins[1] - t->kv_begins[0]) > trial->page_positions;
        return;
    }
    trial->variants = &kn_attention_paged_defects, trial->variant = mistake;
}

static void try_one(struct hyp_accuracy *accuracy, struct kn_attention_paged_trial *trial) {
    static const char *const layouts[KN_PAGED_LAYOUTS] = {"around", "inside", "pieces"};
    char path[40], text[400];
    struct hyp_attack *attack = accuracy->attack;
    struct kn_attention_packed_outcome outcome;
    struct kn_attention_packed_trial *t = &trial->sequences;
    const struct kn_attention *x = &t->packed.attention;
    snprintf(path, sizeof path, "%s paged %s", kn_type_name(x->type),
             trial->variant != NULL ? trial->variant : "chosen");
    t->seed = hyp_random(attack);
    plant(attack, trial);
    if (!HYP_OK(attack,
                kn_attention_paged_try(accuracy->kernels, accuracy->stream, trial, &outcome))) {
        return;
    }
    hyp_error_table_add(&accuracy->errors, path, &outcome.out,
                        "%s,%s,%g,%d,%zu,%zu,%zu,%zu,%zu,%zu,%zu,%d,%zu,%zu,%zu,%s,%llu",
                        kn_distribution_name(t->distribution), kn_distribution_name(t->values),
                        t->scale, (int)x->causal, x->window, x->batch, x->heads, x->kv_heads,
                        t->packed.q_rows, t->packed.kv_rows, x->head_size, (int)t->heads_inside,
                        t->gap, t->skew, trial->page_positions, layouts[trial->layout],
                        (unsigned long long)t->seed);
    HYP_CHECK(attack, outcome.lse.failed == 0, "%s, %zu sequences: logarithms: %s", path, x->batch,
              kn_deviation_text(&outcome.lse, text, sizeof text));
    HYP_CHECK(attack, outcome.touched == 0, "%s, %zu sequences: %zu bytes of none changed", path,
              x->batch, outcome.touched);
}

/* Begins of sequences of drawn lengths, behind up to three rows of none; three of none follow. The
 * first of them has `first` rows, unless that is 0. */
static void draw_lengths(struct hyp_attack *attack, size_t sequences, size_t first, int *begins,
                         size_t *longest, size_t *rows) {
    static const int lengths[] = {0, 1, 2, 9, 31, 48, 63, 64, 65, 100, 127, 128, 129, 150, 200};
    enum { LENGTHS = sizeof lengths / sizeof lengths[0] };
    begins[0] = (int)hyp_random_below(attack, 4), *longest = 0;
    for (size_t i = 0; i < sequences; i++) {
        const int length =
            i == 0 && first > 0 ? (int)first : lengths[hyp_random_below(attack, LENGTHS)];
        begins[i + 1] = begins[i] + length;
        if ((size_t)length > *longest) *longest = (size_t)length;
    }
    *rows = (size_t)begins[sequences] + 3;
}

static size_t draw_head_size(struct hyp_attack *attack, const char *variant) {
    static const size_t sizes[] = {64, 96, 128, 256};
    if (variant != NULL && strcmp(variant, "naive") == 0) return 1 + hyp_random_below(attack, 130);
    if (variant != NULL && variant[0] == 'w' && hyp_random_below(attack, 2) == 0) {
        return 8 * (1 + hyp_random_below(attack, 16));
    }
    return sizes[hyp_random_below(attack, 4)];
}

/* The first problem of a kernel is one that its defects need: a sequence whose rows are for two
 * warpgroups, and whose keys fill two stages and begin a third tile, which ends inside a page; then
 * one of NaN and infinities. */
static void draw(struct hyp_attack *attack, enum kn_type type, const char *variant, bool is_first,
                 struct paged_problem *p) {
    const bool any = variant != NULL && strcmp(variant, "naive") == 0;
    const bool takes_maps = variant != NULL && variant[0] == 'w';
    const size_t kv_heads = 1 + hyp_random_below(attack, 2);
    const size_t sequences = is_first ? 2 : 1 + hyp_random_below(attack, SEQUENCES_MAX);
    const bool causal = !is_first && hyp_random_below(attack, 2) == 0;
    const bool is_aligned = is_first || !any || hyp_random_below(attack, 2) == 0;
    const enum kn_distribution distribution =
        is_first ? KN_NORMAL : hyp_random_below(attack, KN_DISTRIBUTIONS);
    const enum kn_distribution values = is_first ? KN_UNIFORM : distribution;
    const size_t first_q = 66 + hyp_random_below(attack, 20);
    const size_t first_kv = 260 + 16 * hyp_random_below(attack, 3) + hyp_random_below(attack, 8);
    size_t longest_q, longest_kv, q_rows, kv_rows;
    *p = (struct paged_problem){.is_poisoned[0] = false};
    draw_lengths(attack, sequences, is_first ? first_q : 0, p->q_begins, &longest_q, &q_rows);
    draw_lengths(attack, sequences, is_first ? first_kv : 0, p->kv_begins, &longest_kv, &kv_rows);
    if (takes_maps && longest_kv == 0) longest_kv = 1; /* else it refuses */
    for (size_t i = 0; i < sequences; i++) {
        p->is_poisoned[i] = is_first ? i == 1 : hyp_random_below(attack, 3) == 0;
    }
    p->trial = (struct kn_attention_paged_trial){
        .sequences =
            {.packed = {.attention = {.type = type,
                                      .batch = sequences,
                                      .heads = kv_heads *
                                               (is_first ? 1 : 1 + hyp_random_below(attack, 2)),
                                      .kv_heads = kv_heads,
                                      .q_length = longest_q,
                                      .kv_length = longest_kv,
                                      .head_size = is_first ? 64 : draw_head_size(attack, variant),
                                      .causal = causal,
                                      .window = causal && hyp_random_below(attack, 2) == 0
                                                    ? 1 + hyp_random_below(attack, 150)
                                                    : 0,
                                      .scale = hyp_random_below(attack, 3) == 0 ? 0.31f : 0},
                        .q_rows = q_rows,
                        .kv_rows = kv_rows},
             .q_begins = p->q_begins,
             .kv_begins = p->kv_begins,
             .is_poisoned = p->is_poisoned,
             .distribution = distribution,
             .values = values,
             .scale = distribution == KN_LARGE                        ? 0x1p-5
                      : !is_first && hyp_random_below(attack, 3) == 0 ? 3
                                                                      : 1,
             .values_scale = values == KN_LARGE ? 0x1p-8 : 1,
             .heads_inside = hyp_random_below(attack, 2) == 0,
             .gap = is_aligned ? 8 * hyp_random_below(attack, 3) : hyp_random_below(attack, 5),
             .skew = is_aligned ? 0 : hyp_random_below(attack, 9)},
        .page_positions = (size_t)16 << hyp_random_below(attack, is_first ? 3 : 5),
        .layout =
            hyp_random_below(attack, takes_maps || is_first ? KN_PAGED_PIECES : KN_PAGED_LAYOUTS),
        .variant = variant};
}

HYP_ATTACK(h06, sequences_in_pages_are_within_their_bounds) {
    static const char *const variants[] = {NULL, "naive", "tensor", "wgmma"};
    const int capability = tol_context_device(attack->context)->compute_capability;
    const int turns = attack->session.full ? 60 : 2;
    struct hyp_accuracy accuracy;
    const bool begins = hyp_accuracy_begin(&accuracy, attack, "paged", columns);
    for (enum kn_type type = 0; begins && type < KN_TYPES; type++) {
        const int kernels = type == KN_F32 || capability < 80 ? 2 : is_hopper(attack) ? 4 : 3;
        for (int i = 0; i < kernels * turns; i++) {
            struct paged_problem problem;
            draw(attack, type, variants[i / turns], i % turns == 0, &problem);
            try_one(&accuracy, &problem.trial);
        }
        hyp_attack_progress(attack, (type + 1.0) / KN_TYPES);
    }
    hyp_accuracy_end(&accuracy);
}
