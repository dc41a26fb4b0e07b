/*
 * attention: every variant against the definition, over lengths that divide nothing.
 */
#include "attention_scene.h"

#include "parallel.h"
#include "test/test_device.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

TestSuite(attention, .init = kernel_scene_begin, .fini = kernel_scene_end);

static const size_t head_sizes[] = {64, 80, 96, 128, 256};

/* Rows and keys: one tile and part of one, more rows than keys and fewer, exactly a tile. */
static void try_lengths(const char *variant, enum kn_type type, size_t head_size) {
    static const size_t lengths[][2] = {{1, 1}, {17, 40}, {11, 29}, {130, 67}, {33, 201}};
    /* The naive one knows no tiles, and takes its time. */
    for (size_t i = 0; i < (strcmp(variant, "naive") == 0 ? 3 : 5); i++) {
        for (int causal = 0; causal <= 1; causal++) {
            const bool odd = i % 2 != 0;
            attention_must_be_right(
                &(struct kn_attention_trial){.attention = {.type = type,
                                                           .batch = i == 2 ? 2 : 1,
                                                           .heads = 2,
                                                           .kv_heads = odd ? 1 : 2,
                                                           .q_length = lengths[i][0],
                                                           .kv_length = lengths[i][1],
                                                           .head_size = head_size,
                                                           .causal = causal,
                                                           .scale = odd ? 0.2f : 0,
                                                           .variant = variant},
                                             .distribution = KN_NORMAL,
                                             .values = KN_UNIFORM,
                                             .heads_inside = odd,
                                             .gap = odd ? 8 : 0,
                                             .lse = odd});
        }
    }
}

Test(attention, naive_is_the_definition) {
    for (enum kn_type type = 0; type < KN_TYPES; type++) {
        try_lengths("naive", type, 64);
        try_lengths("naive", type, 7);
    }
    try_lengths("naive", KN_F16, 256);
}

Test(attention, tiled_is_the_definition) {
    for (size_t i = 0; i < 5; i++) try_lengths("tiled", KN_F32, head_sizes[i]);
}

Test(attention, tensor_is_the_definition_in_f16) {
    for (size_t i = 0; i < 5; i++) try_lengths("tensor", KN_F16, head_sizes[i]);
}

Test(attention, tensor_is_the_definition_in_bf16) {
    for (size_t i = 0; i < 5; i++) try_lengths("tensor", KN_BF16, head_sizes[i]);
}

/* Rows of one consumer and of both, rings that are gone round, and rows that see no key. */
Test(attention, wgmma_is_the_definition) {
    static const size_t lengths[][2] = {{64, 900}, {200, 650}, {300, 20}, {300, 128}};
    /* For each kernel a size that fills it, and one that TMA fills up with zeros. */
    static const size_t head_sizes_of[][2] = {{64, 40}, {128, 96}, {256, 200}};
    if (tol_context_device(test_context())->compute_capability != 90) cr_skip_test("not 9.0");
    for (enum kn_type type = KN_F16; type < KN_TYPES; type++) {
        for (int size = 0; size < 3; size++) {
            try_lengths("wgmma", type, head_sizes_of[size][0]);
            for (int i = 0; i < 8; i++) {
                attention_must_be_right(
                    &(struct kn_attention_trial){.attention = {.type = type,
                                                               .batch = 2,
                                                               .heads = 2,
                                                               .kv_heads = 1,
                                                               .q_length = lengths[i / 2][0],
                                                               .kv_length = lengths[i / 2][1],
                                                               .head_size = head_sizes_of[size][1],
                                                               .causal = i % 2 == 1,
                                                               .variant = "wgmma"},
                                                 .distribution = KN_NORMAL,
                                                 .values = KN_UNIFORM,
                                                 .heads_inside = i % 2 == 0,
                                                 .lse = true});
            }
        }
    }
}

