/*
 * The distributions.
 */
#include "inputs.h"

#include "parallel.h"

#include <math.h>

static const uint64_t STEP = UINT64_C(0x9e3779b97f4a7c15);

const char *kn_distribution_name(enum kn_distribution distribution) {
    static const char *const names[KN_DISTRIBUTIONS] = {"uniform",  "normal", "large", "tiny",
                                                        "denormal", "sparse", "cancel"};
    return (unsigned)distribution < KN_DISTRIBUTIONS ? names[distribution] : "?";
}

bool kn_distribution_has_signs(enum kn_distribution distribution) {
    return (unsigned)distribution < KN_DISTRIBUTIONS && distribution != KN_CANCEL;
}

uint64_t kn_random(uint64_t *state) {
    uint64_t z = *state += STEP;
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

double kn_random_unit(uint64_t *state) {
    return (double)(kn_random(state) >> 11) * 0x1p-53;
}

static double draw_uniform(uint64_t *state) {
    return 2 * kn_random_unit(state) - 1;
}

/* Box and Muller's, of which one is kept: two draws a value, so that order alone decides. */
static double draw_normal(uint64_t *state) {
    double radius = sqrt(-2 * log(1 - kn_random_unit(state)));
    return radius * cos(6.283185307179586 * kn_random_unit(state));
}

static double inputs_draw(enum kn_distribution distribution, uint64_t *state, float previous,
                          size_t index) {
    switch (distribution) {
    case KN_NORMAL:
        return draw_normal(state);
    case KN_LARGE: {
        double sign = (kn_random(state) & 1) != 0 ? 1 : -1;
        return sign * exp2(12 * kn_random_unit(state));
    }
    case KN_TINY:
        return draw_uniform(state) * 0x1p-120;
    case KN_DENORMAL:
        return draw_uniform(state) * 0x1p-126;
    case KN_SPARSE: {
        double value = draw_uniform(state);
        return kn_random(state) % 10 == 0 ? value : copysign(0, value);
    }
    case KN_CANCEL: {
        double value = draw_uniform(state);
        return index % 2 == 0 ? value : -(double)previous * (1 + value * 0x1p-10);
    }
    case KN_UNIFORM:
    case KN_DISTRIBUTIONS:
        break;
    }
    return draw_uniform(state);
}

/* How many numbers each value takes of the state. */
static uint64_t draws_of(enum kn_distribution distribution) {
    return distribution == KN_NORMAL || distribution == KN_LARGE || distribution == KN_SPARSE ? 2
                                                                                              : 1;
}

void kn_inputs_skip(enum kn_distribution distribution, uint64_t *state, size_t count) {
    *state += STEP * draws_of(distribution) * count;
}

/* Pieces begin at even places, where no value depends on the one before it. */
enum { PIECE = 1 << 14 };

struct drawing {
    enum kn_distribution distribution;
    uint64_t state; /* of the first value */
    double scale;
    float *values;
    size_t count;
};

static void inputs_draw_piece(void *user, size_t index) {
    const struct drawing *d = user;
    const size_t first = index * PIECE, rest = d->count - first;
    float *values = d->values + first, previous = 0;
    uint64_t state = d->state;
    kn_inputs_skip(d->distribution, &state, first);
    for (size_t i = 0; i < (rest < PIECE ? rest : PIECE); i++) {
        previous = (float)inputs_draw(d->distribution, &state, previous, i);
        values[i] = (float)(previous * d->scale);
    }
}

void kn_inputs_draw(enum kn_distribution distribution, uint64_t *state, double scale, float *values,
                    size_t count) {
    const double value_ns = distribution == KN_NORMAL ? 25 : 5;
    struct drawing drawing = {distribution, *state, scale, values, count};
    kn_parallel_for((count + PIECE - 1) / PIECE, value_ns * (double)count, inputs_draw_piece,
                    &drawing);
    kn_inputs_skip(distribution, state, count);
}
