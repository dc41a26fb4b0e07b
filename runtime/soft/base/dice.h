/*
 * Dice: an execution order derived from a seed, to find programs that depend on the order.
 *
 * CUDA does not define the order in which blocks, warps and diverged lanes run. Each value of
 * TOLLENS_SOFT_SEED selects another allowed order; with one worker the same seed selects the same
 * order.
 */
#ifndef SOFT_DICE_H
#define SOFT_DICE_H

#include <stdint.h>

/* Unrelated results for neighbouring numbers: the finalizer of splitmix64. */
static inline uint64_t soft_dice_mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* Dice that a seed and a number decide; never 0, which is no dice. */
static inline uint64_t soft_dice(uint64_t seed, uint64_t number) {
    return soft_dice_mix(seed ^ soft_dice_mix(number)) | 1;
}

/* A number below count; the dice move on. */
static inline uint32_t soft_dice_roll(uint64_t *dice, uint32_t count) {
    *dice = soft_dice_mix(*dice) | 1;
    return (uint32_t)((*dice >> 32) * count >> 32);
}

/* The position of a number below count in a permutation of all of them: a Feistel network of four
 * rounds, repeated until the result is below count again. */
static inline uint64_t soft_dice_place(uint64_t dice, uint64_t number, uint64_t count) {
    if (count < 2) return number;
    unsigned bits = 64 - (unsigned)__builtin_clzll(count - 1), half = (bits + 1) / 2;
    uint64_t mask = (1ull << half) - 1;
    do {
        uint64_t left = number >> half, right = number & mask;
        for (uint64_t round = 0; round < 4; round++) {
            uint64_t next = (left ^ soft_dice(dice + round, right)) & mask;
            left = right;
            right = next;
        }
        number = left << half | right;
    } while (number >= count);
    return number;
}

#endif