/* One row and a few, with keys that all blocks share and with blocks of their own. */
Test(attention, decode_is_the_definition) {
    static const size_t keys[] = {1, 5, 100, 1030};
    for (enum kn_type type = 0; type < KN_TYPES; type++) {
        for (size_t i = 0; i < 5; i++) {
            for (size_t j = 0; j < 4; j++) {
                attention_must_be_right(
                    &(struct kn_attention_trial){.attention = {.type = type,
                                                               .batch = 1 + j % 2,
                                                               .heads = 2,
                                                               .kv_heads = 1,
                                                               .q_length = i == 2 ? 5 : 1,
                                                               .kv_length = keys[j],
                                                               .head_size = head_sizes[i],
                                                               .causal = j % 2 == 0,
                                                               .variant = "decode"},
                                                 .distribution = KN_NORMAL,
                                                 .values = KN_UNIFORM,
                                                 .lse = true,
                                                 .workspace = i % 2 == 0});
            }
        }
    }
}

/* Heads that share keys and heads that do not, 16 rows together and fewer, keys in shares that end
 * inside a tile; causal rows see fewer keys than the last. */
Test(attention, grouped_is_the_definition) {
    static const struct {
        size_t heads, kv_heads, rows, keys;
    } shapes[] = {{1, 1, 1, 1},   {8, 2, 1, 100},  {6, 2, 5, 37}, {2, 2, 8, 15}, {16, 1, 1, 1030},
                  {4, 1, 4, 529}, {3, 3, 16, 700}, {10, 2, 3, 2}, {2, 1, 7, 64}};
    for (enum kn_type type = KN_F16; type < KN_TYPES; type++) {
        for (size_t i = 0; i < 5; i++) {
            for (size_t j = 0; j < sizeof shapes / sizeof shapes[0]; j++) {
                attention_must_be_right(
                    &(struct kn_attention_trial){.attention = {.type = type,
                                                               .batch = 1 + j % 2,
                                                               .heads = shapes[j].heads,
                                                               .kv_heads = shapes[j].kv_heads,
                                                               .q_length = shapes[j].rows,
                                                               .kv_length = shapes[j].keys,
                                                               .head_size = head_sizes[i],
                                                               .causal = (i + j) % 2 == 0,
                                                               .variant = "grouped"},
                                                 .distribution = KN_NORMAL,
                                                 .values = KN_UNIFORM,
                                                 .heads_inside = j % 2 == 0,
                                                 .gap = j % 3 == 0 ? 8 : 0,
                                                 .lse = true,
                                                 .workspace = j % 2 == 0});
            }
        }
    }
}

enum { VARIANTS = 5 };
static const char *const variants_of[KN_TYPES][VARIANTS] = {
    {"naive", "tiled", "decode", "decode", "tiled"},
    {"naive", "tensor", "decode", "grouped", "wgmma"},
    {"naive", "tensor", "decode", "grouped", "wgmma"}};

/* The name, or what does the same on devices that lack it. */
static const char *variant_of(enum kn_type type, size_t i) {
    const bool is_hopper = tol_context_device(test_context())->compute_capability == 90;
    return i == 4 && !is_hopper ? variants_of[type][1] : variants_of[type][i];
}

/* Scores of some hundreds overflow exp where the maximum is not taken off; tiny and subnormal ones
 * vanish; sparse and cancelling ones make equal weights and large sums of small differences. */
Test(attention, every_distribution_is_survived) {
    for (enum kn_distribution d = 0; d < KN_DISTRIBUTIONS; d++) {
        for (enum kn_type type = 0; type < KN_TYPES; type++) {
            for (size_t v = 0; v < VARIANTS; v++) {
                attention_must_be_right(&(struct kn_attention_trial){
                    .attention = {.type = type,
                                  .batch = 1,
                                  .heads = 1,
                                  .kv_heads = 1,
                                  .q_length = v == 2 || v == 3 ? 3 : 70,
                                  .kv_length = 140,
                                  .head_size = 64,
                                  .causal = d % 2 == 0,
                                  .variant = variant_of(type, v)},
                    .distribution = d,
                    .values = d,
                    .scale = d == KN_LARGE ? 0x1p-4 : 8,
                    .lse = true});
            }
        }
    }
}

