/*
 * Matrices in the registers of a warp and in memory: the position of each element, and the results
 * of products, loads and stores. Source: PTX ISA 9.0, sections 9.7.14.4 and 9.7.14.5.
 *
 * The manual gives the element of each register; this file inverts it: the thread and register of
 * each element.
 */
#include "oracle.h"
#include "oracle_product.h"

#include <stdlib.h>
#include <string.h>

enum { TILE_BYTES = 8192 };

struct warp {
    const struct table_row *row;
    const uint64_t *sources;
    struct oracle_answer *answers;
};

static struct oracle_answer *answer_at(const struct warp *warp, unsigned lane, unsigned result) {
    return &warp->answers[lane * warp->row->result_count + result];
}

static uint64_t source_at(const struct warp *warp, unsigned lane, unsigned source) {
    return warp->sources[lane * warp->row->source_count + source];
}

/* ---- fragments of mma ---- */

/* The thread of an element, and its number among the thread's elements. */
struct seat {
    unsigned lane, index;
};

/* operand: 'a', 'b' or 'c'; per: elements of A and B in a register. */
static struct seat seat_of(char operand, unsigned m, unsigned per, unsigned row, unsigned column) {
    struct seat seat;
    if (operand == 'c') {
        seat.lane = row % 8 * 4 + column / 2;
        seat.index = column % 2 + 2 * (row / 8);
    } else if (operand == 'a') {
        seat.lane = row % 8 * 4 + column % (4 * per) / per;
        seat.index = column % per + per * (row / 8) + per * (m / 8) * (column / (4 * per));
    } else {
        seat.lane = column * 4 + row % (4 * per) / per;
        seat.index = row % per + per * (row / (4 * per));
    }
    return seat;
}

/* The same in product q of m8n8k4 on halves, which has its first four rows, and columns of B, in
 * lanes 4q and on, and the rest 16 lanes further. */
static struct seat quad_seat(char operand, unsigned q, bool by_columns, bool single, unsigned row,
                             unsigned column) {
    struct seat seat;
    if (operand == 'c' && single) {
        seat.lane = row / 4 * 16 + 4 * q + (row & 1) + (column & 2);
        seat.index = (column & 1) + (row & 2) + (column & 4);
    } else if (operand == 'c') {
        seat.lane = row / 4 * 16 + 4 * q + row % 4;
        seat.index = column;
    } else if (operand == 'a') {
        seat.lane = row / 4 * 16 + 4 * q + (by_columns ? column : row % 4);
        seat.index = by_columns ? row % 4 : column;
    } else {
        seat.lane = column / 4 * 16 + 4 * q + (by_columns ? column % 4 : row);
        seat.index = by_columns ? row : column % 4;
    }
    return seat;
}

/* ---- what an instruction says ---- */

static const struct table_instruction *tensor_product_of(const struct table_row *row) {
    for (unsigned i = 0; i < row->instruction_count; i++) {
        const struct table_instruction *in = &row->instructions[i];
        bool is_mma = strcmp(in->words[0], "mma") == 0 || table_has(in, "mma_async");
        if (is_mma || (strcmp(in->words[0], "wmma") == 0 && table_has(in, "mma"))) return in;
    }
    return NULL;
}

static bool read_shape(const struct table_instruction *in, struct oracle_product *p) {
    for (unsigned i = 0; i < in->word_count; i++) {
        char *at = NULL;
        if (in->words[i][0] != 'm') continue;
        p->m = (unsigned)strtoul(in->words[i] + 1, &at, 10);
        if (*at != 'n') continue;
        p->n = (unsigned)strtoul(at + 1, &at, 10);
        if (*at != 'k') continue;
        p->k = (unsigned)strtoul(at + 1, &at, 10);
        return p->m > 0 && p->n > 0 && p->k > 0;
    }
    return false;
}

