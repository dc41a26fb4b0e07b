/*
 * Loads and stores, the fast path: a whole warp inside one range of bytes.
 *
 * A template: ops_global.c and ops_shared.c include it after they define the type of an address
 * (ADDRESS, an unsigned type), how to find patterns (HAS_STEP, ANY_WRONG), and the range of an
 * instruction (RANGE). Source: PTX ISA 9.0, sections 9.7.9.8 (ld) and 9.7.9.11 (st).
 *
 * There are three patterns: adjacent lanes access adjacent elements, which is one copy; all lanes
 * access one address; and anything else, which runs lane by lane, with the bounds of all lanes
 * checked at once. Everything else, and every error, takes the slow path in access.c.
 */
#ifndef SOFT_OPS_MEMORY_H
#define SOFT_OPS_MEMORY_H

#include "machine/access.h"
#include "op_body.h"
#include "ops_lines.h"

/* Keeps rare code out of the common path. */
#define APART __attribute__((noinline)) static

/* The bytes a fast access may touch: addresses from low on, span of them. */
struct range {
    ADDRESS low, span;
    uint8_t *host, *shadow;
};

static inline struct range RANGE(const struct soft_warp *warp, const struct soft_instruction *in);

/* Whether all lanes are this many bytes apart, inside and aligned; first is the first one's offset.
 * A range may be host memory and begin anywhere. */
static inline bool is_line(const ADDRESS *address, const struct range *range, ADDRESS first,
                           unsigned step, unsigned bytes) {
    ADDRESS whole = (ADDRESS)step * (SOFT_LANES - 1) + bytes;
    return (ADDRESS)(address[1] - address[0]) == step && range->span >= whole &&
           first <= range->span - whole && (first + range->low) % bytes == 0 &&
           HAS_STEP(address, step);
}

static inline ADDRESS first_offset(const struct soft_warp *warp, const struct soft_instruction *in,
                                   const struct range *range) {
    return SLOT(ADDRESS, in->a)[0] + (ADDRESS)in->u.immediate - range->low;
}

/* The offsets of the lanes that run, where all are inside and aligned; of the others, that of one
 * that does. */
static inline bool find_offsets(const struct soft_warp *warp, const struct soft_instruction *in,
                                const struct range *range, unsigned bytes,
                                ADDRESS offsets[SOFT_LANES]) {
    const ADDRESS *address = SLOT(ADDRESS, in->a);
    const uint32_t *lane = warp->lane;
    ADDRESS shift = (ADDRESS)in->u.immediate - range->low;
    if (range->span < bytes || range->low % bytes != 0) return false;
    if (warp->partial == 0) {
        LANES offsets[i] = address[i] + shift;
    } else {
        ADDRESS other = address[__builtin_ctz(warp->mask)];
        LANES offsets[i] = (lane[i] ? address[i] : other) + shift;
    }
    return !ANY_WRONG(offsets, range->span - bytes, bytes - 1);
}

/* Whether the bytes at an offset are written, all of them. */
static inline bool is_written(const uint8_t *shadow, ADDRESS offset, unsigned bytes) {
    const uint8_t *from = shadow + offset / 4;
    if (bytes < 4) {
        unsigned bits = (1u << bytes) - 1;
        return (*from >> offset % 4 & bits) == bits;
    }
    uint8_t all = 0x0f;
    for (unsigned i = 0; i < bytes / 4; i++) all &= from[i];
    return all == 0x0f;
}

/* Whether all bytes that the lanes read are written. */
static inline bool are_written(const struct range *range, const ADDRESS offsets[SOFT_LANES],
                               unsigned bytes) {
    bool all = true;
    if (range->shadow == NULL) return true;
    for (int i = 0; i < SOFT_LANES; i++) all &= is_written(range->shadow, offsets[i], bytes);
    return all;
}

/* The same for a line of elements without gaps. Narrow ones may begin within a word of the shadow,
 * and what is around them need not be written: then each is looked at, elsewhere. */
static inline bool line_is_written(const struct range *range, ADDRESS first, unsigned bytes) {
    if (range->shadow == NULL) return true;
    return first % 4 == 0 && soft_all_written(range->shadow + first / 4, 8 * (size_t)bytes);
}

