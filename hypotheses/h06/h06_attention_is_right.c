/* H6: attention results are within their error bounds. `tollens explain H6` prints this text. */
#include "accuracy/accuracy.h"
#include "harness/attack.h"
#include "attention/forward/attention_exact.h"
#include "attention/forward/attention_oracle.h"
#include "attention/forward/attention_trial.h"
#include "harness/claim.h"
#include "harness/sabotage.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

HYP_WORDS(
    6, .is_measured = true,
    .claim = "Attention in fp32, fp16 and bf16 is within 1e-2 of the definition in double, for "
             "values from -1 to 1, queries and keys normally distributed with standard deviation "
             "1, and the usual scale, and within 1e-2 of PyTorch's results for its fixtures. For "
             "any other data each element is within the bound derived for it. The results of e4m3 "
             "and the gradients of q, k and v are within such bounds for all data. Results that "
             "need no rounding are exact.",
    .prediction = "In that domain, with a reference computed from the elements as stored: fp32 "
                  "1e-5, fp16 2e-3, bf16 8e-3. Others are within their bounds.",
    .falsified_if =
        "an element in the domain, or of a fixture, is off by 1e-2 or more; an element of any "
        "problem or gradient, or the logarithm of a row's sum, exceeds its bound or is never "
        "written; an exact result has a wrong bit; or a byte outside the rows changes.",
    .method = "Every kernel that supports the problem solves problems that PyTorch has solved, in "
              "float64 and with its own attention, and random ones: lengths around tile sizes and "
              "primes, more and fewer rows than keys, a single row, causal or not, with a window, "
              "shared heads, row padding, seven distributions, scores in the thousands. The "
              "output is filled with NaN, has NaN between its rows, and lies between guard zones. "
              "The reference is the definition in double. Bounds for random data fail with a "
              "probability below 1e-9 in a whole run (attention_oracle.c, chance.h); those for "
              "other data are the worst case, and so are those of gradients "
              "(h06_gradients_are_right.c). Sequences are also packed beside others of NaN and "
              "infinities (h06_packed_is_right.c), or lie in pages (h06_paged_is_right.c); heads "
              "in e4m3 have scales (h06_e4m3_is_right.c). In exact problems all scores of a row "
              "are equal, so the result is the mean of whole numbers, or one score is so large "
              "that the result is one value (attention_exact.h). All deviations are in CSV files.",
    .control = "Thirty-four saboteurs, all but two kernels with one defect; each must be found. "
               "The reference itself is compared with PyTorch's float64 results.",
    .confounders = "Errors grow with the size of values and scores, so the claim's number has a "
                   "domain, and with other data the bound decides. Rounding a result to bf16 alone "
                   "causes errors of up to 2e-3. The seed is in the evidence.")

/* What describes a trial in the error table. */
static const char columns[] =
    "distribution,scale,causal,window,batch,heads,kv_heads,rows,keys,head_size,"
    "inside,gap,skew,seed";

/* Under a saboteur called attention_DEFECT, problems of its kind use the kernel of that defect. */
static void attention_plant(const struct hyp_attack *attack, struct kn_attention_trial *trial) {
    const char *mistake = hyp_sabotage_mistake(attack->session.sabotage, "attention");
    struct kn_attention *x = &trial->attention;
    trial->swaps_last = hyp_sabotage_turn(attack->session.sabotage, "attention_swap_one_in");
    const bool is_kind =
        x->type == KN_F16 && x->head_size == 64 && trial->skew % 8 == 0 && trial->gap % 8 == 0;
    if (mistake == NULL || !is_kind) return;
    x->variants = &kn_attention_defects, x->variant = mistake;
}

/* Whether the claim's threshold applies to a problem. */
static bool attention_in_domain(const struct kn_attention_trial *trial) {
    return trial->given[0] == NULL && trial->distribution == KN_NORMAL &&
           (trial->scale == 0 || trial->scale == 1) && trial->attention.scale == 0 &&
           trial->values == KN_UNIFORM && (trial->values_scale == 0 || trial->values_scale == 1);
}

/* The worst error in the domain of an attack's problems; each attack has its own process. */
static double worst_in_domain = -1;

static void attention_measure_domain(struct hyp_attack *attack, const char *what) {
    if (worst_in_domain >= 0 && isfinite(worst_in_domain)) {
        hyp_attack_measure(attack, worst_in_domain, "%s, -1 to 1", what);
    }
}

