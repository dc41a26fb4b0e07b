/*
 * Pages scene: sequences of all kinds of lengths whose keys and values are in pages, in no order
 * and some shared, and also in rows, and what attention gives for both. For tests. One thread.
 */
#ifndef KN_PAGES_SCENE_H
#define KN_PAGES_SCENE_H

#include "attention/paged/attention_paged.h"
#include "attention/packed/sequences_scene.h"

/* Besides what sequences_scene.h says: more rows than positions, a row with many positions, and
 * sequences without positions. Sequence 2 begins with PAGES_SHARED positions of sequence 3, in the
 * same pages. */
enum {
    PAGES_POSITIONS = 510, /* of all sequences */
    PAGES_LONGEST = 201,
    PAGES_SHARED = 64,
    PAGES_AT = 256 /* the bytes of a page before its keys, which its values follow */
};
extern const int pages_positions[SEQUENCES_COUNT];

/* How the keys and values of a page lie: [kv_head][position][element]; or [position][kv_head]
 * [element]; or keys [kv_head][element / 8][position][element % 8] and values as in the first. */
enum pages_layout { PAGES_HEADS_AROUND, PAGES_HEADS_INSIDE, PAGES_PIECES, PAGES_LAYOUTS };

struct pages_scene {
    struct sequences_scene rows; /* its keys and values are also those of the pages */
    size_t page_positions;
    enum pages_layout layout;
    size_t pages_max, page_bytes;
    struct kn_guarded pool;
    struct tol_buffer *positions, *slots, *tables;
    uint64_t *table; /* what tables has */
};

/* Draws the operands; type, head_size, kv_heads, page_positions and layout are given. What is in
 * the pool and is no key or value of a sequence is NaN. A failure of this and of what follows fails
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

/* Gives what was wished for to got and got_lse. */
void pages_scene_run(struct pages_scene *s, const struct kn_attention_paged *wish);

/* As sequences_scene_solve_alone. With a window a single row is taken from got, since its tiles of
 * keys begin elsewhere. */
void pages_scene_solve_alone(struct pages_scene *s, const struct kn_attention_paged *wish);

#endif
