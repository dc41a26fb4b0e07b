/*
 * PTX: kernels written at run time, as text for tol_module_load.
 *
 * A builder writes one module. Each function below adds an instruction and returns its result, a
 * value with a type; it checks what it is given at once, so that a text which is finished is a
 * valid module:
 *
 *     struct tol_ptx *p = NULL;
 *     TOL_TRY(tol_ptx_create(80, &p));
 *     tol_ptx_kernel(p, "twice", 256);
 *     tol_ptx_value data = tol_ptx_parameter(p, TOL_PTX_U64);
 *     tol_ptx_value at = tol_ptx_mul_wide(p, tol_ptx_special(p, TOL_PTX_TID_X), tol_ptx_u32(p, 4));
 *     tol_ptx_value place = tol_ptx_add(p, data, at);
 *     tol_ptx_value x = tol_ptx_load(p, TOL_PTX_GLOBAL, TOL_PTX_F32, place, 0);
 *     tol_ptx_store(p, TOL_PTX_GLOBAL, place, 0, tol_ptx_add(p, x, x));
 *     tol_ptx_end(p);
 *     status = tol_ptx_finish(p, &text, &bytes);
 *
 * The first mistake is kept and everything after it ignored; tol_ptx_finish reports it, with the
 * line of the program that made it. So a program checks one status. Mistakes are: operands of other
 * types than the instruction has, values used outside the block that made them or before they have
 * a value, blocks left open, loops without a way out, offsets that are no multiple of what is
 * accessed, and instructions that the device does not have.
 *
 * The module's .target and .version are the least that have what was used.
 *
 * A builder must not be used by two threads at once; different builders may. Source: PTX ISA 9.0,
 * chapters 4 to 9; spec 004 section 3.1.
 */
#ifndef TOLLENS_PTX_BUILDER_H
#define TOLLENS_PTX_BUILDER_H

#include "status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tol_ptx;

/* Types of values. Predicates are bits; X2: two halves in 32 bits. */
typedef enum tol_ptx_type {
    TOL_PTX_PRED,
    TOL_PTX_B16,
    TOL_PTX_U16,
    TOL_PTX_S16,
    TOL_PTX_F16,
    TOL_PTX_BF16,
    TOL_PTX_B32,
    TOL_PTX_U32,
    TOL_PTX_S32,
    TOL_PTX_F32,
    TOL_PTX_F16X2,
    TOL_PTX_BF16X2,
    TOL_PTX_B64,
    TOL_PTX_U64,
    TOL_PTX_S64,
    TOL_PTX_F64,
    TOL_PTX_TYPE_COUNT
} tol_ptx_type;

/* A register, a variable or a constant of one builder. All zero is no value: what a function
 * returns after a mistake. */
typedef struct tol_ptx_value {
    uint32_t id, builder;
} tol_ptx_value;
static inline tol_ptx_value tol_ptx_none(void) {
    tol_ptx_value none;
    none.id = none.builder = 0;
    return none;
}

/* A line of the program that builds. */
struct tol_ptx_place {
    const char *file; /* a literal: not copied */
    int line;
};
static inline struct tol_ptx_place tol_ptx_place_of(const char *file, int line) {
    struct tol_ptx_place place;
    place.file = file;
    place.line = line;
    return place;
}
#define TOL_PTX_HERE tol_ptx_place_of(__FILE__, __LINE__)

/* Operations with up to three operands; ptx_forms.def has the types of each. */
typedef enum tol_ptx_op {
#define TOL_PTX_OP(name) TOL_PTX_OP_##name,
#include "ptx_builder.def"
#undef TOL_PTX_OP
    TOL_PTX_OP_COUNT
} tol_ptx_op;

/* ---- modules -------------------------------------------------------------------------------- */

/*
 * Creates an empty builder for devices of a compute capability, 10 * major + minor, as in struct
 * tol_device; at least 70. The caller destroys it. TOL_INVALID_ARGUMENT, TOL_OUT_OF_HOST_MEMORY.
 */
TOL_API tol_status tol_ptx_create(int compute_capability, struct tol_ptx **ptx);

/* NULL is a no-op. Values of the builder are invalid after this. */
TOL_API void tol_ptx_destroy(struct tol_ptx *ptx);

