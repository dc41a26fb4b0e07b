/*
 * Packed scene: sequences of all kinds of lengths, one after the other, and what attention gives
 * for them together and for each alone. For tests. One thread.
 */
#ifndef KN_PACKED_SCENE_H
#define KN_PACKED_SCENE_H

#include "attention/packed/attention_packed.h"
#include "guarded.h"

/* Whole tiles and parts of them, a row with many keys, and sequences without rows or without keys.
 * The first two rows and keys, and the last three, are of none. */
enum {
    PACKED_SEQUENCES = 7,
    PACKED_Q_ROWS = 2 + 335 + 3,
    PACKED_KV_ROWS = 2 + 512 + 3,
    PACKED_LONGEST_Q = 189,
    PACKED_LONGEST_KV = 201,
    PACKED_HEADS = 2,
    PACKED_KV_HEADS = 1,
    PACKED_LSE = PACKED_HEADS * PACKED_Q_ROWS
};
extern const int packed_q_begins[PACKED_SEQUENCES + 1], packed_kv_begins[PACKED_SEQUENCES + 1];

/* Which sequences hold NaN and infinities instead of numbers; then the rows of none do too. */
enum packed_poison { PACKED_ALL_CLEAN, PACKED_EVEN_POISONED, PACKED_ODD_POISONED };

struct packed_scene {
    enum kn_type type;
    size_t head_size, pitch; /* elements from row to row, of all heads */
    enum packed_poison poison;
    float *values[3]; /* q, k and v as they are stored */
    struct kn_guarded q, k, v, out, alone;
    struct tol_buffer *lse, *alone_lse, *q_begins, *kv_begins;
    unsigned char *got, *expected; /* out, and what each sequence gets alone */
    float got_lse[PACKED_LSE], expected_lse[PACKED_LSE];
};

/* Draws the operands. A failure of this and of what follows fails the test. */
void packed_scene_begin(struct packed_scene *s, enum kn_type type, size_t head_size,
                        enum packed_poison poison, uint64_t seed);
void packed_scene_end(struct packed_scene *s);

bool packed_scene_is_poisoned(const struct packed_scene *s, int sequence);

/* The problem. A window of 0: full; of PACKED_KV_ROWS: causal; else causal with this window. */
struct kn_attention_packed packed_scene_wish(const struct packed_scene *s, const char *variant,
                                             size_t window);

/* Gives what was wished for to got and got_lse. The bytes around out must stay as they were. */
void packed_scene_run(struct packed_scene *s, const struct kn_attention_packed *wish);

/* Gives each sequence alone, by the variant of that name, to expected and expected_lse; by any if
 * there are no keys. Rows of none stay NaN. */
void packed_scene_solve_alone(struct packed_scene *s, const struct kn_attention_packed *wish,
                              const char *variant);

/* The first byte of out, and then of the logarithms, that differs; SIZE_MAX: none does. */
size_t packed_scene_differs(const struct packed_scene *s);

#endif