static inline bool one_is_written(const struct range *range, ADDRESS first, unsigned bytes) {
    return range->shadow == NULL || is_written(range->shadow, first, bytes);
}

/* Marks what a warp has written. */
static inline void mark_line(const struct range *range, ADDRESS first, unsigned bytes) {
    if (range->shadow == NULL) return;
    if (first % 4 == 0) {
        memset(range->shadow + first / 4, 0x0f, 8 * (size_t)bytes);
    } else {
        soft_shadow_mark(range->shadow, first, SOFT_LANES * (uint64_t)bytes);
    }
}

static inline void mark_one(const struct range *range, ADDRESS offset, unsigned bytes) {
    if (range->shadow == NULL) return;
    if (bytes >= 4) {
        memset(range->shadow + offset / 4, 0x0f, bytes / 4);
    } else {
        soft_shadow_set(&range->shadow[offset / 4], (uint8_t)(((1u << bytes) - 1) << offset % 4));
    }
}

/* Reads elements of a type into a slot of another. AS makes one of the other. */
#define LOAD(op, FROM, TO, AS)                                                                     \
    APART HANDLER(apart_##op) {                                                                    \
        struct range range = RANGE(warp, in);                                                      \
        ADDRESS offsets[SOFT_LANES];                                                               \
        TO *d = SLOT(TO, in->d);                                                                   \
        if (!find_offsets(warp, in, &range, sizeof(FROM), offsets) ||                              \
            !are_written(&range, offsets, sizeof(FROM))) {                                         \
            return soft_access_load(warp, in);                                                     \
        }                                                                                          \
        FROM value;                                                                                \
        if (warp->partial == 0) {                                                                  \
            for (int i = 0; i < SOFT_LANES; i++) {                                                 \
                memcpy(&value, range.host + offsets[i], sizeof value);                             \
                d[i] = AS(value);                                                                  \
            }                                                                                      \
            return in + 1;                                                                         \
        }                                                                                          \
        EACH_LANE(i, warp->mask) {                                                                 \
            memcpy(&value, range.host + offsets[i], sizeof value);                                 \
            d[i] = AS(value);                                                                      \
        }                                                                                          \
        return in + 1;                                                                             \
    }                                                                                              \
    HANDLER(SOFT_FULL(op)) {                                                                       \
        struct range range = RANGE(warp, in);                                                      \
        const ADDRESS *address = SLOT(ADDRESS, in->a);                                             \
        ADDRESS first = first_offset(warp, in, &range);                                            \
        TO *d = SLOT(TO, in->d);                                                                   \
        if (is_line(address, &range, first, sizeof(FROM), sizeof(FROM)) &&                         \
            line_is_written(&range, first, sizeof(FROM))) {                                        \
            const uint8_t *from = range.host + first;                                              \
            LANES {                                                                                \
                FROM value;                                                                        \
                memcpy(&value, from + (size_t)i * sizeof value, sizeof value);                     \
                d[i] = AS(value);                                                                  \
            }                                                                                      \
            return GO_ON;                                                                          \
        }                                                                                          \
        if (is_line(address, &range, first, 0, sizeof(FROM)) &&                                    \
            one_is_written(&range, first, sizeof(FROM))) {                                         \
            FROM value;                                                                            \
            memcpy(&value, range.host + first, sizeof value);                                      \
            LANES d[i] = AS(value);                                                                \
            return GO_ON;                                                                          \
        }                                                                                          \
        return apart_##op(warp, in);                                                               \
    }                                                                                              \
    HANDLER(SOFT_PART(op)) {                                                                       \
        return apart_##op(warp, in);                                                               \
    }

