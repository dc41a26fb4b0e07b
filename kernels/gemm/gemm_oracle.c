/*
 * The definition, and the bounds.
 *
 * With S = sum over l of |a_il| |b_lj|, N^2 = sum over l of (a_il b_lj)^2, u = 2^-24 and k
 * products, a result may differ from the exact one by the sum of these.
 *
 * The sum of products, for any data:
 *   f32            (k + 2) u |alpha| S: each fma of a chain, or of a few chains that are added,
 *                  rounds a partial sum of at most S (1 + k u). Higham, Accuracy, section 3.1.
 *   tensor cores   (k + 32) 2^-22 |alpha| S: products are exact; a step adds up to 16 of them and
 *                  the sum so far, each cut off at 2^-23 of the largest of them or finer, which is
 *                  at most S. 17 such cuts and one of the result for every 16 products, or 9 and
 *                  one for every 8, are at most 1.25 k 2^-23 S; the rest is for steps half empty.
 *
 *   f32_tensor     max(k + 2, k / 32 + 140) u |alpha| S: a chain, or, by parts, of each 64 steps
 *                  the sum of first parts, 4 steps of 17 cuts at 2^-25 and one of 2^-23, and the
 *                  sum of the others, which is below 2^-6 S; 2^-23 S for the products that are left
 *                  out; and a sum of two floats for every 32 steps.
 *
 * The same for drawn data, where that is less. chance.h has L = KN_SIGNS, C = KN_CHAOS and what
 * they fail with. Partial sums are sums of some products, in whatever order and shares.
 *   f32            C u sqrt(k + 66) |alpha| N: k roundings to nearest, and one for each of up to 64
 *                  shares.
 *   tensor cores   2 C 2u sqrt(k + 82) |alpha| N: what is cut off a product is less than 2u times
 *                  the largest of its step, which is s, the sum so far, or a product. It has the
 *                  sign of the product against it, so cuts have mean 0, but are no longer
 *                  independent of the sums (chance.h, 4). 16 are for the products that are the
 *                  largest of their steps, 66 as above.
 *                  2u (L K + sqrt(K)) |alpha| N: the result of a step is cut towards 0, by up to
 *                  2u |s|, and s changes its sign rarely, so these errors add up. sum |s| over the
 *                  K steps is at most L K N (chance.h, 2). Where a product is larger than s, s is
 *                  cut by up to 2u times it, and those add up to sqrt(K) N. A step has eight
 *                  products, or four in tf32, as an A100 has; Hopper has twice as many. Sources:
 *                  Fasi, Higham, Mikaitis and Pranesh, Numerical behavior of NVIDIA tensor cores,
 *                  PeerJ CS 7:e330, 2021; Blanchard et al., Mixed precision block fused
 *                  multiply-add, SISC 42(3), 2020. Kernels without tensor cores are below this.
 *   f32_tensor     a chain, or the bound of tensor cores for 64 steps, in four, whose norms add up
 *                  to sqrt(k / 64) N at most, and C u sqrt(2 k / 64 + 4) N for what is rounded
 *                  after them and left out.
 *   These, times 1 + u (k + 64 sqrt(k)): partial sums have errors before they are rounded.
 *
 * And in both cases:
 *   f32_tensor     2^-133 times the sum of all factors: what is lost of parts that are too small.
 *   tf32           for each factor half way between two numbers of tf32 their distance, times the
 *                  other factor: cvt.rna rounds it away from 0, a tensor map to the even one.
 *   c's type       its roundoff times |result|, and half of its smallest subnormal.
 *   alpha, beta    3 u (|alpha sum| + |beta c|): two products and a sum, in float.
 *   underflow      (k + 2) 2^-149 (1 + |alpha|): sums below 2^-126 are rounded to multiples of
 *                  that. On tensor cores (k + 2) 2^-126: they need not keep subnormal numbers.
 */
#include "gemm_oracle.h"

#include "chance.h"

#include <math.h>
#include <string.h>

static double gemm_oracle_element(enum kn_type type, const void *elements, size_t at) {
    switch (type) {
    case KN_F16:
        return (double)kn_f16_value(((const uint16_t *)elements)[at]);
    case KN_BF16:
        return (double)kn_bf16_value(((const uint16_t *)elements)[at]);
    case KN_F32:
    case KN_TYPES:
        break;
    }
    return (double)((const float *)elements)[at];
}

