/*
 * attention: results that need no rounding are exact, by every kernel, and the check sees a fault.
 */
#include "attention/forward/attention_exact.h"

#include "attention/forward/attention_trial.h"
#include "test/test_device.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

TestSuite(attention_exact, .fini = test_end);

struct arrays {
    size_t rows, keys; /* elements of q and out, and of k and v */
    float *values;
    struct kn_attention_exact_problem problem;
    float *out;
};

static struct arrays make(const struct kn_attention *x, enum kn_attention_exact exact,
                          uint64_t seed) {
    struct arrays a = {.rows = x->batch * x->heads * x->q_length * x->head_size,
                       .keys = x->batch * x->kv_heads * x->kv_length * x->head_size};
    a.values = calloc(2 * a.rows + 2 * a.keys + 1, sizeof *a.values);
    cr_assert(a.values != NULL);
    a.out = a.values + a.rows;
    a.problem = (struct kn_attention_exact_problem){a.values, a.values + 2 * a.rows,
                                                    a.values + 2 * a.rows + a.keys};
    kn_attention_exact_fill(x, exact, seed, &a.problem);
    return a;
}

static struct kn_deviation check(const struct kn_attention *x, enum kn_attention_exact exact,
                                 uint64_t seed, const struct arrays *a) {
    struct kn_deviation d;
    cr_assert(kn_attention_exact_check(x, exact, seed, a->problem.v, a->out, &d));
    return d;
}

static const struct {
    size_t heads, kv_heads, rows, keys, head_size;
    bool causal;
} shapes[] = {{2, 1, 1, 1, 64, false},    {2, 2, 8, 128, 64, false}, {4, 2, 8, 70, 128, true},
              {2, 1, 70, 130, 64, true},  {1, 1, 65, 64, 80, false}, {2, 1, 40, 17, 96, true},
              {1, 1, 4, 256, 256, false}, {2, 2, 3, 1029, 64, true}};

static bool serves(const char *variant, enum kn_type type, size_t rows, size_t group) {
    if (strcmp(variant, "tiled") == 0) return type == KN_F32;
    if (strcmp(variant, "decode") == 0) return rows <= 8;
    if (strcmp(variant, "naive") == 0) return rows <= 8;
    if (type == KN_F32 || tol_context_device(test_context())->compute_capability < 80) return false;
    return strcmp(variant, "grouped") != 0 || rows * group <= 16;
}

static void try_exact(const char *variant) {
    struct kn_kernels *kernels;
    struct tol_stream *stream;
    size_t tried = 0;
    MUST(kn_kernels_create(test_context(), &kernels));
    MUST(tol_stream_create(test_context(), NULL, &stream));
    for (unsigned i = 0; i < KN_TYPES * 2 * 8; i++) {
        const enum kn_type type = i % KN_TYPES;
        const enum kn_attention_exact exact = i / KN_TYPES % 2;
        const size_t s = i / KN_TYPES / 2;
        struct kn_attention_trial trial = {.attention = {.type = type,
                                                         .batch = 1 + s % 2,
                                                         .heads = shapes[s].heads,
                                                         .kv_heads = shapes[s].kv_heads,
                                                         .q_length = shapes[s].rows,
                                                         .kv_length = shapes[s].keys,
                                                         .head_size = shapes[s].head_size,
                                                         .causal = shapes[s].causal,
                                                         .variant = variant},
                                           .workspace = exact == KN_ATTENTION_CHOSEN};
        const struct kn_attention *x = &trial.attention;
        if (!serves(variant, type, x->q_length, x->heads / x->kv_heads)) continue;
        tried++;
        if (!test_takes_trial()) continue;
        struct arrays a = make(x, exact, 31 + i);
        struct kn_attention_outcome outcome;
        char text[400];
        trial.given[0] = a.problem.q, trial.given[1] = a.problem.k, trial.given[2] = a.problem.v;
        trial.result = a.out;
        MUST(kn_attention_try(kernels, stream, &trial, &outcome));
        const struct kn_deviation d = check(x, exact, 31 + i, &a);
        cr_assert(outcome.deviation.failed == 0 && outcome.touched == 0);
        cr_assert(d.count == a.rows && d.failed == 0, "%s %s, shape %zu, kind %d: %s", variant,
                  kn_type_name(type), s, (int)exact, kn_deviation_text(&d, text, sizeof text));
        free(a.values);
    }
    tol_stream_destroy(stream);
    kn_kernels_destroy(kernels);
    if (tried == 0) cr_skip_test("the device has no such kernel");
}

