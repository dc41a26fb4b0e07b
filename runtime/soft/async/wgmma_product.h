/*
 * Wgmma product: the joint product of four warps, and the products of a warpgroup that not all of
 * its warps have computed.
 */
#ifndef SOFT_WGMMA_PRODUCT_H
#define SOFT_WGMMA_PRODUCT_H

#include "lower/wgmma_modes.h"
#include "machine/machine_state.h"

/* 16 bytes of a factor's row or column, the unit of all layouts in shared memory. */
enum { SOFT_WGMMA_CHUNK = 16, SOFT_WGMMA_A_CHUNKS = 32, SOFT_WGMMA_B_CHUNKS = 512 };

/* A factor of at most this many elements is kept as numbers, two per element. */
enum { SOFT_WGMMA_NUMBERS = 2 * 16 * 256 };

/* What four warps make together. */
struct soft_wgmma_product {
    struct soft_wgmma_product *next;
    uint64_t number; /* of the warpgroup's products */
    const struct soft_instruction *in;
    uint64_t a_descriptor, b_descriptor;
    bool accumulates;     /* scale-d */
    bool settled;         /* a warp has waited, and the factors have been read */
    uint32_t begun, done; /* by warps, a bit each */
    uint8_t b_bytes[SOFT_WGMMA_B_CHUNKS * SOFT_WGMMA_CHUNK];
    /* ops_wgmma.c: B as numbers, in a private order, and their exponents. */
    enum { SOFT_WGMMA_UNREAD, SOFT_WGMMA_PLAIN, SOFT_WGMMA_UNUSUAL } b_kind;
    int32_t b_least, b_largest; /* exponents of numbers that are not zero */
    _Alignas(64) float b_value[SOFT_WGMMA_NUMBERS];
    _Alignas(64) int32_t b_exponent[SOFT_WGMMA_NUMBERS];
};

/* One warp's part of a product. */
struct soft_wgmma_op {
    struct soft_wgmma_op *next;
    const struct soft_instruction *in;
    struct soft_frame *frame; /* held: its slots are the registers */
    uint64_t group;           /* how many the warp had committed before */
    struct soft_wgmma_product *product;
    uint64_t a_descriptor, b_descriptor;
    bool accumulates; /* scale-d */
    unsigned n, k;
    enum soft_tensor_type d, a, b;
    unsigned d_count;
    const uint32_t *d_slots, *a_slots;   /* in the code's operands */
    uint32_t a_registers[4][SOFT_LANES]; /* as they were */
    _Alignas(16) uint8_t a_bytes[SOFT_WGMMA_A_CHUNKS * SOFT_WGMMA_CHUNK]; /* of this warp's rows */
};

/* The products of a warpgroup, oldest first, and free ones. Used by one host thread. */
struct soft_wgmma_group {
    struct soft_wgmma_product *first, **end, *free;
};

/* The product with a number; NULL: no warp has issued it, or all have computed it. */
struct soft_wgmma_product *soft_wgmma_find(const struct soft_wgmma_group *group, uint64_t number);

/* Adds the product of a warp's part; NULL: out of memory. */
struct soft_wgmma_product *soft_wgmma_add(struct soft_wgmma_group *group, uint64_t number,
                                          const struct soft_wgmma_op *op);

/* Takes out a product, or all of them; frees the group's memory. */
void soft_wgmma_remove(struct soft_wgmma_group *group, struct soft_wgmma_product *product);
void soft_wgmma_clear(struct soft_wgmma_group *group);
void soft_wgmma_free(struct soft_wgmma_group *group);

#endif
