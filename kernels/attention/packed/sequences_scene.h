/*
 * Sequences scene: rows of q of sequences of all kinds of lengths, and what attention gives for
 * each sequence alone, from keys and values in rows. Tests of packed and of paged attention share
 * it. One thread.
 */
#ifndef KN_SEQUENCES_SCENE_H
#define KN_SEQUENCES_SCENE_H

#include "attention/forward/attention.h"
#include "guarded.h"

/* Whole tiles of rows and parts of them, a single row, and sequences without rows. The first two
 * rows, and the last three, are of no sequence. */
enum {
    SEQUENCES_COUNT = 7,
    SEQUENCES_Q_ROWS = 2 + 335 + 3,
    SEQUENCES_LONGEST_Q = 189,
    SEQUENCES_HEADS = 2,
    SEQUENCES_LSE = SEQUENCES_HEADS * SEQUENCES_Q_ROWS
};
extern const int sequences_q_begins[SEQUENCES_COUNT + 1];

struct sequences_scene {
    enum kn_type type;
    size_t head_size, kv_heads;
    size_t pitch, kv_pitch; /* elements from row to row, of all heads */
    const int *kv_begins;   /* of each sequence in the rows of k and v, and the end */
    float *values[3];       /* q, k and v as they are stored */
    struct kn_guarded q, k, v, out, alone;
    struct tol_buffer *lse, *alone_lse, *q_begins;
    unsigned char *got, *expected; /* out, and what each sequence gets alone */
    float got_lse[SEQUENCES_LSE], expected_lse[SEQUENCES_LSE];
};

/* Makes all but q, k and v; the first four members and kv_begins are given. A failure of this and
 * of what follows fails the test. */
void sequences_scene_begin(struct sequences_scene *s);
void sequences_scene_end(struct sequences_scene *s);

/* Draws numbers, which the caller frees. */
float *sequences_scene_draw(size_t count, uint64_t seed);

/* Rounds values of rows to the type, and gives them to the device. */
void sequences_scene_store(const struct sequences_scene *s, float *values, size_t count,
                           struct kn_guarded *guarded);

/* Makes a buffer of these bytes. */
void sequences_scene_buffer(struct tol_buffer **buffer, size_t bytes, const void *data);

/* q, k, v, out or alone from a row on, one head after the other in each row. */
struct kn_heads sequences_scene_q(const struct sequences_scene *s, const struct kn_guarded *of,
                                  size_t row);
struct kn_heads sequences_scene_kv(const struct sequences_scene *s, const struct kn_guarded *of,
                                   size_t row);

/* Waits for the stream, and reads what a kernel gave to got and got_lse. The bytes around out must
 * be as they were. */
void sequences_scene_read(struct sequences_scene *s);

/* Gives each sequence of a problem alone, by the variant of that name, to expected and
 * expected_lse; by any if it has no keys. Rows of no sequence stay NaN. */
void sequences_scene_solve_alone(struct sequences_scene *s, const struct kn_attention *attention,
                                 const char *variant);

/* The first byte of out, and then of the logarithms, that differs; SIZE_MAX: none does. */
size_t sequences_scene_differs(const struct sequences_scene *s);

#endif