/* The types are the words that name elements; of wmma on halves only D's and C's are written. */
static void read_types(const struct table_instruction *in, struct oracle_product *p) {
    static const char *const names[] = {"f16", "bf16", "tf32", "e4m3", "e5m2", "f32", "f64",
                                        "s8",  "u8",   "s4",   "u4",   "b1",   "s32"};
    unsigned count = 0;
    for (unsigned i = 0; i < in->word_count && count < 4; i++) {
        for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) {
            if (strcmp(in->words[i], names[n]) == 0) p->type[count++] = names[n];
        }
    }
    if (count == 3) p->type[3] = p->type[0]; /* of wgmma */
    if (count == 2) {
        p->type[3] = p->type[1];
        p->type[1] = p->type[2] = "f16";
    }
}

static struct oracle_product *new_product(const struct table_instruction *in) {
    struct oracle_product *p = calloc(1, sizeof *p);
    if (p == NULL || !read_shape(in, p)) abort(); /* the rows are ours */
    read_types(in, p);
    oracle_product_begin(p);
    p->rounding = table_has(in, "rz")   ? ORACLE_TOWARD_ZERO
                  : table_has(in, "rm") ? ORACLE_DOWN
                  : table_has(in, "rp") ? ORACLE_UP
                                        : ORACLE_NEAREST;
    p->clamps = table_has(in, "satfinite");
    p->joins_by_and = table_has(in, "and");
    return p;
}

/* ---- mma ---- */

static uint64_t tensor_cut(uint64_t bits, unsigned at, unsigned width) {
    return width == 64 ? bits : bits >> at & ((1ull << width) - 1);
}

/* A thread's element of an operand of the row. */
static uint64_t element_at(const struct warp *warp, const struct table_operand *operand,
                           struct seat seat, unsigned bits) {
    unsigned per = bits >= 32 ? 1 : 32 / bits;
    uint64_t word = source_at(warp, seat.lane, operand->source + seat.index / per);
    return tensor_cut(word, seat.index % per * bits, bits);
}

static void tensor_give(const struct warp *warp, struct seat seat, unsigned bits,
                        struct oracle_answer one) {
    unsigned per = bits >= 32 ? 1 : 32 / bits, place = seat.index % per;
    struct oracle_answer *all = answer_at(warp, seat.lane, seat.index / per);
    if (place == 0) *all = one;
    all->value[place] = one.value[0];
    all->size[place] = one.size[0];
}

static void answer_mma(const struct warp *warp, const struct table_instruction *in) {
    struct oracle_product *p = new_product(in);
    const struct table_operand *operands = &warp->row->operands[in->first_operand];
    unsigned bits[4];
    for (int i = 0; i < 4; i++) bits[i] = oracle_element_bits(p->type[i]);
    unsigned per = bits[1] >= 32 ? 1 : 32 / bits[1];
    bool quads = p->k == 4 && strcmp(p->type[1], "f16") == 0;
    /* The layouts are the two words after the shape. */
    bool a_columns = strcmp(in->words[4], "col") == 0, b_columns = strcmp(in->words[5], "col") == 0;
    bool c_single = strcmp(p->type[3], "f32") == 0, d_single = strcmp(p->type[0], "f32") == 0;
    for (unsigned q = 0; q < (quads ? 4u : 1u); q++) {
        for (unsigned i = 0; i < p->m * p->k; i++) {
            unsigned row = i / p->k, column = i % p->k;
            struct seat seat = quads ? quad_seat('a', q, a_columns, false, row, column)
                                     : seat_of('a', p->m, per, row, column);
            p->a[i] = element_at(warp, &operands[1], seat, bits[1]);
        }
        for (unsigned i = 0; i < p->k * p->n; i++) {
            unsigned row = i / p->n, column = i % p->n;
            struct seat seat = quads ? quad_seat('b', q, b_columns, false, row, column)
                                     : seat_of('b', p->m, per, row, column);
            p->b[i] = element_at(warp, &operands[2], seat, bits[2]);
        }
        for (unsigned i = 0; i < p->m * p->n; i++) {
            unsigned row = i / p->n, column = i % p->n;
            struct seat seat = quads ? quad_seat('c', q, false, c_single, row, column)
                                     : seat_of('c', p->m, per, row, column);
            p->c[i] = element_at(warp, &operands[3], seat, bits[3]);
        }
        for (unsigned i = 0; i < p->m * p->n; i++) {
            unsigned row = i / p->n, column = i % p->n;
            struct seat seat = quads ? quad_seat('c', q, false, d_single, row, column)
                                     : seat_of('c', p->m, per, row, column);
            tensor_give(warp, seat, bits[0], oracle_product_at(p, row, column));
        }
    }
    free(p);
}

