/*
 * Tuning on a device: each variant that serves is timed, and what is kept decides what is launched.
 */
#include "tune/tune.h"

#include "core/monotonic.h"
#include "kernel_scene.h"
#include "test/test_device.h"

#include <string.h>

enum { SIDE = 64, BYTES = SIDE * SIDE * 4 };

static struct tol_buffer *a, *b, *c;
static struct kn_tuning *tuning;

static void begin(void) {
    struct kn_tuning_identity identity;
    kernel_scene_begin();
    MUST(tol_buffer_create(test_context(), BYTES, 1, &a));
    MUST(tol_buffer_create(test_context(), BYTES, 1, &b));
    MUST(tol_buffer_create(test_context(), BYTES, 1, &c));
    MUST(tol_buffer_fill_at(a, 0, 0, 1, BYTES));
    MUST(tol_buffer_fill_at(b, 0, 0, 1, BYTES));
    MUST(kn_tune_identity(test_context(), "a commit", &identity));
    cr_assert_str_eq(identity.device, tol_context_device(test_context())->name);
    cr_assert(identity.driver > 0 && identity.kernels != 0);
    MUST(kn_tuning_create(&identity, &tuning));
}

static void end(void) {
    struct tol_buffer *all[] = {a, b, c};
    for (int i = 0; i < 3; i++) tol_buffer_destroy(all[i]);
    kn_tuning_destroy(tuning);
    kernel_scene_end();
}

TestSuite(tune, .init = begin, .fini = end);

static struct kn_gemm gemm_of(void) {
    return (struct kn_gemm){.precision = KN_GEMM_BF16,
                            .c_type = KN_BF16,
                            .m = SIDE,
                            .n = SIDE,
                            .k = SIDE,
                            .alpha = 1,
                            .a = {.buffer = a},
                            .b = {.buffer = b},
                            .c = {.buffer = c}};
}

static struct kn_attention attention_of(void) {
    return (struct kn_attention){.type = KN_F16,
                                 .batch = 1,
                                 .heads = 1,
                                 .kv_heads = 1,
                                 .q_length = 16,
                                 .kv_length = SIDE,
                                 .head_size = SIDE,
                                 .q = {.buffer = a},
                                 .k = {.buffer = b},
                                 .v = {.buffer = b},
                                 .out = {.buffer = c}};
}

static bool is_one_of(const struct kn_variants *table, const char *name) {
    for (size_t i = 0; i < table->count; i++) {
        if (strcmp(table->rows[i].name, name) == 0) return true;
    }
    return false;
}

static void must_be_kept(const struct kn_tuning_key *key, const struct kn_tuned *tuned,
                         const struct kn_variants *table) {
    const struct kn_tuned *kept = kn_tuning_find(tuning, key);
    cr_assert(kept != NULL && strcmp(kept->variant, tuned->variant) == 0);
    cr_assert(is_one_of(table, tuned->variant), "%s", tuned->variant);
    cr_assert(tuned->candidates > 1 && tuned->us > 0 && tuned->us <= tuned->table_us, "%d, %g, %g",
              tuned->candidates, tuned->us, tuned->table_us);
}

Test(tune, each_operation_keeps_its_fastest_variant) {
    const struct kn_gemm gemm = gemm_of();
    const struct kn_grouped grouped = {.type = KN_GROUPED_BF16,
                                       .c_type = KN_GROUPED_BF16,
                                       .m = SIDE,
                                       .n = SIDE,
                                       .k = SIDE,
                                       .alpha = 1,
                                       .a = {.buffer = a},
                                       .b = {.buffer = b},
                                       .c = {.buffer = c}};
    const struct kn_softmax softmax = {
        .type = KN_F32, .rows = SIDE, .columns = SIDE, .in = {a, 0, 0}, .out = {c, 0, 0}};
    const struct kn_norm norm = {.kind = KN_RMSNORM,
                                 .type = KN_BF16,
                                 .affine_type = KN_BF16,
                                 .rows = SIDE,
                                 .columns = SIDE,
                                 .in = {a, 0, 0},
                                 .out = {c, 0, 0},
                                 .weight = {b, 0, 0}};
    const struct kn_attention attention = attention_of();
    struct kn_tuned tuned;
    struct kn_tuning_key key;
    const uint64_t begin_ns = tol_now_ns();
    MUST(kn_tune_gemm(kernels, stream, &gemm, tuning, &tuned));
    cr_assert(tuned.table_us * 1e3 < (double)(tol_now_ns() - begin_ns), "%g us", tuned.table_us);
    MUST(kn_gemm_key(&gemm, &key));
    must_be_kept(&key, &tuned, &kn_gemm_variants);
    MUST(kn_tune_grouped(kernels, stream, &grouped, tuning, &tuned));
    MUST(kn_grouped_key(kernels, &grouped, &key));
    must_be_kept(&key, &tuned, &kn_grouped_variants);
    MUST(kn_tune_softmax(kernels, stream, &softmax, tuning, &tuned));
    MUST(kn_softmax_key(kernels, stream, &softmax, &key));
    must_be_kept(&key, &tuned, &kn_softmax_variants);
    MUST(kn_tune_norm(kernels, stream, &norm, tuning, &tuned));
    MUST(kn_norm_key(kernels, stream, &norm, &key));
    must_be_kept(&key, &tuned, &kn_norm_variants);
    MUST(kn_tune_attention(kernels, stream, &attention, tuning, &tuned));
    MUST(kn_attention_key(&attention, &key));
    must_be_kept(&key, &tuned, &kn_attention_variants);
    cr_assert(kn_tuning_count(tuning) == 5);
}

