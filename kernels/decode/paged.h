/*
 * paged: attention over keys and values in pages of 16 positions, and what stores them there.
 *
 * A batch is rows; each row is one position of one session. A session's slot in the tables says
 * where its pages are, so rows of several sessions, and several positions of one, may be in a
 * batch. A page holds 16 positions of all layers; a layer's part of it is keys, [kv_head][element /
 * 8][position % 16][element % 8], and values, [kv_head][position % 16][element], both fp16; or
 * both bytes, as Q8_0 has them, and after them one scale in fp16 per 32 elements, of keys and
 * then of values, [kv_head][position % 16][element / 32].
 *
 * kn_heads makes the heads of q, k and v of each row ready: q and k are, if there are weights,
 * divided by the root of their mean square plus epsilon and weighted (as qwen3 does), then pairs of
 * their first `rotated` elements are rotated by position * frequencies[pair] and multiplied by
 * magnitude. Then k and v are rounded to what the cache has and stored. kn_paged_attention computes
 * out = softmax(scale q k^T) v over the positions from 0 (or the row's minus window plus 1) to the
 * row's own. Rows of one batch may attend to each other's keys, since kn_heads comes before.
 *
 * Everything is in fp32 but the cache. A row's result is the same bits whatever other rows there
 * are, and whatever `splits` is. NaN in a key or value that a row sees reaches the row, and no
 * other session's. Both queue their kernels and wait for nothing. Thread-safe, as tol_launch is.
 * Source: Kwon et al., PagedAttention (arXiv 2309.06180); Su et al., RoFormer (arXiv 2104.09864).
 */
#ifndef KN_PAGED_H
#define KN_PAGED_H

#include "choose/kernel_set.h"
#include "place.h"

enum { KN_PAGE_POSITIONS = 16, KN_PAGED_SPAN = 128, KN_PAGED_HEAD_MAX = 256 };

/* The rows of a batch, and where their pages are. The host does not see the values: a position
 * without a page, or a slot outside the tables, is a read from anywhere. */
struct kn_paged_rows {
    size_t rows;
    struct kn_place positions; /* one int32 per row, from 0 on */
    struct kn_place slots;     /* one int32 per row */
    struct kn_place tables;    /* for each slot pages_max addresses of 64 bits */
    size_t pages_max;
    size_t layer_at; /* of the layer's part, in bytes from the beginning of a page */
};

/* What keys and values are in the cache. */
enum kn_cache { KN_CACHE_F16, KN_CACHE_Q8_0, KN_CACHES };

/* The shape of attention, for both. */
struct kn_paged_heads {
    size_t heads, kv_heads;
    size_t head_size; /* a multiple of 8, up to 256; of 32 for KN_CACHE_Q8_0 */
    enum kn_cache cache;
};

/* The bytes of a layer's part of a page. */
TOL_API size_t kn_paged_layer_bytes(const struct kn_paged_heads *heads);

struct kn_heads_ready {
    struct kn_paged_rows batch;
    struct kn_paged_heads shape;
    struct kn_place qkv;            /* floats: a row is the heads of q, then of k, then of v */
    size_t qkv_stride;              /* from row to row, in elements */
    struct kn_place q_norm, k_norm; /* head_size floats each; address 0: none */
    float epsilon;
    size_t rotated;              /* even, up to head_size */
    bool halves;                 /* pairs are i and i + rotated / 2, else 2 i and 2 i + 1 */
    struct kn_place frequencies; /* rotated / 2 floats, radians per position */
    float magnitude;             /* 1 for most models */
    size_t layer;                /* for notices */
    struct kn_place notices;     /* 64 bits per slot, of kn_notice_none; address 0: none are made */
    const char *variant;         /* "early" or "plain"; NULL: the best */
};

/* What the cache cannot hold, of a slot's notice: of the lowest layer the first position, and there
 * of the key before the value. */
struct kn_notice {
    size_t layer, position;
    bool is_value;  /* or a key */
    bool is_finite; /* but beyond kn_cache_end; or it was infinity or NaN already */
};

/* The value without a notice: all bits are set. kn_notice_read returns whether `bits` are a notice,
 * and then fills *notice. */
static const uint64_t kn_notice_none = UINT64_MAX;
TOL_API bool kn_notice_read(uint64_t bits, struct kn_notice *notice);

/* A key or value of this size or larger becomes infinity in the cache. */
TOL_API double kn_cache_end(enum kn_cache cache);

/*
 * Without rows it does nothing. TOL_INVALID_ARGUMENT: an argument is NULL or misaligned, or a size
 * makes no sense. TOL_OUT_OF_RANGE: a place is too small. TOL_OVER_LIMIT: 65536 rows or heads or
 * more. TOL_UNSUPPORTED, TOL_NOT_FOUND: as kn_variant_pick. A refused call queues nothing.
 */
TOL_API tol_status kn_heads(struct kn_kernels *kernels, struct tol_stream *stream,
                            const struct kn_heads_ready *heads);

struct kn_paged {
    struct kn_paged_rows batch;
    struct kn_paged_heads shape;
    struct kn_place q, out; /* floats; a row is its heads, one after the other */
    size_t q_stride, out_stride;
    float scale;               /* of scores; 0: 1 / sqrt(head_size) */
    size_t window;             /* a row sees this many positions, with its own; 0: all before it */
    size_t splits;             /* spans of 128 positions: more than the largest position / 128 */
    struct kn_place workspace; /* kn_paged_workspace bytes */
    struct kn_place rounded;   /* kn_rounded_bytes: rows go there, rounded to bytes as rounded.h
                                  says, and not to out; address 0: no */
    const char *variant;       /* as of kn_heads_ready, for both kernels */
};

/* Whether rows can be rounded: they are whole chunks of 256 elements. */
TOL_API bool kn_paged_can_round(const struct kn_paged_heads *shape);

TOL_API size_t kn_paged_workspace(const struct kn_paged_heads *shape, size_t rows, size_t splits);

/* For paged_step and halves, not for programs: the addresses of keys and values, the checks of
 * both, the kernels' arguments for a checked problem, and the second kernel of attention. */
struct paged_cache; /* decode_arguments.h */
struct heads_arguments;
struct paged_arguments;
void kn_paged_cache_of(const struct kn_paged_rows *batch, const struct kn_paged_heads *shape,
                       struct paged_cache *cache);
tol_status kn_paged_check(const struct kn_paged_rows *batch, const struct kn_paged_heads *shape);
tol_status kn_heads_prepare(const struct kn_heads_ready *heads, struct heads_arguments *arguments);
tol_status kn_paged_prepare(const struct kn_paged *paged, struct paged_arguments *arguments);
tol_status kn_paged_merge(struct kn_kernels *kernels, struct tol_stream *stream,
                          const struct kn_paged *paged, const struct paged_arguments *arguments);

/* Fails as kn_heads does. A position outside the spans is a read from anywhere. */
TOL_API tol_status kn_paged_attention(struct kn_kernels *kernels, struct tol_stream *stream,
                                      const struct kn_paged *paged);

#endif
