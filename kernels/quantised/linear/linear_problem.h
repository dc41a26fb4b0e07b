/*
 * Linear problem: what kn_linear computes, and the memory that it needs. Pure; thread-safe.
 */
#ifndef KN_LINEAR_PROBLEM_H
#define KN_LINEAR_PROBLEM_H

#include "place.h"
#include "quantised/formats/weight_format.h"

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
                                  A concurrent call needs another */
    bool is_rounded;           /* the workspace has x already, as kn_rounded leaves it, and need not
                                  be larger; x is not read. Where kn_linear_is_bytes says so */
    /* Where y goes as bytes as well, kn_rounded_bytes(columns, rows), with a gate and where
     * kn_linear_is_bytes says so; rows in whole chunks of 256. Address 0: no. Tickets:
     * kn_linear_tickets bytes of zeros, zeros again afterwards; a concurrent call needs others. */
    struct kn_place rounded, tickets;
    const char *variant; /* "stay", "kept", "long", "early", "bytes", "wide", "tensor" or "fma";
                              NULL: the best */
};

/* Whether the products of a format are of x rounded to bytes on the device, if they have a
 * workspace and name no variant. */
TOL_API bool kn_linear_is_bytes(const struct tol_device *device, enum kn_weight_format format);

/* The bytes of tickets that a product with a rounded y needs. */
TOL_API size_t kn_linear_tickets(size_t columns, size_t rows);

/* The bytes of workspace with which every variant can compute a product of x of this size. */
TOL_API size_t kn_linear_workspace(size_t columns, size_t k);

#endif
