/*
 * Shared by the tensor instructions: registers to whole matrices and back.
 *
 * A matrix is an array, row by row. Its elements are read from the registers of all lanes, and
 * results are written after everything was read, because they may use the same slots.
 */
#ifndef SOFT_OPS_TENSOR_H
#define SOFT_OPS_TENSOR_H

#include "op_body.h"
#include "lower/tensor.h"
#include "machine/warp.h"

/* An instruction's further operands, read. */
struct tensor {
    struct soft_tensor_shape shape;
    enum soft_tensor_type a, b, c, d;
    const uint32_t *d_slots, *a_slots, *b_slots, *c_slots;
};

static inline struct tensor tensor_of(const struct soft_warp *warp,
                                      const struct soft_instruction *in) {
    const uint32_t *operands = SOFT_OPERANDS(warp, in), types = operands[1];
    struct tensor t = {.shape = soft_tensor_unpack_shape(operands[0]),
                       .d = (enum soft_tensor_type)(types & 255),
                       .a = (enum soft_tensor_type)(types >> 8 & 255),
                       .b = (enum soft_tensor_type)(types >> 16 & 255),
                       .c = (enum soft_tensor_type)(types >> 24)};
    uint32_t counts = operands[2];
    t.d_slots = operands + SOFT_TENSOR_WORDS;
    t.a_slots = t.d_slots + (counts & 255);
    t.b_slots = t.a_slots + (counts >> 8 & 255);
    t.c_slots = t.b_slots + (counts >> 16 & 255);
    return t;
}

/* The positions of a fragment's elements in an array with a number of columns: the sum of a
 * register's first position and a lane's. */
struct fragment {
    unsigned registers, per, columns, step; /* step: from an element of a register to the next */
    uint32_t of_lane[SOFT_LANES], of_register[8];
};

static inline struct fragment fragment_of(struct soft_tensor_shape shape,
                                          enum soft_tensor_operand operand,
                                          enum soft_tensor_type type) {
    struct fragment f = {.registers = soft_tensor_registers(shape, operand, type),
                         .per = soft_tensor_per(type),
                         .columns = operand == SOFT_TENSOR_A ? shape.k : shape.n};
    for (unsigned lane = 0; lane < SOFT_LANES; lane++) {
        struct soft_tensor_place place = soft_tensor_place(shape, operand, f.per, 0, lane);
        f.of_lane[lane] = place.row * f.columns + place.column;
        f.step = place.down ? f.columns : 1;
    }
    for (unsigned r = 0; r < f.registers; r++) {
        struct soft_tensor_place place = soft_tensor_place(shape, operand, f.per, r, 0);
        f.of_register[r] = place.row * f.columns + place.column;
    }
    return f;
}

/* The elements of a fragment, each in the low bits of its type's width. */
static inline void gather_elements(const struct soft_warp *warp, const struct fragment *f,
                                   const uint32_t *slots, uint32_t *matrix) {
    unsigned bits = 32 / f->per;
    uint32_t mask = bits == 32 ? UINT32_MAX : (1u << bits) - 1;
    for (unsigned r = 0; r < f->registers; r++) {
        const uint32_t *words = SLOT(uint32_t, slots[r]);
        for (unsigned e = 0; e < f->per; e++) {
            uint32_t *to = matrix + f->of_register[r] + e * f->step;
            for (int i = 0; i < SOFT_LANES; i++) to[f->of_lane[i]] = words[i] >> (e * bits) & mask;
        }
    }
}

static inline void scatter_elements(const struct soft_warp *warp, const struct fragment *f,
                                    const uint32_t *slots, const uint32_t *matrix) {
    unsigned bits = 32 / f->per;
    for (unsigned r = 0; r < f->registers; r++) {
        uint32_t *words = SLOT(uint32_t, slots[r]);
        const uint32_t *from = matrix + f->of_register[r];
        for (int i = 0; i < SOFT_LANES; i++) {
            uint32_t word = 0;
            for (unsigned e = 0; e < f->per; e++) {
                word |= from[f->of_lane[i] + e * f->step] << (e * bits);
            }
            words[i] = word;
        }
    }
}

/* An operation that takes all 32 lanes of a warp at one place. warp_sync.c waits until they are
 * there. */
#define OP_WHOLE(op)                                                                               \
    static const struct soft_instruction *op##_of_all(struct soft_warp *warp,                      \
                                                      const struct soft_instruction *in);          \
    OP_ANY(op) {                                                                                   \
        return warp->mask == UINT32_MAX ? op##_of_all(warp, in) : soft_warp_whole(warp, in);       \
    }                                                                                              \
    static const struct soft_instruction *op##_of_all(struct soft_warp *warp,                      \
                                                      const struct soft_instruction *in)

#endif
