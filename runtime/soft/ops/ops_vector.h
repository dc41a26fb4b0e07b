/*
 * Vectors of floats, as wide as the processor level supports. Sums and products use C's operators,
 * which compilers provide for such vectors.
 */
#ifndef SOFT_OPS_VECTOR_H
#define SOFT_OPS_VECTOR_H

#include "float_bits.h"
#include "op_body.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
enum { VECTOR = 16 };
typedef __m512 vector;
#define ALL(x) _mm512_set1_ps(x)
#define READ(from) _mm512_loadu_ps(from)
#define WRITE(to, x) _mm512_storeu_ps(to, x)
#define NAN_BITS(x) ((unsigned)_mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q))
#define FMA(x, y, z) _mm512_fmadd_ps(x, y, z)
#elif defined(__AVX2__)
enum { VECTOR = 8 };
typedef __m256 vector;
#define ALL(x) _mm256_set1_ps(x)
#define READ(from) _mm256_loadu_ps(from)
#define WRITE(to, x) _mm256_storeu_ps(to, x)
#define NAN_BITS(x) ((unsigned)_mm256_movemask_ps(_mm256_cmp_ps(x, x, _CMP_UNORD_Q)))
#define FMA(x, y, z) _mm256_fmadd_ps(x, y, z)
#else
enum { VECTOR = 1 };
typedef float vector;
#define ALL(x) (x)
#define READ(from) (*(from))
#define WRITE(to, x) (*(to) = (x))
#define NAN_BITS(x) ((x) != (x))
#define FMA(x, y, z) __builtin_fmaf(x, y, z)
#endif

/* Makes NaNs of a slot canonical. They are rare: out of the way. */
__attribute__((noinline)) static void make_canonical(float *d) {
    LANES d[i] = canonical_f32(d[i]);
}

#endif
