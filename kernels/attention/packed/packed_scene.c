/*
 * The operands of attention over packed sequences, and each sequence by itself.
 */
#include "attention/packed/packed_scene.h"

#include "inputs.h"
#include "kernel_scene.h"
#include "test/test_device.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SEQUENCES = PACKED_SEQUENCES, Q_ROWS = PACKED_Q_ROWS, KV_ROWS = PACKED_KV_ROWS };
const int packed_q_begins[SEQUENCES + 1] = {2, 2, 7, 137, 138, 138, 148, 337};
const int packed_kv_begins[SEQUENCES + 1] = {2, 5, 14, 144, 345, 400, 400, 514};

static size_t element(const struct packed_scene *s) {
    return kn_type_bytes(s->type);
}

static size_t out_bytes(const struct packed_scene *s) {
    return Q_ROWS * s->pitch * element(s);
}

static void make(struct kn_guarded *guarded, size_t bytes, const void *data) {
    MUST(kn_guarded_create(test_context(), bytes, 16, guarded));
    MUST(tol_buffer_write_at(guarded->buffer, guarded->offset, data, bytes));
}

static void make_buffer(struct tol_buffer **buffer, size_t bytes, const void *data) {
    MUST(tol_buffer_create(test_context(), bytes, 1, buffer));
    MUST(tol_buffer_write(*buffer, data, bytes));
}

bool packed_scene_is_poisoned(const struct packed_scene *s, int sequence) {
    if (s->poison == PACKED_ALL_CLEAN) return false;
    return sequence < 0 || (sequence % 2 == 0) == (s->poison == PACKED_EVEN_POISONED);
}

/* -1: of none. */
static int sequence_of(const int *begins, int row) {
    for (int i = 0; i < SEQUENCES; i++) {
        if (row >= begins[i] && row < begins[i + 1]) return i;
    }
    return -1;
}

static float *draw(const struct packed_scene *s, int rows, const int *begins, uint64_t seed,
                   struct kn_guarded *guarded) {
    const size_t count = (size_t)rows * s->pitch;
    float *values = malloc(count * sizeof *values);
    unsigned char *bytes = malloc(count * element(s));
    cr_assert(values != NULL && bytes != NULL);
    kn_inputs_draw(KN_NORMAL, &seed, 1, values, count);
    for (int row = 0; row < rows; row++) {
        const float poison = row % 2 == 0 ? NAN : row % 4 == 1 ? INFINITY : -INFINITY;
        if (!packed_scene_is_poisoned(s, sequence_of(begins, row))) continue;
        for (size_t i = 0; i < s->pitch; i++) values[(size_t)row * s->pitch + i] = poison;
    }
    kn_numbers_store(s->type, values, count, bytes);
    kn_numbers_load(s->type, bytes, count, values);
    make(guarded, count * element(s), bytes);
    free(bytes);
    return values;
}

void packed_scene_begin(struct packed_scene *s, enum kn_type type, size_t head_size,
                        enum packed_poison poison, uint64_t seed) {
    *s = (struct packed_scene){.type = type, .head_size = head_size, .poison = poison};
    s->pitch = PACKED_HEADS * head_size + 16 / kn_type_bytes(type);
    s->got = malloc(out_bytes(s)), s->expected = malloc(out_bytes(s));
    cr_assert(s->got != NULL && s->expected != NULL);
    memset(s->expected, 0xff, out_bytes(s));
    memset(s->expected_lse, 0xff, sizeof s->expected_lse);
    s->values[0] = draw(s, Q_ROWS, packed_q_begins, seed, &s->q);
    s->values[1] = draw(s, KV_ROWS, packed_kv_begins, seed + 1, &s->k);
    s->values[2] = draw(s, KV_ROWS, packed_kv_begins, seed + 2, &s->v);
    make(&s->out, out_bytes(s), s->expected);
    make(&s->alone, out_bytes(s), s->expected);
    make_buffer(&s->lse, sizeof s->expected_lse, s->expected_lse);
    make_buffer(&s->alone_lse, sizeof s->expected_lse, s->expected_lse);
    make_buffer(&s->q_begins, sizeof packed_q_begins, packed_q_begins);
    make_buffer(&s->kv_begins, sizeof packed_kv_begins, packed_kv_begins);
}

