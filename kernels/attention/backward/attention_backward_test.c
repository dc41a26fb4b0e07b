/*
 * attention's backward pass: every variant against the definition, over lengths that divide
 * nothing; its planted defects; the same bits, run after run.
 */
#include "attention/backward/attention_backward_trial.h"

#include "kernel_scene.h"
#include "test/test_device.h"

#include <stdlib.h>
#include <string.h>

TestSuite(attention_backward, .init = kernel_scene_begin, .fini = kernel_scene_end);

static struct kn_attention_backward_outcome run(const struct kn_attention_backward_trial *trial) {
    struct kn_attention_backward_outcome outcome;
    MUST(kn_attention_backward_try(kernels, stream, trial, &outcome));
    return outcome;
}

static void try(const struct kn_attention_backward_trial *trial) {
    static uint64_t seed;
    const struct kn_attention *x = &trial->backward.forward;
    struct kn_attention_backward_trial seeded = *trial;
    char texts[3][400];
    seeded.seed = ++seed;
    if (!test_takes_trial()) return;
    const struct kn_attention_backward_outcome outcome = run(&seeded);
    const size_t failed = outcome.d_q.failed + outcome.d_k.failed + outcome.d_v.failed;
    cr_assert(failed == 0 && outcome.touched == 0,
              "%s %s%s, a window of %zu, %zu x %zu / %zu heads of %zu, %zu rows, %zu keys, seed "
              "%llu: d_q: %s; d_k: %s; d_v: %s; %zu bytes outside were changed",
              trial->backward.variant != NULL ? trial->backward.variant : "best",
              kn_type_name(x->type), x->causal ? ", causal" : "", x->window, x->batch, x->heads,
              x->kv_heads, x->head_size, x->q_length, x->kv_length, (unsigned long long)seeded.seed,
              kn_deviation_text(&outcome.d_q, texts[0], sizeof texts[0]),
              kn_deviation_text(&outcome.d_k, texts[1], sizeof texts[1]),
              kn_deviation_text(&outcome.d_v, texts[2], sizeof texts[2]), outcome.touched);
    cr_assert(outcome.d_q.count == x->batch * x->heads * x->q_length * x->head_size);
    cr_assert(outcome.d_k.count == x->batch * x->kv_heads * x->kv_length * x->head_size);
    cr_assert(outcome.d_v.count == outcome.d_k.count);
}

/* One row and one key, parts of tiles, more rows than keys and fewer, several tiles of each kind,
 * and rows that see no key. */
static void try_shapes(const char *variant, enum kn_type type, size_t head_size) {
    static const struct {
        size_t batch, heads, kv_heads, rows, keys, window;
    } shapes[] = {{1, 1, 1, 1, 1, 0},     {1, 2, 2, 17, 40, 5},    {2, 2, 1, 29, 11, 3},
                  {1, 4, 2, 70, 67, 20},  {1, 3, 1, 150, 70, 100}, {1, 1, 1, 33, 201, 64},
                  {1, 2, 1, 140, 270, 90}};
    const size_t count = strcmp(variant, "naive") == 0 ? 4 : sizeof shapes / sizeof shapes[0];
    for (size_t i = 0; i < count; i++) {
        for (int mask = 0; mask < 3; mask++) { /* full, causal, and with a window */
            if (mask == 2 && shapes[i].window == 0) continue;
            const bool odd = i % 2 != 0;
            try(&(struct kn_attention_backward_trial){
                .backward = {.forward = {.type = type,
                                         .batch = shapes[i].batch,
                                         .heads = shapes[i].heads,
                                         .kv_heads = shapes[i].kv_heads,
                                         .q_length = shapes[i].rows,
                                         .kv_length = shapes[i].keys,
                                         .head_size = head_size,
                                         .causal = mask > 0,
                                         .window = mask == 2 ? shapes[i].window : 0,
                                         .scale = odd ? 0.2f : 0},
                             .variant = variant},
                .distribution = KN_NORMAL,
                .values = odd ? KN_NORMAL : KN_UNIFORM,
                .heads_inside = odd,
                .gap = odd ? 8 : 0});
        }
    }
}

Test(attention_backward, naive_is_the_definition) {
    for (enum kn_type type = 0; type < KN_TYPES; type++) {
        try_shapes("naive", type, 64);
        try_shapes("naive", type, 7);
    }
    try_shapes("naive", KN_BF16, 256);
}

