/*
 * Loads and stores, the fast way: a whole warp inside one range of bytes.
 *
 * A template: ops_global.c and ops_shared.c include it after saying what an address is (ADDRESS, an
 * unsigned type) and what range an instruction works in (RANGE). Source: PTX ISA 9.0, sections
 * 9.7.9.8 (ld) and 9.7.9.11 (st).
 *
 * Three patterns are told apart: lane after lane one element apart, which is one copy; all lanes at
 * one address; and anything else, which goes lane by lane but with the bounds of all lanes checked
 * at once. What does not fit, and what must be reported, goes the slow way in access.c.
 */
#ifndef SOFT_OPS_MEMORY_H
#define SOFT_OPS_MEMORY_H

#include "access.h"
#include "ops.h"

/* A word that may lie at any address. */
typedef uint32_t __attribute__((aligned(1), may_alias)) loose_u32;

/* The bytes a fast access may touch: addresses from low on, span of them. */
struct range {
    ADDRESS low, span;
    uint8_t *host, *shadow;
};

static inline struct range RANGE(const struct soft_warp *warp, const struct soft_instruction *in);

enum pattern { ELSEWHERE, CONTIGUOUS, BROADCAST, SCATTERED };

/* Where each lane's access begins in the range, and what pattern they make; with CONTIGUOUS and
 * BROADCAST only the first is filled in. A range begins at a multiple of every access size, so
 * offsets in it are aligned as addresses are. */
static inline enum pattern classify(const struct soft_warp *warp, const struct soft_instruction *in,
                                    const struct range *range, unsigned bytes,
                                    ADDRESS offsets[SOFT_LANES]) {
    const ADDRESS *address = SLOT(ADDRESS, in->a);
    ADDRESS shift = (ADDRESS)in->u.immediate - range->low, span = range->span;
    ADDRESS first = address[0] + shift;
    ADDRESS step = 0, spread = 0;
    LANES {
        ADDRESS from_first = address[i] - address[0];
        step |= from_first ^ (ADDRESS)i * bytes;
        spread |= from_first;
    }
    offsets[0] = first;
    if (step == 0) {
        bool inside = span >= 32 * bytes && first <= span - 32 * bytes && first % bytes == 0;
        return inside ? CONTIGUOUS : ELSEWHERE;
    }
    if (span < bytes) return ELSEWHERE;
    ADDRESS limit = span - bytes;
    if (spread == 0) return first <= limit && first % bytes == 0 ? BROADCAST : ELSEWHERE;
    ADDRESS wrong = 0;
    LANES {
        ADDRESS offset = address[i] + shift;
        offsets[i] = offset;
        wrong |= (offset > limit) | (offset & (bytes - 1));
    }
    return wrong == 0 ? SCATTERED : ELSEWHERE;
}

/* Whether all the bytes have been written, as the shadow has it; for accesses of whole words. */
static inline bool written(const uint8_t *shadow, enum pattern pattern,
                           const ADDRESS offsets[SOFT_LANES], unsigned bytes) {
    const uint64_t all = 0x0f0f0f0f0f0f0f0f;
    if (shadow == NULL) return true;
    if (pattern == CONTIGUOUS) {
        const uint8_t *from = shadow + offsets[0] / 4;
        uint64_t sum = all, word;
        for (unsigned i = 0; i < bytes; i++) {
            memcpy(&word, from + 8 * i, 8);
            sum &= word;
        }
        return sum == all;
    }
    unsigned words = bytes / 4;
    uint32_t expected = (words >= 4 ? UINT32_MAX : (1u << (8 * words)) - 1) & 0x0f0f0f0f;
    uint32_t sum = UINT32_MAX;
    if (pattern == BROADCAST) {
        sum = *(const loose_u32 *)(const void *)(shadow + offsets[0] / 4);
    } else {
        LANES sum &= *(const loose_u32 *)(const void *)(shadow + offsets[i] / 4);
    }
    return (sum & expected) == expected;
}

