/*
 * Numbers modulo 2^130 - 5 in five limbs of 26 bits, for the host and for the device: products of
 * limbs have room to be added in 64 bits. RFC 8439, section 2.5. Internal.
 */
#ifndef KN_LIMBS_H
#define KN_LIMBS_H

#include "seal_arguments.h"

#ifdef __CUDACC__
#define LIMBS_FUNCTION __device__ inline
#define LIMBS_UNROLL _Pragma("unroll")
#else
#define LIMBS_FUNCTION static inline
#define LIMBS_UNROLL
#endif

enum { LIMB_BITS = 26, LIMB_MASK = (1 << LIMB_BITS) - 1 };

/* (a + b) r. The limbs of a, of b and of their sum may be up to 2^28; those of r are below 2^26 but
 * for the second, which may be a little above, and so are the result's. */
LIMBS_FUNCTION struct seal_limbs limbs_step(struct seal_limbs a, struct seal_limbs b,
                                            struct seal_limbs r) {
    uint32_t x[5], s[5];
    uint64_t d[5], carry = 0;
    LIMBS_UNROLL
    for (int i = 0; i < 5; i++) {
        x[i] = a.at[i] + b.at[i];
        s[i] = 5 * r.at[i];
    }
    LIMBS_UNROLL
    for (int i = 0; i < 5; i++) {
        d[i] = 0;
        LIMBS_UNROLL
        for (int j = 0; j < 5; j++) {
            d[i] += (uint64_t)x[j] * (j <= i ? r.at[i - j] : s[5 + i - j]);
        }
    }
    LIMBS_UNROLL
    for (int i = 0; i < 5; i++) {
        d[i] += carry;
        carry = d[i] >> LIMB_BITS;
        x[i] = (uint32_t)d[i] & LIMB_MASK;
    }
    /* The carry may have 33 bits, and five times as much 36. */
    const uint64_t low = x[0] + 5 * carry;
    x[0] = (uint32_t)low & LIMB_MASK;
    x[1] += (uint32_t)(low >> LIMB_BITS);
    struct seal_limbs result;
    LIMBS_UNROLL
    for (int i = 0; i < 5; i++) result.at[i] = x[i];
    return result;
}

/* 16 bytes and a one after them, as Poly1305 reads a block. */
LIMBS_FUNCTION struct seal_limbs limbs_of(uint32_t w0, uint32_t w1, uint32_t w2, uint32_t w3) {
    struct seal_limbs result;
    result.at[0] = w0 & LIMB_MASK;
    result.at[1] = (w0 >> 26 | w1 << 6) & LIMB_MASK;
    result.at[2] = (w1 >> 20 | w2 << 12) & LIMB_MASK;
    result.at[3] = (w2 >> 14 | w3 << 18) & LIMB_MASK;
    result.at[4] = w3 >> 8 | 1 << 24;
    return result;
}

/* The number itself, reduced, modulo 2^128: four words. */
LIMBS_FUNCTION void limbs_words(struct seal_limbs a, uint32_t words[4]) {
    uint32_t x[5], y[5], carry = 0;
    /* Twice: after the first a limb may still be 2^26. */
    LIMBS_UNROLL
    for (int turn = 0; turn < 2; turn++) {
        LIMBS_UNROLL
        for (int i = 0; i < 5; i++) {
            a.at[i] += carry;
            carry = a.at[i] >> LIMB_BITS;
            a.at[i] &= LIMB_MASK;
        }
        carry *= 5;
    }
    a.at[0] += carry;
    /* a + 5 reaches 2^130 if a is at least 2^130 - 5, and then its lower bits are the result. */
    carry = 5;
    LIMBS_UNROLL
    for (int i = 0; i < 5; i++) {
        y[i] = a.at[i] + carry;
        carry = y[i] >> LIMB_BITS;
        y[i] &= LIMB_MASK;
    }
    LIMBS_UNROLL
    for (int i = 0; i < 5; i++) x[i] = carry ? y[i] : a.at[i];
    words[0] = x[0] | x[1] << 26;
    words[1] = x[1] >> 6 | x[2] << 20;
    words[2] = x[2] >> 12 | x[3] << 14;
    words[3] = x[3] >> 18 | x[4] << 8;
}

#endif
