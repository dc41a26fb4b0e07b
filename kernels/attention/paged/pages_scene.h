/*
 * Pages scene: sequences of all kinds of lengths whose keys and values are in pages, in no order
 * and some shared, and also in rows, and what attention gives for both. For tests. One thread.
 */
#ifndef KN_PAGES_SCENE_H
#define KN_PAGES_SCENE_H

#include "attention/paged/attention_paged.h"
#include "guarded.h"

/* Whole tiles and parts of them, more rows than positions, a row with many positions, and sequences
 * without rows or without positions. The first two rows, and the last three, are of none.
 * Sequence 2 begins with PAGES_SHARED positions of sequence 3, in the same pages. */
enum {
    PAGES_SEQUENCES = 7,
    PAGES_Q_ROWS = 2 + 335 + 3,
    PAGES_POSITIONS = 510, /* of all sequences */
    PAGES_LONGEST_Q = 189,
    PAGES_LONGEST = 201,
    PAGES_SHARED = 64,
    PAGES_AT = 256, /* the bytes of a page before its keys, which its values follow */
    PAGES_HEADS = 2,
    PAGES_LSE = PAGES_HEADS * PAGES_Q_ROWS
};
extern const int pages_q_begins[PAGES_SEQUENCES + 1], pages_positions[PAGES_SEQUENCES];

/* How the keys and values of a page lie: [kv_head][position][element]; or [position][kv_head]
 * [element]; or keys [kv_head][element / 8][position][element % 8] and values as in the first. */
enum pages_layout { PAGES_HEADS_AROUND, PAGES_HEADS_INSIDE, PAGES_PIECES, PAGES_LAYOUTS };

struct pages_scene {
    enum kn_type type;
    size_t head_size, kv_heads, page_positions;
    enum pages_layout layout;
    size_t pages_max, page_bytes;
    float *values[3]; /* q, and of all sequences k and v, in rows, as they are stored */
    struct kn_guarded q, k, v, out, alone, pool;
    struct tol_buffer *lse, *alone_lse, *q_begins, *positions, *slots, *tables;
    uint64_t *table; /* what tables has */
    unsigned char *got, *expected;
    float got_lse[PAGES_LSE], expected_lse[PAGES_LSE];
};

/* Draws the operands; type, head_size, kv_heads, page_positions and layout are given. All of the
 * pool that is no key or value of a sequence is NaN. A failure of this and of what follows fails
 * the test. */
void pages_scene_begin(struct pages_scene *s, uint64_t seed);
void pages_scene_end(struct pages_scene *s);

/* The first position of a sequence in the rows of all. */
size_t pages_scene_first(int sequence);

/* Where the entry of a page of a sequence is in the table. */
size_t pages_scene_entry(const struct pages_scene *s, int sequence, size_t page);

/* The problem. A window of 0: full; of PAGES_POSITIONS: causal; else causal with this window. */
struct kn_attention_paged pages_scene_wish(const struct pages_scene *s, const char *variant,
                                           size_t window);

/* Gives what was wished for to got and got_lse. The bytes around out must stay as they were. */
void pages_scene_run(struct pages_scene *s, const struct kn_attention_paged *wish);

/* Gives each sequence alone, from keys and values in rows, to expected and expected_lse; by any
 * variant if there are no keys. Rows of none stay NaN. With a window a single row is taken from
 * got, since its tiles of keys begin elsewhere. */
void pages_scene_solve_alone(struct pages_scene *s, const struct kn_attention_paged *wish);

/* The first byte of out, and then of the logarithms, that differs; SIZE_MAX: none does. */
size_t pages_scene_differs(const struct pages_scene *s);

#endif