/* The distance of the two numbers of tf32 that are as near to a value, else 0. */
static double tie_of(float value) {
    const uint32_t cut = 0x1fff, half = 0x1000;
    uint32_t bits;
    float low, high;
    memcpy(&bits, &value, sizeof bits);
    if ((bits & cut) != half || !isfinite(value)) return 0;
    bits &= ~cut;
    memcpy(&low, &bits, sizeof low);
    bits += cut + 1;
    memcpy(&high, &bits, sizeof high);
    return fabs((double)high - (double)low);
}

/* What is summed up of the products of an element. */
struct sums {
    double sum, sizes, squares; /* of the products, their magnitudes and their squares */
    double ties;                /* what they may be off, as factors are not what they were */
};

static double worst_of_sum(const struct kn_gemm *gemm, double sizes) {
    const double u = 0x1p-24, k = (double)gemm->k;
    if (gemm->precision == KN_GEMM_F32) return (k + 2) * u * sizes;
    if (gemm->precision == KN_GEMM_F32_TENSOR) return fmax(k + 2, k / 32 + 140) * u * sizes;
    return (k + 32) * 0x1p-22 * sizes;
}

static double likely_of_sum(const struct kn_gemm *gemm, double norm) {
    const double u = 0x1p-24, k = (double)gemm->k;
    const double steps = ceil(k / (gemm->precision == KN_GEMM_TF32 ? 4 : 8));
    if (gemm->precision == KN_GEMM_F32_TENSOR) {
        const double blocks = ceil(k / 64), chain = KN_CHAOS * u * sqrt(k + 66);
        const double block = 2 * u * (2 * KN_CHAOS * sqrt(64 + 18) + KN_SIGNS * 4 + sqrt(4));
        return fmax(chain, block * sqrt(blocks) + KN_CHAOS * u * sqrt(2 * blocks + 4)) * norm *
               KN_CHANCE_SECOND_ORDER(k);
    }
    const double allowed =
        gemm->precision == KN_GEMM_F32
            ? KN_CHAOS * u * sqrt(k + 66)
            : 2 * u * (2 * KN_CHAOS * sqrt(k + 82) + KN_SIGNS * steps + sqrt(steps));
    return allowed * norm * KN_CHANCE_SECOND_ORDER(k);
}

static double gemm_oracle_bound(const struct kn_gemm *gemm, enum kn_gemm_data data,
                                const struct sums *sums, double old, double result) {
    const double u = 0x1p-24, k = (double)gemm->k, alpha = fabs((double)gemm->alpha);
    const bool tensor = gemm->precision != KN_GEMM_F32;
    const double least = gemm->c_type == KN_F16 ? 0x1p-25 : gemm->c_type == KN_BF16 ? 0x1p-134 : 0;
    double allowed = worst_of_sum(gemm, sums->sizes);
    if (data == KN_GEMM_DRAWN) allowed = fmin(allowed, likely_of_sum(gemm, sqrt(sums->squares)));
    allowed = (allowed + sums->ties) * alpha;
    allowed += 3 * u * (alpha * fabs(sums->sum) + fabs((double)gemm->beta * old));
    allowed += (k + 2) * (tensor ? 0x1p-126 : 0x1p-149) * (1 + alpha);
    if (gemm->c_type != KN_F32) {
        allowed += kn_type_roundoff(gemm->c_type) * (fabs(result) + allowed) + least;
    }
    return allowed;
}

/* A tile of op(B), in floats: sums over it are vectors of columns, whichever way B lies, and each
 * sum still takes its products in the order of l. */
enum { DEPTH = 16, LANES = 8, COLUMNS = 32 * LANES };

struct tile {
    size_t first_l, first_j, depth, columns;
    float values[DEPTH][COLUMNS];
};

/* Columns past the last are 0 up to whole lanes. */
static void load_tile(const struct kn_gemm *gemm, size_t index,
                      const struct kn_gemm_oracle_matrix *b, struct tile *tile) {
    const enum kn_type type = kn_gemm_input_type(gemm->precision);
    const size_t lines = gemm->transpose_b ? tile->columns : tile->depth;
    const size_t line_first = gemm->transpose_b ? tile->first_j : tile->first_l;
    const size_t first = gemm->transpose_b ? tile->first_l : tile->first_j;
    for (size_t line = 0; line < lines; line++) {
        const char *from = (const char *)b->elements +
                           kn_type_bytes(type) *
                               (index * b->batch_stride + (line_first + line) * b->leading + first);
        if (gemm->transpose_b) {
            float column[DEPTH];
            kn_numbers_load(type, from, tile->depth, column);
            for (size_t l = 0; l < tile->depth; l++) tile->values[l][line] = column[l];
        } else {
            kn_numbers_load(type, from, tile->columns, tile->values[line]);
        }
    }
    for (size_t l = 0; l < tile->depth; l++) {
        for (size_t j = tile->columns; j % LANES != 0; j++) tile->values[l][j] = 0;
    }
}

