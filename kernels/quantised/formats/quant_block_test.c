/*
 * Blocks on the host: sizes, scales, and every element of the fixtures bit for bit as llama.cpp's
 * own package has it.
 */
#include "quant_block.h"

#include "quant_draw.h"
#include "test/test_device.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

Test(quant_block, names_and_sizes_are_those_of_the_format) {
    static const char *const names[] = {"q4_k", "q6_k", "q8_0"};
    static const size_t bytes[] = {144, 210, 34}, elements[] = {256, 256, 32};
    for (enum kn_quant quant = 0; quant < KN_QUANTS; quant++) {
        cr_assert_str_eq(kn_quant_name(quant), names[quant]);
        cr_assert(kn_quant_block_bytes(quant) == bytes[quant]);
        cr_assert(kn_quant_block_elements(quant) == elements[quant]);
    }
}

Test(quant_block, scales_come_back_as_they_were_put) {
    for (int turn = 0; turn < 64; turn++) {
        uint8_t scales[12] = {0}, scale, minimum;
        for (int j = 0; j < 8; j++) {
            kn_q4_k_set_scale(scales, j, (uint8_t)((turn + 8 * j) % 64),
                              (uint8_t)((5 * turn + 9 * j) % 64));
        }
        for (int j = 0; j < 8; j++) {
            kn_q4_k_scale(scales, j, &scale, &minimum);
            cr_assert(scale == (turn + 8 * j) % 64 && minimum == (5 * turn + 9 * j) % 64,
                      "turn %d, sub-block %d: %d and %d", turn, j, scale, minimum);
        }
    }
}

Test(quant_block, values_are_bit_for_bit_those_of_gguf) {
    for (enum kn_quant quant = 0; quant < KN_QUANTS; quant++) {
        char name[64];
        size_t block_bytes = 0, value_bytes = 0;
        snprintf(name, sizeof name, "quant/%s.blocks", kn_quant_name(quant));
        char *blocks = test_fixture(name, &block_bytes);
        snprintf(name, sizeof name, "quant/%s.f32", kn_quant_name(quant));
        char *expected = test_fixture(name, &value_bytes);
        const size_t count = block_bytes / kn_quant_block_bytes(quant);
        const size_t elements = count * kn_quant_block_elements(quant);
        cr_assert(count >= 40 && elements * sizeof(float) == value_bytes, "%s: %zu blocks", name,
                  count);
        float *values = malloc(value_bytes);
        double *exact = malloc(elements * sizeof *exact);
        kn_quant_values(quant, blocks, count, values);
        kn_quant_values_exact(quant, blocks, count, exact);
        for (size_t i = 0; i < elements; i++) {
            uint32_t ours, theirs;
            memcpy(&ours, &values[i], sizeof ours);
            memcpy(&theirs, expected + i * sizeof theirs, sizeof theirs);
            cr_assert(ours == theirs, "%s, element %zu is %.9g", name, i, (double)values[i]);
            cr_assert((float)exact[i] == values[i], "%s, element %zu is %.17g", name, i, exact[i]);
        }
        free(exact);
        free(values);
        free(expected);
        free(blocks);
    }
}

/* What is drawn covers what the kinds say. */
Test(quant_block, drawn_blocks_are_of_their_kind) {
    enum { BLOCKS = 200 };
    static char blocks[BLOCKS * 210];
    static float values[BLOCKS * 256];
    for (enum kn_quant quant = 0; quant < KN_QUANTS; quant++) {
        for (enum kn_quant_blocks kind = 0; kind < KN_BLOCKS_KINDS; kind++) {
            uint64_t state = 1;
            size_t special = 0;
            float largest = 0;
            kn_quant_draw(quant, kind, &state, BLOCKS, blocks);
            kn_quant_values(quant, blocks, BLOCKS, values);
            const size_t count = BLOCKS * kn_quant_block_elements(quant);
            for (size_t i = 0; i < count; i++) {
                special += !isfinite(values[i]);
                if (isfinite(values[i])) largest = fmaxf(largest, fabsf(values[i]));
            }
            cr_assert((special > 0) == (kind == KN_BLOCKS_SPECIAL), "%s, %s: %zu",
                      kn_quant_name(quant), kn_quant_blocks_name(kind), special);
            cr_assert(kind != KN_BLOCKS_SUBNORMAL || largest < 0.3f, "%g", (double)largest);
            cr_assert(kind != KN_BLOCKS_EXTREME || largest > 1e6f, "%g", (double)largest);
            cr_assert(kind != KN_BLOCKS_USUAL || (largest > 0.01f && largest < 100), "%g",
                      (double)largest);
        }
    }
}
