/*
 * attention: every variant against the definition, over lengths that divide nothing.
 */
#include "attention/attention_trial.h"

#include "parallel.h"
#include "test/test_device.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

TestSuite(attention, .fini = test_end);

struct stage {
    struct kn_kernels *kernels;
    struct tol_stream *stream;
};

static struct stage begin(void) {
    struct stage stage = {0};
    MUST(kn_kernels_create(test_context(), &stage.kernels));
    MUST(tol_stream_create(test_context(), NULL, &stage.stream));
    return stage;
}

static void end(struct stage *stage) {
    tol_stream_destroy(stage->stream);
    kn_kernels_destroy(stage->kernels);
}

static void try(struct stage *stage, const struct kn_attention_trial *trial) {
    static uint64_t seed;
    const struct kn_attention *x = &trial->attention;
    struct kn_attention_trial seeded = *trial;
    struct kn_attention_outcome outcome;
    char text[400], lse[400];
    seeded.seed = ++seed;
    if (!test_takes_trial()) return;
    MUST(kn_attention_try(stage->kernels, stage->stream, &seeded, &outcome));
    const bool right = outcome.deviation.failed == 0 && outcome.lse.failed == 0;
    cr_assert(right && outcome.touched == 0,
              "%s %s%s, a window of %zu, %zu x %zu / %zu heads of %zu, %zu rows, %zu keys, seed "
              "%llu: %s; lse: %s; "
              "%zu bytes outside were changed",
              x->variant != NULL ? x->variant : "best", kn_type_name(x->type),
              x->causal ? ", causal" : "", x->window, x->batch, x->heads, x->kv_heads, x->head_size,
              x->q_length, x->kv_length, (unsigned long long)seeded.seed,
              kn_deviation_text(&outcome.deviation, text, sizeof text),
              kn_deviation_text(&outcome.lse, lse, sizeof lse), outcome.touched);
    const size_t rows = x->batch * x->heads * x->q_length;
    cr_assert(outcome.deviation.count == rows * x->head_size);
}

static const size_t head_sizes[] = {64, 80, 96, 128, 256};

