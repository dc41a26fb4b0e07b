/*
 * Tensor: matrices that a warp holds in registers, some elements in each thread.
 *
 * One rule gives the position of an element by lane and register for all shapes of mma.sync except
 * the oldest: eight lanes down, four across, each with the adjacent elements of one register, and
 * tiles of that below and beside each other (PTX ISA 9.0, section 9.7.14.5). The manual does not
 * define which thread gets which element from wmma.load. Here the rule is the same, in tiles of 16
 * by 8, as ptxas does for sm_80 and newer. Shared by the lowering and the machine.
 */
#ifndef SOFT_TENSOR_H
#define SOFT_TENSOR_H

#include <stdbool.h>
#include <stdint.h>

enum soft_tensor_type {
    SOFT_TENSOR_F16,
    SOFT_TENSOR_BF16,
    SOFT_TENSOR_TF32,
    SOFT_TENSOR_E4M3,
    SOFT_TENSOR_E5M2,
    SOFT_TENSOR_F32,
    SOFT_TENSOR_F64,
    SOFT_TENSOR_S8,
    SOFT_TENSOR_U8,
    SOFT_TENSOR_S4,
    SOFT_TENSOR_U4,
    SOFT_TENSOR_B1,
    SOFT_TENSOR_S32,
    SOFT_TENSOR_TYPES
};

enum soft_tensor_operand { SOFT_TENSOR_A, SOFT_TENSOR_B, SOFT_TENSOR_C };

/* Bits of an instruction's mode. Loads and stores have those of modes.h below them. */
enum {
    SOFT_TENSOR_SATFINITE = 1 << 3, /* the three bits below: how it rounds, SOFT_MODE_ROUND */
    SOFT_TENSOR_AND = 1 << 4,       /* single bits are joined by and, not by xor */
    SOFT_TENSOR_A_COL = 1 << 5,     /* of m8n8k4 on halves, which determines the fragments */
    SOFT_TENSOR_B_ROW = 1 << 6,
    SOFT_TENSOR_QUADS = 1 << 7 /* m8n8k4 on halves: four products, each of eight lanes */
};
enum {
    SOFT_MATRIX_TRANS = 1 << 20,
    SOFT_MATRIX_COL = 1 << 21, /* wmma: columns lie in one piece */
    SOFT_MATRIX_X2 = 1 << 22,
    SOFT_MATRIX_X4 = 1 << 23
};

/* The first words of an instruction's further operands: the shape, the types of D, A, B and C (of
 * what is loaded or stored: the operand and its type), and how many registers D, A and B have, a
 * byte each. Their slots follow, D, A, B, C. There may be more registers than elements ask for. */
enum { SOFT_TENSOR_WORDS = 3 };

struct soft_tensor_shape {
    unsigned m, n, k;
};

static inline uint32_t soft_tensor_pack_shape(struct soft_tensor_shape shape) {
    return shape.m | shape.n << 8 | shape.k << 16;
}

static inline struct soft_tensor_shape soft_tensor_unpack_shape(uint32_t word) {
    return (struct soft_tensor_shape){word & 255, word >> 8 & 255, word >> 16};
}

static inline unsigned soft_tensor_bits(enum soft_tensor_type type) {
    static const uint8_t bits[SOFT_TENSOR_TYPES] = {16, 16, 32, 8, 8, 32, 64, 8, 8, 4, 4, 1, 32};
    return bits[type];
}

/* Elements in a register. */
static inline unsigned soft_tensor_per(enum soft_tensor_type type) {
    unsigned bits = soft_tensor_bits(type);
    return bits >= 32 ? 1 : 32 / bits;
}

/* Registers of an operand per thread, if each element occurs once. */
static inline unsigned soft_tensor_registers(struct soft_tensor_shape shape,
                                             enum soft_tensor_operand operand,
                                             enum soft_tensor_type type) {
    unsigned elements = operand == SOFT_TENSOR_A   ? shape.m * shape.k
                        : operand == SOFT_TENSOR_B ? shape.k * shape.n
                                                   : shape.m * shape.n;
    return elements / 32 / soft_tensor_per(type);
}

struct soft_tensor_place {
    unsigned row, column;
    bool down; /* the register's next elements are in the next rows, not columns */
};

/* The position in its matrix of a register's first element. */
static inline struct soft_tensor_place soft_tensor_place(struct soft_tensor_shape shape,
                                                         enum soft_tensor_operand operand,
                                                         unsigned per, unsigned index,
                                                         unsigned lane) {
    unsigned group = lane / 4, within = lane % 4;
    if (operand == SOFT_TENSOR_C) {
        /* Two columns per thread; two rows of tiles if there are 16 rows. */
        unsigned element = index * per, block = shape.m * shape.n == 64 ? 2 : 4;
        unsigned row = group + element % block / 2 * 8, column = within * 2 + element % 2;
        unsigned tile = element / block;
        if (shape.m == 8 && shape.n == 32) { /* made as the product's transpose */
            return (struct soft_tensor_place){column, row + 16 * tile, true};
        }
        return shape.n == 16 ? (struct soft_tensor_place){row, column + 8 * tile, false}
                             : (struct soft_tensor_place){row + 16 * tile, column, false};
    }
    unsigned across = shape.k / (4 * per); /* registers side by side, along k */
    if (operand == SOFT_TENSOR_A) {
        unsigned high = shape.m == 8 ? 1 : 2, tile = index / (across * high);
        unsigned i = index % (across * high);
        return (struct soft_tensor_place){group + 8 * (i % high) + 16 * tile,
                                          per * within + 4 * per * (i / high), false};
    }
    return (struct soft_tensor_place){per * within + 4 * per * (index % across),
                                      group + 8 * (index / across), true};
}

/* The same for one of the four products of m8n8k4 on halves, in the eight lanes that make it: of
 * element i. Four lanes have the upper rows of A and C and the left columns of B, four the rest. */
static inline struct soft_tensor_place soft_tensor_quad_place(enum soft_tensor_operand operand,
                                                              bool turned, bool single, unsigned i,
                                                              unsigned lane) {
    unsigned within = lane % 4, half = lane < 16 ? 0 : 4;
    if (operand == SOFT_TENSOR_C) {
        if (!single) return (struct soft_tensor_place){within + half, i, false};
        return (struct soft_tensor_place){(lane & 1) + (i & 2) + half,
                                          (i & 4) + (lane & 2) + (i & 1), false};
    }
    if (operand == SOFT_TENSOR_A) {
        return turned ? (struct soft_tensor_place){i + half, within, true}
                      : (struct soft_tensor_place){within + half, i, false};
    }
    return turned ? (struct soft_tensor_place){within, i + half, false}
                  : (struct soft_tensor_place){i, within + half, true};
}

#endif