/* Marks what a warp has written; for stores of whole words. */
static inline void mark(uint8_t *shadow, enum pattern pattern, const ADDRESS offsets[SOFT_LANES],
                        unsigned bytes) {
    if (shadow == NULL) return;
    if (pattern == CONTIGUOUS) {
        memset(shadow + offsets[0] / 4, 0x0f, 8 * (size_t)bytes);
    } else if (pattern == BROADCAST) {
        memset(shadow + offsets[0] / 4, 0x0f, bytes / 4);
    } else {
        for (int i = 0; i < SOFT_LANES; i++) memset(shadow + offsets[i] / 4, 0x0f, bytes / 4);
    }
}

/* Where lane i's access begins, of a pattern. */
static inline size_t offset_of(enum pattern pattern, const ADDRESS offsets[SOFT_LANES], int i,
                               size_t bytes) {
    if (pattern == SCATTERED) return (size_t)offsets[i];
    return (size_t)offsets[0] + (pattern == CONTIGUOUS ? (size_t)i * bytes : 0);
}

#define LOAD(op, T)                                                                                \
    HANDLER(SOFT_FULL(op)) {                                                                       \
        struct range range = RANGE(warp, in);                                                      \
        ADDRESS offsets[SOFT_LANES];                                                               \
        T *d = SLOT(T, in->d);                                                                     \
        enum pattern pattern = classify(warp, in, &range, sizeof(T), offsets);                     \
        if (pattern == ELSEWHERE || !written(range.shadow, pattern, offsets, sizeof(T))) {         \
            return soft_access_load(warp, in);                                                     \
        }                                                                                          \
        if (pattern == CONTIGUOUS) {                                                               \
            memcpy(d, range.host + offsets[0], SOFT_LANES * sizeof(T));                            \
        } else if (pattern == BROADCAST) {                                                         \
            T value;                                                                               \
            memcpy(&value, range.host + offsets[0], sizeof(T));                                    \
            LANES d[i] = value;                                                                    \
        } else {                                                                                   \
            for (int i = 0; i < SOFT_LANES; i++) {                                                 \
                memcpy(&d[i], range.host + offsets[i], sizeof(T));                                 \
            }                                                                                      \
        }                                                                                          \
        return in + 1;                                                                             \
    }                                                                                              \
    HANDLER(SOFT_PART(op)) {                                                                       \
        return soft_access_load(warp, in);                                                         \
    }

/* Vectors: consecutive components of a lane go to slots of their own. */
#define LOAD_VECTOR(op, T, COUNT)                                                                  \
    HANDLER(SOFT_FULL(op)) {                                                                       \
        struct range range = RANGE(warp, in);                                                      \
        ADDRESS offsets[SOFT_LANES];                                                               \
        enum { BYTES = sizeof(T) * COUNT };                                                        \
        enum pattern pattern = classify(warp, in, &range, BYTES, offsets);                         \
        if (pattern == ELSEWHERE || !written(range.shadow, pattern, offsets, BYTES)) {             \
            return soft_access_load(warp, in);                                                     \
        }                                                                                          \
        const uint32_t *slots = SOFT_OPERANDS(warp, in);                                           \
        T *d[COUNT], value[COUNT];                                                                 \
        for (int k = 0; k < COUNT; k++) d[k] = SLOT(T, slots[k]);                                  \
        if (pattern == BROADCAST) {                                                                \
            memcpy(value, range.host + offsets[0], BYTES);                                         \
            for (int k = 0; k < COUNT; k++) LANES d[k][i] = value[k];                              \
        } else {                                                                                   \
            for (int i = 0; i < SOFT_LANES; i++) {                                                 \
                memcpy(value, range.host + offset_of(pattern, offsets, i, BYTES), BYTES);          \
                for (int k = 0; k < COUNT; k++) d[k][i] = value[k];                                \
            }                                                                                      \
        }                                                                                          \
        return in + 1;                                                                             \
    }                                                                                              \
    HANDLER(SOFT_PART(op)) {                                                                       \
        return soft_access_load(warp, in);                                                         \
    }