Test(attention, unaligned_rows_fall_back_to_what_serves_them) {
    for (enum kn_type type = 0; type < KN_TYPES; type++) {
        for (size_t skew = 0; skew <= 1; skew++) {
            attention_must_be_right(&(struct kn_attention_trial){.attention = {.type = type,
                                                                               .batch = 1,
                                                                               .heads = 2,
                                                                               .kv_heads = 1,
                                                                               .q_length = 20,
                                                                               .kv_length = 30,
                                                                               .head_size = 64},
                                                                 .distribution = KN_NORMAL,
                                                                 .values = KN_UNIFORM,
                                                                 .gap = 1 - skew,
                                                                 .skew = skew});
        }
    }
}

/* Goal: the bound of drawn data holds where it is far below the worst case, over seeds. */
Test(attention, many_keys_are_within_the_bound_of_drawn_data) {
    for (unsigned i = 0; i < KN_TYPES * VARIANTS * 2; i++) {
        const enum kn_type type = i % KN_TYPES;
        attention_must_be_right(&(struct kn_attention_trial){
            .attention = {.type = type,
                          .batch = 1,
                          .heads = 1,
                          .kv_heads = 1,
                          .q_length = 2,
                          .kv_length = 2000,
                          .head_size = 64,
                          .variant = variant_of(type, i / 3 % VARIANTS)},
            .distribution = KN_NORMAL,
            .values = i % 2 == 0 ? KN_UNIFORM : KN_NORMAL,
            .lse = true,
            .workspace = i % 2 == 0});
    }
}

/* Goal: an index that is wrong once, in the last row, is found. */
Test(attention, two_swapped_elements_are_found) {
    for (enum kn_type type = 0; type < KN_TYPES; type++) {
        const struct kn_attention_trial trial = {.attention = {.type = type,
                                                               .batch = 2,
                                                               .heads = 2,
                                                               .kv_heads = 1,
                                                               .q_length = 5,
                                                               .kv_length = 9,
                                                               .head_size = 64},
                                                 .distribution = KN_NORMAL,
                                                 .values = KN_NORMAL,
                                                 .gap = 8,
                                                 .swaps_last = true,
                                                 .seed = 3 + type};
        struct kn_attention_outcome outcome;
        MUST(kn_attention_try(kernels, stream, &trial, &outcome));
        cr_assert(outcome.deviation.failed == 2 && outcome.touched == 0, "%s: %zu fail",
                  kn_type_name(type), outcome.deviation.failed);
    }
}

/* Milestone M9: what a program calls, at a size at which tiles, masks and heads all matter. */
Test(attention, agrees_with_the_cpu) {
    for (enum kn_type type = 0; type < KN_TYPES; type++) {
        attention_must_be_right(&(struct kn_attention_trial){.attention = {.type = type,
                                                                           .batch = 1,
                                                                           .heads = 4,
                                                                           .kv_heads = 2,
                                                                           .q_length = 256,
                                                                           .kv_length = 256,
                                                                           .head_size = 64,
                                                                           .causal = true},
                                                             .distribution = KN_NORMAL,
                                                             .values = KN_NORMAL,
                                                             .lse = true});
    }
}

/* Row 0 sees a NaN in its key, row 1 an infinite score, and so on; see attention.h. */
Test(attention, special_values_have_stated_outcomes) {
    enum { ROWS = 4, KEYS = 40, WIDTH = 64 };
    for (enum kn_type type = 0; type < KN_TYPES; type++) {
        for (size_t variant = 0; variant < VARIANTS; variant++) {
            static float q[ROWS * WIDTH], k[KEYS * WIDTH], v[KEYS * WIDTH], got[ROWS * WIDTH];
            for (size_t i = 0; i < ROWS * WIDTH; i++) q[i] = 1;
            for (size_t i = 0; i < KEYS * WIDTH; i++) {
                const size_t key = i / WIDTH;
                k[i] = 0.5f, v[i] = (float)key;
            }
            q[0] = NAN;
            q[WIDTH + 5] = INFINITY;
            /* Scores of -infinity alone: zeros. */
            q[2 * WIDTH + 7] = -INFINITY;
            struct kn_attention_outcome outcome;
            MUST(kn_attention_try(
                kernels, stream,
                &(struct kn_attention_trial){.attention = {.type = type,
                                                           .batch = 1,
                                                           .heads = 1,
                                                           .kv_heads = 1,
                                                           .q_length = ROWS,
                                                           .kv_length = KEYS,
                                                           .head_size = WIDTH,
                                                           .variant = variant_of(type, variant)},
                                             .given = {q, k, v},
                                             .result = got},
                &outcome));
            for (size_t i = 0; i < ROWS * WIDTH; i++) {
                const size_t row = i / WIDTH;
                const bool right = row < 2    ? isnan(got[i])
                                   : row == 2 ? got[i] == 0
                                              : fabs((double)got[i] - 19.5) < 0.1;
                cr_assert(right, "%s %s: row %zu is %g", variant_of(type, variant),
                          kn_type_name(type), row, (double)got[i]);
            }
        }
    }
}

