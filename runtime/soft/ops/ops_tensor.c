/*
 * Products of matrices: mma.sync and wmma.mma of whole numbers and single bits, and movmatrix.
 * Source: PTX ISA 9.0, sections 9.7.14.4 (wmma), 9.7.14.5 (mma, movmatrix).
 */
#include "ops_tensor.h"

enum { ELEMENTS_MAX = 1024, WORDS_MAX = 128, COLUMNS = 8 };

/* A number of four or eight bits; the upper bits of what it comes in are zero. */
static inline int32_t ops_tensor_widened(uint32_t bits, enum soft_tensor_type type) {
    switch (type) {
    case SOFT_TENSOR_S8:
        return (int8_t)bits;
    case SOFT_TENSOR_S4:
        return (int32_t)(bits ^ 8) - 8;
    default:
        return (int32_t)bits;
    }
}

static void ops_tensor_widen(uint32_t *matrix, unsigned count, enum soft_tensor_type type) {
    int32_t *numbers = (int32_t *)matrix;
    for (unsigned i = 0; i < count; i++) numbers[i] = ops_tensor_widened(matrix[i], type);
}

/* D = A B + C with 32-bit sums that wrap; or exact sums, clamped to 32 bits at the end. */
static void multiply_integers(const struct tensor *t, const int32_t *a, const int32_t *b,
                              uint32_t *c, bool clamps) {
    struct soft_tensor_shape s = t->shape;
    for (unsigned row = 0; row < s.m; row++) {
        for (unsigned column = 0; column < s.n; column += COLUMNS) {
            /* No sum of products of eight bits comes near the end of 32. */
            int32_t sum[COLUMNS] = {0};
            for (unsigned k = 0; k < s.k; k++) {
                const int32_t *from = b + k * s.n + column;
                for (int j = 0; j < COLUMNS; j++) sum[j] += a[row * s.k + k] * from[j];
            }
            uint32_t *to = c + row * s.n + column;
            for (int j = 0; j < COLUMNS; j++) {
                int64_t exact = (int64_t)(int32_t)to[j] + sum[j];
                int64_t clamped = exact > INT32_MAX   ? INT32_MAX
                                  : exact < INT32_MIN ? INT32_MIN
                                                      : exact;
                to[j] = (uint32_t)(clamps ? clamped : exact);
            }
        }
    }
}

OP_WHOLE(mma_integer) {
    struct tensor t = tensor_of(warp, in);
    struct fragment fragments[3] = {fragment_of(t.shape, SOFT_TENSOR_A, t.a),
                                    fragment_of(t.shape, SOFT_TENSOR_B, t.b),
                                    fragment_of(t.shape, SOFT_TENSOR_C, SOFT_TENSOR_S32)};
    _Alignas(64) uint32_t a[ELEMENTS_MAX], b[ELEMENTS_MAX], c[ELEMENTS_MAX];
    gather_elements(warp, &fragments[0], t.a_slots, a);
    gather_elements(warp, &fragments[1], t.b_slots, b);
    gather_elements(warp, &fragments[2], t.c_slots, c);
    ops_tensor_widen(a, t.shape.m * t.shape.k, t.a);
    ops_tensor_widen(b, t.shape.n * t.shape.k, t.b);
    multiply_integers(&t, (const int32_t *)a, (const int32_t *)b, c,
                      (in->mode & SOFT_TENSOR_SATFINITE) != 0);
    scatter_elements(warp, &fragments[2], t.d_slots, c);
    return in + 1;
}

/* Single bits, 32 to a word: the sum counts the ones that xor, or and, leaves. */
OP_WHOLE(mma_bits) {
    struct tensor t = tensor_of(warp, in);
    /* A word is an element of a matrix 32 times as narrow. */
    struct soft_tensor_shape words = {t.shape.m, t.shape.n, t.shape.k / 32};
    struct fragment fragments[3] = {fragment_of(words, SOFT_TENSOR_A, SOFT_TENSOR_S32),
                                    fragment_of(words, SOFT_TENSOR_B, SOFT_TENSOR_S32),
                                    fragment_of(words, SOFT_TENSOR_C, SOFT_TENSOR_S32)};
    uint32_t a[WORDS_MAX] = {0}, b[WORDS_MAX] = {0}, c[WORDS_MAX] = {0};
    bool joins_by_and = (in->mode & SOFT_TENSOR_AND) != 0;
    gather_elements(warp, &fragments[0], t.a_slots, a);
    gather_elements(warp, &fragments[1], t.b_slots, b);
    gather_elements(warp, &fragments[2], t.c_slots, c);
    for (unsigned row = 0; row < words.m; row++) {
        for (unsigned column = 0; column < words.n; column++) {
            for (unsigned k = 0; k < words.k; k++) {
                uint32_t x = a[row * words.k + k], y = b[k * words.n + column];
                uint32_t joined = joins_by_and ? x & y : x ^ y;
                c[row * words.n + column] += (uint32_t)__builtin_popcount(joined);
            }
        }
    }
    scatter_elements(warp, &fragments[2], t.d_slots, c);
    return in + 1;
}

/* A matrix of 8 by 8 halves, turned. Each thread has two neighbours of a row. */
OP_WHOLE(movmatrix) {
    const uint32_t *operands = SOFT_OPERANDS(warp, in);
    const uint32_t *from = SLOT(uint32_t, operands[SOFT_TENSOR_WORDS + 1]);
    uint32_t *to = SLOT(uint32_t, operands[SOFT_TENSOR_WORDS]), turned[SOFT_LANES] = {0};
    for (unsigned lane = 0; lane < SOFT_LANES; lane++) {
        for (unsigned e = 0; e < 2; e++) {
            unsigned row = lane / 4, column = lane % 4 * 2 + e;
            uint32_t half = from[lane] >> (16 * e) & 0xffff;
            turned[column * 4 + row / 2] |= half << (16 * (row % 2));
        }
    }
    memcpy(to, turned, sizeof turned);
    return in + 1;
}