/* Of several lanes that store to one place the last one wins. */
#define STORE(op, FROM, TO)                                                                        \
    APART HANDLER(apart_##op) {                                                                    \
        struct range range = RANGE(warp, in);                                                      \
        ADDRESS offsets[SOFT_LANES];                                                               \
        const FROM *d = SLOT(FROM, in->d);                                                         \
        if (!find_offsets(warp, in, &range, sizeof(TO), offsets)) {                                \
            return soft_access_store(warp, in);                                                    \
        }                                                                                          \
        EACH_LANE(i, warp->mask) {                                                                 \
            TO value = (TO)d[i];                                                                   \
            mark_one(&range, offsets[i], sizeof value);                                            \
            memcpy(range.host + offsets[i], &value, sizeof value);                                 \
        }                                                                                          \
        return in + 1;                                                                             \
    }                                                                                              \
    HANDLER(SOFT_FULL(op)) {                                                                       \
        struct range range = RANGE(warp, in);                                                      \
        const ADDRESS *address = SLOT(ADDRESS, in->a);                                             \
        ADDRESS first = first_offset(warp, in, &range);                                            \
        const FROM *d = SLOT(FROM, in->d);                                                         \
        if (is_line(address, &range, first, sizeof(TO), sizeof(TO))) {                             \
            uint8_t *to = range.host + first;                                                      \
            mark_line(&range, first, sizeof(TO));                                                  \
            LANES {                                                                                \
                TO value = (TO)d[i];                                                               \
                memcpy(to + (size_t)i * sizeof value, &value, sizeof value);                       \
            }                                                                                      \
            return GO_ON;                                                                          \
        }                                                                                          \
        return apart_##op(warp, in);                                                               \
    }                                                                                              \
    HANDLER(SOFT_PART(op)) {                                                                       \
        return apart_##op(warp, in);                                                               \
    }

/* Vectors: consecutive components of a lane go to slots of their own. */
#define VECTOR_BEGIN(T, COUNT, slow)                                                               \
    struct range range = RANGE(warp, in);                                                          \
    ADDRESS offsets[SOFT_LANES];                                                                   \
    enum { BYTES = sizeof(T) * COUNT };                                                            \
    if (!find_offsets(warp, in, &range, BYTES, offsets)) return slow(warp, in);                    \
    const uint32_t *slots = SOFT_OPERANDS(warp, in);

#define LOAD_VECTOR_LANES(T, COUNT)                                                                \
    if (!are_written(&range, offsets, BYTES)) return soft_access_load(warp, in);                   \
    EACH_LANE(i, warp->mask) {                                                                     \
        T value[COUNT];                                                                            \
        memcpy(value, range.host + offsets[i], BYTES);                                             \
        for (int k = 0; k < COUNT; k++) SLOT(T, slots[k])[i] = value[k];                           \
    }

#define STORE_VECTOR_LANES(T, COUNT)                                                               \
    EACH_LANE(i, warp->mask) {                                                                     \
        T value[COUNT];                                                                            \
        for (int k = 0; k < COUNT; k++) value[k] = SLOT(T, slots[k])[i];                           \
        mark_one(&range, offsets[i], BYTES);                                                       \
        memcpy(range.host + offsets[i], value, BYTES);                                             \
    }

#define LOAD_VECTOR(op, T, COUNT)                                                                  \
    OP_ANY(op) {                                                                                   \
        VECTOR_BEGIN(T, COUNT, soft_access_load)                                                   \
        LOAD_VECTOR_LANES(T, COUNT)                                                                \
        return in + 1;                                                                             \
    }

#define STORE_VECTOR(op, T, COUNT)                                                                 \
    OP_ANY(op) {                                                                                   \
        VECTOR_BEGIN(T, COUNT, soft_access_store)                                                  \
        STORE_VECTOR_LANES(T, COUNT)                                                               \
        return in + 1;                                                                             \
    }

static inline bool quads_are_written(const struct range *range, const ADDRESS offsets[SOFT_LANES]) {
    uint32_t sum = 0x0f0f0f0f, word;
    if (range->shadow == NULL) return true;
    for (int i = 0; i < SOFT_LANES; i++) {
        memcpy(&word, range->shadow + offsets[i] / 4, sizeof word);
        sum &= word;
    }
    return sum == 0x0f0f0f0f;
}

