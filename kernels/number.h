/*
 * Number: the types of matrix elements, on the host.
 *
 * float16 is IEEE's binary16. bfloat16 is the upper half of binary32. tf32 is a binary32 of which
 * tensor cores read 10 of the 23 bits of the mantissa. Conversions round to nearest, ties to even,
 * as cvt.rn; to tf32 ties away from zero, as cvt.rna. Overflow gives an infinity. A NaN stays a
 * NaN. Source: PTX ISA, "Alternate floating-point data formats"; cvt.
 */
#ifndef KN_NUMBER_H
#define KN_NUMBER_H

#include "tollens.h"

enum kn_type { KN_F32, KN_F16, KN_BF16, KN_TYPES };

TOL_API const char *kn_type_name(enum kn_type type); /* "f32", "f16", "bf16" */
TOL_API size_t kn_type_bytes(enum kn_type type);

/* NULL if a set of types, a bit each, has the type, else why a kernel for the set refuses it, as a
 * clause: "the type is not f16". */
const char *kn_types_refuse(unsigned types, enum kn_type type);

TOL_API uint16_t kn_f16_of(float value);
TOL_API float kn_f16_value(uint16_t bits);
TOL_API uint16_t kn_bf16_of(float value);
TOL_API float kn_bf16_value(uint16_t bits);
/* The value rounded to tf32, as a float. */
TOL_API float kn_tf32_of(float value);

/* e4m3: 8 bits of sign, 4 of exponent and 3 of fraction, without infinities; what is beyond 448 in
 * magnitude becomes 448, as cvt.satfinite. A NaN becomes 0x7f. */
TOL_API uint8_t kn_e4m3_of(float value);
TOL_API float kn_e4m3_value(uint8_t bits);

/* The unit roundoff: half of the distance from 1 to the next number. 2^-24, 2^-11, 2^-8. */
TOL_API double kn_type_roundoff(enum kn_type type);

/* Converts count floats to elements of the type, and back. */
TOL_API void kn_numbers_store(enum kn_type type, const float *values, size_t count, void *elements);
TOL_API void kn_numbers_load(enum kn_type type, const void *elements, size_t count, float *values);

#endif