Test(attention_backward, tensor_is_the_definition_in_f16) {
    try_shapes("tensor", KN_F16, 64);
    try_shapes("tensor", KN_F16, 128);
}

Test(attention_backward, tensor_is_the_definition_in_bf16) {
    try_shapes("tensor", KN_BF16, 64);
    try_shapes("tensor", KN_BF16, 128);
}

static bool is_hopper(void) {
    return tol_context_device(test_context())->compute_capability == 90;
}

Test(attention_backward, wgmma_is_the_definition) {
    if (!is_hopper()) cr_skip_test("not 9.0");
    for (enum kn_type type = KN_F16; type < KN_TYPES; type++) {
        try_shapes("wgmma", type, 64);
        try_shapes("wgmma", type, 128);
    }
}

Test(attention_backward, ordered_is_the_definition) {
    if (!is_hopper()) cr_skip_test("not 9.0");
    for (enum kn_type type = KN_F16; type < KN_TYPES; type++) {
        try_shapes("ordered", type, 64);
        try_shapes("ordered", type, 128);
    }
}

/* More heads than tickets take at a time, several tiles of keys of each, which add to the same
 * rows; and the heads of q that share keys. */
Test(attention_backward, ordered_adds_the_parts_of_many_blocks) {
    if (!is_hopper()) cr_skip_test("not 9.0");
    for (int turn = 0; turn < 3; turn++) {
        const size_t heads = turn == 1 ? 6 : 5;
        try(&(struct kn_attention_backward_trial){
            .backward = {.forward = {.type = KN_BF16,
                                     .batch = 2,
                                     .heads = heads,
                                     .kv_heads = turn == 1 ? 2 : 5,
                                     .q_length = turn == 2 ? 330 : 129,
                                     .kv_length = turn == 2 ? 390 : 520,
                                     .head_size = 64,
                                     .causal = turn > 0,
                                     .window = turn == 2 ? 100 : 0},
                         .variant = "ordered"},
            .distribution = KN_NORMAL,
            .values = KN_NORMAL});
    }
}

/* Scores that leave weight to one key, that are all equal, and that cancel; gradients that do. */
Test(attention_backward, every_distribution_is_survived) {
    static const char *const names[] = {"naive", "tensor", "wgmma", "ordered"};
    const int count = is_hopper() ? 4 : 2;
    for (enum kn_distribution d = 0; d < KN_DISTRIBUTIONS; d++) {
        for (enum kn_type type = 0; type < KN_TYPES; type++) {
            for (int v = 0; v < (type == KN_F32 ? 1 : count); v++) {
                try(&(struct kn_attention_backward_trial){
                    .backward = {.forward = {.type = type,
                                             .batch = 1,
                                             .heads = 2,
                                             .kv_heads = 1,
                                             .q_length = 40,
                                             .kv_length = 70,
                                             .head_size = 64,
                                             .causal = d % 2 == 0},
                                 .variant = names[v]},
                    .distribution = d,
                    .values = d,
                    .scale = d == KN_LARGE ? 0x1p-6 : 3,
                    .values_scale = d == KN_LARGE ? 0x1p-8 : 1});
            }
        }
    }
}

static struct kn_attention_backward_trial planted_trial(const char *variant, bool causal) {
    return (struct kn_attention_backward_trial){
        .backward = {.forward = {.type = KN_F16,
                                 .batch = 1,
                                 .heads = 4,
                                 .kv_heads = 2,
                                 .q_length = 100,
                                 .kv_length = 110,
                                 .head_size = 64,
                                 .causal = causal},
                     .variant = variant,
                     .variants = variant != NULL ? &kn_attention_backward_defects : NULL},
        .distribution = KN_NORMAL,
        .values = KN_NORMAL,
        .seed = 7};
}

/* Goal: the bound is narrow enough for what it is there for. */
Test(attention_backward, planted_defects_are_found) {
    for (size_t i = 0; i < kn_attention_backward_defects.count; i++) {
        const struct kn_variant *row = &kn_attention_backward_defects.rows[i];
        const char *name = row->name;
        struct kn_attention_backward_trial trial =
            planted_trial(name, strcmp(name, "unmasked") == 0);
        if (row->compute_capability_min == 90) {
            if (!is_hopper()) continue;
            trial.backward.forward.type = KN_BF16;
            /* Then several blocks add to a tile. */
            if (row->tile[1] != 0) trial.backward.forward.kv_length = 200;
        }
        const struct kn_attention_backward_outcome outcome = run(&trial);
        cr_assert(outcome.d_q.failed + outcome.d_k.failed + outcome.d_v.failed > 0,
                  "%s was not noticed", name);
    }
}

