/*
 * attention over packed sequences: each sequence has the bits that it has alone, whatever lies
 * beside it; begins that make no sense; and what is refused.
 */
#include "attention_packed/attention_packed.h"

#include "guarded.h"
#include "inputs.h"
#include "kernel_scene.h"
#include "test/test_device.h"

#include <stdlib.h>
#include <string.h>

TestSuite(attention_packed, .init = kernel_scene_begin, .fini = kernel_scene_end);

/* Whole tiles and parts of them, a row with many keys, and sequences without rows or without keys.
 * The first two rows and keys, and the last three, are of none. */
enum { SEQUENCES = 7, Q_ROWS = 2 + 335 + 3, KV_ROWS = 2 + 512 + 3, HEADS = 2, KV_HEADS = 1 };
static const int q_begins[SEQUENCES + 1] = {2, 2, 7, 137, 138, 138, 148, 337};
static const int kv_begins[SEQUENCES + 1] = {2, 5, 14, 144, 345, 400, 400, 514};
enum { LONGEST_Q = 189, LONGEST_KV = 201 };

struct packed_scene {
    enum kn_type type;
    size_t head_size, pitch; /* elements from row to row, of all heads */
    struct kn_guarded q, k, v, out, alone, lse, alone_lse, q_begins, kv_begins;
    unsigned char *got, *expected; /* out, and what each sequence gets alone */
};

static size_t element(const struct packed_scene *s) {
    return kn_type_bytes(s->type);
}

static void make(struct kn_guarded *guarded, size_t bytes, const void *data) {
    MUST(kn_guarded_create(test_context(), bytes, 16, guarded));
    MUST(tol_buffer_write_at(guarded->buffer, guarded->offset, data, bytes));
}

static void draw(const struct packed_scene *s, size_t rows, uint64_t seed,
                 struct kn_guarded *guarded) {
    const size_t count = rows * s->pitch;
    float *values = malloc(count * sizeof *values);
    unsigned char *bytes = malloc(count * element(s));
    cr_assert(values != NULL && bytes != NULL);
    kn_inputs_draw(KN_NORMAL, &seed, 1, values, count);
    kn_numbers_store(s->type, values, count, bytes);
    make(guarded, count * element(s), bytes);
    free(values);
    free(bytes);
}

static void begin(struct packed_scene *s, enum kn_type type, size_t head_size, uint64_t seed) {
    *s = (struct packed_scene){.type = type, .head_size = head_size};
    s->pitch = HEADS * head_size + 16 / kn_type_bytes(type);
    const size_t bytes = Q_ROWS * s->pitch * element(s), lse = HEADS * Q_ROWS * sizeof(float);
    s->got = malloc(bytes), s->expected = malloc(bytes);
    cr_assert(s->got != NULL && s->expected != NULL);
    memset(s->expected, 0xff, bytes);
    draw(s, Q_ROWS, seed, &s->q);
    draw(s, KV_ROWS, seed + 1, &s->k);
    draw(s, KV_ROWS, seed + 2, &s->v);
    make(&s->out, bytes, s->expected);
    make(&s->alone, bytes, s->expected);
    make(&s->lse, lse, s->expected);
    make(&s->alone_lse, lse, s->expected);
    make(&s->q_begins, sizeof q_begins, q_begins);
    make(&s->kv_begins, sizeof kv_begins, kv_begins);
}

static void end(struct packed_scene *s) {
    struct kn_guarded *all[] = {&s->q,         &s->k,   &s->v,        &s->out,      &s->alone,
                                &s->alone_lse, &s->lse, &s->q_begins, &s->kv_begins};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) kn_guarded_destroy(all[i]);
    free(s->got);
    free(s->expected);
}

/* A head behind the other in each row; from row `first` on. */
static struct kn_heads heads_at(const struct packed_scene *s, const struct kn_guarded *guarded,
                                int first) {
    return (struct kn_heads){.buffer = guarded->buffer,
                             .offset = guarded->offset / element(s) + (size_t)first * s->pitch,
                             .head_stride = s->head_size,
                             .row_stride = s->pitch};
}

static struct kn_attention_packed wish_of(const struct packed_scene *s, const char *variant,
                                          size_t window) {
    return (struct kn_attention_packed){.attention = {.type = s->type,
                                                      .batch = SEQUENCES,
                                                      .heads = HEADS,
                                                      .kv_heads = KV_HEADS,
                                                      .q_length = LONGEST_Q,
                                                      .kv_length = LONGEST_KV,
                                                      .head_size = s->head_size,
                                                      .causal = window > 0,
                                                      .window = window < KV_ROWS ? window : 0,
                                                      .q = heads_at(s, &s->q, 0),
                                                      .k = heads_at(s, &s->k, 0),
                                                      .v = heads_at(s, &s->v, 0),
                                                      .out = heads_at(s, &s->out, 0)},
                                        .q_rows = Q_ROWS,
                                        .kv_rows = KV_ROWS,
                                        .variant = variant};
}