/* ---- tiles ---- */

/* The contents of a tile: for each register, each lane's part. */
static void read_tile(const struct warp *warp, const struct table_operand *operand,
                      uint8_t *bytes) {
    unsigned size = operand->type->store_bits / 8;
    for (unsigned k = 0; k < operand->count; k++) {
        for (unsigned lane = 0; lane < 32; lane++) {
            uint64_t word = operand->read ? source_at(warp, lane, operand->source + k) : 0;
            for (unsigned i = 0; i < size; i++) {
                bytes[(32 * k + lane) * size + i] = (uint8_t)(word >> (8 * i));
            }
        }
    }
}

static void answer_tile(const struct warp *warp, const struct table_operand *operand,
                        const uint8_t *bytes) {
    unsigned size = operand->type->store_bits / 8;
    for (unsigned k = 0; k < operand->count; k++) {
        for (unsigned lane = 0; lane < 32; lane++) {
            uint64_t word = 0;
            for (unsigned i = 0; i < size; i++) {
                word |= (uint64_t)bytes[(32 * k + lane) * size + i] << (8 * i);
            }
            *answer_at(warp, lane, operand->result + k) =
                (struct oracle_answer){.kind = ORACLE_BITS, .bits = word};
        }
    }
}

/* ---- ldmatrix, stmatrix, movmatrix ---- */

/* The offset in a tile of a lane's row of 16 bytes. */
static unsigned row_offset(const struct table_operand *tile, unsigned lane) {
    unsigned rows = 32 * table_width(tile) * tile->type->store_bits / 8 / 16;
    return (lane * TABLE_ROWS_FACTOR + TABLE_ROWS_FIRST) % rows * 16;
}

/* The position, in memory or in the matrix, of a thread's half number h of matrix number i. */
static void half_place(unsigned lane, unsigned h, bool turned, unsigned *row, unsigned *column) {
    *row = turned ? lane % 4 * 2 + h : lane / 4;
    *column = turned ? lane / 4 : lane % 4 * 2 + h;
}

static void answer_rows(const struct warp *warp, const struct table_instruction *in, bool stores) {
    const struct table_operand *registers = &warp->row->operands[in->first_operand + stores];
    const struct table_operand *tile = &warp->row->operands[in->first_operand + !stores];
    static uint8_t bytes[TILE_BYTES];
    bool turned = table_has(in, "trans");
    read_tile(warp, tile, bytes);
    for (unsigned i = 0; i < registers->count; i++) {
        for (unsigned lane = 0; lane < 32; lane++) {
            uint64_t word = stores ? source_at(warp, lane, registers->source + i) : 0;
            for (unsigned h = 0; h < 2; h++) {
                unsigned row = 0, column = 0;
                half_place(lane, h, turned, &row, &column);
                unsigned at = row_offset(tile, 8 * i + row) + 2 * column;
                if (stores) {
                    bytes[at] = (uint8_t)(word >> (16 * h));
                    bytes[at + 1] = (uint8_t)(word >> (16 * h + 8));
                } else {
                    word |= (uint64_t)(bytes[at] | bytes[at + 1] << 8) << (16 * h);
                }
            }
            if (stores) continue;
            *answer_at(warp, lane, registers->result + i) =
                (struct oracle_answer){.kind = ORACLE_BITS, .bits = word};
        }
    }
    if (stores) answer_tile(warp, tile, bytes);
}

