/*
 * Trials of attention over numbers of 8 bits: right kernels pass, and planted defects are found.
 */
#include "attention/e4m3/attention_e4m3_trial.h"

#include "kernel_scene.h"
#include "test/test_device.h"

TestSuite(attention_e4m3_trial, .init = kernel_scene_begin, .fini = kernel_scene_end);

/* Three tiles of keys, and scores so small that their bound is narrow. */
static struct kn_attention_e4m3_trial trial_of(enum kn_type type, const char *variant) {
    return (struct kn_attention_e4m3_trial){.e4m3 = {.attention = {.type = type,
                                                                   .batch = 1,
                                                                   .heads = 4,
                                                                   .kv_heads = 2,
                                                                   .q_length = 9,
                                                                   .kv_length = 285,
                                                                   .head_size = 64},
                                                     .variant = variant},
                                            .distribution = KN_NORMAL,
                                            .values = KN_UNIFORM,
                                            .scale = 0.25,
                                            .has_scales = true,
                                            .gap = 16,
                                            .seed = 3};
}

static bool passes(const struct kn_attention_e4m3_trial *trial) {
    struct kn_attention_e4m3_outcome outcome;
    MUST(kn_attention_e4m3_try(kernels, stream, trial, &outcome));
    return outcome.out.failed == 0 && outcome.lse.failed == 0 && outcome.touched == 0;
}

static bool is_hopper(void) {
    return tol_context_device(test_context())->compute_capability == 90;
}

static const char *const variants[] = {"naive", "wgmma"};

Test(attention_e4m3_trial, right_kernels_pass) {
    for (int i = 0; i < (is_hopper() ? 8 : 4); i++) {
        struct kn_attention_e4m3_trial trial =
            trial_of(i % 2 == 0 ? KN_F16 : KN_BF16, variants[i / 4]);
        trial.heads_inside = i % 4 < 2, trial.has_scales = i % 2 == 0;
        trial.e4m3.attention.batch = 1 + (size_t)i % 3;
        cr_assert(passes(&trial), "%s, trial %d", trial.e4m3.variant, i);
    }
}

Test(attention_e4m3_trial, odd_places_pass) {
    struct kn_attention_e4m3_trial trial = trial_of(KN_BF16, NULL);
    trial.gap = 3, trial.skew = 5, trial.e4m3.attention.head_size = 27;
    cr_assert(passes(&trial));
}

Test(attention_e4m3_trial, a_doubled_scale_is_found) {
    for (int i = 0; i < (is_hopper() ? 2 : 1); i++) {
        struct kn_attention_e4m3_trial trial = trial_of(KN_F16, variants[i]);
        trial.doubles_scale = true;
        cr_assert(!passes(&trial), "%s", variants[i]);
    }
}

Test(attention_e4m3_trial, planted_defects_are_found) {
    if (!is_hopper()) cr_skip_test("not 9.0");
    for (size_t i = 0; i < kn_attention_e4m3_defects.count; i++) {
        struct kn_attention_e4m3_trial trial =
            trial_of(KN_F16, kn_attention_e4m3_defects.rows[i].name);
        trial.e4m3.variants = &kn_attention_e4m3_defects;
        cr_assert(!passes(&trial), "%s", trial.e4m3.variant);
    }
}
