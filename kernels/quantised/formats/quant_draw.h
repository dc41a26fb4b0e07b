/*
 * Quant draw: seeded blocks of several kinds, for tests and claims.
 */
#ifndef KN_QUANT_DRAW_H
#define KN_QUANT_DRAW_H

#include "quant_block.h"

enum kn_quant_blocks {
    KN_BLOCKS_USUAL,     /* as in models: d from 2^-14 to 2^-6, all other bits arbitrary */
    KN_BLOCKS_ANY,       /* all bits arbitrary, but d and dmin finite */
    KN_BLOCKS_EXTREME,   /* d and dmin the largest, the least or 0, of either sign; scales and
                          * quants all ones, all zeros or arbitrary */
    KN_BLOCKS_SUBNORMAL, /* d and dmin subnormal */
    KN_BLOCKS_SPECIAL,   /* d or dmin infinite or NaN in one of three */
    KN_BLOCKS_KINDS
};

TOL_API const char *kn_quant_blocks_name(enum kn_quant_blocks kind); /* "usual" */

/* Draws count blocks; state is that of kn_random. */
TOL_API void kn_quant_draw(enum kn_quant quant, enum kn_quant_blocks kind, uint64_t *state,
                           size_t count, void *blocks);

#endif
