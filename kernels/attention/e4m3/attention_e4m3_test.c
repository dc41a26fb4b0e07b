/*
 * attention over numbers of 8 bits: the definition within its bounds, the bits of fp16 where scores
 * are exact, and what is refused.
 */
#include "attention/e4m3/attention_e4m3.h"

#include "attention/e4m3/attention_e4m3_oracle.h"
#include "guarded.h"
#include "inputs.h"
#include "kernel_scene.h"
#include "test/test_device.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

TestSuite(attention_e4m3, .init = kernel_scene_begin, .fini = kernel_scene_end);

enum { BATCH = 2, HEADS = 4, KINDS = 3, GAP = 16, NUMBERS = BATCH * HEADS };

/* Rows of q, k and v, each with one head after the other and a gap. */
struct scene {
    enum kn_type type; /* of out */
    size_t head_size, kv_heads, rows[KINDS], heads[KINDS];
    bool causal, is_whole; /* is_whole: small whole numbers, and scales that are powers of two */
    size_t window;
    float *values[KINDS]; /* without gaps, [batch][head][row][element] */
    float scales[KINDS][NUMBERS];
    struct kn_guarded operand[KINDS], halves[KINDS], out, out_of_halves;
    struct tol_buffer *scale[KINDS], *lse, *lse_of_halves;
};

static size_t pitch(const struct scene *s, int kind) {
    return s->heads[kind] * s->head_size + GAP;
}

static size_t out_bytes(const struct scene *s) {
    return BATCH * s->rows[0] * pitch(s, 0) * sizeof(uint16_t);
}

static size_t lse_count(const struct scene *s) {
    return BATCH * HEADS * s->rows[0];
}

/* Element i of all of a kind: its place with gaps, and its head of all batches. */
static size_t place_of(const struct scene *s, int kind, size_t i, size_t *head) {
    const size_t d = s->head_size, row = i / d % s->rows[kind];
    *head = i / d / s->rows[kind];
    const size_t batch = *head / s->heads[kind], of_batch = *head % s->heads[kind];
    return (batch * s->rows[kind] + row) * pitch(s, kind) + of_batch * d + i % d;
}

/* Gaps are NaN. Halves have the scales. */
static void make_operand(struct scene *s, int kind, uint64_t *random) {
    const size_t count = BATCH * s->heads[kind] * s->rows[kind] * s->head_size;
    const size_t room = BATCH * s->rows[kind] * pitch(s, kind);
    uint8_t *bytes = malloc(room);
    uint16_t *halves = malloc(room * sizeof *halves);
    s->values[kind] = malloc(count * sizeof(float));
    cr_assert(bytes != NULL && halves != NULL && s->values[kind] != NULL);
    memset(bytes, 0x7f, room), memset(halves, 0xff, room * sizeof *halves);
    kn_inputs_draw(KN_NORMAL, random, 1, s->values[kind], count);
    for (size_t i = 0; i < NUMBERS; i++) {
        const float drawn = 0.25f + (float)((i * 5 + (size_t)kind) % 7) / 4;
        s->scales[kind][i] = s->is_whole ? ldexpf(1, (int)i % 3 - 1) : drawn;
    }
    for (size_t i = 0; i < count; i++) {
        size_t head = 0;
        const size_t at = place_of(s, kind, i, &head);
        float *value = &s->values[kind][i];
        if (s->is_whole) *value = fminf(fmaxf(rintf(*value), -2), 2);
        bytes[at] = kn_e4m3_of(*value);
        *value = kn_e4m3_value(bytes[at]);
        halves[at] = kn_f16_of(*value * s->scales[kind][head]);
    }
    MUST(kn_guarded_create(test_context(), room, 0, &s->operand[kind]));
    MUST(kn_guarded_write(&s->operand[kind], bytes));
    MUST(kn_guarded_create(test_context(), room * sizeof *halves, 0, &s->halves[kind]));
    MUST(kn_guarded_write(&s->halves[kind], halves));
    MUST(tol_buffer_create(test_context(), NUMBERS, sizeof(float), &s->scale[kind]));
    MUST(tol_buffer_write(s->scale[kind], s->scales[kind], sizeof s->scales[kind]));
    free(bytes);
    free(halves);
}