/* Tries a problem. false: it could not be solved, or an element was wrong. */
static bool attention_try_one(struct hyp_accuracy *accuracy, struct kn_attention_trial *trial,
                              struct kn_attention_outcome *outcome) {
    char path[32], text[400];
    struct hyp_attack *attack = accuracy->attack;
    const struct kn_attention *x = &trial->attention;
    trial->seed = hyp_random(attack);
    snprintf(path, sizeof path, "%s %s", kn_type_name(x->type),
             x->variant != NULL ? x->variant : "chosen");
    attention_plant(attack, trial);
    if (!HYP_OK(attack, kn_attention_try(accuracy->kernels, accuracy->stream, trial, outcome))) {
        return false;
    }
    hyp_error_table_add(&accuracy->errors, path, &outcome->deviation,
                        "%s,%g,%d,%zu,%zu,%zu,%zu,%zu,%zu,%zu,%d,%zu,%zu,%llu",
                        trial->given[0] != NULL ? "given"
                                                : kn_distribution_name(trial->distribution),
                        trial->scale, (int)x->causal, x->window, x->batch, x->heads, x->kv_heads,
                        x->q_length, x->kv_length, x->head_size, (int)trial->heads_inside,
                        trial->gap, trial->skew, (unsigned long long)trial->seed);
    if (attention_in_domain(trial))
        worst_in_domain = fmax(worst_in_domain, outcome->deviation.absolute);
    HYP_CHECK(attack, outcome->lse.failed == 0,
              "%s, %zu rows, %zu keys: logarithms of the rows' sums: %s", path, x->q_length,
              x->kv_length, kn_deviation_text(&outcome->lse, text, sizeof text));
    return HYP_CHECK(attack, outcome->touched == 0, "%s: %zu bytes outside the rows changed", path,
                     outcome->touched);
}

/* ---- PyTorch --------------------------------------------------------------------------------- */

/* A file of fixtures/attention: see its README. */
struct fixture {
    struct kn_attention problem;
    float *inputs[3];
    const double *exact; /* by PyTorch in float64 */
    float *library;      /* by scaled_dot_product_attention in the type */
    size_t counts[3], out_count;
    char *bytes;
};

static const char *const fixtures[] = {
    "full",        "causal", "causal_to_the_end", "no_key_at_first",
    "overflowing", "half",   "half_causal",       "half_overflowing",
    "half_decode", "bfloat", "bfloat_causal",     "bfloat_wide"};
enum { FIXTURES = sizeof fixtures / sizeof fixtures[0] };

/* Parses a line such as "f32 0 2 2 2 9 17 64 0.0"; *data is what follows it. */
static bool parse_header(struct fixture *f, const char **data) {
    struct kn_attention *x = &f->problem;
    size_t causal = 0, *const numbers[] = {&causal,      &x->batch,     &x->heads,    &x->kv_heads,
                                           &x->q_length, &x->kv_length, &x->head_size};
    const size_t length = strcspn(f->bytes, " ");
    while (x->type < KN_TYPES && (strlen(kn_type_name(x->type)) != length ||
                                  strncmp(kn_type_name(x->type), f->bytes, length) != 0)) {
        x->type++;
    }
    char *at = f->bytes + length;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        *numbers[i] = strtoul(at, &at, 10);
    }
    x->scale = strtof(at, &at);
    x->causal = causal != 0;
    *data = at + 1;
    return x->type < KN_TYPES && x->head_size > 0 && x->kv_heads > 0 && *at == '\n';
}

static const char *load_values(enum kn_type type, const char *data, size_t count, float **values) {
    *values = malloc((count + 1) * sizeof **values);
    cr_assert(*values != NULL, "no memory for %zu values", count);
    kn_numbers_load(type, data, count, *values);
    return data + count * kn_type_bytes(type);
}

