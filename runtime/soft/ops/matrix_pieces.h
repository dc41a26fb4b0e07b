/*
 * Matrix pieces: the memory addresses of each lane's part of a matrix in wmma.load and wmma.store.
 */
#ifndef SOFT_MATRIX_PIECES_H
#define SOFT_MATRIX_PIECES_H

#include "machine/access.h"
#include "op_body.h"
#include "lower/tensor.h"

enum { SOFT_PIECE_REGISTERS = 8 };

/* A fragment in memory: pieces, which are as much of a register as lies together. Where one is, is
 * a sum: of the matrix, of the register, of the lane. */
struct soft_pieces {
    uint64_t base;
    unsigned bits, needed;       /* of an element; registers of a thread */
    unsigned of_register, bytes; /* pieces of a register, bytes of a piece */
    uint64_t step;               /* from a piece of a register to the next */
    uint64_t of_lane[SOFT_LANES], at_register[SOFT_PIECE_REGISTERS];
    unsigned lines, line_bytes;
    uint64_t line_step;
};

static inline struct soft_pieces soft_pieces_of(const struct soft_warp *warp,
                                                const struct soft_instruction *in) {
    const uint32_t *operands = SOFT_OPERANDS(warp, in);
    struct soft_tensor_shape shape = soft_tensor_unpack_shape(operands[0]);
    enum soft_tensor_operand operand = (enum soft_tensor_operand)(operands[1] & 255);
    enum soft_tensor_type type = (enum soft_tensor_type)(operands[1] >> 8);
    unsigned per = soft_tensor_per(type);
    bool by_columns = (in->mode & SOFT_MATRIX_COL) != 0;
    struct soft_pieces p = {.base = soft_access_address(warp, in, 0),
                            .bits = soft_tensor_bits(type),
                            .needed = soft_tensor_registers(shape, operand, type)};
    uint64_t stride = *SLOT(uint32_t, in->b);
    uint64_t row_bits = by_columns ? p.bits : stride * p.bits;
    uint64_t column_bits = by_columns ? stride * p.bits : p.bits;
    bool down = soft_tensor_place(shape, operand, per, 0, 0).down;
    p.of_register = per > 1 && down != by_columns ? per : 1;
    p.bytes = p.bits * per / 8 / p.of_register;
    p.step = (down ? row_bits : column_bits) / 8;
    for (unsigned lane = 0; lane < SOFT_LANES; lane++) {
        struct soft_tensor_place place = soft_tensor_place(shape, operand, per, 0, lane);
        p.of_lane[lane] = (place.row * row_bits + place.column * column_bits) / 8;
    }
    for (unsigned i = 0; i < p.needed; i++) {
        struct soft_tensor_place place = soft_tensor_place(shape, operand, per, i, 0);
        p.at_register[i] = (place.row * row_bits + place.column * column_bits) / 8;
    }
    unsigned rows = operand == SOFT_TENSOR_B ? shape.k : shape.m;
    unsigned columns = operand == SOFT_TENSOR_A ? shape.k : shape.n;
    p.lines = by_columns ? columns : rows;
    p.line_bytes = (by_columns ? rows : columns) * p.bits / 8;
    p.line_step = stride * p.bits / 8;
    return p;
}

/* A piece of a lane, from the matrix's first byte. */
static inline uint64_t soft_piece_offset(const struct soft_pieces *p, unsigned i, unsigned lane) {
    return p->of_lane[lane] + p->at_register[i / p->of_register] + i % p->of_register * p->step;
}

#endif