/*
 * Sets text to the module's and bytes to its length; it ends in a NUL, which is not counted, and is
 * valid until the builder is destroyed. bytes may be NULL. The builder takes nothing more.
 * TOL_INVALID_ARGUMENT: the first mistake, with its line; or a module without a kernel.
 * TOL_UNSUPPORTED: the first mistake was an instruction that the device does not have.
 * TOL_OUT_OF_HOST_MEMORY.
 */
TOL_API tol_status tol_ptx_finish(struct tol_ptx *ptx, const char **text, size_t *bytes);

/* ---- kernels and blocks --------------------------------------------------------------------- */

/* Opens a kernel, for blocks of exactly `threads` threads, or of any number if 0. tol_ptx_end
 * closes it. The name is one of C's identifiers and not yet in the module; it is copied. */
TOL_API void tol_ptx_kernel_at(struct tol_ptx *ptx, struct tol_ptx_place at, const char *name,
                               unsigned threads);

/* The kernel's next parameter, of 32 or 64 bits. Before the kernel's first other instruction. */
TOL_API tol_ptx_value tol_ptx_parameter_at(struct tol_ptx *ptx, struct tol_ptx_place at,
                                           tol_ptx_type type);

/* The address, a U32, of bytes of shared memory of the kernel, aligned to 16. */
TOL_API tol_ptx_value tol_ptx_shared_at(struct tol_ptx *ptx, struct tol_ptx_place at, size_t bytes);

/* Opens a block that is executed by threads whose predicate is true; tol_ptx_else, if it follows,
 * opens that for the others; tol_ptx_end closes it. */
TOL_API void tol_ptx_if_at(struct tol_ptx *ptx, struct tol_ptx_place at, tol_ptx_value predicate);
TOL_API void tol_ptx_else_at(struct tol_ptx *ptx, struct tol_ptx_place at);

/* Opens a block that is executed until a tol_ptx_break_if directly in it, or in a block inside it,
 * has a true predicate. */
TOL_API void tol_ptx_loop_at(struct tol_ptx *ptx, struct tol_ptx_place at);
TOL_API void tol_ptx_break_if_at(struct tol_ptx *ptx, struct tol_ptx_place at,
                                 tol_ptx_value predicate);

/* Closes the innermost block or the kernel. Values that it made may not be used any more. */
TOL_API void tol_ptx_end_at(struct tol_ptx *ptx, struct tol_ptx_place at);

/* ---- values --------------------------------------------------------------------------------- */

TOL_API tol_ptx_value tol_ptx_u32(struct tol_ptx *ptx, uint32_t number);
TOL_API tol_ptx_value tol_ptx_s32(struct tol_ptx *ptx, int32_t number);
TOL_API tol_ptx_value tol_ptx_u64(struct tol_ptx *ptx, uint64_t number);
TOL_API tol_ptx_value tol_ptx_f32(struct tol_ptx *ptx, float number);
TOL_API tol_ptx_value tol_ptx_f64(struct tol_ptx *ptx, double number);

/* The type of a value; TOL_PTX_TYPE_COUNT of no value. */
TOL_API tol_ptx_type tol_ptx_type_of(const struct tol_ptx *ptx, tol_ptx_value value);

/* Special registers, all U32. PTX ISA, chapter 10. */
typedef enum tol_ptx_register {
    TOL_PTX_TID_X,
    TOL_PTX_TID_Y,
    TOL_PTX_TID_Z,
    TOL_PTX_NTID_X,
    TOL_PTX_NTID_Y,
    TOL_PTX_NTID_Z,
    TOL_PTX_CTAID_X,
    TOL_PTX_CTAID_Y,
    TOL_PTX_CTAID_Z,
    TOL_PTX_NCTAID_X,
    TOL_PTX_NCTAID_Y,
    TOL_PTX_NCTAID_Z,
    TOL_PTX_LANEID,
    TOL_PTX_REGISTER_COUNT
} tol_ptx_register;
TOL_API tol_ptx_value tol_ptx_special_at(struct tol_ptx *ptx, struct tol_ptx_place at,
                                         tol_ptx_register which);

/* A variable that begins with a value: unlike other values it may be set again, in any block inside
 * the one that made it. */