static bool open_fixture(struct hyp_attack *attack, const char *name, struct fixture *f) {
    char path[128];
    size_t bytes = 0;
    const char *data = NULL;
    *f = (struct fixture){0};
    snprintf(path, sizeof path, "fixtures/attention/%s.attention", name);
    f->bytes = hyp_attack_file(attack, path, &bytes);
    if (f->bytes == NULL) return false;
    const struct kn_attention *x = &f->problem;
    if (!HYP_CHECK(attack, parse_header(f, &data), "%s has no header", path)) return false;
    f->out_count = x->batch * x->heads * x->q_length * x->head_size;
    f->counts[0] = f->out_count,
    f->counts[1] = f->counts[2] = x->batch * x->kv_heads * x->kv_length * x->head_size;
    const size_t element = kn_type_bytes(x->type);
    const size_t expected = (size_t)(data - f->bytes) + f->out_count * sizeof(double) +
                            (2 * f->out_count + 2 * f->counts[1]) * element;
    if (!HYP_CHECK(attack, bytes == expected, "%s has %zu bytes, expected %zu", path, bytes,
                   expected)) {
        return false;
    }
    for (int i = 0; i < 3; i++) data = load_values(x->type, data, f->counts[i], &f->inputs[i]);
    double *exact =
        malloc((f->out_count + 1) * sizeof *exact); /* in the file they are not aligned */
    cr_assert(exact != NULL, "no memory for %zu values", f->out_count);
    f->exact = memcpy(exact, data, f->out_count * sizeof *exact);
    load_values(x->type, data + f->out_count * sizeof *exact, f->out_count, &f->library);
    return true;
}

static void close_fixture(struct fixture *f) {
    for (int i = 0; i < 3; i++) free(f->inputs[i]);
    free((void *)(uintptr_t)f->exact);
    free(f->library);
    free(f->bytes);
}

/* Compares the reference, by which everything else is judged, with PyTorch's float64. */
static void hold_oracle(struct hyp_attack *attack, const struct fixture *f, const char *name) {
    const struct kn_attention *x = &f->problem;
    const size_t width = x->head_size, group = x->heads / x->kv_heads;
    double out[256], allowed[256], worst = 0;
    struct kn_attention_row row = {.out = out, .allowed = allowed};
    for (size_t i = 0; i < f->out_count / width; i++) {
        const size_t head = i / x->q_length, kv = head / group;
        const struct kn_attention_head rows = {f->inputs[0] + head * x->q_length * width,
                                               f->inputs[1] + kv * x->kv_length * width,
                                               f->inputs[2] + kv * x->kv_length * width};
        cr_assert(kn_attention_oracle(x, KN_ATTENTION_ANY, &rows, i % x->q_length, &row));
        for (size_t d = 0; d < width; d++) {
            worst = fmax(worst, fabs(out[d] - f->exact[i * width + d]));
        }
    }
    HYP_CHECK(attack, worst < 1e-12, "%s: the reference differs from PyTorch's float64 by %g", name,
              worst);
}

/* The larger of two errors; a NaN counts as infinity. */
static double attention_worse(double worst, double error) {
    return error <= INFINITY ? fmax(worst, error) : INFINITY;
}

/* NULL: the library chooses. */
static const struct {
    size_t count;
    const char *names[6];
} variants_of[KN_TYPES] = {{4, {NULL, "tiled", "decode", "naive"}},
                           {6, {NULL, "tensor", "decode", "naive", "grouped", "wgmma"}},
                           {6, {NULL, "tensor", "decode", "naive", "grouped", "wgmma"}}};

/* Whether a variant supports few rows only. */
static bool takes_few(const char *variant) {
    return variant != NULL && (strcmp(variant, "decode") == 0 || strcmp(variant, "grouped") == 0);
}

static bool attention_has(const struct hyp_attack *attack, const char *variant, size_t rows,
                          size_t group, size_t head_size) {
    const int capability = tol_context_device(attack->context)->compute_capability;
    if (variant == NULL || strcmp(variant, "naive") == 0) return true;
    if (strcmp(variant, "decode") == 0) return rows <= 8;
    if (variant[0] == 'w') return capability == 90 && head_size % 8 == 0;
    return capability >= 80 && (strcmp(variant, "grouped") != 0 || rows * group <= 16);
}