void packed_scene_end(struct packed_scene *s) {
    struct kn_guarded *const guarded[] = {&s->q, &s->k, &s->v, &s->out, &s->alone};
    struct tol_buffer *const buffers[] = {s->lse, s->alone_lse, s->q_begins, s->kv_begins};
    for (int i = 0; i < 5; i++) kn_guarded_destroy(guarded[i]);
    for (int i = 0; i < 4; i++) tol_buffer_destroy(buffers[i]);
    for (int i = 0; i < 3; i++) free(s->values[i]);
    free(s->got);
    free(s->expected);
}

/* One head after the other in each row; from row `first` on. */
static struct kn_heads heads_at(const struct packed_scene *s, const struct kn_guarded *guarded,
                                int first) {
    return (struct kn_heads){.buffer = guarded->buffer,
                             .offset = guarded->offset / element(s) + (size_t)first * s->pitch,
                             .head_stride = s->head_size,
                             .row_stride = s->pitch};
}

struct kn_attention_packed packed_scene_wish(const struct packed_scene *s, const char *variant,
                                             size_t window) {
    return (struct kn_attention_packed){.attention = {.type = s->type,
                                                      .batch = SEQUENCES,
                                                      .heads = PACKED_HEADS,
                                                      .kv_heads = PACKED_KV_HEADS,
                                                      .q_length = PACKED_LONGEST_Q,
                                                      .kv_length = PACKED_LONGEST_KV,
                                                      .head_size = s->head_size,
                                                      .causal = window > 0,
                                                      .window = window < KV_ROWS ? window : 0,
                                                      .q = heads_at(s, &s->q, 0),
                                                      .k = heads_at(s, &s->k, 0),
                                                      .v = heads_at(s, &s->v, 0),
                                                      .out = heads_at(s, &s->out, 0),
                                                      .lse = s->lse},
                                        .q_rows = Q_ROWS,
                                        .kv_rows = KV_ROWS,
                                        .q_begins = s->q_begins,
                                        .kv_begins = s->kv_begins,
                                        .variant = variant};
}

void packed_scene_run(struct packed_scene *s, const struct kn_attention_packed *wish) {
    size_t changed = 1;
    MUST(kn_attention_packed(kernels, stream, wish));
    MUST(tol_stream_synchronize_for(stream, KN_PATIENCE_MS));
    MUST(kn_guarded_read(&s->out, s->got));
    MUST(kn_guarded_check(&s->out, &changed));
    cr_assert(changed == 0);
    MUST(tol_buffer_read(s->lse, s->got_lse, sizeof s->got_lse));
}

void packed_scene_solve_alone(struct packed_scene *s, const struct kn_attention_packed *wish,
                              const char *variant) {
    static float values[PACKED_LSE];
    const int *const of_q = packed_q_begins, *const of_kv = packed_kv_begins;
    for (int i = 0; i < SEQUENCES; i++) {
        struct kn_attention x = wish->attention;
        const size_t rows = (size_t)(of_q[i + 1] - of_q[i]);
        x.batch = 1, x.q_length = rows, x.kv_length = (size_t)(of_kv[i + 1] - of_kv[i]);
        x.q = heads_at(s, &s->q, of_q[i]), x.out = heads_at(s, &s->alone, of_q[i]);
        x.k = heads_at(s, &s->k, of_kv[i]), x.v = heads_at(s, &s->v, of_kv[i]);
        x.lse = s->alone_lse, x.variant = x.kv_length > 0 ? variant : NULL;
        MUST(kn_attention(kernels, stream, &x));
        MUST(tol_stream_synchronize_for(stream, KN_PATIENCE_MS));
        MUST(tol_buffer_read(s->alone_lse, values, sizeof values));
        for (size_t h = 0; h < PACKED_HEADS; h++) {
            memcpy(s->expected_lse + h * Q_ROWS + of_q[i], values + h * rows,
                   rows * sizeof *values);
        }
    }
    MUST(kn_guarded_read(&s->alone, s->expected));
}

size_t packed_scene_differs(const struct packed_scene *s) {
    const unsigned char *lse = (const unsigned char *)s->got_lse;
    const unsigned char *expected_lse = (const unsigned char *)s->expected_lse;
    for (size_t i = 0; i < out_bytes(s); i++) {
        if (s->got[i] != s->expected[i]) return i;
    }
    for (size_t i = 0; i < sizeof s->got_lse; i++) {
        if (lse[i] != expected_lse[i]) return out_bytes(s) + i;
    }
    return SIZE_MAX;
}