TOL_API tol_ptx_value tol_ptx_variable_at(struct tol_ptx *ptx, struct tol_ptx_place at,
                                          tol_ptx_value initial);
TOL_API void tol_ptx_set_at(struct tol_ptx *ptx, struct tol_ptx_place at, tol_ptx_value variable,
                            tol_ptx_value value);

/* ---- instructions --------------------------------------------------------------------------- */

/* An operation of ptx_builder.def. It has one, two or three operands of one type, which the result
 * has too; what it has not is ignored. */
TOL_API tol_ptx_value tol_ptx_op_at(struct tol_ptx *ptx, struct tol_ptx_place at, tol_ptx_op op,
                                    tol_ptx_value a, tol_ptx_value b, tol_ptx_value c);

/* a * b with twice the bits, of U16, S16, U32, S32. */
TOL_API tol_ptx_value tol_ptx_mul_wide_at(struct tol_ptx *ptx, struct tol_ptx_place at,
                                          tol_ptx_value a, tol_ptx_value b);

/* a shifted by a U32 to the left, or to the right; shifts by as many bits as a has or more give
 * zeros or copies of the sign. */
TOL_API tol_ptx_value tol_ptx_shift_at(struct tol_ptx *ptx, struct tol_ptx_place at, bool left,
                                       tol_ptx_value a, tol_ptx_value by);

/* Comparisons of numbers. Each is false if an operand is NaN, except NE, which is true. */
typedef enum tol_ptx_comparison {
    TOL_PTX_EQ,
    TOL_PTX_NE,
    TOL_PTX_LT,
    TOL_PTX_LE,
    TOL_PTX_GT,
    TOL_PTX_GE,
    TOL_PTX_COMPARISON_COUNT
} tol_ptx_comparison;
TOL_API tol_ptx_value tol_ptx_compare_at(struct tol_ptx *ptx, struct tol_ptx_place at,
                                         tol_ptx_comparison comparison, tol_ptx_value a,
                                         tol_ptx_value b);

/* a if the predicate is true, else b. */
TOL_API tol_ptx_value tol_ptx_select_at(struct tol_ptx *ptx, struct tol_ptx_place at,
                                        tol_ptx_value predicate, tol_ptx_value a, tol_ptx_value b);

/* The number as another type: rounded to the nearest even where floating-point types lose bits,
 * towards zero and saturated from floating point to whole numbers, cut or extended between whole
 * numbers. Between F16 and BF16 there is none, nor from and to packed types and predicates. */
TOL_API tol_ptx_value tol_ptx_convert_at(struct tol_ptx *ptx, struct tol_ptx_place at,
                                         tol_ptx_type type, tol_ptx_value value);

/* The same bits as another type of the same size; no instruction. */
TOL_API tol_ptx_value tol_ptx_as_at(struct tol_ptx *ptx, struct tol_ptx_place at, tol_ptx_type type,
                                    tol_ptx_value value);

/* Two values of 16 or of 32 bits as one of a type of twice the size, the first in the lower half;
 * and back, as two of a type. */
TOL_API tol_ptx_value tol_ptx_join_at(struct tol_ptx *ptx, struct tol_ptx_place at,
                                      tol_ptx_type type, tol_ptx_value low, tol_ptx_value high);
TOL_API void tol_ptx_split_at(struct tol_ptx *ptx, struct tol_ptx_place at, tol_ptx_type type,
                              tol_ptx_value value, tol_ptx_value halves[2]);

/* ---- memory and threads --------------------------------------------------------------------- */

typedef enum tol_ptx_space { TOL_PTX_GLOBAL, TOL_PTX_SHARED, TOL_PTX_SPACE_COUNT } tol_ptx_space;

/* The `count` values (1, 2 or 4, together at most 16 bytes) at address + offset. A global address
 * is a U64, a shared one a U32. The address must be a multiple of the bytes accessed; so must the
 * offset, and that is checked. Predicates cannot be loaded or stored. */
TOL_API void tol_ptx_load_vector_at(struct tol_ptx *ptx, struct tol_ptx_place at,
                                    tol_ptx_space space, tol_ptx_type type, unsigned count,
                                    tol_ptx_value address, int32_t offset, tol_ptx_value values[]);
