/*
 * Draws blocks: arbitrary bytes first, then d, dmin and what the kind requires.
 */
#include "quant_draw.h"

#include "inputs.h"

#include <string.h>

const char *kn_quant_blocks_name(enum kn_quant_blocks kind) {
    static const char *const names[KN_BLOCKS_KINDS] = {"usual", "any", "extreme", "subnormal",
                                                       "special"};
    return (unsigned)kind < KN_BLOCKS_KINDS ? names[kind] : "?";
}

static uint16_t draw_half(enum kn_quant_blocks kind, uint64_t *state) {
    static const uint16_t extremes[] = {0x0000, 0x8000, 0x0001, 0x8001, 0x03ff,
                                        0x0400, 0x7bff, 0xfbff, 0x3c00, 0xbc00};
    static const uint16_t specials[] = {0x7c00, 0xfc00, 0x7e00};
    const unsigned bits = (unsigned)(kn_random(state) & 0xffff);
    switch (kind) {
    case KN_BLOCKS_USUAL:
        return (uint16_t)((1 + (bits >> 10) % 8) << 10 | (bits & 0x3ff));
    case KN_BLOCKS_EXTREME:
        return extremes[bits % (sizeof extremes / sizeof extremes[0])];
    case KN_BLOCKS_SUBNORMAL:
        return bits & 0x83ff;
    case KN_BLOCKS_SPECIAL:
        if (bits % 3 == 0) return specials[bits / 3 % 3];
        break;
    case KN_BLOCKS_ANY:
    case KN_BLOCKS_KINDS:
        break;
    }
    return (uint16_t)((bits & 0x7c00) == 0x7c00 ? bits & 0xbfff : bits);
}

/* One of three times each: all ones, all zeros, as they were drawn. */
static void make_extreme(uint64_t *state, unsigned char *bytes, size_t count) {
    const uint64_t choice = kn_random(state) % 3;
    if (choice < 2) memset(bytes, choice == 0 ? 0xff : 0, count);
}

void kn_quant_draw(enum kn_quant quant, enum kn_quant_blocks kind, uint64_t *state, size_t count,
                   void *blocks) {
    /* The offsets of d, and of the scales and quants. */
    const size_t bytes = kn_quant_block_bytes(quant), d_at = quant == KN_Q6_K ? 208 : 0;
    const size_t scales_at = quant == KN_Q4_K ? 4 : 192, scales = quant == KN_Q4_K ? 12 : 16;
    const size_t quants_at = quant == KN_Q4_K ? 16 : quant == KN_Q6_K ? 0 : 2;
    const size_t quants = quant == KN_Q4_K ? 128 : quant == KN_Q6_K ? 192 : 32;
    for (size_t b = 0; b < count; b++) {
        unsigned char *block = (unsigned char *)blocks + b * bytes;
        for (size_t i = 0; i < bytes; i++) block[i] = (unsigned char)kn_random(state);
        const uint16_t halves[2] = {draw_half(kind, state), draw_half(kind, state)};
        memcpy(block + d_at, halves, quant == KN_Q4_K ? 4 : 2);
        if (kind != KN_BLOCKS_EXTREME) continue;
        make_extreme(state, block + quants_at, quants);
        if (quant != KN_Q8_0) make_extreme(state, block + scales_at, scales);
    }
}