/* Four words a lane: four lanes at a time are a square. */
#define LOAD_QUADS(op)                                                                             \
    HANDLER(SOFT_FULL(op)) {                                                                       \
        VECTOR_BEGIN(uint32_t, 4, soft_access_load)                                                \
        if (!quads_are_written(&range, offsets)) return soft_access_load(warp, in);                \
        for (int i = 0; i < SOFT_LANES; i += 4) {                                                  \
            soft_quad square[4];                                                                   \
            for (int k = 0; k < 4; k++) memcpy(&square[k], range.host + offsets[i + k], BYTES);    \
            soft_transpose(square);                                                                \
            for (int k = 0; k < 4; k++) memcpy(SLOT(uint32_t, slots[k]) + i, &square[k], BYTES);   \
        }                                                                                          \
        return in + 1;                                                                             \
    }                                                                                              \
    HANDLER(SOFT_PART(op)) {                                                                       \
        VECTOR_BEGIN(uint32_t, 4, soft_access_load)                                                \
        LOAD_VECTOR_LANES(uint32_t, 4)                                                             \
        return in + 1;                                                                             \
    }

#define STORE_QUADS(op)                                                                            \
    HANDLER(SOFT_FULL(op)) {                                                                       \
        VECTOR_BEGIN(uint32_t, 4, soft_access_store)                                               \
        for (int i = 0; i < SOFT_LANES; i += 4) {                                                  \
            soft_quad square[4];                                                                   \
            for (int k = 0; k < 4; k++) memcpy(&square[k], SLOT(uint32_t, slots[k]) + i, BYTES);   \
            soft_transpose(square);                                                                \
            for (int k = 0; k < 4; k++) {                                                          \
                mark_one(&range, offsets[i + k], BYTES);                                           \
                memcpy(range.host + offsets[i + k], &square[k], BYTES);                            \
            }                                                                                      \
        }                                                                                          \
        return in + 1;                                                                             \
    }                                                                                              \
    HANDLER(SOFT_PART(op)) {                                                                       \
        VECTOR_BEGIN(uint32_t, 4, soft_access_store)                                               \
        STORE_VECTOR_LANES(uint32_t, 4)                                                            \
        return in + 1;                                                                             \
    }

/* Rare cases have no fast path. */
#define SLOW(op, way)                                                                              \
    OP_ANY(op) {                                                                                   \
        return way(warp, in);                                                                      \
    }

/* Narrow elements fill a register of 32 bits, or of 16 and leave the rest of its lane zero. */
#define WHOLE(x) (x)
#define EXTENDED(x)                                                                                \
    ((uint32_t)(int32_t)(x) & (in->mode & SOFT_ACCESS_SHORT_DATA ? UINT16_MAX : UINT32_MAX))

/* All the loads and all the stores of a state space. */
#define LOADS(space)                                                                               \
    LOAD(ld_##space##_32, uint32_t, uint32_t, WHOLE)                                               \
    LOAD(ld_##space##_64, uint64_t, uint64_t, WHOLE)                                               \
    LOAD(ld_##space##_u8, uint8_t, uint32_t, WHOLE)                                                \
    LOAD(ld_##space##_s8, int8_t, uint32_t, EXTENDED)                                              \
    LOAD(ld_##space##_u16, uint16_t, uint32_t, WHOLE)                                              \
    LOAD(ld_##space##_s16, int16_t, uint32_t, EXTENDED)                                            \
    LOAD_VECTOR(ld_##space##_v2_32, uint32_t, 2)                                                   \
    LOAD_VECTOR(ld_##space##_v2_64, uint64_t, 2)                                                   \
    LOAD_QUADS(ld_##space##_v4_32)
#define STORES(space)                                                                              \
    STORE(st_##space##_32, uint32_t, uint32_t)                                                     \
    STORE(st_##space##_64, uint64_t, uint64_t)                                                     \
    STORE(st_##space##_8, uint32_t, uint8_t)                                                       \
    STORE(st_##space##_16, uint32_t, uint16_t)                                                     \
    STORE_VECTOR(st_##space##_v2_32, uint32_t, 2)                                                  \
    STORE_VECTOR(st_##space##_v2_64, uint64_t, 2)                                                  \
    STORE_QUADS(st_##space##_v4_32)

#endif
