/*
 * A trial, and what is said of one that came out wrong.
 */
#include "attention_scene.h"

#include "test/test_device.h"

void attention_must_be_right(const struct kn_attention_trial *trial) {
    static uint64_t seed;
    const struct kn_attention *x = &trial->attention;
    struct kn_attention_trial seeded = *trial;
    struct kn_attention_outcome outcome;
    char text[400], lse[400];
    seeded.seed = ++seed;
    if (!test_takes_trial()) return;
    MUST(kn_attention_try(kernels, stream, &seeded, &outcome));
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