static void hold_kernels(struct hyp_accuracy *accuracy, const struct fixture *f, const char *name) {
    struct hyp_attack *attack = accuracy->attack;
    float *got = malloc((f->out_count + 1) * sizeof *got);
    double exact = 0, library = 0;
    cr_assert(got != NULL, "no memory for %zu values", f->out_count);
    const struct kn_attention *x = &f->problem;
    for (size_t v = 0; v < variants_of[x->type].count; v++) {
        const char *variant = variants_of[x->type].names[v];
        if (!attention_has(attack, variant, x->q_length, x->heads / x->kv_heads, x->head_size))
            continue;
        struct kn_attention_outcome outcome;
        struct kn_attention_trial trial = {.attention = f->problem,
                                           .given = {f->inputs[0], f->inputs[1], f->inputs[2]},
                                           .lse = true,
                                           .workspace = true,
                                           .result = got};
        trial.attention.variant = variant;
        if (!attention_try_one(accuracy, &trial, &outcome)) break;
        for (size_t i = 0; i < f->out_count; i++) {
            exact = attention_worse(exact, fabs((double)got[i] - f->exact[i]));
            library = attention_worse(library, fabs((double)got[i] - (double)f->library[i]));
        }
    }
    if (isfinite(exact) && isfinite(library)) {
        hyp_attack_measure(attack, exact, "%s, from PyTorch's float64", name);
        hyp_attack_measure(attack, library, "%s, from PyTorch's own attention", name);
    }
    free(got);
}

HYP_ATTACK(h06, what_pytorch_makes_of_them_comes_out) {
    struct hyp_accuracy accuracy;
    if (hyp_accuracy_begin(&accuracy, attack, "attention", columns)) {
        for (size_t i = 0; i < FIXTURES; i++) {
            struct fixture f;
            if (open_fixture(attack, fixtures[i], &f)) {
                hold_oracle(attack, &f, fixtures[i]);
                hold_kernels(&accuracy, &f, fixtures[i]);
            }
            close_fixture(&f);
            hyp_attack_progress(attack, (double)(i + 1) / FIXTURES);
        }
    }
    hyp_accuracy_end(&accuracy);
}

/* ---- the number of the claim ----------------------------------------------------------------- */

static const size_t head_sizes[] = {64, 80, 96, 128, 256};

/* Measures the worst error of each type's kernels: q and k normally distributed, v from -1 to 1. */
HYP_ATTACK(h06, values_of_unit_size_are_within_a_hundredth) {
    struct hyp_accuracy accuracy;
    const size_t most = attack->session.full && attack->kind != HYP_DEVICE_SOFT ? 1000 : 130;
    const bool begins = hyp_accuracy_begin(&accuracy, attack, "attention", columns);
    for (enum kn_type type = 0; begins && type < KN_TYPES; type++) {
        for (size_t i = 0; i < 5; i++) {
            double worst = 0;
            for (size_t v = 0; v < variants_of[type].count; v++) {
                const char *variant = variants_of[type].names[v];
                const size_t rows = takes_few(variant) ? 3 : most / 2 + 3;
                struct kn_attention_outcome outcome;
                struct kn_attention_trial trial = {.attention = {.type = type,
                                                                 .batch = 1,
                                                                 .heads = 2,
                                                                 .kv_heads = 1,
                                                                 .q_length = rows,
                                                                 .kv_length = most + i,
                                                                 .head_size = head_sizes[i],
                                                                 .causal = i % 2 == 0,
                                                                 .variant = variant},
                                                   .distribution = KN_NORMAL,
                                                   .values = KN_UNIFORM,
                                                   .workspace = true};
                /* The naive kernel is slow on the soft device. */
                if (variant != NULL && strcmp(variant, "naive") == 0 && i != 0) continue;
                if (!attention_has(attack, variant, rows, 2, head_sizes[i])) continue;
                if (!attention_try_one(&accuracy, &trial, &outcome)) continue;
                worst = fmax(worst, outcome.deviation.absolute);
            }
            if (!isfinite(worst)) continue;
            hyp_attack_measure(attack, worst, "%s, heads of %zu", kn_type_name(type),
                               head_sizes[i]);
        }
        hyp_attack_progress(attack, (type + 1.0) / KN_TYPES);
    }
    hyp_accuracy_end(&accuracy);
}

/* ---- everything else ------------------------------------------------------------------------- */

static size_t draw_length(struct hyp_attack *attack) {
    static const size_t lengths[] = {1, 2, 5, 16, 17, 31, 33, 63, 64, 65, 97, 127, 128, 129, 150};
    return lengths[hyp_random_below(attack, sizeof lengths / sizeof lengths[0])];
}

