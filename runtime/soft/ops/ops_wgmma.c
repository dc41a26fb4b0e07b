/*
 * Matrix products by four warps: the arithmetic. async/wgmma.c has the order and the registers.
 * Source: PTX ISA 9.0, section 9.7.15.5.
 *
 * Sums are those of tensor_model.h, in blocks of 32 bytes of k. The core has a separate product of
 * eight-bit floating point, unlike that of mma.sync.
 */
#include "async/wgmma.h"
#include "ops_tensor.h"

enum { FACTORS_MAX = 32 * 256, SUMS_MAX = 16 * 256, E4M3_LEAST = -6 };
#include "tensor_sum.h"
#include "wgmma_sum.h"

enum { ROWS = 16, A_MAX = 16 * 32 };

static unsigned words_per_row(enum soft_tensor_type type, unsigned k) {
    return type == SOFT_TENSOR_B1 ? k / 32 : k;
}

/* A chunk's elements, apart from each other by step. Bits stay in words of 32. */
static inline void ops_wgmma_spread(const uint8_t *chunk, enum soft_tensor_type type, uint32_t *to,
                                    unsigned step) {
    unsigned bits = soft_tensor_bits(type);
    if (bits == 16) {
        uint16_t halves[8];
        memcpy(halves, chunk, sizeof halves);
        for (unsigned i = 0; i < 8; i++) to[i * step] = halves[i];
    } else if (bits == 8) {
        for (unsigned i = 0; i < 16; i++) to[i * step] = chunk[i];
    } else {
        uint32_t words[4];
        memcpy(words, chunk, sizeof words);
        for (unsigned i = 0; i < 4; i++) to[i * step] = words[i];
    }
}

static unsigned per_chunk(enum soft_tensor_type type) {
    unsigned bits = soft_tensor_bits(type);
    return bits == 1 ? 4 : 128 / bits;
}

/* B as k rows of n, from chunks along k or along n. */
static void read_b(const struct soft_wgmma_op *op, uint32_t *b) {
    unsigned per = per_chunk(op->b), chunks = op->n * 2, groups = op->n / 8;
    bool k_major = (op->in->mode & SOFT_WGMMA_TRANSPOSE_B) == 0;
    for (unsigned i = 0; i < chunks; i++) {
        const uint8_t *chunk = op->product->b_bytes + (size_t)i * SOFT_WGMMA_CHUNK;
        if (k_major) {
            ops_wgmma_spread(chunk, op->b, b + i % 2 * per * op->n + i / 2, op->n);
        } else {
            ops_wgmma_spread(chunk, op->b, b + i / groups * op->n + i % groups * 8, 1);
        }
    }
}

static void read_a(const struct soft_wgmma_op *op, uint32_t *a) {
    unsigned per = per_chunk(op->a), k = words_per_row(op->a, op->k);
    if ((op->in->mode & SOFT_WGMMA_A_IN_REGISTERS) != 0) {
        /* Bits stay in words, of which each register is one, where tf32 would be. */
        bool bits = op->a == SOFT_TENSOR_B1;
        struct soft_tensor_shape shape = {ROWS, 8, k};
        struct fragment f = fragment_of(shape, SOFT_TENSOR_A, bits ? SOFT_TENSOR_TF32 : op->a);
        unsigned width = 32 / f.per;
        uint32_t mask = width == 32 ? UINT32_MAX : (1u << width) - 1;
        for (unsigned r = 0; r < 4; r++) {
            for (unsigned e = 0; e < f.per; e++) {
                for (unsigned i = 0; i < SOFT_LANES; i++) {
                    a[f.of_register[r] + f.of_lane[i] + e] =
                        op->a_registers[r][i] >> (e * width) & mask;
                }
            }
        }
        return;
    }
    bool k_major = (op->in->mode & SOFT_WGMMA_TRANSPOSE_A) == 0;
    for (unsigned i = 0; i < SOFT_WGMMA_A_CHUNKS; i++) {
        const uint8_t *chunk = op->a_bytes + (size_t)i * SOFT_WGMMA_CHUNK;
        if (k_major) {
            ops_wgmma_spread(chunk, op->a, a + i / 2 * k + i % 2 * per, 1);
        } else {
            ops_wgmma_spread(chunk, op->a, a + i % 2 * 8 * k + i / 2, k);
        }
    }
}