/* lse and begins are at the beginning of their buffers, which guarded ones are not. */
static void place(struct packed_scene *s, struct tol_buffer **buffers) {
    static const size_t bytes[3] = {HEADS * Q_ROWS * sizeof(float), sizeof q_begins,
                                    sizeof kv_begins};
    const struct kn_guarded *const from[3] = {&s->lse, &s->q_begins, &s->kv_begins};
    for (int i = 0; i < 3; i++) {
        MUST(tol_buffer_create(test_context(), bytes[i], 1, &buffers[i]));
        MUST(tol_buffer_copy(buffers[i], 0, from[i]->buffer, from[i]->offset, bytes[i]));
    }
}

/* Each sequence alone, into rows of its own. */
static void solve_alone(struct packed_scene *s, const struct kn_attention_packed *wish,
                        float *expected_lse) {
    tol_auto_buffer struct tol_buffer *lse = NULL;
    static float values[HEADS * LONGEST_Q];
    MUST(tol_buffer_create(test_context(), sizeof values, 1, &lse));
    for (int i = 0; i < SEQUENCES; i++) {
        struct kn_attention x = wish->attention;
        const size_t rows = (size_t)(q_begins[i + 1] - q_begins[i]);
        x.batch = 1, x.q_length = rows, x.kv_length = (size_t)(kv_begins[i + 1] - kv_begins[i]);
        x.q = heads_at(s, &s->q, q_begins[i]), x.out = heads_at(s, &s->alone, q_begins[i]);
        x.k = heads_at(s, &s->k, kv_begins[i]), x.v = heads_at(s, &s->v, kv_begins[i]);
        x.lse = lse, x.variant = wish->variant;
        MUST(kn_attention(kernels, stream, &x));
        MUST(tol_stream_synchronize(stream));
        MUST(tol_buffer_read(lse, values, sizeof values));
        for (size_t h = 0; h < HEADS; h++) {
            memcpy(expected_lse + h * Q_ROWS + q_begins[i], values + h * rows,
                   rows * sizeof *values);
        }
    }
    MUST(kn_guarded_read(&s->alone, s->expected));
}

static void check(const char *variant, enum kn_type type, size_t head_size, size_t window) {
    static float expected_lse[HEADS * Q_ROWS], lse[HEADS * Q_ROWS];
    struct packed_scene s;
    struct tol_buffer *buffers[3] = {NULL};
    size_t changed = 1;
    if (!test_takes_trial()) return;
    begin(&s, type, head_size, 10 * head_size + window);
    place(&s, buffers);
    struct kn_attention_packed wish = wish_of(&s, variant, window);
    wish.attention.lse = buffers[0], wish.q_begins = buffers[1], wish.kv_begins = buffers[2];
    MUST(kn_attention_packed(kernels, stream, &wish));
    MUST(tol_stream_synchronize(stream));
    MUST(kn_guarded_read(&s.out, s.got));
    MUST(kn_guarded_check(&s.out, &changed));
    cr_assert(changed == 0);
    MUST(tol_buffer_read(buffers[0], lse, sizeof lse));
    memset(expected_lse, 0xff, sizeof expected_lse);
    solve_alone(&s, &wish, expected_lse);
    for (size_t i = 0; i < Q_ROWS * s.pitch * element(&s); i++) {
        cr_assert(s.got[i] == s.expected[i],
                  "%s %s, heads of %zu, a window of %zu: row %zu, byte %zu", variant,
                  kn_type_name(type), head_size, window, i / (s.pitch * element(&s)),
                  i % (s.pitch * element(&s)));
    }
    cr_assert(memcmp(lse, expected_lse, sizeof lse) == 0, "%s %s, heads of %zu: lse", variant,
              kn_type_name(type), head_size);
    for (int i = 0; i < 3; i++) tol_buffer_destroy(buffers[i]);
    end(&s);
}

/* Full, causal, and with windows of less than a tile and of more. */
static void check_masks(const char *variant, enum kn_type type, size_t head_size) {
    static const size_t windows[] = {0, KV_ROWS, 20, 150};
    for (int i = 0; i < 4; i++) check(variant, type, head_size, windows[i]);
}

Test(attention_packed, naive_gives_each_sequence_what_it_gets_alone) {
    for (enum kn_type type = 0; type < KN_TYPES; type++) check_masks("naive", type, 24);
}

