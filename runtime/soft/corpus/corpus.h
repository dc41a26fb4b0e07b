/*
 * Shared by the corpus's headers: nvcc compiles their functions for the device, the test's C
 * compiler for the host, whose results the device must match.
 */
#ifndef CORPUS_H
#define CORPUS_H

#include <stdint.h>

#ifdef __CUDACC__
#define CORPUS_FN __device__ static inline
#define CORPUS_CALLED __device__ static __noinline__ /* a call in the PTX as well */
#define CORPUS_DATA __device__ static const
#else
#define CORPUS_FN static inline
#define CORPUS_CALLED static inline
#define CORPUS_DATA static const
#endif

/* A hash of a number, for inputs. */
CORPUS_FN uint32_t corpus_mix(uint32_t x) {
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    x *= 0x846ca68bu;
    return x ^ x >> 16;
}

#endif
