/*
 * How to write instruction bodies. The ops_*.c files are compiled once for each processor level
 * (SOFT_CORE names it), so the handler names contain the name of the core.
 *
 * A body is one expression over lanes. Macros make two handlers of it, for a full warp and for some
 * of its lanes, as loops that a compiler vectorizes. Type words: u16 s16 u32 s32 u64 s64 f32 f64. A
 * 16-bit value is in the low half of a 32-bit lane; the rest of the lane is zero.
 */
#ifndef SOFT_OP_BODY_H
#define SOFT_OP_BODY_H

#include "machine/machine_state.h"

#include <string.h>

#ifndef SOFT_CORE
#define SOFT_CORE x1
#endif

#define SOFT_PASTE3(a, b, c) a##_##b##_##c
#define SOFT_EXPAND3(a, b, c) SOFT_PASTE3(a, b, c)
/* The handlers of an operation: soft_x3_full_add_32 and soft_x3_part_add_32. */
#define SOFT_FULL(op) SOFT_EXPAND3(soft, SOFT_CORE, full_##op)
#define SOFT_PART(op) SOFT_EXPAND3(soft, SOFT_CORE, part_##op)

#define SOFT_OP(name) soft_handler SOFT_FULL(name), SOFT_PART(name);
#include "lower/ops.def"

#if defined(__clang__)
#define SOFT_LANE_LOOP _Pragma("clang loop vectorize(assume_safety)")
#else
#define SOFT_LANE_LOOP _Pragma("GCC ivdep")
#endif
#define LANES SOFT_LANE_LOOP for (int i = 0; i < SOFT_LANES; i++)

/* The meaning of a type word: the storage of a lane, its value, and the conversion of a result. */
typedef uint32_t store_u16, store_s16, store_u32;
typedef int32_t store_s32;
typedef uint64_t store_u64;
typedef int64_t store_s64;
typedef float store_f32;
typedef double store_f64;
typedef uint16_t value_u16;
typedef int16_t value_s16;
typedef uint32_t value_u32;
typedef int32_t value_s32;
typedef uint64_t value_u64;
typedef int64_t value_s64;
typedef float value_f32;
typedef double value_f64;
#define RESULT_u16(x) ((uint32_t)(uint16_t)(x))
#define RESULT_s16(x) ((uint32_t)(uint16_t)(x))
#define RESULT_u32(x) ((uint32_t)(x))
#define RESULT_s32(x) ((int32_t)(x))
#define RESULT_u64(x) ((uint64_t)(x))
#define RESULT_s64(x) ((int64_t)(x))
#define RESULT_f32(x) ((float)(x))
#define RESULT_f64(x) ((double)(x))

/* The word of a predicate. */
#define PREDICATE(offset) (*SLOT(uint32_t, offset))

#define HANDLER(name)                                                                              \
    const struct soft_instruction *name(struct soft_warp *warp, const struct soft_instruction *in)

/* The end of a full-warp handler that only accesses slots: the next instruction also runs for a
 * full warp, so the handler jumps to it without returning to the loop in soft_warp_run (which is
 * used if the compiler does not make jumps of such calls). A partial-warp handler must return,
 * because a guard waits for it. */
#if defined(SOFT_THREADED)
#define GO_ON ((in)[1].run[0](warp, in + 1))
#else
#define GO_ON (in + 1)
#endif

#define OP1(op, D, A, expression)                                                                  \
    HANDLER(SOFT_FULL(op)) {                                                                       \
        store_##D *d = SLOT(store_##D, in->d);                                                     \
        const store_##A *a = SLOT(store_##A, in->a);                                               \
        LANES {                                                                                    \
            value_##A x = (value_##A)a[i];                                                         \
            d[i] = RESULT_##D(expression);                                                         \
        }                                                                                          \
        return GO_ON;                                                                              \
    }                                                                                              \
    HANDLER(SOFT_PART(op)) {                                                                       \
        store_##D *d = SLOT(store_##D, in->d);                                                     \
        const store_##A *a = SLOT(store_##A, in->a);                                               \
        const uint32_t *lane = warp->lane;                                                         \
        LANES {                                                                                    \
            value_##A x = (value_##A)a[i];                                                         \
            store_##D result = RESULT_##D(expression);                                             \
            d[i] = lane[i] ? result : d[i];                                                        \
        }                                                                                          \
        return in + 1;                                                                             \
    }