Test(attention_exact, naive_gives_every_bit) {
    try_exact("naive");
}

Test(attention_exact, tiled_gives_every_bit) {
    try_exact("tiled");
}

Test(attention_exact, tensor_gives_every_bit) {
    try_exact("tensor");
}

Test(attention_exact, decode_gives_every_bit) {
    try_exact("decode");
}

Test(attention_exact, grouped_gives_every_bit) {
    try_exact("grouped");
}

/* The mean of the values from key `first` on, or zeros. */
static void mean_of(const struct kn_attention *x, const struct arrays *a, size_t first,
                    size_t count, float divisor) {
    for (size_t d = 0; d < x->head_size; d++) {
        double sum = 0;
        for (size_t j = first; j < first + count; j++) {
            sum += (double)a->problem.v[j * x->head_size + d];
        }
        a->out[d] = (float)(sum / (double)divisor);
    }
}

/* Goal: at the length of a long sequence one lost key of 65536 is found, and all that is worse. */
Test(attention_exact, one_lost_key_of_65536_is_found) {
    const struct kn_attention x = {.type = KN_F32,
                                   .batch = 1,
                                   .heads = 1,
                                   .kv_heads = 1,
                                   .q_length = 1,
                                   .kv_length = 65536,
                                   .head_size = 64};
    struct arrays a = make(&x, KN_ATTENTION_EQUAL, 3);
    mean_of(&x, &a, 0, 65536, 65536);
    cr_assert(check(&x, KN_ATTENTION_EQUAL, 3, &a).failed == 0);
    mean_of(&x, &a, 0, 65535, 65535); /* the last key is not seen */
    cr_assert(check(&x, KN_ATTENTION_EQUAL, 3, &a).failed > 32);
    mean_of(&x, &a, 0, 65536 - 4096, 65536); /* the values of a share are lost */
    cr_assert(check(&x, KN_ATTENTION_EQUAL, 3, &a).failed > 32);
    memset(a.out, 0, 64 * sizeof *a.out);
    cr_assert(check(&x, KN_ATTENTION_EQUAL, 3, &a).failed > 32);
    free(a.values);
}

/* If the window is one key, a row attends to its own key only; q contains the code of that key. */
Test(attention_exact, a_window_of_one_key_leaves_a_rows_own) {
    enum { LENGTH = 9, HEAD = 64, CODE = 16 };
    const struct kn_attention x = {.batch = 1,
                                   .heads = 1,
                                   .kv_heads = 1,
                                   .q_length = LENGTH,
                                   .kv_length = LENGTH,
                                   .head_size = HEAD,
                                   .causal = true,
                                   .window = 1};
    struct arrays a = make(&x, KN_ATTENTION_CHOSEN, 6);
    for (size_t row = 0; row < LENGTH; row++) {
        for (size_t d = 0; d < CODE; d++) {
            const float wanted = (row >> d & 1) != 0 ? 0x1p10f : -0x1p10f;
            cr_assert(a.problem.q[row * HEAD + d] == wanted, "row %zu", row);
        }
    }
    free(a.values);
}

/* Goal: in each type one wrong element of a row that is one value is found, and a row that took
 * the next key. */
Test(attention_exact, one_wrong_element_and_a_wrong_key_are_found) {
    for (enum kn_type type = 0; type < KN_TYPES; type++) {
        const struct kn_attention x = {.type = type,
                                       .batch = 1,
                                       .heads = 1,
                                       .kv_heads = 1,
                                       .q_length = 1,
                                       .kv_length = 9,
                                       .head_size = 64};
        struct arrays a = make(&x, KN_ATTENTION_CHOSEN, 4);
        size_t right = 0;
        for (size_t key = 0; key < 9; key++) {
            mean_of(&x, &a, key, 1, 1);
            right += check(&x, KN_ATTENTION_CHOSEN, 4, &a).failed == 0;
            a.out[17] += 1;
            cr_assert(check(&x, KN_ATTENTION_CHOSEN, 4, &a).failed > 0);
        }
        cr_assert(right == 1, "%zu keys pass", right);
        free(a.values);
    }
}
