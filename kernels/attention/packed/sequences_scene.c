/*
 * The rows of sequences, and attention of each sequence alone.
 */
#include "attention/packed/sequences_scene.h"

#include "inputs.h"
#include "kernel_scene.h"
#include "test/test_device.h"

#include <stdlib.h>
#include <string.h>

enum { COUNT = SEQUENCES_COUNT, Q_ROWS = SEQUENCES_Q_ROWS };
const int sequences_q_begins[COUNT + 1] = {2, 2, 7, 137, 138, 138, 148, 337};

static size_t element(const struct sequences_scene *s) {
    return kn_type_bytes(s->type);
}

static size_t out_bytes(const struct sequences_scene *s) {
    return Q_ROWS * s->pitch * element(s);
}

static void make(struct kn_guarded *guarded, size_t bytes, const void *data) {
    MUST(kn_guarded_create(test_context(), bytes, 16, guarded));
    MUST(kn_guarded_write(guarded, data));
}

void sequences_scene_buffer(struct tol_buffer **buffer, size_t bytes, const void *data) {
    MUST(tol_buffer_create(test_context(), bytes, 1, buffer));
    MUST(tol_buffer_write(*buffer, data, bytes));
}

float *sequences_scene_draw(size_t count, uint64_t seed) {
    float *values = malloc(count * sizeof *values);
    cr_assert(values != NULL);
    kn_inputs_draw(KN_NORMAL, &seed, 1, values, count);
    return values;
}

void sequences_scene_store(const struct sequences_scene *s, float *values, size_t count,
                           struct kn_guarded *guarded) {
    unsigned char *bytes = malloc(count * element(s));
    cr_assert(bytes != NULL);
    kn_numbers_store(s->type, values, count, bytes);
    kn_numbers_load(s->type, bytes, count, values);
    make(guarded, count * element(s), bytes);
    free(bytes);
}

void sequences_scene_begin(struct sequences_scene *s) {
    s->got = malloc(out_bytes(s)), s->expected = malloc(out_bytes(s));
    cr_assert(s->got != NULL && s->expected != NULL);
    memset(s->expected, 0xff, out_bytes(s));
    memset(s->expected_lse, 0xff, sizeof s->expected_lse);
    make(&s->out, out_bytes(s), s->expected);
    make(&s->alone, out_bytes(s), s->expected);
    sequences_scene_buffer(&s->lse, sizeof s->expected_lse, s->expected_lse);
    sequences_scene_buffer(&s->alone_lse, sizeof s->expected_lse, s->expected_lse);
    sequences_scene_buffer(&s->q_begins, sizeof sequences_q_begins, sequences_q_begins);
}

void sequences_scene_end(struct sequences_scene *s) {
    struct kn_guarded *const guarded[] = {&s->q, &s->k, &s->v, &s->out, &s->alone};
    struct tol_buffer *const buffers[] = {s->lse, s->alone_lse, s->q_begins};
    for (int i = 0; i < 5; i++) kn_guarded_destroy(guarded[i]);
    for (int i = 0; i < 3; i++) tol_buffer_destroy(buffers[i]);
    for (int i = 0; i < 3; i++) free(s->values[i]);
    free(s->got);
    free(s->expected);
}

static struct kn_heads heads_at(const struct sequences_scene *s, const struct kn_guarded *of,
                                size_t pitch, size_t row) {
    return (struct kn_heads){.buffer = of->buffer,
                             .offset = of->offset / element(s) + row * pitch,
                             .head_stride = s->head_size,
                             .row_stride = pitch};
}

struct kn_heads sequences_scene_q(const struct sequences_scene *s, const struct kn_guarded *of,
                                  size_t row) {
    return heads_at(s, of, s->pitch, row);
}

struct kn_heads sequences_scene_kv(const struct sequences_scene *s, const struct kn_guarded *of,
                                   size_t row) {
    return heads_at(s, of, s->kv_pitch, row);
}

void sequences_scene_read(struct sequences_scene *s) {
    size_t changed = 1;
    MUST(tol_stream_synchronize_for(stream, KN_PATIENCE_MS));
    MUST(kn_guarded_read(&s->out, s->got));
    MUST(kn_guarded_check(&s->out, &changed));
    cr_assert(changed == 0);
    MUST(tol_buffer_read(s->lse, s->got_lse, sizeof s->got_lse));
}

void sequences_scene_solve_alone(struct sequences_scene *s, const struct kn_attention *attention,
                                 const char *variant) {
    static float values[SEQUENCES_LSE];
    for (int i = 0; i < COUNT; i++) {
        struct kn_attention x = *attention;
        const size_t from = (size_t)sequences_q_begins[i], first = (size_t)s->kv_begins[i];
        const size_t rows = (size_t)sequences_q_begins[i + 1] - from;
        x.batch = 1, x.q_length = rows, x.kv_length = (size_t)s->kv_begins[i + 1] - first;
        x.q = sequences_scene_q(s, &s->q, from), x.out = sequences_scene_q(s, &s->alone, from);
        x.k = sequences_scene_kv(s, &s->k, first), x.v = sequences_scene_kv(s, &s->v, first);
        x.lse = s->alone_lse, x.variant = x.kv_length > 0 ? variant : NULL;
        MUST(kn_attention(kernels, stream, &x));
        MUST(tol_stream_synchronize_for(stream, KN_PATIENCE_MS));
        MUST(tol_buffer_read(s->alone_lse, values, sizeof values));
        for (size_t h = 0; h < SEQUENCES_HEADS; h++) {
            memcpy(s->expected_lse + h * Q_ROWS + from, values + h * rows, rows * sizeof *values);
        }
    }
    MUST(kn_guarded_read(&s->alone, s->expected));
}

size_t sequences_scene_differs(const struct sequences_scene *s) {
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