#define OP2(op, D, A, B, expression)                                                               \
    HANDLER(SOFT_FULL(op)) {                                                                       \
        store_##D *d = SLOT(store_##D, in->d);                                                     \
        const store_##A *a = SLOT(store_##A, in->a);                                               \
        const store_##B *b = SLOT(store_##B, in->b);                                               \
        LANES {                                                                                    \
            value_##A x = (value_##A)a[i];                                                         \
            value_##B y = (value_##B)b[i];                                                         \
            d[i] = RESULT_##D(expression);                                                         \
        }                                                                                          \
        return GO_ON;                                                                              \
    }                                                                                              \
    HANDLER(SOFT_PART(op)) {                                                                       \
        store_##D *d = SLOT(store_##D, in->d);                                                     \
        const store_##A *a = SLOT(store_##A, in->a);                                               \
        const store_##B *b = SLOT(store_##B, in->b);                                               \
        const uint32_t *lane = warp->lane;                                                         \
        LANES {                                                                                    \
            value_##A x = (value_##A)a[i];                                                         \
            value_##B y = (value_##B)b[i];                                                         \
            store_##D result = RESULT_##D(expression);                                             \
            d[i] = lane[i] ? result : d[i];                                                        \
        }                                                                                          \
        return in + 1;                                                                             \
    }

#define OP3(op, D, A, B, C, expression)                                                            \
    HANDLER(SOFT_FULL(op)) {                                                                       \
        store_##D *d = SLOT(store_##D, in->d);                                                     \
        const store_##A *a = SLOT(store_##A, in->a);                                               \
        const store_##B *b = SLOT(store_##B, in->b);                                               \
        const store_##C *c = SLOT(store_##C, in->c);                                               \
        LANES {                                                                                    \
            value_##A x = (value_##A)a[i];                                                         \
            value_##B y = (value_##B)b[i];                                                         \
            value_##C z = (value_##C)c[i];                                                         \
            d[i] = RESULT_##D(expression);                                                         \
        }                                                                                          \
        return GO_ON;                                                                              \
    }                                                                                              \
    HANDLER(SOFT_PART(op)) {                                                                       \
        store_##D *d = SLOT(store_##D, in->d);                                                     \
        const store_##A *a = SLOT(store_##A, in->a);                                               \
        const store_##B *b = SLOT(store_##B, in->b);                                               \
        const store_##C *c = SLOT(store_##C, in->c);                                               \
        const uint32_t *lane = warp->lane;                                                         \
        LANES {                                                                                    \
            value_##A x = (value_##A)a[i];                                                         \
            value_##B y = (value_##B)b[i];                                                         \
            value_##C z = (value_##C)c[i];                                                         \
            store_##D result = RESULT_##D(expression);                                             \
            d[i] = lane[i] ? result : d[i];                                                        \
        }                                                                                          \
        return in + 1;                                                                             \
    }

/* One handler for both cases, if the body uses warp->mask itself. */
#define OP_ANY(op)                                                                                 \
    HANDLER(SOFT_PART(op)) {                                                                       \
        return SOFT_FULL(op)(warp, in);                                                            \
    }                                                                                              \
    HANDLER(SOFT_FULL(op))

/* The further operands of an instruction. */
#define SOFT_OPERANDS(warp, in) ((warp)->split->frame->code->operands + (in)->more)

/* The lanes of a mask, lowest first. */
#define EACH_LANE(lane, mask)                                                                      \
    for (uint32_t lane##_left = (mask), lane = 0;                                                  \
         lane##_left != 0 && (lane = (uint32_t)__builtin_ctz(lane##_left), true);                  \
         lane##_left &= lane##_left - 1)

/* Packs 32 lanes that are all ones or all zeros into a word, one bit per lane. */
static inline uint32_t soft_pack(const uint32_t *lanes);

#if defined(__AVX512DQ__) && defined(__AVX512F__)
#include <immintrin.h>
static inline uint32_t soft_pack(const uint32_t *lanes) {
    uint32_t low = _mm512_movepi32_mask(_mm512_loadu_si512(lanes));
    uint32_t high = _mm512_movepi32_mask(_mm512_loadu_si512(lanes + 16));
    return low | high << 16;
}
#elif defined(__SSE2__)
#include <immintrin.h>
static inline uint32_t soft_pack(const uint32_t *lanes) {
    uint32_t word = 0;
    for (int i = 0; i < 8; i++) {
        __m128i four = _mm_loadu_si128((const __m128i *)(const void *)(lanes + 4 * i));
        word |= (uint32_t)_mm_movemask_ps(_mm_castsi128_ps(four)) << (4 * i);
    }
    return word;
}
#else
static inline uint32_t soft_pack(const uint32_t *lanes) {
    uint32_t word = 0;
    for (int i = 0; i < SOFT_LANES; i++) word |= (lanes[i] & 1) << i;
    return word;
}
#endif

#endif