Test(attention_packed, tensor_gives_each_sequence_what_it_gets_alone) {
    static const size_t sizes[] = {64, 96, 128, 256};
    if (tol_context_device(test_context())->compute_capability < 80) cr_skip_test("before 8.0");
    for (enum kn_type type = KN_F16; type < KN_TYPES; type++) {
        for (int i = 0; i < 4; i++) check_masks("tensor", type, sizes[i]);
    }
}

/* Whatever the device has in begins: no byte but out's rows is written, and none outside is read,
 * which the soft device would refuse. */
Test(attention_packed, begins_that_make_no_sense_reach_no_further) {
    static const int all[][SEQUENCES + 1] = {
        {-5, 40, 20, 1000, 3, 2, 1, 0},
        {INT32_MIN, INT32_MAX, INT32_MIN, 7, 400, -1, 339, INT32_MAX},
        {0, 340, 340, 340, 340, 340, 340, 340}};
    static const char *const variants[] = {"naive", "tensor"};
    for (unsigned i = 0; i < 6; i++) {
        struct packed_scene s;
        struct tol_buffer *buffers[3] = {NULL};
        size_t changed = 1;
        if (i / 3 == 1 && tol_context_device(test_context())->compute_capability < 80) continue;
        begin(&s, KN_F16, 64, i);
        place(&s, buffers);
        struct kn_attention_packed wish = wish_of(&s, variants[i / 3], i % 2 == 0 ? 30 : 0);
        MUST(tol_buffer_write(buffers[1], all[i % 3], sizeof all[0]));
        MUST(tol_buffer_write(buffers[2], all[(i + 1) % 3], sizeof all[0]));
        wish.q_begins = buffers[1], wish.kv_begins = buffers[2];
        MUST(kn_attention_packed(kernels, stream, &wish));
        MUST(tol_stream_synchronize(stream));
        MUST(kn_guarded_check(&s.out, &changed));
        cr_assert(changed == 0);
        for (int b = 0; b < 3; b++) tol_buffer_destroy(buffers[b]);
        end(&s);
    }
}

Test(attention_packed, what_cannot_be_is_refused) {
    struct packed_scene s;
    struct tol_buffer *buffers[3] = {NULL};
    begin(&s, KN_F16, 64, 1);
    place(&s, buffers);
    struct kn_attention_packed good = wish_of(&s, NULL, 0), bad;
    good.attention.lse = buffers[0], good.q_begins = buffers[1], good.kv_begins = buffers[2];
    MUST(kn_attention_packed(kernels, stream, &good));
    MUST_FAIL(kn_attention_packed(kernels, stream, NULL), TOL_INVALID_ARGUMENT, "a problem");
    bad = good, bad.kv_begins = NULL;
    MUST_FAIL(kn_attention_packed(kernels, stream, &bad), TOL_INVALID_ARGUMENT,
              "kv_begins is missing");
    bad = good, bad.attention.batch = SEQUENCES + 1;
    MUST_FAIL(kn_attention_packed(kernels, stream, &bad), TOL_OUT_OF_RANGE,
              "q_begins is 9 numbers, and its buffer has 32 bytes");
    bad = good, bad.q_rows = LONGEST_Q - 1;
    MUST_FAIL(kn_attention_packed(kernels, stream, &bad), TOL_OUT_OF_RANGE,
              "a sequence of 189 rows");
    bad = good, bad.kv_rows = KV_ROWS + 1000;
    MUST_FAIL(kn_attention_packed(kernels, stream, &bad), TOL_OUT_OF_RANGE, "k ");
    bad = good, bad.attention.batch = 65536;
    MUST_FAIL(kn_attention_packed(kernels, stream, &bad), TOL_OVER_LIMIT, "65536 sequences");
    bad = good, bad.q_begins = buffers[0], bad.attention.lse = buffers[0];
    MUST_FAIL(kn_attention_packed(kernels, stream, &bad), TOL_INVALID_ARGUMENT,
              "lse overlaps q_begins");
    bad = good, bad.q_begins = s.out.buffer;
    MUST_FAIL(kn_attention_packed(kernels, stream, &bad), TOL_INVALID_ARGUMENT,
              "out overlaps q_begins");
    bad = good, bad.attention.window = 3;
    MUST_FAIL(kn_attention_packed(kernels, stream, &bad), TOL_INVALID_ARGUMENT, "not causal");
    bad = good, bad.variant = "wgmma";
    MUST_FAIL(kn_attention_packed(kernels, stream, &bad), TOL_NOT_FOUND, "wgmma");
    bad = good, bad.attention.batch = 0, bad.q_begins = NULL;
    MUST(kn_attention_packed(kernels, stream, &bad));
    for (int i = 0; i < 3; i++) tol_buffer_destroy(buffers[i]);
    end(&s);
}