/* Scores of thousands where q and k are large: exp overflows a float from 89 on. */
static struct kn_attention_trial attention_draw_trial(struct hyp_attack *attack, enum kn_type type,
                                                      const char *variant) {
    const bool any = variant != NULL && strcmp(variant, "naive") == 0, few = takes_few(variant);
    const size_t kv_heads = 1 + hyp_random_below(attack, 2);
    const bool causal = hyp_random_below(attack, 2) == 0;
    /* Kernels for few rows support a window of one. */
    const size_t most = 1 + hyp_random_below(attack, 140), above = hyp_random_below(attack, most);
    const size_t window = causal && hyp_random_below(attack, 2) == 0 ? 1 + above : 0;
    const enum kn_distribution distribution = hyp_random_below(attack, KN_DISTRIBUTIONS);
    /* Half of the problems have heads of 64 elements, as the kernels with a defect need. */
    const size_t size =
        hyp_random_below(attack, 2) == 0 ? 64
        : any                            ? 1 + hyp_random_below(attack, 130)
              : head_sizes[attention_has(attack, variant, 1, 1, 96) ? hyp_random_below(attack, 5)
                                                                    : 3];
    return (struct kn_attention_trial){
        .attention = {.type = type,
                      .batch = 1 + (hyp_random_below(attack, 4) == 0),
                      .heads = kv_heads * (1 + hyp_random_below(attack, 2)),
                      .kv_heads = kv_heads,
                      .q_length = few ? 1 + hyp_random_below(attack, window > 0 ? 1 : 8)
                                      : draw_length(attack),
                      .kv_length = few && hyp_random_below(attack, 2) == 0
                                       ? 1 + hyp_random_below(attack, 900)
                                       : draw_length(attack) + (window > 0 ? 150 : 0),
                      .head_size = size,
                      .causal = causal,
                      .window = window,
                      .scale = hyp_random_below(attack, 3) == 0 ? 0.31f : 0,
                      .variant = variant},
        .distribution = distribution,
        .values = hyp_random_below(attack, 2) == 0 ? KN_UNIFORM : distribution,
        .scale = distribution == KN_LARGE           ? 0x1p-5
                 : hyp_random_below(attack, 3) == 0 ? 20
                                                    : 1,
        .values_scale = 1,
        .heads_inside = hyp_random_below(attack, 2) == 0,
        .gap = any ? hyp_random_below(attack, 5) : 8 * hyp_random_below(attack, 3),
        .skew = any ? hyp_random_below(attack, 9) : 0,
        .lse = hyp_random_below(attack, 2) == 0,
        .workspace = hyp_random_below(attack, 2) == 0};
}

static void attention_try_type(struct hyp_attack *attack, enum kn_type type) {
    struct hyp_accuracy accuracy;
    const int turns = attack->session.full ? 150 : 6;
    if (hyp_accuracy_begin(&accuracy, attack, "attention", columns)) {
        const size_t count = variants_of[type].count;
        for (size_t v = 0; v < count; v++) {
            const char *variant = variants_of[type].names[v];
            for (int i = 0; attention_has(attack, variant, 1, 1, 64) && i < turns; i++) {
                struct kn_attention_outcome outcome;
                struct kn_attention_trial trial = attention_draw_trial(attack, type, variant);
                attention_try_one(&accuracy, &trial, &outcome);
                hyp_attack_progress(attack, ((double)v + (i + 1.0) / turns) / (double)count);
            }
        }
    }
    hyp_accuracy_end(&accuracy);
    attention_measure_domain(attack, kn_type_name(type));
}

HYP_ATTACK(h06, fp32_of_any_shape_is_within_its_bound) {
    attention_try_type(attack, KN_F32);
}

HYP_ATTACK(h06, fp16_of_any_shape_is_within_its_bound) {
    attention_try_type(attack, KN_F16);
}

HYP_ATTACK(h06, bf16_of_any_shape_is_within_its_bound) {
    attention_try_type(attack, KN_BF16);
}