TOL_API void tol_ptx_store_vector_at(struct tol_ptx *ptx, struct tol_ptx_place at,
                                     tol_ptx_space space, unsigned count, tol_ptx_value address,
                                     int32_t offset, const tol_ptx_value values[]);
TOL_API tol_ptx_value tol_ptx_load_at(struct tol_ptx *ptx, struct tol_ptx_place at,
                                      tol_ptx_space space, tol_ptx_type type, tol_ptx_value address,
                                      int32_t offset);
TOL_API void tol_ptx_store_at(struct tol_ptx *ptx, struct tol_ptx_place at, tol_ptx_space space,
                              tol_ptx_value address, int32_t offset, tol_ptx_value value);

/* Adds a U32, S32, U64 or F32 to memory, in one step; memory after it in no order. */
TOL_API void tol_ptx_add_to_memory_at(struct tol_ptx *ptx, struct tol_ptx_place at,
                                      tol_ptx_space space, tol_ptx_value address, int32_t offset,
                                      tol_ptx_value value);

/* Waits for all threads of the block. All of them must come to it. */
TOL_API void tol_ptx_barrier_at(struct tol_ptx *ptx, struct tol_ptx_place at);

/* A 32-bit value of the lane whose number differs in the bits of `lanes`, 1 to 31. All 32 lanes of
 * the warp must execute it together. */
TOL_API tol_ptx_value tol_ptx_shuffle_xor_at(struct tol_ptx *ptx, struct tol_ptx_place at,
                                             tol_ptx_value value, unsigned lanes);

/*
 * d = a b + c for a warp's tile of 16 x 8 with 16 products an element: a is 16 x 16 of F16X2 or
 * BF16X2 in four registers of a lane, b 16 x 8 in two, c and d are F32 in four. All 32 lanes must
 * execute it together. Compute capability 8.0. PTX ISA 9.0, section 9.7.14.5.8.
 */
TOL_API void tol_ptx_mma_at(struct tol_ptx *ptx, struct tol_ptx_place at, const tol_ptx_value a[4],
                            const tol_ptx_value b[2], const tol_ptx_value c[4], tol_ptx_value d[4]);

/* ---- the same, from this line --------------------------------------------------------------- */

#define tol_ptx_kernel(p, name, threads) tol_ptx_kernel_at(p, TOL_PTX_HERE, name, threads)
#define tol_ptx_parameter(p, type) tol_ptx_parameter_at(p, TOL_PTX_HERE, type)
#define tol_ptx_shared(p, bytes) tol_ptx_shared_at(p, TOL_PTX_HERE, bytes)
#define tol_ptx_if(p, predicate) tol_ptx_if_at(p, TOL_PTX_HERE, predicate)
#define tol_ptx_else(p) tol_ptx_else_at(p, TOL_PTX_HERE)
#define tol_ptx_loop(p) tol_ptx_loop_at(p, TOL_PTX_HERE)
#define tol_ptx_break_if(p, predicate) tol_ptx_break_if_at(p, TOL_PTX_HERE, predicate)
#define tol_ptx_end(p) tol_ptx_end_at(p, TOL_PTX_HERE)
#define tol_ptx_special(p, which) tol_ptx_special_at(p, TOL_PTX_HERE, which)
#define tol_ptx_variable(p, initial) tol_ptx_variable_at(p, TOL_PTX_HERE, initial)
#define tol_ptx_set(p, variable, value) tol_ptx_set_at(p, TOL_PTX_HERE, variable, value)
#define tol_ptx_mul_wide(p, a, b) tol_ptx_mul_wide_at(p, TOL_PTX_HERE, a, b)
#define tol_ptx_shift_left(p, a, by) tol_ptx_shift_at(p, TOL_PTX_HERE, true, a, by)
#define tol_ptx_shift_right(p, a, by) tol_ptx_shift_at(p, TOL_PTX_HERE, false, a, by)
#define tol_ptx_compare(p, comparison, a, b) tol_ptx_compare_at(p, TOL_PTX_HERE, comparison, a, b)
#define tol_ptx_select(p, predicate, a, b) tol_ptx_select_at(p, TOL_PTX_HERE, predicate, a, b)
#define tol_ptx_convert(p, type, value) tol_ptx_convert_at(p, TOL_PTX_HERE, type, value)
#define tol_ptx_as(p, type, value) tol_ptx_as_at(p, TOL_PTX_HERE, type, value)
#define tol_ptx_join(p, type, low, high) tol_ptx_join_at(p, TOL_PTX_HERE, type, low, high)
#define tol_ptx_split(p, type, value, halves) tol_ptx_split_at(p, TOL_PTX_HERE, type, value, halves)
#define tol_ptx_load_vector(p, space, type, count, address, offset, values)                        \
    tol_ptx_load_vector_at(p, TOL_PTX_HERE, space, type, count, address, offset, values)
