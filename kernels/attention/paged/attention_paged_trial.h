/*
 * A trial of attention over paged sequences: generates sequences, puts their keys and values into
 * pages, runs a kernel and compares each sequence with the oracle. For tests and claims.
 */
#ifndef KN_ATTENTION_PAGED_TRIAL_H
#define KN_ATTENTION_PAGED_TRIAL_H

#include "attention/packed/packed_sequences.h"
#include "attention/paged/attention_paged.h"

/* How the keys and values of a page lie: [kv_head][position][element]; or [position][kv_head]
 * [element]; or keys [kv_head][element / 8][position][element % 8] and values as in the first. */
enum kn_paged_layout {
    KN_PAGED_HEADS_AROUND,
    KN_PAGED_HEADS_INSIDE,
    KN_PAGED_PIECES,
    KN_PAGED_LAYOUTS
};

struct kn_attention_paged_trial {
    /* The sequences, their keys as rows of which kv_begins has the positions. gap and skew are
     * those of pages too. variant, variants and loses_row are ignored. */
    struct kn_attention_packed_trial sequences;
    size_t page_positions;
    enum kn_paged_layout layout;
    const char *variant;
    const struct kn_variants *variants;
    /* A planted fault: on the device the second page of the first sequence, which has two, is its
     * first again. */
    bool repeats_page;
};

/* As kn_attention_packed_try. All of the pool that is no key or value of a sequence is NaN, and so
 * is the page of each entry after a sequence's last one. touched counts bytes around the pool
 * too. */
TOL_API tol_status kn_attention_paged_try(struct kn_kernels *kernels, struct tol_stream *stream,
                                          const struct kn_attention_paged_trial *trial,
                                          struct kn_attention_packed_outcome *outcome);

#endif
