/*
 * Rounding up. The caller makes sure that value + granule - 1 does not overflow.
 */
#ifndef SOFT_ROUND_UP_H
#define SOFT_ROUND_UP_H

#include <stdint.h>

/* The smallest multiple of granule that is not less than value. */
static inline uint64_t soft_round_up(uint64_t value, uint64_t granule) {
    return (value + granule - 1) / granule * granule;
}

#endif