static void answer_turned(const struct warp *warp) {
    for (unsigned lane = 0; lane < 32; lane++) {
        uint64_t word = 0;
        for (unsigned h = 0; h < 2; h++) {
            unsigned row = lane % 4 * 2 + h, column = lane / 4; /* of the matrix that was there */
            uint64_t from = source_at(warp, row * 4 + column / 2, 0);
            word |= tensor_cut(from, 16 * (column % 2), 16) << (16 * h);
        }
        *answer_at(warp, lane, 0) = (struct oracle_answer){.kind = ORACLE_BITS, .bits = word};
    }
}

/* ---- wmma ---- */

/* The matrix layout of a load or a store. */
struct layout {
    const struct table_operand *tile;
    bool by_columns;
    unsigned stride;
};

static struct layout tensor_layout_of(const struct table_row *row,
                                      const struct table_instruction *in, unsigned rows,
                                      unsigned columns) {
    struct layout layout = {.by_columns = table_has(in, "col")};
    layout.stride = layout.by_columns ? rows : columns;
    for (unsigned i = 0; i < in->operand_count; i++) {
        const struct table_operand *operand = &row->operands[in->first_operand + i];
        if (operand->kind == TABLE_TILE) layout.tile = operand;
        if (operand->kind == TABLE_NUMBER) {
            layout.stride = (unsigned)strtoul(operand->text, NULL, 0);
        }
    }
    return layout;
}

static size_t tensor_bit_of(const struct layout *layout, unsigned row, unsigned column,
                            unsigned bits) {
    size_t element = layout->by_columns ? (size_t)column * layout->stride + row
                                        : (size_t)row * layout->stride + column;
    return element * bits;
}

static void load_matrix(const struct warp *warp, const struct table_instruction *in, unsigned rows,
                        unsigned columns, unsigned bits, uint64_t *elements) {
    static uint8_t bytes[TILE_BYTES];
    struct layout layout = tensor_layout_of(warp->row, in, rows, columns);
    read_tile(warp, layout.tile, bytes);
    for (unsigned i = 0; i < rows * columns; i++) {
        size_t bit = tensor_bit_of(&layout, i / columns, i % columns, bits);
        elements[i] = 0;
        for (unsigned b = 0; b < bits; b++, bit++) {
            elements[i] |= (uint64_t)(bytes[bit / 8] >> (bit % 8) & 1) << b;
        }
    }
}

static void answer_wmma(const struct warp *warp) {
    const struct table_row *row = warp->row;
    struct oracle_product *p = new_product(tensor_product_of(row));
    for (unsigned i = 0; i < row->instruction_count; i++) {
        const struct table_instruction *in = &row->instructions[i];
        if (!table_has(in, "load")) continue;
        const char *operand = in->words[2];
        unsigned rows = operand[0] == 'b' ? p->k : p->m, columns = operand[0] == 'a' ? p->k : p->n;
        unsigned type = operand[0] == 'a' ? 1 : operand[0] == 'b' ? 2 : 3;
        load_matrix(warp, in, rows, columns, oracle_element_bits(p->type[type]),
                    type == 1   ? p->a
                    : type == 2 ? p->b
                                : p->c);
    }
    const struct table_instruction *store = &row->instructions[row->instruction_count - 1];
    struct layout layout = tensor_layout_of(row, store, p->m, p->n);
    unsigned bits = oracle_element_bits(p->type[0]), store_bits = layout.tile->type->store_bits;
    static uint8_t bytes[TILE_BYTES];
    read_tile(warp, layout.tile, bytes);
    answer_tile(warp, layout.tile, bytes); /* what lies between the lines stays */
    for (unsigned i = 0; i < p->m * p->n; i++) {
        size_t bit = tensor_bit_of(&layout, i / p->n, i % p->n, bits), word = bit / store_bits;
        unsigned per = store_bits / bits;
        struct seat seat = {(unsigned)(word % 32), (unsigned)(word / 32 * per + bit / bits % per)};
        seat.index += layout.tile->result * per;
        /* A word's second element joins the first, whichever is answered before. */
        struct oracle_answer one = oracle_product_at(p, i / p->n, i % p->n);
        struct oracle_answer *all = answer_at(warp, seat.lane, seat.index / per);
        all->kind = one.kind;
        all->bits = one.bits;
        all->value[seat.index % per] = one.value[0];
        all->size[seat.index % per] = one.size[0];
    }
    free(p);
}