/* Of several lanes that store to one place the last one wins. */
#define STORE(op, T)                                                                               \
    HANDLER(SOFT_FULL(op)) {                                                                       \
        struct range range = RANGE(warp, in);                                                      \
        ADDRESS offsets[SOFT_LANES];                                                               \
        const T *d = SLOT(T, in->d);                                                               \
        enum pattern pattern = classify(warp, in, &range, sizeof(T), offsets);                     \
        if (pattern == ELSEWHERE) return soft_access_store(warp, in);                              \
        mark(range.shadow, pattern, offsets, sizeof(T));                                           \
        if (pattern == CONTIGUOUS) {                                                               \
            memcpy(range.host + offsets[0], d, SOFT_LANES * sizeof(T));                            \
        } else if (pattern == BROADCAST) {                                                         \
            memcpy(range.host + offsets[0], &d[SOFT_LANES - 1], sizeof(T));                        \
        } else {                                                                                   \
            for (int i = 0; i < SOFT_LANES; i++) {                                                 \
                memcpy(range.host + offsets[i], &d[i], sizeof(T));                                 \
            }                                                                                      \
        }                                                                                          \
        return in + 1;                                                                             \
    }                                                                                              \
    HANDLER(SOFT_PART(op)) {                                                                       \
        return soft_access_store(warp, in);                                                        \
    }

#define STORE_VECTOR(op, T, COUNT)                                                                 \
    HANDLER(SOFT_FULL(op)) {                                                                       \
        struct range range = RANGE(warp, in);                                                      \
        ADDRESS offsets[SOFT_LANES];                                                               \
        enum { BYTES = sizeof(T) * COUNT };                                                        \
        enum pattern pattern = classify(warp, in, &range, BYTES, offsets);                         \
        if (pattern == ELSEWHERE) return soft_access_store(warp, in);                              \
        mark(range.shadow, pattern, offsets, BYTES);                                               \
        const uint32_t *slots = SOFT_OPERANDS(warp, in);                                           \
        for (int i = 0; i < SOFT_LANES; i++) {                                                     \
            T value[COUNT];                                                                        \
            for (int k = 0; k < COUNT; k++) value[k] = SLOT(T, slots[k])[i];                       \
            memcpy(range.host + offset_of(pattern, offsets, i, BYTES), value, BYTES);              \
        }                                                                                          \
        return in + 1;                                                                             \
    }                                                                                              \
    HANDLER(SOFT_PART(op)) {                                                                       \
        return soft_access_store(warp, in);                                                        \
    }

/* What is rare is not worth a fast way. */
#define SLOW(op, way)                                                                              \
    OP_ANY(op) {                                                                                   \
        return way(warp, in);                                                                      \
    }

/* All the loads and all the stores of a state space. */
#define LOADS(space)                                                                               \
    LOAD(ld_##space##_32, uint32_t)                                                                \
    LOAD(ld_##space##_64, uint64_t)                                                                \
    LOAD_VECTOR(ld_##space##_v2_32, uint32_t, 2)                                                   \
    LOAD_VECTOR(ld_##space##_v4_32, uint32_t, 4)                                                   \
    LOAD_VECTOR(ld_##space##_v2_64, uint64_t, 2)                                                   \
    SLOW(ld_##space##_u8, soft_access_load)                                                        \
    SLOW(ld_##space##_s8, soft_access_load)                                                        \
    SLOW(ld_##space##_u16, soft_access_load)                                                       \
    SLOW(ld_##space##_s16, soft_access_load)                                                       \
    SLOW(ld_##space##_any, soft_access_load)
#define STORES(space)                                                                              \
    STORE(st_##space##_32, uint32_t)                                                               \
    STORE(st_##space##_64, uint64_t)                                                               \
    STORE_VECTOR(st_##space##_v2_32, uint32_t, 2)                                                  \
    STORE_VECTOR(st_##space##_v4_32, uint32_t, 4)                                                  \
    STORE_VECTOR(st_##space##_v2_64, uint64_t, 2)                                                  \
    SLOW(st_##space##_8, soft_access_store)                                                        \
    SLOW(st_##space##_16, soft_access_store)                                                       \
    SLOW(st_##space##_any, soft_access_store)

#endif