static void begin(struct scene *s, size_t q_length, size_t kv_length, uint64_t seed) {
    for (int kind = 0; kind < KINDS; kind++) {
        s->rows[kind] = kind == 0 ? q_length : kv_length;
        s->heads[kind] = kind == 0 ? HEADS : s->kv_heads;
        make_operand(s, kind, &seed);
    }
    MUST(kn_guarded_create(test_context(), out_bytes(s), 16, &s->out));
    MUST(kn_guarded_create(test_context(), out_bytes(s), 16, &s->out_of_halves));
    MUST(tol_buffer_create(test_context(), lse_count(s), sizeof(float), &s->lse));
    MUST(tol_buffer_create(test_context(), lse_count(s), sizeof(float), &s->lse_of_halves));
}

static void end(struct scene *s) {
    for (int kind = 0; kind < KINDS; kind++) {
        kn_guarded_destroy(&s->operand[kind]);
        kn_guarded_destroy(&s->halves[kind]);
        tol_buffer_destroy(s->scale[kind]);
        free(s->values[kind]);
    }
    kn_guarded_destroy(&s->out);
    kn_guarded_destroy(&s->out_of_halves);
    tol_buffer_destroy(s->lse);
    tol_buffer_destroy(s->lse_of_halves);
}

static struct kn_heads heads_of(const struct scene *s, int kind, const struct kn_guarded *guarded,
                                size_t element) {
    return (struct kn_heads){.buffer = guarded->buffer,
                             .offset = guarded->offset / element,
                             .batch_stride = s->rows[kind] * pitch(s, kind),
                             .head_stride = s->head_size,
                             .row_stride = pitch(s, kind)};
}

static struct kn_attention_e4m3 wish_of(const struct scene *s, const char *variant) {
    return (struct kn_attention_e4m3){.attention = {.type = s->type,
                                                    .batch = BATCH,
                                                    .heads = HEADS,
                                                    .kv_heads = s->kv_heads,
                                                    .q_length = s->rows[0],
                                                    .kv_length = s->rows[1],
                                                    .head_size = s->head_size,
                                                    .causal = s->causal,
                                                    .window = s->window,
                                                    .q = heads_of(s, 0, &s->operand[0], 1),
                                                    .k = heads_of(s, 1, &s->operand[1], 1),
                                                    .v = heads_of(s, 2, &s->operand[2], 1),
                                                    .out = heads_of(s, 0, &s->out, 2),
                                                    .lse = s->lse},
                                      .q_scales = kn_place_of(s->scale[0], 0),
                                      .k_scales = kn_place_of(s->scale[1], 0),
                                      .v_scales = kn_place_of(s->scale[2], 0),
                                      .variant = variant};
}

static void *read(const struct kn_guarded *out) {
    size_t changed = 1;
    void *bytes = malloc(out->bytes);
    cr_assert(bytes != NULL);
    MUST(kn_guarded_read(out, bytes));
    MUST(kn_guarded_check(out, &changed));
    cr_assert(changed == 0);
    return bytes;
}

static void compare_row(const struct scene *s, const struct kn_attention *x, const void *out,
                        const float *lse, size_t head, size_t row, const char *variant) {
    double expected[256], allowed[256];
    float got[256];
    struct kn_attention_row to = {.out = expected, .allowed = allowed};
    const size_t d = s->head_size, kv = head / (HEADS / s->kv_heads);
    const struct kn_attention_head rows = {s->values[0] + head * s->rows[0] * d,
                                           s->values[1] + kv * s->rows[1] * d,
                                           s->values[2] + kv * s->rows[2] * d};
    const struct kn_e4m3_scales scales = {s->scales[0][head], s->scales[1][kv], s->scales[2][kv]};
    size_t same = 0;
    const size_t at = place_of(s, 0, (head * s->rows[0] + row) * d, &same);
    const double logarithm = (double)lse[head * s->rows[0] + row];
    cr_assert(same == head);
    kn_numbers_load(s->type, (const uint16_t *)out + at, d, got);
    cr_assert(kn_attention_e4m3_oracle(x, &scales, &rows, row, &to));
    for (size_t i = 0; i < d; i++) {
        cr_assert(fabs((double)got[i] - expected[i]) <= allowed[i],
                  "%s, heads of %zu: head %zu, row %zu, element %zu is %g, not %g within %g",
                  variant, d, head, row, i, (double)got[i], expected[i], allowed[i]);
    }
    cr_assert(isinf(to.lse) ? logarithm == to.lse : fabs(logarithm - to.lse) <= to.lse_allowed,
              "%s: the logarithm of row %zu is %g, not %g", variant, row, logarithm, to.lse);
}