/* Where the accumulator's registers are in 16 rows of n: of D in single precision or whole numbers
 * a register has one element, of halves two, side by side. */
static inline unsigned ops_wgmma_place_of(unsigned n, unsigned element, unsigned lane) {
    unsigned row = lane / 4 + element % 4 / 2 * 8;
    return row * n + lane % 4 * 2 + element % 2 + element / 4 * 8;
}

#define REGISTER(i) ((uint32_t *)(void *)(op->frame->slots + op->d_slots[i]))

static void ops_wgmma_read_words(const struct soft_wgmma_op *op, uint32_t *c) {
    for (unsigned r = 0; r < op->d_count; r++) {
        const uint32_t *from = REGISTER(r);
        for (unsigned i = 0; i < SOFT_LANES; i++) c[ops_wgmma_place_of(op->n, r, i)] = from[i];
    }
}

static void write_words(const struct soft_wgmma_op *op, const uint32_t *c) {
    for (unsigned r = 0; r < op->d_count; r++) {
        uint32_t *to = REGISTER(r);
        for (unsigned i = 0; i < SOFT_LANES; i++) to[i] = c[ops_wgmma_place_of(op->n, r, i)];
    }
}

static void read_halves(const struct soft_wgmma_op *op, float *c) {
    for (unsigned r = 0; r < op->d_count; r++) {
        const uint32_t *from = REGISTER(r);
        for (unsigned i = 0; i < SOFT_LANES; i++) {
            c[ops_wgmma_place_of(op->n, 2 * r, i)] = float_of_f16(from[i] & 0xffff);
            c[ops_wgmma_place_of(op->n, 2 * r + 1, i)] = float_of_f16(from[i] >> 16);
        }
    }
}

static void write_halves(const struct soft_wgmma_op *op, const float *c) {
    for (unsigned r = 0; r < op->d_count; r++) {
        uint32_t *to = REGISTER(r);
        for (unsigned i = 0; i < SOFT_LANES; i++) {
            uint32_t low = f16_of_float(c[ops_wgmma_place_of(op->n, 2 * r, i)]);
            to[i] = low | (uint32_t)f16_of_float(c[ops_wgmma_place_of(op->n, 2 * r + 1, i)]) << 16;
        }
    }
}

static void ops_wgmma_negate(struct factors *factors, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        factors->value[i] = -factors->value[i];
        factors->digits[i] = -factors->digits[i];
    }
}

static void multiply_floats(const struct soft_wgmma_op *op, const uint32_t *a, const uint32_t *b) {
    _Alignas(64) struct problem p;
    bool bytes = soft_tensor_bits(op->a) == 8;
    p.m = ROWS;
    p.n = op->n;
    p.k = p.block = op->k;
    p.cut = bytes ? (int)SOFT_TENSOR_FRACTION_BITS - (int)SOFT_TENSOR_BYTE_FRACTION_BITS : 0;
    p.half = op->d == SOFT_TENSOR_F16;
    p.accumulator_least = p.half ? -14 : -126;
    p.special = read_factors(&p.a, a, ROWS * op->k, op->a);
    p.special |= read_factors(&p.b, b, op->k * op->n, op->b);
    if ((op->in->mode & SOFT_WGMMA_NEGATE_A) != 0) ops_wgmma_negate(&p.a, ROWS * op->k);
    if ((op->in->mode & SOFT_WGMMA_NEGATE_B) != 0) ops_wgmma_negate(&p.b, op->k * op->n);
    memset(p.c, 0, ROWS * op->n * sizeof p.c[0]);
    if (op->accumulates && p.half) read_halves(op, p.c);
    if (op->accumulates && !p.half) ops_wgmma_read_words(op, (uint32_t *)(void *)p.c);
    multiply(&p);
    if (p.half) {
        write_halves(op, p.c);
        return;
    }
    for (unsigned i = 0; i < ROWS * op->n; i++) p.c[i] = canonical_f32(p.c[i]);
    write_words(op, (const uint32_t *)(const void *)p.c);
}

