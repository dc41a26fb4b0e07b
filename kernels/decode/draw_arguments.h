/*
 * What a draw of a token is, the same on host and device (draw.h): a row of parameters, and the
 * weight of a logit in whole numbers.
 *
 * The arithmetic is made so that a host and any device agree to the bit. A logit is a float; a
 * penalty is one float division or product, rounded to nearest. How far it is below the largest is
 * one double subtraction, one product, and a conversion that cuts, none of which can be fused. What
 * follows is whole numbers: 2 to minus the distance is a polynomial in 64-bit fixed point, and a
 * weight is that with 40 fractional bits. Sums of weights are exact, so their order does not
 * matter.
 */
#ifndef KN_DRAW_ARGUMENTS_H
#define KN_DRAW_ARGUMENTS_H

#include <stdint.h>

#if defined __CUDACC__
#define DRAW_INLINE __host__ __device__ inline
#else
#define DRAW_INLINE static inline
#endif

enum {
    DRAW_TOKENS = 256,      /* tokens that a row on a device can penalise */
    DRAW_OCTAVES = 40,      /* at more octaves below the largest a token is never drawn */
    DRAW_COLUMNS = 1 << 23, /* at most: their sum of weights fits 64 bits */
    DRAW_THREADS = 256,
    DRAW_CUT_THREADS = 1024,
    DRAW_PARTS = 96,        /* of a row, at most */
    DRAW_PART_LEAST = 1024, /* tokens of a part */
    DRAW_BIN_BITS = 27,     /* of a distance, in a bin of the histogram: 32 bins per octave */
    DRAW_BINS = 1312,       /* 41 for each lane of a warp */
    DRAW_LIST = 2048        /* tokens of a bin that are sorted out in shared memory */
};

/* What a row is drawn by. Of equal logits the lower token is the larger one. */
struct draw_row {
    double scale;       /* 2^32 / (ln 2 temperature): of a distance between logits */
    uint64_t random;    /* 64 bits of chance; the token is where they fall in the sum of weights */
    uint64_t share;     /* 2^64 top_p; 0: all */
    uint64_t least;     /* 2^40 min_p: the least weight; 0: any */
    uint32_t top_k;     /* 0: all; 1: the largest, whatever the rest is */
    uint32_t penalised; /* the number of penalised tokens, all different */
    float penalty;      /* a logit above 0 is divided by it, another one multiplied */
    uint32_t unused;
};

/* On a device, where rows follow each other. */
struct draw_device_row {
    struct draw_row row;
    uint32_t tokens[DRAW_TOKENS];
};

/* What a kernel leaves for the next, per row. */
struct draw_work {
    uint64_t keys[DRAW_PARTS]; /* row/argmax_key.cuh */
    uint64_t sums[DRAW_PARTS]; /* of the weights that are kept */
    uint64_t weights[DRAW_BINS];
    uint64_t threshold; /* the least key that is kept */
    uint32_t counts[DRAW_BINS];
};

struct draw_arguments {
    uint64_t logits, rows, tokens, work, out; /* floats; draw_row; the first row's tokens;
                                               * draw_work; one int32 per row */
    uint64_t stride;                          /* of logits, in elements */
    uint64_t row_stride;                      /* of rows and their tokens, in bytes */
    uint32_t columns, part;                   /* tokens of a part */
};

/* What a draw leaves: a token, or why there is none. */
enum { DRAW_NONE = -1 }; /* all logits are -infinity */
/* DRAW_BAD - column: that logit is NaN, the first one, or else +infinity. */
enum { DRAW_BAD = -2 };

#define DRAW_ONE ((uint64_t)1 << 40)
#define DRAW_FAR UINT64_MAX

DRAW_INLINE uint64_t draw_high(uint64_t a, uint64_t b) {
#if defined __CUDA_ARCH__
    return __umul64hi(a, b);
#else
    __extension__ typedef unsigned __int128 wide;
    return (uint64_t)((wide)a * b >> 64);
#endif
}

/* How far a logit is below the largest, in octaves with 32 fractional bits; DRAW_FAR: so far
 * that it has no weight. */
DRAW_INLINE uint64_t draw_distance(float value, float largest, double scale) {
    const double distance = ((double)largest - (double)value) * scale;
    if (!(distance < (double)DRAW_OCTAVES * 4294967296.0 + 1)) return DRAW_FAR;
    return (uint64_t)distance;
}

/* 2^40 times 2^-distance, cut; at least 1. The series of 2^-f in powers of f ln 2, of which 14
 * terms leave less than 2^-43: each factor is (ln 2)^n / n! in 64 bits. */
DRAW_INLINE uint64_t draw_weight(uint64_t distance) {
    const uint64_t f = distance << 32;
    uint64_t sum = 0x131496u;
    sum = 0x1816193u - draw_high(f, sum);
    sum = 0x1c3bd650u - draw_high(f, sum);
    sum = 0x1e8cac735u - draw_high(f, sum);
    sum = 0x1e4cf5158bu - draw_high(f, sum);
    sum = 0x1b5253d395eu - draw_high(f, sum);
    sum = 0x162c0223a5c8u - draw_high(f, sum);
    sum = 0xffe5fe2c4586u - draw_high(f, sum);
    sum = 0xa184897c363c3u - draw_high(f, sum);
    sum = 0x5761ff9e299cc4u - draw_high(f, sum);
    sum = 0x276556df749cee5u - draw_high(f, sum);
    sum = 0xe35846b82505fc5u - draw_high(f, sum);
    sum = 0x3d7f7bff058b1d50u - draw_high(f, sum);
    sum = 0xb17217f7d1cf79abu - draw_high(f, sum);
    sum = ((uint64_t)1 << 63) - (draw_high(f, sum) >> 1);
    return sum >> (23 + (distance >> 32));
}

/* The sum that top-p leaves of a sum of weights: the fewest that reach it are kept. */
DRAW_INLINE uint64_t draw_share(uint64_t total, uint64_t share) {
    return draw_high(total, share) + (total * share != 0);
}

#endif