/* Rows and keys: one tile and part of one, more rows than keys and fewer, exactly a tile. */
static void try_lengths(struct stage *stage, const char *variant, enum kn_type type,
                        size_t head_size) {
    static const size_t lengths[][2] = {{1, 1}, {17, 40}, {11, 29}, {130, 67}, {33, 201}};
    /* The naive one knows no tiles, and takes its time. */
    for (size_t i = 0; i < (strcmp(variant, "naive") == 0 ? 3 : 5); i++) {
        for (int causal = 0; causal <= 1; causal++) {
            const bool odd = i % 2 != 0;
            try(stage, &(struct kn_attention_trial){.attention = {.type = type,
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
    struct stage stage = begin();
    for (enum kn_type type = 0; type < KN_TYPES; type++) {
        try_lengths(&stage, "naive", type, 64);
        try_lengths(&stage, "naive", type, 7);
    }
    try_lengths(&stage, "naive", KN_F16, 256);
    end(&stage);
}

Test(attention, tiled_is_the_definition) {
    struct stage stage = begin();
    for (size_t i = 0; i < 5; i++) try_lengths(&stage, "tiled", KN_F32, head_sizes[i]);
    end(&stage);
}

Test(attention, tensor_is_the_definition_in_f16) {
    struct stage stage = begin();
    for (size_t i = 0; i < 5; i++) try_lengths(&stage, "tensor", KN_F16, head_sizes[i]);
    end(&stage);
}

Test(attention, tensor_is_the_definition_in_bf16) {
    struct stage stage = begin();
    for (size_t i = 0; i < 5; i++) try_lengths(&stage, "tensor", KN_BF16, head_sizes[i]);
    end(&stage);
}

/* Rows of one consumer and of both, rings that are gone round, and rows that see no key. */
Test(attention, wgmma_is_the_definition) {
    static const size_t lengths[][2] = {{64, 900}, {200, 650}, {300, 20}, {300, 128}};
    /* Of each kernel one that it was made for, and one with zeros behind it. */
    static const size_t head_sizes_of[][2] = {{64, 40}, {128, 96}, {256, 200}};
    if (tol_context_device(test_context())->compute_capability != 90) cr_skip_test("not 9.0");
    struct stage stage = begin();
    for (enum kn_type type = KN_F16; type < KN_TYPES; type++) {
        for (int size = 0; size < 3; size++) {
            try_lengths(&stage, "wgmma", type, head_sizes_of[size][0]);
            for (int i = 0; i < 8; i++) {
                try(&stage,
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
    end(&stage);
}

/* One row and a few, with keys that all blocks share and with blocks of their own. */
Test(attention, decode_is_the_definition) {
    static const size_t keys[] = {1, 5, 100, 1030};
    struct stage stage = begin();
    for (enum kn_type type = 0; type < KN_TYPES; type++) {
        for (size_t i = 0; i < 5; i++) {
            for (size_t j = 0; j < 4; j++) {
                try(&stage, &(struct kn_attention_trial){.attention = {.type = type,
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
    end(&stage);
}

/* Heads that share keys and heads that do not, 16 rows together and fewer, keys in shares that end
 * inside a tile; causal rows see fewer keys than the last. */
Test(attention, grouped_is_the_definition) {
    static const struct {
        size_t heads, kv_heads, rows, keys;
    } shapes[] = {{1, 1, 1, 1},   {8, 2, 1, 100},  {6, 2, 5, 37}, {2, 2, 8, 15}, {16, 1, 1, 1030},
                  {4, 1, 4, 529}, {3, 3, 16, 700}, {10, 2, 3, 2}, {2, 1, 7, 64}};
    struct stage stage = begin();
    for (enum kn_type type = KN_F16; type < KN_TYPES; type++) {
        for (size_t i = 0; i < 5; i++) {
            for (size_t j = 0; j < sizeof shapes / sizeof shapes[0]; j++) {
                try(&stage,
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
    end(&stage);
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
    struct stage stage = begin();
    for (enum kn_distribution d = 0; d < KN_DISTRIBUTIONS; d++) {
        for (enum kn_type type = 0; type < KN_TYPES; type++) {
            for (size_t v = 0; v < VARIANTS; v++) {
                try(&stage, &(struct kn_attention_trial){
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
    end(&stage);
}

Test(attention, unaligned_rows_fall_back_to_what_serves_them) {
    struct stage stage = begin();
    for (enum kn_type type = 0; type < KN_TYPES; type++) {
        for (size_t skew = 0; skew <= 1; skew++) {
            try(&stage, &(struct kn_attention_trial){.attention = {.type = type,
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
    end(&stage);
}

/* Goal: the bound of drawn data holds where it is far below the worst case, over seeds. */
Test(attention, many_keys_are_within_the_bound_of_drawn_data) {
    struct stage stage = begin();
    for (unsigned i = 0; i < KN_TYPES * VARIANTS * 2; i++) {
        const enum kn_type type = i % KN_TYPES;
        try(&stage, &(struct kn_attention_trial){
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
    end(&stage);
}

/* Goal: an index that is wrong once, in the last row, is found. */
Test(attention, two_swapped_elements_are_found) {
    struct stage stage = begin();
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
        MUST(kn_attention_try(stage.kernels, stage.stream, &trial, &outcome));
        cr_assert(outcome.deviation.failed == 2 && outcome.touched == 0, "%s: %zu fail",
                  kn_type_name(type), outcome.deviation.failed);
    }
    end(&stage);
}

/* Milestone M9: what a program calls, at a size at which tiles, masks and heads all matter. */
Test(attention, agrees_with_the_cpu) {
    struct stage stage = begin();
    for (enum kn_type type = 0; type < KN_TYPES; type++) {
        try(&stage, &(struct kn_attention_trial){.attention = {.type = type,
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
    end(&stage);
}

/* Row 0 sees a NaN in its key, row 1 an infinite score, and so on; see attention.h. */
Test(attention, special_values_have_stated_outcomes) {
    enum { ROWS = 4, KEYS = 40, WIDTH = 64 };
    struct stage stage = begin();
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
                stage.kernels, stage.stream,
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
    end(&stage);
}

/* With two keys and five rows, aligned to the end, the first three see nothing. */
Test(attention, rows_that_see_no_key_are_zeros) {
    struct stage stage = begin();
    for (enum kn_type type = 0; type < KN_TYPES; type++) {
        for (size_t variant = 0; variant < VARIANTS; variant++) {
            /* No map describes no keys. */
            const size_t fewest = strcmp(variant_of(type, variant), "wgmma") == 0 ? 2 : 0;
            for (size_t keys = fewest; keys <= 2; keys += 2) {
                float got[5 * 64];
                struct kn_attention_outcome outcome;
                MUST(kn_attention_try(stage.kernels, stage.stream,
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
    end(&stage);
}

/* Goal: what is said of a problem depends on it alone, and not on the machine that judged it. */
Test(attention, any_number_of_threads_finds_the_same) {
    struct stage stage = begin();
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
        MUST(kn_attention_try(stage.kernels, stage.stream, &trial, &one));
        trial.result = results[1];
        kn_parallel_force(7);
        MUST(kn_attention_try(stage.kernels, stage.stream, &trial, &many));
        cr_assert(one.deviation.root_mean_square > 0 && one.lse.count == 2 * 4 * 19);
        /* NOLINTNEXTLINE(bugprone-*,cert-exp42-c,cert-flp37-c): to the bit */
        cr_assert(memcmp(&one, &many, sizeof one) == 0 &&
                      /* NOLINTNEXTLINE(bugprone-*,cert-exp42-c,cert-flp37-c): to the bit */
                      memcmp(results[0], results[1], sizeof results[0]) == 0,
                  "%s", kn_type_name(type));
    }
    kn_parallel_force(0);
    end(&stage);
}