/* Lengths from real programs; one head, because the reference is slow. */
HYP_ATTACK(h06, long_sequences_are_within_their_bounds) {
    static const size_t lengths[][2] = {{4096, 4096}, {1031, 4093}, {1, 65536}, {8, 32771}};
    const bool is_small = !attack->session.full || attack->kind == HYP_DEVICE_SOFT;
    struct hyp_accuracy accuracy;
    if (is_small) hyp_attack_note(attack, "long sequences need a GPU and full mode: tried 300");
    if (hyp_accuracy_begin(&accuracy, attack, "attention", columns)) {
        for (size_t i = 0; i < (is_small ? 1 : 4); i++) {
            for (enum kn_type type = 0; type < KN_TYPES; type++) {
                struct kn_attention_outcome outcome;
                struct kn_attention_trial trial = {
                    .attention = {.type = type,
                                  .batch = 1,
                                  .heads = 1,
                                  .kv_heads = 1,
                                  .q_length = is_small ? 300 : lengths[i][0],
                                  .kv_length = is_small ? 300 : lengths[i][1],
                                  .head_size = is_small ? 64 : 128,
                                  .causal = true},
                    .distribution = KN_NORMAL,
                    .values = KN_UNIFORM,
                    .lse = true,
                    .workspace = true};
                attention_try_one(&accuracy, &trial, &outcome);
            }
            hyp_attack_progress(attack, (double)(i + 1) / 4);
        }
    }
    hyp_accuracy_end(&accuracy);
    attention_measure_domain(attack, "long sequences");
}

/* ---- exact results --------------------------------------------------------------------------- */

/* Solves an exact problem and compares it to the bit. */
static void try_exact(struct hyp_accuracy *accuracy, struct kn_attention_trial *trial,
                      enum kn_attention_exact exact) {
    const struct kn_attention *x = &trial->attention;
    struct hyp_attack *attack = accuracy->attack;
    const size_t rows = x->batch * x->heads * x->q_length * x->head_size;
    const size_t keys = x->batch * x->kv_heads * x->kv_length * x->head_size;
    const uint64_t seed = hyp_random(attack);
    struct kn_attention_outcome outcome;
    struct kn_deviation deviation;
    char text[400];
    float *values = malloc((2 * rows + 2 * keys) * sizeof *values);
    cr_assert(values != NULL, "no memory for %zu values", 2 * rows + 2 * keys);
    const struct kn_attention_exact_problem problem = {values, values + 2 * rows,
                                                       values + 2 * rows + keys};
    kn_attention_exact_fill(x, exact, seed, &problem);
    trial->given[0] = problem.q, trial->given[1] = problem.k, trial->given[2] = problem.v;
    trial->result = values + rows;
    if (attention_try_one(accuracy, trial, &outcome)) {
        cr_assert(kn_attention_exact_check(x, exact, seed, problem.v, trial->result, &deviation));
        HYP_CHECK(attack, deviation.failed == 0, "%s %s, %zu rows, %zu keys, %s: not exact: %s",
                  kn_type_name(x->type), x->variant != NULL ? x->variant : "chosen", x->q_length,
                  x->kv_length,
                  exact == KN_ATTENTION_EQUAL ? "equal scores" : "one key above all others",
                  kn_deviation_text(&deviation, text, sizeof text));
    }
    free(values);
}

/* Equal scores, every second time over 128 keys; or chosen keys, more than fit in a tile. */
static struct kn_attention_trial draw_exact(struct hyp_attack *attack, enum kn_type type,
                                            const char *variant, int turn) {
    struct kn_attention_trial trial = attention_draw_trial(attack, type, variant);
    struct kn_attention *x = &trial.attention;
    if (x->head_size < 16 || turn % 4 == 1) x->head_size = 64;
    if (turn % 2 == 0) trial.workspace = false;
    if (turn % 4 == 0) x->kv_length = 128, x->causal = false, x->window = 0;
    if (turn % 2 == 1) x->kv_length += 150, x->q_length += takes_few(variant) ? 0 : 16;
    return trial;
}

HYP_ATTACK(h06, results_that_need_no_rounding_are_exact) {
    struct hyp_accuracy accuracy;
    const int turns = attack->session.full ? 40 : 2;
    if (hyp_accuracy_begin(&accuracy, attack, "attention", columns)) {
        for (enum kn_type type = 0; type < KN_TYPES; type++) {
            for (size_t v = 0; v < variants_of[type].count; v++) {
                const char *variant = variants_of[type].names[v];
                for (int i = 0; attention_has(attack, variant, 1, 1, 64) && i < turns; i++) {
                    struct kn_attention_trial trial = draw_exact(attack, type, variant, i);
                    try_exact(&accuracy, &trial, (enum kn_attention_exact)(i % 2));
                }
            }
            hyp_attack_progress(attack, (type + 1.0) / KN_TYPES);
        }
    }
    hyp_accuracy_end(&accuracy);
}
