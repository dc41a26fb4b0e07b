/*
 * The quantiser: how much of the values is lost, that it loses no more than plain rounding between
 * the least and the largest, and what it refuses.
 */
#include "quantise.h"

#include "inputs.h"
#include "test/test_device.h"

#include <math.h>
#include <string.h>

enum { COUNT = 256 * 32 };

static float values[COUNT], back[COUNT];
static char blocks[COUNT / 256 * 288];

/* Root mean square of what is lost, as a share of that of the values. */
static double loss(enum kn_quant quant, size_t count) {
    double lost = 0, whole = 0;
    MUST(kn_quantise(quant, values, count, blocks));
    kn_quant_values(quant, blocks, count / kn_quant_block_elements(quant), back);
    for (size_t i = 0; i < count; i++) {
        const double difference = (double)back[i] - (double)values[i];
        lost += difference * difference, whole += (double)values[i] * (double)values[i];
    }
    return whole > 0 ? sqrt(lost / whole) : sqrt(lost);
}

/* What rounding each 32 values to 16 equal steps between their least (or 0) and largest would lose,
 * with no other rounding. */
static double plain_loss(void) {
    double lost = 0, whole = 0;
    for (size_t begin = 0; begin < COUNT; begin += 32) {
        double least = 0, most = 0;
        for (size_t i = begin; i < begin + 32; i++) {
            least = fmin(least, values[i]), most = fmax(most, values[i]);
        }
        for (size_t i = begin; i < begin + 32; i++) {
            const double step = (most - least) / 15;
            const double difference = least + rint((values[i] - least) / step) * step - values[i];
            lost += difference * difference, whole += (double)values[i] * (double)values[i];
        }
    }
    return sqrt(lost / whole);
}

static void draw(enum kn_distribution distribution, double scale) {
    uint64_t state = 7;
    kn_inputs_draw(distribution, &state, scale, values, COUNT);
}

/* Steps of a 15th, a 63rd and a 127th of the range: of their square a twelfth is lost. Of normal
 * values 32 together range over some 4 deviations, 16 over 3.5. */
Test(quantise, little_is_lost) {
    static const double most[][KN_QUANTS] = {{0.075, 0.0185, 0.0057}, {0.058, 0.0137, 0.004}};
    static const enum kn_distribution distributions[] = {KN_NORMAL, KN_UNIFORM};
    for (int i = 0; i < 2; i++) {
        draw(distributions[i], 0.02);
        for (enum kn_quant quant = 0; quant < KN_QUANTS; quant++) {
            const double lost = loss(quant, COUNT);
            cr_assert(lost > 0 && lost < most[i][quant], "%s of %s: %g", kn_quant_name(quant),
                      kn_distribution_name(distributions[i]), lost);
        }
        cr_assert(loss(KN_Q4_K, COUNT) < plain_loss(), "%g and plainly %g", loss(KN_Q4_K, COUNT),
                  plain_loss());
    }
}

/* What the format can represent comes back exactly: whole multiples of a scale that fits fp16. */
Test(quantise, what_fits_comes_back) {
    for (int i = 0; i < COUNT; i++) values[i] = 0.25f * (float)(i * 7 % 16);
    for (int i = 0; i < COUNT; i += 32) values[i] = 3.75f, values[i + 1] = 0;
    cr_assert(loss(KN_Q4_K, COUNT) < 2e-3, "%g", loss(KN_Q4_K, COUNT)); /* 63 in fp16's 1 / 63 */
    for (int i = 0; i < COUNT; i++) values[i] = 0.5f * (float)(i * 11 % 255 - 127);
    for (int i = 0; i < COUNT; i += 32) values[i] = 63.5f;
    cr_assert(loss(KN_Q8_0, COUNT) == 0, "%g", loss(KN_Q8_0, COUNT));
    memset(values, 0, sizeof values);
    for (enum kn_quant quant = 0; quant < KN_QUANTS; quant++) {
        cr_assert(loss(quant, COUNT) == 0, "%s: zeros are not zeros", kn_quant_name(quant));
    }
}

/* Values of one sign, of one value, with an outlier, tiny and large ones: no element is further off
 * than a step of its block's range. */
Test(quantise, odd_blocks_stay_within_a_step) {
    static const enum kn_distribution distributions[] = {KN_LARGE, KN_SPARSE, KN_CANCEL, KN_TINY,
                                                         KN_DENORMAL};
    static const double steps[KN_QUANTS] = {15, 31, 127};
    for (int turn = 0; turn < 8; turn++) {
        draw(distributions[turn % 5], 1);
        for (int i = 0; i < COUNT && turn >= 5; i++) {
            values[i] = turn == 5       ? 1 + 0.01f * (float)(i % 13)
                        : turn == 6     ? -3.5f
                        : i % 256 == 17 ? 1000
                                        : 0.001f * (float)(i % 29);
        }
        for (enum kn_quant quant = 0; quant < KN_QUANTS; quant++) {
            (void)loss(quant, COUNT);
            const size_t elements = kn_quant_block_elements(quant);
            for (size_t i = 0; i < COUNT; i++) {
                float least = 0, most = 0; /* of its block: scales are fractions of one d */
                for (size_t k = i / elements * elements; k < (i / elements + 1) * elements; k++) {
                    least = fminf(least, values[k]), most = fmaxf(most, values[k]);
                }
                /* fp16's least step, times the largest scale and quant. */
                const double step = ((double)most - least) / steps[quant] + 0x1p-24 * 63 * 16;
                const double off = fabs((double)back[i] - values[i]);
                cr_assert(off <= step, "%s, turn %d, element %zu: %g and not %g",
                          kn_quant_name(quant), turn, i, (double)back[i], (double)values[i]);
            }
        }
    }
}

Test(quantise, what_no_block_can_hold_is_refused) {
    memset(values, 0, sizeof values);
    for (enum kn_quant quant = 0; quant < KN_QUANTS; quant++) {
        MUST_FAIL(kn_quantise(quant, values, 31, blocks), TOL_INVALID_ARGUMENT, "whole blocks");
        MUST_FAIL(kn_quantise(quant, NULL, 256, blocks), TOL_INVALID_ARGUMENT, "NULL");
        MUST(kn_quantise(quant, NULL, 0, NULL));
        values[100] = NAN;
        MUST_FAIL(kn_quantise(quant, values, 256, blocks), TOL_INVALID_ARGUMENT, "value 100");
        values[100] = -INFINITY;
        MUST_FAIL(kn_quantise(quant, values, 256, blocks), TOL_INVALID_ARGUMENT, "-inf");
        values[100] = 3e38f;
        MUST_FAIL(kn_quantise(quant, values, 256, blocks), TOL_OUT_OF_RANGE, "65504");
        values[100] = -3e38f;
        MUST_FAIL(kn_quantise(quant, values, 256, blocks), TOL_OUT_OF_RANGE, "65504");
        values[100] = 0;
    }
    MUST_FAIL(kn_quantise(KN_QUANTS, values, 256, blocks), TOL_INVALID_ARGUMENT, "quantisation 3");
}