static void ops_wgmma_widen(uint32_t *numbers, unsigned count, enum soft_tensor_type type) {
    for (unsigned i = 0; i < count && type == SOFT_TENSOR_S8; i++) {
        numbers[i] = (uint32_t)(int32_t)(int8_t)numbers[i];
    }
}

/* Sums wrap, or are clamped once. */
static void add_sums(const struct soft_wgmma_op *op, const int32_t *sums, uint32_t *c) {
    bool clamps = (op->in->mode & SOFT_TENSOR_SATFINITE) != 0;
    for (unsigned i = 0; i < ROWS * op->n; i++) {
        int64_t exact = (int64_t)(int32_t)c[i] + sums[i];
        int64_t clamped = exact > INT32_MAX ? INT32_MAX : exact < INT32_MIN ? INT32_MIN : exact;
        c[i] = (uint32_t)(clamps ? clamped : exact);
    }
}

static void multiply_numbers(const struct soft_wgmma_op *op, uint32_t *a, uint32_t *b) {
    _Alignas(64) int32_t sums[SUMS_MAX];
    _Alignas(64) uint32_t c[SUMS_MAX];
    unsigned n = op->n, k = words_per_row(op->a, op->k);
    bool bits = op->a == SOFT_TENSOR_B1;
    memset(sums, 0, ROWS * n * sizeof sums[0]);
    memset(c, 0, ROWS * n * sizeof c[0]);
    ops_wgmma_widen(a, ROWS * k, op->a);
    ops_wgmma_widen(b, k * n, op->b);
    for (unsigned row = 0; row < ROWS; row++) {
        int32_t *sum = sums + row * n;
        for (unsigned i = 0; i < k; i++) {
            const uint32_t *from = b + i * n;
            uint32_t x = a[row * k + i];
            if (bits) {
                for (unsigned j = 0; j < n; j++) sum[j] += __builtin_popcount(x & from[j]);
            } else {
                SOFT_LANE_LOOP for (unsigned j = 0; j < n; j++) {
                    sum[j] += (int32_t)x * (int32_t)from[j];
                }
            }
        }
    }
    if (op->accumulates) ops_wgmma_read_words(op, c);
    add_sums(op, sums, c);
    write_words(op, c);
}

/* B's bits where add_plain reads them. Only types of 16 bits can lie along n. */
static void place_b(const struct soft_wgmma_op *op, uint32_t *bits) {
    unsigned per = per_chunk(op->b), chunks = op->n * 2, groups = op->n / 8, k = op->k;
    bool k_major = (op->in->mode & SOFT_WGMMA_TRANSPOSE_B) == 0;
    for (unsigned i = 0; i < chunks; i++) {
        const uint8_t *chunk = op->product->b_bytes + (size_t)i * SOFT_WGMMA_CHUNK;
        if (k_major) {
            uint32_t *to = bits + place_of_b(k, i % 2 * per, i / 2);
            ops_wgmma_spread(chunk, op->b, to, 8);
            ops_wgmma_spread(chunk, op->b, to + 4, 8);
            continue;
        }
        uint32_t *even = bits + place_of_b(k, i / groups, i % groups * 8), *odd = even + k * 8;
        uint16_t halves[8];
        memcpy(halves, chunk, sizeof halves);
        for (unsigned j = 0; j < 4; j++) {
            even[j] = even[j + 4] = halves[2 * j];
            odd[j] = odd[j + 4] = halves[2 * j + 1];
        }
    }
}