/* The sums of the columns of a tile. */
struct columns {
    double sums[COLUMNS], sizes[COLUMNS], squares[COLUMNS], ties[COLUMNS];
};

/* Adds what is lost of the smallest parts. */
static void lose_parts(const struct tile *tile, const double left[DEPTH], struct columns *columns) {
    for (size_t l = 0; l < tile->depth; l++) {
        for (size_t j = 0; j < tile->columns; j++) {
            columns->ties[j] += 0x1p-133 * (fabs(left[l]) + fabs((double)tile->values[l][j]));
        }
    }
}

/* Rounds the factors to tf32, and adds what they may be off. */
static void round_tile(struct tile *tile, double left[DEPTH], struct columns *columns) {
    for (size_t l = 0; l < tile->depth; l++) {
        const double left_tie = tie_of((float)left[l]);
        left[l] = (double)kn_tf32_of((float)left[l]);
        for (size_t j = 0; j < tile->columns; j++) {
            const double tie = tie_of(tile->values[l][j]);
            tile->values[l][j] = kn_tf32_of(tile->values[l][j]);
            if (tie == 0 && left_tie == 0) continue;
            columns->ties[j] +=
                (fabs(left[l]) + left_tie) * tie + left_tie * fabs((double)tile->values[l][j]);
        }
    }
}

/* Adds the products with one piece of a row of op(A). */
static void add_tile(const struct tile *tile, const double left[DEPTH], struct columns *columns) {
    for (size_t j = 0; j < tile->columns; j += LANES) {
        double sum[LANES], size[LANES], square[LANES];
        for (size_t i = 0; i < LANES; i++) {
            sum[i] = columns->sums[j + i], size[i] = columns->sizes[j + i];
            square[i] = columns->squares[j + i];
        }
        for (size_t l = 0; l < tile->depth; l++) {
            const float *right = &tile->values[l][j];
            for (int i = 0; i < LANES; i++) {
                const double product = left[l] * (double)right[i];
                sum[i] += product;
                size[i] += fabs(product);
                square[i] += product * product;
            }
        }
        for (size_t i = 0; i < LANES; i++) {
            columns->sums[j + i] = sum[i], columns->sizes[j + i] = size[i];
            columns->squares[j + i] = square[i];
        }
    }
}

void kn_gemm_oracle(const struct kn_gemm *gemm, enum kn_gemm_data data, size_t index, size_t row,
                    const struct kn_gemm_oracle_matrix *a, const struct kn_gemm_oracle_matrix *b,
                    const struct kn_gemm_oracle_matrix *c, double *result, double *allowed) {
    const enum kn_type type = kn_gemm_input_type(gemm->precision);
    const size_t k = gemm->alpha == 0 ? 0 : gemm->k;
    const size_t a_first = index * a->batch_stride + row * (gemm->transpose_a ? 1 : a->leading);
    const size_t a_step = gemm->transpose_a ? a->leading : 1;
    for (size_t first = 0; first < gemm->n; first += COLUMNS) {
        const size_t columns = gemm->n - first < COLUMNS ? gemm->n - first : COLUMNS;
        struct columns all = {0};
        double left[DEPTH];
        for (size_t l = 0; l < k; l += DEPTH) {
            struct tile tile; /* its values are not worth clearing each time */
            tile.first_l = l, tile.depth = k - l < DEPTH ? k - l : DEPTH;
            tile.first_j = first, tile.columns = columns;
            for (size_t i = 0; i < tile.depth; i++) {
                left[i] = gemm_oracle_element(type, a->elements, a_first + (l + i) * a_step);
            }
            load_tile(gemm, index, b, &tile);
            if (gemm->precision == KN_GEMM_TF32) round_tile(&tile, left, &all);
            if (gemm->precision == KN_GEMM_F32_TENSOR) lose_parts(&tile, left, &all);
            add_tile(&tile, left, &all);
        }
        for (size_t j = first; j < first + columns; j++) {
            double old = 0;
            if (gemm->beta != 0) {
                old = gemm_oracle_element(gemm->c_type, c->elements,
                                          index * c->batch_stride + row * c->leading + j);
            }
            const struct sums sums = {all.sums[j - first], all.sizes[j - first],
                                      all.squares[j - first], all.ties[j - first]};
            result[j] = (double)gemm->alpha * sums.sum + (double)gemm->beta * old;
            allowed[j] = gemm_oracle_bound(gemm, data, &sums, old, result[j]);
        }
    }
}