/* With two keys and five rows, aligned to the end, the first three see nothing. */
Test(attention, rows_that_see_no_key_are_zeros) {
    for (enum kn_type type = 0; type < KN_TYPES; type++) {
        for (size_t variant = 0; variant < VARIANTS; variant++) {
            /* No map describes no keys. */
            const size_t fewest = strcmp(variant_of(type, variant), "wgmma") == 0 ? 2 : 0;
            for (size_t keys = fewest; keys <= 2; keys += 2) {
                float got[5 * 64];
                struct kn_attention_outcome outcome;
                MUST(kn_attention_try(kernels, stream,
                                      &(struct kn_attention_trial){
                                          .attention = {.type = type,
                                                        .batch = 1,
                                                        .heads = 1,
                                                        .kv_heads = 1,
                                                        .q_length = 5,
                                                        .kv_length = keys,
                                                        .head_size = 64,
                                                        .causal = true,
                                                        .variant = variant_of(type, variant)},
                                          .distribution = KN_NORMAL,
                                          .values = KN_NORMAL,
                                          .lse = true,
                                          .result = got},
                                      &outcome));
                cr_assert(outcome.deviation.failed == 0 && outcome.lse.failed == 0, "%s %s",
                          variant_of(type, variant), kn_type_name(type));
                for (size_t i = 0; i < (keys == 0 ? 5 : 3) * (size_t)64; i++) {
                    cr_assert(got[i] == 0, "%s: element %zu is %g", variant_of(type, variant), i,
                              (double)got[i]);
                }
            }
        }
    }
}

/* Goal: what is said of a problem depends on it alone, and not on the machine that judged it. */
Test(attention, any_number_of_threads_finds_the_same) {
    for (enum kn_type type = 0; type < KN_TYPES; type++) {
        struct kn_attention_outcome one, many;
        static float results[2][2 * 4 * 19 * 27];
        struct kn_attention_trial trial = {.attention = {.type = type,
                                                         .batch = 2,
                                                         .heads = 4,
                                                         .kv_heads = 2,
                                                         .q_length = 19,
                                                         .kv_length = 41,
                                                         .head_size = 27,
                                                         .causal = true,
                                                         .variant = "naive"},
                                           .distribution = KN_NORMAL,
                                           .values = KN_CANCEL,
                                           .gap = 3,
                                           .lse = true,
                                           .seed = 9,
                                           .result = results[0]};
        kn_parallel_force(1);
        MUST(kn_attention_try(kernels, stream, &trial, &one));
        trial.result = results[1];
        kn_parallel_force(7);
        MUST(kn_attention_try(kernels, stream, &trial, &many));
        cr_assert(one.deviation.root_mean_square > 0 && one.lse.count == 2 * 4 * 19);
        /* NOLINTNEXTLINE(bugprone-*,cert-exp42-c,cert-flp37-c): to the bit */
        cr_assert(memcmp(&one, &many, sizeof one) == 0 &&
                      /* NOLINTNEXTLINE(bugprone-*,cert-exp42-c,cert-flp37-c): to the bit */
                      memcmp(results[0], results[1], sizeof results[0]) == 0,
                  "%s", kn_type_name(type));
    }
    kn_parallel_force(0);
}