/* B as numbers. */
static void read_plain_b(const struct soft_wgmma_op *op) {
    struct soft_wgmma_product *product = op->product;
    _Alignas(64) uint32_t bits[SOFT_WGMMA_NUMBERS];
    unsigned k = op->k, n = op->n;
    place_b(op, bits);
    struct plain_range range =
        read_plain(bits, 2 * n * k, op->b, product->b_value, product->b_exponent);
    product->b_least = range.least;
    product->b_largest = range.largest;
    product->b_kind = range.special ? SOFT_WGMMA_UNUSUAL : SOFT_WGMMA_PLAIN;
}

/* Whether no product's exponent can be too small or too large, and no accumulator's is. */
static bool ops_wgmma_is_plain(const struct soft_wgmma_op *op, const struct plain_range *a) {
    const struct soft_wgmma_product *product = op->product;
    struct plain_range b = {product->b_least, product->b_largest,
                            product->b_kind != SOFT_WGMMA_PLAIN};
    bool plain = are_plain_factors(a, &b);
    for (unsigned r = 0; r < op->d_count && op->accumulates && plain; r++) {
        plain = are_plain(REGISTER(r), SOFT_LANES);
    }
    return plain;
}

/* Whether the fast path applies. If so, it has computed the sums. */
static bool ops_wgmma_multiply_plain(const struct soft_wgmma_op *op, const uint32_t *bits) {
    _Alignas(64) float value[PLAIN_ROWS * PLAIN_K];
    _Alignas(64) int32_t exponent[PLAIN_ROWS * PLAIN_K];
    struct plain_a a;
    const struct soft_wgmma_product *product = op->product;
    if (op->d != SOFT_TENSOR_F32 || !has_plain_type(op->a)) return false;
    if (product->b_kind == SOFT_WGMMA_UNREAD) read_plain_b(op);
    struct plain_range range = read_plain(bits, ROWS * op->k, op->a, value, exponent);
    if (!ops_wgmma_is_plain(op, &range)) return false;
    bool negates =
        ((op->in->mode & SOFT_WGMMA_NEGATE_A) != 0) != ((op->in->mode & SOFT_WGMMA_NEGATE_B) != 0);
    for (unsigned i = 0; i < ROWS * op->k && negates; i++) value[i] = -value[i];
    spread_a(value, exponent, op->k, &a);
    /* A register has even or odd columns of eight, and the upper or the lower rows. */
    for (unsigned r = 0; r < op->d_count; r++) {
        size_t at = (size_t)(r / 4 * 2 + r % 2) * op->k * 8;
        const float *b_value = product->b_value + at;
        const int32_t *b_exponent = product->b_exponent + at;
        unsigned row = r % 4 / 2 * 8;
        if (op->k == PLAIN_K) {
            add_register(&a, row, b_value, b_exponent, PLAIN_K, REGISTER(r), op->accumulates);
        } else {
            add_register(&a, row, b_value, b_exponent, 8, REGISTER(r), op->accumulates);
        }
    }
    return true;
}

static void multiply_all(const struct soft_wgmma_op *op) {
    _Alignas(64) uint32_t a[A_MAX], b[FACTORS_MAX];
    read_a(op, a);
    if (ops_wgmma_multiply_plain(op, a)) return;
    read_b(op, b);
    if (op->d == SOFT_TENSOR_S32) {
        multiply_numbers(op, a, b);
    } else {
        multiply_floats(op, a, b);
    }
}

OP_WHOLE(wgmma) {
    return soft_wgmma_start(warp, in, multiply_all);
}

OP_WHOLE(wgmma_fence) {
    return soft_wgmma_fence(warp, in);
}

OP_WHOLE(wgmma_commit) {
    return soft_wgmma_commit(warp, in);
}

OP_WHOLE(wgmma_wait) {
    return soft_wgmma_wait(warp, in, multiply_all);
}

OP_ANY(wgmma_use) {
    return soft_wgmma_use(warp, in);
}
