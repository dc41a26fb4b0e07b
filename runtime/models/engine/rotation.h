/*
 * Rotation: how fast each pair of a head's elements is rotated, from a model's keys.
 *
 * Pair i turns by position * base^(-2 i / rotated) radians, changed by the scaling: "linear"
 * divides all by a factor; llama 3's factors are a tensor, one per pair, and divide; "yarn"
 * divides slow pairs by the factor, leaves fast ones, blends between them, and lengthens all by a
 * magnitude. A factor below 1 makes pairs faster, and then lengthens nothing.
 * Source: RoFormer (arXiv 2104.09864); YaRN (arXiv 2309.00071), equations 14 to 22. Pure.
 */
#ifndef TOLLENS_ROTATION_H
#define TOLLENS_ROTATION_H

#include <stdbool.h>
#include <stddef.h>

enum tol_rotation_scaling { TOL_ROTATION_PLAIN, TOL_ROTATION_LINEAR, TOL_ROTATION_YARN };

struct tol_rotation {
    size_t rotated; /* elements of a head: pairs times two */
    double base;
    enum tol_rotation_scaling scaling;
    double factor;           /* of linear and yarn; above 0 */
    double original_context; /* yarn: the positions that the model was first made for */
    double fast, slow;       /* yarn: turns in that context above and below which nothing blends */
    double multiplier; /* yarn: by how much of its magnitude's logarithm it is divided; 0: no */
    double attention_factor; /* multiplies the magnitude; 1 if the file has none */
    const float *divisors;   /* one per pair; NULL: none */
};

/* Writes rotated / 2 frequencies, and returns the magnitude. */
float tol_rotation_frequencies(const struct tol_rotation *rotation, float *frequencies);

#endif
