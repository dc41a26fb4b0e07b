/*
 * Packed scene: sequences of all kinds of lengths, one after the other, and what attention gives
 * for them together and for each alone. For tests. One thread.
 */
#ifndef KN_PACKED_SCENE_H
#define KN_PACKED_SCENE_H

#include "attention/packed/attention_packed.h"
#include "attention/packed/sequences_scene.h"

/* Besides what sequences_scene.h says: a row with many keys, and sequences without keys. The first
 * two keys, and the last three, are of none. */
enum { PACKED_KV_ROWS = 2 + 512 + 3, PACKED_LONGEST_KV = 201, PACKED_KV_HEADS = 1 };
extern const int packed_kv_begins[SEQUENCES_COUNT + 1];

/* Which sequences hold NaN and infinities instead of numbers; then the rows of none do too. */
enum packed_poison { PACKED_ALL_CLEAN, PACKED_EVEN_POISONED, PACKED_ODD_POISONED };

struct packed_scene {
    struct sequences_scene rows;
    enum packed_poison poison;
    struct tol_buffer *kv_begins;
};

/* Draws the operands. A failure of this and of what follows fails the test. */
void packed_scene_begin(struct packed_scene *s, enum kn_type type, size_t head_size,
                        enum packed_poison poison, uint64_t seed);
void packed_scene_end(struct packed_scene *s);

bool packed_scene_is_poisoned(const struct packed_scene *s, int sequence);

/* The problem. A window of 0: full; of PACKED_KV_ROWS: causal; else causal with this window. */
struct kn_attention_packed packed_scene_wish(const struct packed_scene *s, const char *variant,
                                             size_t window);

/* Gives what was wished for to got and got_lse. */
void packed_scene_run(struct packed_scene *s, const struct kn_attention_packed *wish);

#endif
