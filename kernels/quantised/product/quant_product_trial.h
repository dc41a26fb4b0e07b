/*
 * A trial of the quant product: one run over drawn weights and columns, compared with doubles by
 * the bound that its arithmetic declares. For tests and claims.
 */
#ifndef KN_QUANT_PRODUCT_TRIAL_H
#define KN_QUANT_PRODUCT_TRIAL_H

#include "deviation.h"
#include "inputs.h"
#include "quantised/formats/quant_draw.h"
#include "quant_product.h"

struct kn_quant_trial {
    enum kn_quant quant;
    enum kn_quant_arithmetic arithmetic;
    size_t rows, columns, k;
    const char *variant;                /* NULL: the best */
    const struct kn_variants *variants; /* NULL: the operation's own */
    enum kn_quant_blocks kind;
    enum kn_distribution distribution;
    double scale;                        /* of x */
    uint64_t seed;                       /* of all drawn values */
    size_t x_gap, y_gap;                 /* elements between columns */
    size_t weights_skew, x_skew, y_skew; /* bytes past a multiple of 256 */
    float poison;                        /* stored in x at poison_at; none if that is 0 */
    size_t poison_at;                    /* 1 + the index in x, its columns without gaps */
    size_t poisoned_row;                 /* 1 + the row of W whose last block's d is NaN; 0: none */
    bool swaps_last; /* a planted fault: the last two different elements of y are exchanged */
};

/* The result of a trial. */
struct kn_quant_finding {
    struct kn_deviation deviation;
    struct kn_deviation rounded; /* from the product of x as KN_QUANT_Q8_1 rounds it */
    size_t changed;              /* bytes outside y */
    size_t gaps_changed;         /* elements between its columns */
    size_t not_finite;           /* in y */
};

TOL_API tol_status kn_quant_trial(struct kn_kernels *kernels, struct tol_stream *stream,
                                  const struct kn_quant_trial *trial,
                                  struct kn_quant_finding *finding);

#endif
