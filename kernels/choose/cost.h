/*
 * Cost: what the fastest kernel for a problem is expected to be, by models of an H100 and an H200.
 *
 * The models assume KN_COST_MULTIPROCESSORS whatever the device has, so that each device of a
 * compute capability picks the same kernel and gives the same bits. A tuning file (tuning.h)
 * overrides them, and nothing else. Internal to the operations. Pure; thread-safe.
 */
#ifndef KN_COST_H
#define KN_COST_H

#include "choose/variant.h"

/* Multiprocessors of an H100 SXM and of an H200. */
enum { KN_COST_MULTIPROCESSORS = 132 };

/* What multiplies in the kernels with tensor maps. */
enum kn_cost_arithmetic { KN_COST_HALVES, KN_COST_TF32, KN_COST_PARTS, KN_COST_ARITHMETICS };

/* A product of matrices as the models see it. */
struct kn_cost_product {
    double m, n, k, batch; /* of the matrix that the kernel makes: where that is C^T, n x m */
    enum kn_cost_arithmetic arithmetic;
    bool from_registers; /* one factor comes from registers, which makes small tiles slower */
    bool is_aligned;     /* rows of both factors begin at multiples of 16 bytes */
    bool has_split;      /* there is a workspace, so split-K is possible */
    double packed_bytes; /* what packing writes */
};

/* Where a row of a product's table is expected to be the fastest: its `cost`, a set of models. */
enum kn_cost {
    KN_COST_WIDE = 1 << 0,      /* its tiles are done sooner than those of half as many columns */
    KN_COST_CLUSTER = 1 << 1,   /* a cluster shares the steps of a tile: there are few tiles */
    KN_COST_NARROW = 1 << 2,    /* all of its tiles run at once */
    KN_COST_TWO_WAVES = 1 << 3, /* it has at least two tiles per multiprocessor */
    KN_COST_FULL = 1 << 4,      /* it has as many tiles as fill a device: 128 */
    KN_COST_MOST = 1 << 5,      /* it has several tiles per multiprocessor: 512 */
    KN_COST_LARGE = 1 << 6,     /* C does not fit a tile of 64 x 64 */
    KN_COST_PACKED = 1 << 7,    /* packing and multiplying take less than multiplying */
    KN_COST_NO_SPLIT = 1 << 8   /* more than 64 rows and columns, or no workspace for split-K */
};

/* As kn_variant.decline: why another kernel is expected to be faster; NULL: none is. */
const char *kn_cost_declines(const struct kn_variant *row, const struct kn_cost_product *product);

/* Whether a number of wide tiles, each of which takes wide_time, is done no later than a number of
 * narrow ones, each of which takes 1: tiles run in waves, one per multiprocessor. */
bool kn_cost_wide_wins(double wide_tiles, double wide_time, double narrow_tiles);

#endif