static const char *picked(const struct kn_gemm *gemm) {
    const struct kn_variant *variant = NULL;
    MUST(kn_gemm_pick(kernels, gemm, &variant));
    return variant->name;
}

Test(tune, what_is_kept_decides_where_it_serves) {
    struct kn_gemm gemm = gemm_of();
    struct kn_tuning_key key;
    const char *const table = picked(&gemm);
    cr_assert_str_neq(table, "naive");
    MUST(kn_gemm_key(&gemm, &key));
    MUST(kn_tuning_add(tuning, &key, &(struct kn_tuned){"naive", 1, 2, 3}));
    cr_assert_str_eq(picked(&gemm), table); /* not used yet */
    kn_kernels_use(kernels, tuning);
    cr_assert_str_eq(picked(&gemm), "naive");
    gemm.n = SIDE - 1; /* another problem */
    cr_assert_str_neq(picked(&gemm), "naive");
    gemm.n = SIDE, gemm.variant = "shared"; /* who names a variant gets it */
    cr_assert_str_eq(picked(&gemm), "shared");
    gemm.variant = NULL, gemm.variants = &kn_gemm_variants;
    cr_assert_str_eq(picked(&gemm), table);
    gemm.variants = NULL;
    static const char *const do_not_serve[] = {"vector", "none_of_them"};
    for (int i = 0; i < 2; i++) {
        struct kn_tuned tuned = {"", 1, 2, 3};
        memcpy(tuned.variant, do_not_serve[i], strlen(do_not_serve[i]) + 1);
        MUST(kn_tuning_add(tuning, &key, &tuned));
        cr_assert_str_eq(picked(&gemm), table);
    }
    kn_kernels_use(kernels, NULL);
    cr_assert_str_eq(picked(&gemm), table);
}

Test(tune, the_other_operations_choose_by_it_too) {
    const struct kn_variant *variant = NULL;
    struct kn_tuning_key key;
    const struct kn_grouped grouped = {.type = KN_GROUPED_F16,
                                       .m = 8,
                                       .n = 8,
                                       .k = 8,
                                       .alpha = 1,
                                       .a = {.buffer = a},
                                       .b = {.buffer = b},
                                       .c = {.buffer = c}};
    const struct kn_softmax softmax = {
        .type = KN_F32, .rows = 3, .columns = 8, .in = {a, 0, 0}, .out = {c, 0, 0}};
    MUST(kn_grouped_key(kernels, &grouped, &key));
    MUST(kn_tuning_add(tuning, &key, &(struct kn_tuned){"naive", 1, 2, 3}));
    MUST(kn_softmax_key(kernels, stream, &softmax, &key));
    MUST(kn_tuning_add(tuning, &key, &(struct kn_tuned){"naive", 1, 2, 3}));
    const struct kn_norm norm = {.type = KN_BF16,
                                 .affine_type = KN_F32,
                                 .rows = 3,
                                 .columns = 8,
                                 .in = {a, 0, 0},
                                 .out = {c, 0, 0}};
    const struct kn_attention attention = attention_of();
    MUST(kn_norm_key(kernels, stream, &norm, &key));
    MUST(kn_tuning_add(tuning, &key, &(struct kn_tuned){"naive", 1, 2, 3}));
    MUST(kn_attention_key(&attention, &key));
    MUST(kn_tuning_add(tuning, &key, &(struct kn_tuned){"naive", 1, 2, 3}));
    kn_kernels_use(kernels, tuning);
    MUST(kn_norm_pick(kernels, stream, &norm, &variant));
    cr_assert_str_eq(variant->entry, "norm_naive_bf16");
    MUST(kn_attention_pick(kernels, &attention, &variant));
    cr_assert_str_eq(variant->entry, "attention_naive_f16");
    MUST(kn_grouped_pick(kernels, &grouped, &variant));
    cr_assert_str_eq(variant->entry, "grouped_naive_f16");
    MUST(kn_softmax_pick(kernels, stream, &softmax, &variant));
    cr_assert_str_eq(variant->entry, "softmax_naive_f32");
    kn_kernels_use(kernels, NULL);
}

Test(tune, what_makes_no_sense_is_refused) {
    struct kn_gemm gemm = gemm_of();
    struct kn_tuned tuned;
    MUST_FAIL(kn_tune_gemm(kernels, stream, NULL, tuning, &tuned), TOL_INVALID_ARGUMENT,
              "needs a problem");
    MUST_FAIL(kn_tune_gemm(kernels, NULL, &gemm, tuning, &tuned), TOL_INVALID_ARGUMENT, "a stream");
    gemm.variant = "naive";
    MUST_FAIL(kn_tune_gemm(kernels, stream, &gemm, tuning, &tuned), TOL_INVALID_ARGUMENT,
              "names no variant");
    gemm = gemm_of(), gemm.k = 2 * BYTES;
    MUST_FAIL(kn_tune_gemm(kernels, stream, &gemm, tuning, &tuned), TOL_OUT_OF_RANGE, "a is 1");
    MUST_FAIL(kn_tune_identity(NULL, NULL, NULL), TOL_INVALID_ARGUMENT, "a context");
    cr_assert(kn_tuning_count(tuning) == 0);
}