/* Goal: an index that is wrong once, in the last row, is found. */
Test(attention_backward, two_swapped_elements_are_found) {
    struct kn_attention_backward_trial trial = planted_trial(NULL, false);
    trial.swaps_last = true;
    const struct kn_attention_backward_outcome outcome = run(&trial);
    cr_assert(outcome.d_k.failed == 2 && outcome.d_q.failed + outcome.d_v.failed == 0, "%zu fail",
              outcome.d_k.failed);
}

Test(attention_backward, unaligned_rows_fall_back_to_what_serves_them) {
    for (enum kn_type type = 0; type < KN_TYPES; type++) {
        for (size_t skew = 0; skew <= 1; skew++) {
            try(&(struct kn_attention_backward_trial){.backward = {.forward = {.type = type,
                                                                               .batch = 1,
                                                                               .heads = 2,
                                                                               .kv_heads = 1,
                                                                               .q_length = 20,
                                                                               .kv_length = 30,
                                                                               .head_size = 64}},
                                                      .distribution = KN_NORMAL,
                                                      .values = KN_UNIFORM,
                                                      .gap = 1 - skew,
                                                      .skew = skew});
        }
    }
}

/* With two keys and five rows, aligned to the end, the first three rows see nothing; with a window
 * of one and more keys than rows, the first keys are seen by none. */
Test(attention_backward, what_is_not_seen_has_no_gradient) {
    static const char *const names[] = {"naive", "tensor", "wgmma", "ordered"};
    static float d_q[5 * 64], d_k[9 * 64], d_v[9 * 64];
    for (int v = 0; v < (is_hopper() ? 4 : 2); v++) {
        for (int turn = 0; turn < 2; turn++) {
            const size_t rows = turn == 0 ? 5 : 4, keys = turn == 0 ? 2 : 9;
            const struct kn_attention_backward_outcome outcome = run(
                &(struct kn_attention_backward_trial){.backward = {.forward = {.type = KN_BF16,
                                                                               .batch = 1,
                                                                               .heads = 1,
                                                                               .kv_heads = 1,
                                                                               .q_length = rows,
                                                                               .kv_length = keys,
                                                                               .head_size = 64,
                                                                               .causal = true,
                                                                               .window = turn},
                                                                   .variant = names[v]},
                                                      .distribution = KN_NORMAL,
                                                      .values = KN_NORMAL,
                                                      .seed = 1,
                                                      .results = {d_q, d_k, d_v}});
            cr_assert(outcome.d_q.failed + outcome.d_k.failed + outcome.d_v.failed == 0);
            for (size_t i = 0; i < (turn == 0 ? 3 * 64 : 0); i++) cr_assert(d_q[i] == 0);
            for (size_t i = 0; i < (turn == 0 ? 0 : 5 * 64); i++) {
                cr_assert(d_k[i] == 0 && d_v[i] == 0, "%s: element %zu", names[v], i);
            }
        }
    }
}

static void check_bits(const char *variant, size_t keys, bool causal) {
    enum { ROWS = 4 * 100 * 64, KEYS = 2 * 300 * 64 };
    static float first[ROWS + 2 * KEYS], again[ROWS + 2 * KEYS];
    const size_t of_keys = 2 * keys * 64;
    cr_assert(of_keys <= KEYS);
    for (int turn = 0; turn < 4; turn++) {
        float *to = turn == 0 ? first : again;
        struct kn_attention_backward_trial trial = planted_trial(NULL, causal);
        trial.backward.variant = variant;
        trial.backward.forward.kv_length = keys;
        trial.results[0] = to, trial.results[1] = to + ROWS, trial.results[2] = to + ROWS + of_keys;
        run(&trial);
        for (size_t i = 0; turn > 0 && i < ROWS + 2 * of_keys; i++) {
            cr_assert(first[i] == again[i], "%s: element %zu, turn %d", variant, i, turn);
        }
    }
}

Test(attention_backward, gives_the_same_bits_each_time) {
    for (int causal = 0; causal <= 1; causal++) {
        check_bits("tensor", 110, causal);
        if (is_hopper()) check_bits("wgmma", 110, causal);
        if (is_hopper()) check_bits("ordered", 300, causal);
    }
}