bool oracle_tensor(const struct table_row *row, const uint64_t *sources,
                   struct oracle_answer *answers) {
    struct warp warp = {row, sources, answers};
    const struct table_instruction *in = &row->instructions[0];
    if (strcmp(in->words[0], "wmma") == 0) {
        answer_wmma(&warp);
    } else if (strcmp(in->words[0], "mma") == 0) {
        answer_mma(&warp, in);
    } else if (strcmp(in->words[0], "ldmatrix") == 0) {
        answer_rows(&warp, in, false);
    } else if (strcmp(in->words[0], "stmatrix") == 0) {
        answer_rows(&warp, in, true);
    } else if (strcmp(in->words[0], "movmatrix") == 0) {
        answer_turned(&warp);
    } else {
        return false;
    }
    return true;
}

/* ---- products by a warpgroup ---- */

/* A byte of the tile of the group's first warp. */
static uint8_t tile_byte(const struct warp *first, const struct table_operand *tile, unsigned at) {
    unsigned word = at / 4;
    return (uint8_t)(source_at(first, word % 32, tile->source + word / 32) >> (at % 4 * 8));
}

/* B: columns of 32 bytes, in halves; see TABLE_FACTOR_STRIDES. */
static void read_factor(const struct warp *first, const struct table_operand *tile, unsigned bits,
                        struct oracle_product *p) {
    for (unsigned i = 0; i < p->k * p->n; i++) {
        unsigned row = i / p->n, column = i % p->n, byte = row * bits / 8;
        unsigned at = column / 8 * 256 + byte / 16 * 128 + column % 8 * 16 + byte % 16;
        p->b[i] = 0;
        for (unsigned b = 0; b < bits / 8; b++) {
            p->b[i] |= (uint64_t)tile_byte(first, tile, at + b) << (8 * b);
        }
    }
}

/* Each warp has sixteen rows, of which its threads have what they have of an mma of that size. */
bool oracle_group(const struct table_row *row, const uint64_t *sources,
                  struct oracle_answer *answers) {
    const struct table_instruction *in = tensor_product_of(row);
    const struct warp first = {row, sources, answers};
    if (in == NULL || !table_has(in, "mma_async")) return false;
    struct oracle_product *p = new_product(in);
    const struct table_operand *operands = &row->operands[in->first_operand];
    unsigned bits = oracle_element_bits(p->type[1]), per = 32 / bits;
    unsigned d_bits = oracle_element_bits(p->type[0]);
    p->m = 16;
    read_factor(&first, &operands[2], bits, p);
    for (unsigned w = 0; w < 4; w++) {
        const struct warp warp = {row, sources + w * 32 * row->source_count,
                                  answers + w * 32 * row->result_count};
        for (unsigned i = 0; i < p->m * p->k; i++) {
            struct seat seat = seat_of('a', p->m, per, i / p->k, i % p->k);
            p->a[i] = element_at(&warp, &operands[1], seat, bits);
        }
        for (unsigned i = 0; i < p->m * p->n; i++) {
            unsigned r = i / p->n, column = i % p->n;
            struct seat seat = seat_of('c', p->m, 1, r, column % 8);
            seat.index += column / 8 * 4;
            tensor_give(&warp, seat, d_bits, oracle_product_at(p, r, column));
        }
    }
    free(p);
    return true;
}
