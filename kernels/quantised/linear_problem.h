/*
 * Linear problem: a product of a decoder, as linear.h computes it.
 */
#ifndef KN_LINEAR_PROBLEM_H
#define KN_LINEAR_PROBLEM_H

#include "choose/kernel_set.h"
#include "place.h"
#include "quantised/weight_format.h"

struct kn_linear {
    enum kn_weight_format format;
    size_t rows, columns, k;   /* k in whole grains, at least one */
    struct kn_place weights;   /* W */
    struct kn_place gate;      /* G, of the same shape and format; address 0: none */
    struct kn_place bias;      /* rows floats; address 0: none. Not with a gate */
    struct kn_place x, y;      /* floats; x at a multiple of 16 bytes */
    size_t x_stride, y_stride; /* from column to column, in elements; x_stride in fours */
    bool adds;                 /* adds to y, and does not replace it. Not with a gate */
    struct kn_place workspace; /* kn_linear_workspace bytes at a multiple of 16; address 0: none.
                                  A call that runs beside this one needs another */
    bool is_rounded;           /* the workspace has x already, as kn_rounded leaves it, and need not
                                  be larger; x is not read. For what kn_linear_is_bytes says */
    /* y rounded to bytes as well, kn_rounded_bytes(columns, rows), for a gate and what
     * kn_linear_is_bytes says; rows in whole chunks of 256. Address 0: no. Tickets: as many zeros
     * as kn_linear_tickets says, left as zeros; a call that runs beside this one needs others. */
    struct kn_place rounded, tickets;
    const char *variant; /* "stay", "kept", "long", "early", "bytes", "wide", "tensor" or "fma";
                              NULL: the best */
};

#endif
