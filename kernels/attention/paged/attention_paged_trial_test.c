/*
 * Trials of attention over paged sequences: right kernels pass, and planted defects are found.
 */
#include "attention/paged/attention_paged_trial.h"

#include "kernel_scene.h"
#include "test/test_device.h"

#include <string.h>

TestSuite(attention_paged_trial, .init = kernel_scene_begin, .fini = kernel_scene_end);

static const int q_begins[] = {1, 71, 80}, kv_begins[] = {2, 287, 327};

/* Three tiles of keys, the last with a part of a page; then a sequence of NaN and infinities. */
static struct kn_attention_paged_trial trial_of(enum kn_type type, const char *variant) {
    static const bool is_poisoned[] = {false, true};
    return (struct kn_attention_paged_trial){
        .sequences = {.packed = {.attention = {.type = type,
                                               .batch = 2,
                                               .heads = 2,
                                               .kv_heads = 2,
                                               .q_length = 70,
                                               .kv_length = 285,
                                               .head_size = 64},
                                 .q_rows = 83,
                                 .kv_rows = 330},
                      .q_begins = q_begins,
                      .kv_begins = kv_begins,
                      .is_poisoned = is_poisoned,
                      .distribution = KN_NORMAL,
                      .values = KN_UNIFORM,
                      .gap = 8,
                      .seed = 5},
        .page_positions = 32,
        .variant = variant};
}

static bool passes(const struct kn_attention_paged_trial *trial) {
    struct kn_attention_packed_outcome outcome;
    MUST(kn_attention_paged_try(kernels, stream, trial, &outcome));
    return outcome.out.failed == 0 && outcome.lse.failed == 0 && outcome.touched == 0;
}

static int count_variants(void) {
    const int capability = tol_context_device(test_context())->compute_capability;
    return capability < 80 ? 1 : capability == 90 ? 3 : 2;
}

static const char *const variants[] = {"naive", "tensor", "wgmma"};

Test(attention_paged_trial, right_kernels_pass) {
    for (int i = 0; i < count_variants() * KN_PAGED_LAYOUTS; i++) {
        struct kn_attention_paged_trial trial =
            trial_of(i % 2 == 0 ? KN_F16 : KN_BF16, variants[i / KN_PAGED_LAYOUTS]);
        trial.layout = i % KN_PAGED_LAYOUTS;
        if (i / KN_PAGED_LAYOUTS == 2 && trial.layout == KN_PAGED_PIECES) continue;
        trial.sequences.heads_inside = i % 2 == 1;
        cr_assert(passes(&trial), "%s, layout %d", trial.variant, (int)trial.layout);
    }
}

/* Elements that begin anywhere, and heads of no whole pieces. */
Test(attention_paged_trial, odd_places_pass) {
    for (int i = 0; i < KN_PAGED_LAYOUTS; i++) {
        struct kn_attention_paged_trial trial = trial_of(KN_F32, NULL);
        trial.layout = i, trial.sequences.gap = 3, trial.sequences.skew = 5;
        trial.sequences.packed.attention.head_size = 27;
        cr_assert(passes(&trial), "layout %d", i);
    }
}

Test(attention_paged_trial, a_repeated_page_is_found) {
    for (int i = 0; i < count_variants(); i++) {
        struct kn_attention_paged_trial trial = trial_of(KN_F16, variants[i]);
        trial.repeats_page = true;
        cr_assert(!passes(&trial), "%s", variants[i]);
    }
}

Test(attention_paged_trial, planted_defects_are_found) {
    if (tol_context_device(test_context())->compute_capability != 90) cr_skip_test("not 9.0");
    for (size_t i = 0; i < kn_attention_paged_defects.count; i++) {
        struct kn_attention_paged_trial trial =
            trial_of(KN_F16, kn_attention_paged_defects.rows[i].name);
        trial.variants = &kn_attention_paged_defects;
        cr_assert(!passes(&trial), "%s", trial.variant);
    }
}
