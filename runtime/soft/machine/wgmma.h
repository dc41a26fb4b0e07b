/*
 * Wgmma: products of matrices that a warpgroup has begun and not waited for.
 *
 * Four consecutive warps make a product of 64 rows, each its 16. A GPU does it at any time between
 * the instruction and the wait; here a warp does its part at the wait, so that whoever does not
 * wait finds the old accumulator. The factors in shared memory are read when the first warp has
 * waited, for all four: a product is one operation of its warpgroup, which one warp cannot see
 * complete while another has not begun it, so the wait is for that as well. What the factors were
 * at the beginning is kept, to report that they were changed in between.
 *
 * Reported: registers of a product used before the wait, registers written and no wgmma.fence
 * behind it, factors overwritten, factors that boxes of tensors brought with another swizzle than
 * the descriptor has, warps of a warpgroup that do not execute the same, and products that nobody
 * waited for. Source: PTX ISA 9.0, section 9.7.15.
 */
#ifndef SOFT_WGMMA_H
#define SOFT_WGMMA_H

#include "lower/wgmma_modes.h"
#include "machine_state.h"

/* 16 bytes of a factor's row or column, the unit of all layouts in shared memory. */
enum { SOFT_WGMMA_CHUNK = 16, SOFT_WGMMA_A_CHUNKS = 32, SOFT_WGMMA_B_CHUNKS = 512 };

/* A factor of at most so many elements is kept as numbers. */
enum { SOFT_WGMMA_NUMBERS = 16 * 256 };

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
    /* ops_wgmma.c: B as numbers, row by row of k, and the exponents of those. */
    enum { SOFT_WGMMA_UNREAD, SOFT_WGMMA_PLAIN, SOFT_WGMMA_UNUSUAL } b_kind;
    int32_t b_least, b_largest; /* exponents of numbers that are not zero */
    _Alignas(64) float b_value[SOFT_WGMMA_NUMBERS];
    int32_t b_exponent[SOFT_WGMMA_NUMBERS];
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

/* Makes a warp's part of a product whose factors are there; compiled for each level. */
typedef void soft_wgmma_multiply(const struct soft_wgmma_op *op);

/* The offsets of the chunks of 16 bytes that a warp stands for where reads of shared memory are
 * checked: its rows of A, and a quarter of B. Returns how many. */
enum { SOFT_WGMMA_PART = SOFT_WGMMA_A_CHUNKS + SOFT_WGMMA_B_CHUNKS / 4 };
uint32_t soft_wgmma_part(const struct soft_warp *warp, const struct soft_wgmma_op *op,
                         uint32_t offsets[SOFT_WGMMA_PART]);

/* wgmma.mma_async */
const struct soft_instruction *soft_wgmma_start(struct soft_warp *warp,
                                                const struct soft_instruction *in,
                                                soft_wgmma_multiply *multiply);

/* wgmma.fence, wgmma.commit_group, wgmma.wait_group */
const struct soft_instruction *soft_wgmma_fence(struct soft_warp *warp,
                                                const struct soft_instruction *in);
const struct soft_instruction *soft_wgmma_commit(struct soft_warp *warp,
                                                 const struct soft_instruction *in);
const struct soft_instruction *soft_wgmma_wait(struct soft_warp *warp,
                                               const struct soft_instruction *in,
                                               soft_wgmma_multiply *multiply);

/* The next instruction uses registers of some wgmma. */
const struct soft_instruction *soft_wgmma_use(struct soft_warp *warp,
                                              const struct soft_instruction *in);

/* A warp's last thread has exited; a warp begins; it is gone. */
void soft_wgmma_end(struct soft_warp *warp);
void soft_wgmma_begin(struct soft_warp *warp);
void soft_wgmma_drop(struct soft_warp *warp);

#endif