static void compare_with_oracle(const struct scene *s, const char *variant) {
    const struct kn_attention_e4m3 wish = wish_of(s, variant);
    void *out;
    float *lse = malloc(lse_count(s) * sizeof *lse);
    cr_assert(lse != NULL);
    MUST(kn_attention_e4m3(kernels, stream, &wish));
    MUST(tol_stream_synchronize_for(stream, KN_PATIENCE_MS));
    MUST(tol_buffer_read(s->lse, lse, lse_count(s) * sizeof *lse));
    out = read(&s->out);
    for (size_t i = 0; i < lse_count(s); i++) {
        compare_row(s, &wish.attention, out, lse, i / s->rows[0], i % s->rows[0], variant);
    }
    free(out);
    free(lse);
}

/* Full, causal with more keys and with fewer than rows, and a window. */
static void check(const char *variant, enum kn_type type, size_t head_size, int trial) {
    static const size_t rows[] = {130, 75, 200, 66}, keys[] = {131, 200, 75, 260};
    struct scene s = {.type = type,
                      .head_size = head_size,
                      .kv_heads = trial % 3 == 0   ? 1
                                  : trial % 3 == 1 ? 2
                                                   : 4,
                      .causal = trial % 4 > 0,
                      .window = trial % 4 == 3 ? 50 : 0};
    if (!test_takes_trial()) return;
    begin(&s, rows[trial % 4], keys[trial % 4], head_size + (size_t)trial);
    compare_with_oracle(&s, variant);
    end(&s);
}

Test(attention_e4m3, naive_is_the_definition) {
    for (int i = 0; i < 8; i++) check("naive", i % 2 == 0 ? KN_F16 : KN_BF16, 24 + (size_t)i, i);
}

/* For each kernel heads of its size, and smaller ones that TMA fills up with zeros. */
static const size_t sizes[] = {64, 48, 128, 112, 256, 208};

Test(attention_e4m3, wgmma_is_the_definition) {
    if (tol_context_device(test_context())->compute_capability != 90) cr_skip_test("not 9.0");
    for (int i = 0; i < 12; i++) {
        check("wgmma", (i + i / 6) % 2 == 0 ? KN_F16 : KN_BF16, sizes[i % 6], i + i / 4);
    }
}

/* Sums of products of small whole numbers need few digits, and scales that are powers of two change
 * exponents alone: scores, weights and sums are those of fp16. */
Test(attention_e4m3, wgmma_has_the_bits_of_fp16_where_scores_are_exact) {
    if (tol_context_device(test_context())->compute_capability != 90) cr_skip_test("not 9.0");
    for (int i = 0; i < 12; i++) {
        struct scene s = {.type = KN_F16,
                          .head_size = sizes[i % 6],
                          .kv_heads = i % 2 == 0 ? 2 : 4,
                          .causal = i % 4 > 0,
                          .is_whole = true,
                          .window = i % 4 == 3 ? 90 : 0};
        if (!test_takes_trial()) continue;
        begin(&s, 195, 261, (uint64_t)i);
        const struct kn_attention_e4m3 wish = wish_of(&s, "wgmma");
        struct kn_attention of_halves = wish.attention;
        of_halves.q = heads_of(&s, 0, &s.halves[0], 2), of_halves.variant = "wgmma";
        of_halves.k = heads_of(&s, 1, &s.halves[1], 2);
        of_halves.v = heads_of(&s, 2, &s.halves[2], 2);
        of_halves.out = heads_of(&s, 0, &s.out_of_halves, 2), of_halves.lse = s.lse_of_halves;
        MUST(kn_attention_e4m3(kernels, stream, &wish));
        MUST(kn_attention(kernels, stream, &of_halves));
        MUST(tol_stream_synchronize_for(stream, KN_PATIENCE_MS));
        const size_t lse_bytes = lse_count(&s) * sizeof(float);
        char *lse = malloc(2 * lse_bytes);
        void *out = read(&s.out), *expected = read(&s.out_of_halves);
        cr_assert(lse != NULL);
        MUST(tol_buffer_read(s.lse, lse, lse_bytes));
        MUST(tol_buffer_read(s.lse_of_halves, lse + lse_bytes, lse_bytes));
        cr_assert(memcmp(out, expected, out_bytes(&s)) == 0, "heads of %zu, trial %d", s.head_size,
                  i);
        cr_assert(memcmp(lse, lse + lse_bytes, lse_bytes) == 0, "trial %d", i);
        free(out);
        free(expected);
        free(lse);
        end(&s);
    }
}

