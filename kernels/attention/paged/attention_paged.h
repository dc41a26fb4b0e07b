/*
 * attention over paged sequences: rows of q of sequences of different lengths, such as prompts, and
 * a paged KV cache, as a decoder has it (decode/paged.h). Lengths, tables and pages are data on
 * the device, so a graph with this call serves any of them.
 *
 * Rows q_begins[s] to q_begins[s + 1] of q and out are those of sequence s. It has positions[s]
 * keys and values, those of its own rows included. Row slots[s] of the tables lists the addresses
 * of its pages: position i is entry i % page_positions of page i / page_positions. Sequences may
 * share pages. Each sequence is its own problem of attention.h: causal is aligned to the end of
 * its positions, a window counts them, and its results are the bits that kn_attention gives with
 * the variant of the same name for these keys and values in rows; except for a single row with a
 * window, whose tiles begin elsewhere there. If there are no positions, they are zeros and
 * -infinity. What follows the last position in its page has no effect, NaN and infinities
 * included, but may be read; pages after the last position are not looked up. Rows of q of no
 * sequence are not written. Begins and lengths out of range are clamped as attention_packed.h
 * says.
 *
 * Keys may be in pieces of 8 elements, as those of decode/paged.h do: [kv_head][element / 8]
 * [position][element % 8].
 * Source: Kwon et al., PagedAttention (arXiv 2309.06180).
 */
#ifndef KN_ATTENTION_PAGED_H
#define KN_ATTENTION_PAGED_H

#include "attention/forward/attention.h"
#include "place.h"

enum { KN_PAGE_POSITIONS_MIN = 16, KN_PAGE_POSITIONS_MAX = 65536 };

/* Where the keys, or the values, of a page are. */
struct kn_paged_part {
    size_t at; /* bytes from the beginning of a page; a multiple of the type's */
    /* In elements; both 0: [kv_head][position][element] without gaps. */
    size_t head_stride, row_stride;
    size_t piece_stride; /* from 8 elements of a row to the next 8; 0: 8, they are not apart */
};

struct kn_attention_paged {
    /* batch: the number of sequences; q_length and kv_length: the rows and positions of the
     * longest, for which blocks are launched. Batch strides of q and out are not used; all three 0:
     * [head][row][element]. lse: [heads][q_rows]. k, v, workspace, variant and variants are
     * ignored. */
    struct kn_attention attention;
    size_t q_rows;             /* of all sequences */
    struct kn_place q_begins;  /* an int32 per sequence, and one more */
    struct kn_place positions; /* an int32 per sequence */
    struct kn_place slots;     /* an int32 per sequence */
    struct kn_place tables;    /* for each slot pages_max addresses of 64 bits; multiples of 16 */
    size_t pages_max;
    size_t page_positions; /* a power of two, 16 to 65536 */
    struct kn_paged_part k, v;
    struct kn_place pool; /* contains all pages, each at a multiple of 128 bytes; address 0: not
                             known, and variants that take tensor maps refuse the problem */
    /* Forces the variant of this name; NULL: the best. Those that take tensor maps refuse a
     * kv_length of 0. */
    const char *variant;
    const struct kn_variants *variants; /* another table; NULL: kn_attention_paged_variants */
};

/*
 * Queues it. If there is no sequence, head or row it queues nothing and returns TOL_OK. The host
 * cannot check slots and tables: a slot outside the tables, or a position without a page, makes the
 * kernel read anywhere.
 *
 * TOL_INVALID_ARGUMENT: as kn_attention; a place is missing or misaligned, page_positions is no
 * power of two of that range, a stride or an offset makes no sense, or out or lse overlaps a place.
 * TOL_OUT_OF_RANGE: as kn_attention for the rows of all sequences; a place is too small; or the
 * longest sequence has more positions than pages_max pages. TOL_OVER_LIMIT: more than 65,535
 * sequences or heads, or 2^31 - 256 rows or positions. Else fails as kn_attention does.
 * Thread-safe, as kernels and streams are.
 */
TOL_API tol_status kn_attention_paged(struct kn_kernels *kernels, struct tol_stream *stream,
                                      const struct kn_attention_paged *paged);

/* "wgmma": fp16 and bf16 with heads of up to 128 or of 200 to 256 elements, in multiples of 8, in
 * aligned rows that are no pieces, on compute capability 9.0 alone; "tensor": fp16 and bf16 with
 * heads of 64, 96, 128 and 256 elements in aligned rows, on 8.0 or later; "naive": all. */
extern const struct kn_variants kn_attention_paged_variants;

/* Kernels as "wgmma" with one planted defect each, for sabotage: fp16 with heads of up to 64
 * elements. Each row of the tables has one entry more than its sequence needs. */
extern const struct kn_variants kn_attention_paged_defects;

#endif