#define tol_ptx_store_vector(p, space, count, address, offset, values)                             \
    tol_ptx_store_vector_at(p, TOL_PTX_HERE, space, count, address, offset, values)
#define tol_ptx_load(p, space, type, address, offset)                                              \
    tol_ptx_load_at(p, TOL_PTX_HERE, space, type, address, offset)
#define tol_ptx_store(p, space, address, offset, value)                                            \
    tol_ptx_store_at(p, TOL_PTX_HERE, space, address, offset, value)
#define tol_ptx_add_to_memory(p, space, address, offset, value)                                    \
    tol_ptx_add_to_memory_at(p, TOL_PTX_HERE, space, address, offset, value)
#define tol_ptx_barrier(p) tol_ptx_barrier_at(p, TOL_PTX_HERE)
#define tol_ptx_shuffle_xor(p, value, lanes) tol_ptx_shuffle_xor_at(p, TOL_PTX_HERE, value, lanes)
#define tol_ptx_mma(p, a, b, c, d) tol_ptx_mma_at(p, TOL_PTX_HERE, a, b, c, d)

#define TOL_PTX_ONE(p, op, a)                                                                      \
    tol_ptx_op_at(p, TOL_PTX_HERE, TOL_PTX_OP_##op, a, tol_ptx_none(), tol_ptx_none())
#define TOL_PTX_TWO(p, op, a, b)                                                                   \
    tol_ptx_op_at(p, TOL_PTX_HERE, TOL_PTX_OP_##op, a, b, tol_ptx_none())
#define tol_ptx_add(p, a, b) TOL_PTX_TWO(p, add, a, b)
#define tol_ptx_sub(p, a, b) TOL_PTX_TWO(p, sub, a, b)
#define tol_ptx_mul(p, a, b) TOL_PTX_TWO(p, mul, a, b)
#define tol_ptx_div(p, a, b) TOL_PTX_TWO(p, div, a, b)
#define tol_ptx_rem(p, a, b) TOL_PTX_TWO(p, rem, a, b)
#define tol_ptx_min(p, a, b) TOL_PTX_TWO(p, min, a, b)
#define tol_ptx_max(p, a, b) TOL_PTX_TWO(p, max, a, b)
#define tol_ptx_and(p, a, b) TOL_PTX_TWO(p, and, a, b)
#define tol_ptx_or(p, a, b) TOL_PTX_TWO(p, or, a, b)
#define tol_ptx_xor(p, a, b) TOL_PTX_TWO(p, xor, a, b)
#define tol_ptx_not(p, a) TOL_PTX_ONE(p, not, a)
#define tol_ptx_neg(p, a) TOL_PTX_ONE(p, neg, a)
#define tol_ptx_abs(p, a) TOL_PTX_ONE(p, abs, a)
#define tol_ptx_sqrt(p, a) TOL_PTX_ONE(p, sqrt, a)
#define tol_ptx_rcp(p, a) TOL_PTX_ONE(p, rcp, a)
#define tol_ptx_rsqrt(p, a) TOL_PTX_ONE(p, rsqrt, a)
#define tol_ptx_ex2(p, a) TOL_PTX_ONE(p, ex2, a)
#define tol_ptx_lg2(p, a) TOL_PTX_ONE(p, lg2, a)
#define tol_ptx_tanh(p, a) TOL_PTX_ONE(p, tanh, a)
/* a * b + c: of whole numbers mad.lo, of others fma.rn, with one rounding. */
#define tol_ptx_fma(p, a, b, c) tol_ptx_op_at(p, TOL_PTX_HERE, TOL_PTX_OP_fma, a, b, c)

#ifdef __cplusplus
}
#endif
#endif