/* Scales that are left out are 1. */
Test(attention_e4m3, scales_may_be_left_out) {
    struct scene s = {.type = KN_BF16, .head_size = 32, .kv_heads = 2};
    begin(&s, 9, 11, 3);
    struct kn_attention_e4m3 wish = wish_of(&s, NULL);
    for (int i = 0; i < NUMBERS; i++) s.scales[0][i] = s.scales[1][i] = s.scales[2][i] = 1;
    for (int kind = 0; kind < KINDS; kind++) {
        MUST(tol_buffer_write(s.scale[kind], s.scales[kind], sizeof s.scales[kind]));
    }
    MUST(kn_attention_e4m3(kernels, stream, &wish));
    MUST(tol_stream_synchronize_for(stream, KN_PATIENCE_MS));
    void *with = read(&s.out);
    MUST(kn_guarded_poison(&s.out));
    wish.q_scales.address = wish.k_scales.address = wish.v_scales.address = 0;
    MUST(kn_attention_e4m3(kernels, stream, &wish));
    MUST(tol_stream_synchronize_for(stream, KN_PATIENCE_MS));
    void *without = read(&s.out);
    cr_assert(memcmp(with, without, out_bytes(&s)) == 0);
    free(with);
    free(without);
    end(&s);
}

#define REFUSED(change, status, text)                                                              \
    do {                                                                                           \
        struct kn_attention_e4m3 p = good;                                                         \
        change;                                                                                    \
        MUST_FAIL(kn_attention_e4m3(kernels, stream, &p), status, text);                           \
    } while (0)

Test(attention_e4m3, what_cannot_be_is_refused) {
    struct scene s = {.type = KN_F16, .head_size = 64, .kv_heads = 2};
    begin(&s, 9, 11, 3);
    const struct kn_attention_e4m3 good = wish_of(&s, NULL);
    MUST(kn_attention_e4m3(kernels, stream, &good));
    MUST_FAIL(kn_attention_e4m3(kernels, stream, NULL), TOL_INVALID_ARGUMENT, "a problem");
    REFUSED(p.attention.type = KN_F32, TOL_INVALID_ARGUMENT, "neither f16 nor bf16");
    REFUSED(p.attention.kv_heads = 3, TOL_INVALID_ARGUMENT, "cannot share 3");
    REFUSED(p.attention.q.offset += 1 << 20, TOL_OUT_OF_RANGE, "elements of 1 bytes");
    REFUSED(p.attention.out.offset += 1 << 20, TOL_OUT_OF_RANGE, "elements of 2 bytes");
    REFUSED(p.q_scales.address += 2, TOL_INVALID_ARGUMENT, "q_scales at");
    REFUSED(p.k_scales.bytes = 15, TOL_OUT_OF_RANGE, "k_scales needs 16 bytes");
    REFUSED(p.v_scales = kn_place_of(s.lse, 0), TOL_INVALID_ARGUMENT, "lse overlaps v_scales");
    REFUSED(p.v_scales = kn_place_of(s.out.buffer, s.out.offset), TOL_INVALID_ARGUMENT,
            "out overlaps v_scales");
    REFUSED(p.variant = "cudnn", TOL_NOT_FOUND, "cudnn");
    if (tol_context_device(test_context())->compute_capability == 90) {
        REFUSED((p.variant = "wgmma", p.attention.head_size = 56), TOL_UNSUPPORTED,
                "a head is no multiple of 16 bytes");
        REFUSED((p.variant = "wgmma", p.attention.k.offset += 8), TOL_UNSUPPORTED,
                "a row does not begin at a multiple of 16 bytes");
    }
    end(&s);
}
