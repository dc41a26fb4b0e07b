/*
 * The operands of attention over packed sequences.
 */
#include "attention/packed/packed_scene.h"

#include "kernel_scene.h"
#include "test/test_device.h"

#include <math.h>

enum { SEQUENCES = SEQUENCES_COUNT, Q_ROWS = SEQUENCES_Q_ROWS, KV_ROWS = PACKED_KV_ROWS };
const int packed_kv_begins[SEQUENCES + 1] = {2, 5, 14, 144, 345, 400, 400, 514};

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
    const size_t pitch = s->rows.pitch, count = (size_t)rows * pitch;
    float *values = sequences_scene_draw(count, seed);
    for (int row = 0; row < rows; row++) {
        const float poison = row % 2 == 0 ? NAN : row % 4 == 1 ? INFINITY : -INFINITY;
        if (!packed_scene_is_poisoned(s, sequence_of(begins, row))) continue;
        for (size_t i = 0; i < pitch; i++) values[(size_t)row * pitch + i] = poison;
    }
    sequences_scene_store(&s->rows, values, count, guarded);
    return values;
}

void packed_scene_begin(struct packed_scene *s, enum kn_type type, size_t head_size,
                        enum packed_poison poison, uint64_t seed) {
    const size_t pitch = SEQUENCES_HEADS * head_size + 16 / kn_type_bytes(type);
    struct sequences_scene *rows = &s->rows;
    *s = (struct packed_scene){.rows = {.type = type,
                                        .head_size = head_size,
                                        .kv_heads = PACKED_KV_HEADS,
                                        .pitch = pitch,
                                        .kv_pitch = pitch,
                                        .kv_begins = packed_kv_begins},
                               .poison = poison};
    rows->values[0] = draw(s, Q_ROWS, sequences_q_begins, seed, &rows->q);
    rows->values[1] = draw(s, KV_ROWS, packed_kv_begins, seed + 1, &rows->k);
    rows->values[2] = draw(s, KV_ROWS, packed_kv_begins, seed + 2, &rows->v);
    sequences_scene_begin(rows);
    sequences_scene_buffer(&s->kv_begins, sizeof packed_kv_begins, packed_kv_begins);
}

void packed_scene_end(struct packed_scene *s) {
    sequences_scene_end(&s->rows);
    tol_buffer_destroy(s->kv_begins);
}

struct kn_attention_packed packed_scene_wish(const struct packed_scene *s, const char *variant,
                                             size_t window) {
    const struct sequences_scene *rows = &s->rows;
    return (struct kn_attention_packed){.attention = {.type = rows->type,
                                                      .batch = SEQUENCES,
                                                      .heads = SEQUENCES_HEADS,
                                                      .kv_heads = PACKED_KV_HEADS,
                                                      .q_length = SEQUENCES_LONGEST_Q,
                                                      .kv_length = PACKED_LONGEST_KV,
                                                      .head_size = rows->head_size,
                                                      .causal = window > 0,
                                                      .window = window < KV_ROWS ? window : 0,
                                                      .q = sequences_scene_q(rows, &rows->q, 0),
                                                      .k = sequences_scene_kv(rows, &rows->k, 0),
                                                      .v = sequences_scene_kv(rows, &rows->v, 0),
                                                      .out = sequences_scene_q(rows, &rows->out, 0),
                                                      .lse = rows->lse},
                                        .q_rows = Q_ROWS,
                                        .kv_rows = KV_ROWS,
                                        .q_begins = rows->q_begins,
                                        .kv_begins = s->kv_begins,
                                        .variant = variant};
}

void packed_scene_run(struct packed_scene *s, const struct kn_attention_packed *wish) {
    MUST(kn_attention_packed(kernels, stream, wish));
    sequences_scene_read(&s->rows);
}
