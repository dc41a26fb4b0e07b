/*
 * Atomics: indivisible read, computation and write. Source: PTX ISA 9.0, sections 9.7.13.5 (atom)
 * and 9.7.13.6 (red).
 *
 * Lanes execute in lane order. On global memory each uses a sequentially consistent
 * compare-and-swap of the host, which satisfies every order and scope of PTX; shared memory belongs
 * to one host thread and needs none.
 */
#include "machine/access.h"
#include "machine/cluster_member.h"
#include "op_body.h"
#include "ops_half.h"
#include "ptx/ptx.h"

static uint64_t signed_order(uint64_t x, uint64_t bits) {
    return x ^ 1ull << (bits - 1);
}

/* A NaN passes: in global memory as it is, b's before the old value's; in shared memory, where an
 * instruction adds between a load and a compare-and-swap, quiet, and the old value's first. */
static uint64_t add_f64(uint64_t old, uint64_t b, bool global) {
    double x = float_f64(old), y = float_f64(b);
    if (!global) return bits_f64(nan_of_2(x + y, x, y));
    return y != y ? b : x != x ? old : bits_f64(nan_of_2(x + y, y, x));
}

/* Sums and orders of halves: none is flushed. */
static uint32_t combine_half(enum soft_atomic operation, bool brain, uint32_t old, uint32_t b) {
    switch (operation) {
    case SOFT_ATOMIC_MIN:
        return brain ? min_of_bf16(old, b, 0) : min_of_f16(old, b, 0);
    case SOFT_ATOMIC_MAX:
        return brain ? max_of_bf16(old, b, 0) : max_of_f16(old, b, 0);
    default:
        return brain ? add_of_bf16(old, b, 0) : add_of_f16(old, b, 0);
    }
}

/* The new value; bits is the width. In global memory single precision sums are flushed, in shared
 * memory they are not. */
static uint64_t ops_atomic_combine(enum soft_atomic operation, enum ptx_modifier type, uint64_t old,
                                   uint64_t b, uint64_t c, unsigned bits, bool global) {
    uint64_t mask = bits == 64 ? UINT64_MAX : (1ull << bits) - 1;
    bool is_signed = type == PTX_s32 || type == PTX_s64;
    uint64_t old_key = is_signed ? signed_order(old, bits) : old;
    uint64_t b_key = is_signed ? signed_order(b, bits) : b;
    if (type == PTX_f16 || type == PTX_bf16 || type == PTX_f16x2 || type == PTX_bf16x2) {
        bool brain = type == PTX_bf16 || type == PTX_bf16x2;
        uint32_t low = combine_half(operation, brain, old & 0xffff, b & 0xffff);
        if (bits == 16) return low;
        return low | combine_half(operation, brain, (uint32_t)old >> 16, (uint32_t)b >> 16) << 16;
    }
    switch (operation) {
    case SOFT_ATOMIC_ADD:
        if (type == PTX_f32) {
            float x = float_f32((uint32_t)old), y = float_f32((uint32_t)b);
            float sum = global ? flush_f32(flush_f32(x) + flush_f32(y)) : x + y;
            return bits_f32(canonical_f32(sum));
        }
        if (type == PTX_f64) return add_f64(old, b, global);
        return (old + b) & mask;
    case SOFT_ATOMIC_MIN:
        return old_key < b_key ? old : b;
    case SOFT_ATOMIC_MAX:
        return old_key > b_key ? old : b;
    case SOFT_ATOMIC_INC:
        return old >= b ? 0 : old + 1;
    case SOFT_ATOMIC_DEC:
        return old == 0 || old > b ? b : old - 1;
    case SOFT_ATOMIC_AND:
        return old & b;
    case SOFT_ATOMIC_OR:
        return old | b;
    case SOFT_ATOMIC_XOR:
        return old ^ b;
    case SOFT_ATOMIC_EXCH:
        return b;
    case SOFT_ATOMIC_CAS:
        return old == b ? c : old;
    }
    return old;
}

#define SWAP(T)                                                                                    \
    do {                                                                                           \
        T *place = (T *)(void *)host;                                                              \
        T old = __atomic_load_n(place, __ATOMIC_RELAXED), new;                                     \
        do {                                                                                       \
            new = (T)ops_atomic_combine(operation, type, old, b, c, 8 * sizeof(T), global);        \
        } while (!__atomic_compare_exchange_n(place, &old, new, 0, __ATOMIC_SEQ_CST,               \
                                              __ATOMIC_RELAXED));                                  \
        return old;                                                                                \
    } while (0)

static uint64_t ops_atomic_update(enum soft_atomic operation, enum ptx_modifier type, uint8_t *host,
                                  unsigned bytes, uint64_t b, uint64_t c, bool global) {
    if (bytes == 8) SWAP(uint64_t);
    if (bytes == 4) SWAP(uint32_t);
    SWAP(uint16_t);
}

/* A component's value in a lane. */
static inline uint64_t ops_atomic_read_lane(const struct soft_warp *warp, uint32_t slot,
                                            uint32_t lane, bool wide) {
    return wide ? SLOT(uint64_t, slot)[lane] : SLOT(uint32_t, slot)[lane];
}

/* more: the operation and the type; of a vector, whose components are updated one by one, then the
 * slots of the results and those of the sources. */
OP_ANY(atom) {
    const uint32_t *operands = SOFT_OPERANDS(warp, in);
    enum soft_atomic operation = (enum soft_atomic)operands[0];
    enum ptx_modifier type = (enum ptx_modifier)operands[1];
    unsigned bytes = soft_access_bytes(in->mode), count = soft_access_count(in->mode);
    bool wide = (in->mode & SOFT_ACCESS_WIDE_DATA) != 0;
    bool silent = (in->mode & SOFT_ACCESS_NO_RESULT) != 0;
    const uint32_t *results = count > 1 ? operands + 2 : &in->d;
    const uint32_t *sources = count > 1 ? results + (silent ? 0 : count) : &in->b;
    EACH_LANE(lane, warp->mask) {
        struct soft_place place;
        uint64_t address = soft_access_address(warp, in, lane);
        if (!soft_access_find(warp, in, lane, address, bytes * count, soft_access_space(in->mode),
                              &place)) {
            return NULL;
        }
        if (place.view.high != 0) warp->views[in->site] = place.view;
        soft_access_check_read(warp, in, lane, address, bytes * count, &place);
        soft_shadow_mark(place.shadow, place.offset, bytes * count);
        uint64_t c = ops_atomic_read_lane(warp, in->c, lane, wide), old[8];
        for (unsigned i = 0; i < count; i++) {
            uint64_t b = ops_atomic_read_lane(warp, sources[i], lane, wide);
            old[i] = ops_atomic_update(operation, type, place.host + i * bytes, bytes, b, c,
                                       place.view.high != 0);
        }
        for (unsigned i = 0; i < count && !silent; i++) {
            if (wide) {
                SLOT(uint64_t, results[i])[lane] = old[i];
            } else {
                SLOT(uint32_t, results[i])[lane] = (uint32_t)old[i];
            }
        }
    }
    return in + 1;
}

/* exch and cas on 128 bits: one at a time in the whole process. The only other 128-bit operations
 * of PTX are loads and stores, which need not be atomic. */
OP_ANY(atom_128) {
    bool exchanges = SOFT_OPERANDS(warp, in)[0] == SOFT_ATOMIC_EXCH;
    EACH_LANE(lane, warp->mask) {
        struct soft_place place;
        uint64_t address = soft_access_address(warp, in, lane), old[2];
        const uint64_t *b = SLOT(uint64_t, in->b) + 2 * lane;
        const uint64_t *c = exchanges ? b : SLOT(uint64_t, in->c) + 2 * lane;
        if (!soft_access_find(warp, in, lane, address, sizeof old, soft_access_space(in->mode),
                              &place)) {
            return NULL;
        }
        if (place.view.high != 0) warp->views[in->site] = place.view;
        soft_access_check_read(warp, in, lane, address, sizeof old, &place);
        soft_shadow_mark(place.shadow, place.offset, sizeof old);
        soft_access_swap_128(place.host, exchanges ? NULL : b, c, old);
        memcpy(SLOT(uint64_t, in->d) + 2 * lane, old, sizeof old);
    }
    return in + 1;
}

/* Whether a generic address is in a space: in->mode is enum soft_access_space. */
OP_ANY(isspacep) {
    const uint64_t *a = SLOT(uint64_t, in->a);
    const struct soft_windows *windows = soft_space_windows();
    uint32_t bits = 0;
    EACH_LANE(lane, warp->mask) {
        uint64_t window = (a[lane] - windows->shared) >> SOFT_WINDOW_SHIFT;
        enum soft_access_space space = window == 0   ? SOFT_SPACE_SHARED
                                       : window == 1 ? SOFT_SPACE_LOCAL
                                       : window == 2 ? SOFT_SPACE_PARAM
                                                     : SOFT_SPACE_GLOBAL;
        uint32_t offset, place = (uint32_t)(a[lane] - windows->shared);
        bool inside = space == (enum soft_access_space)in->mode;
        if (space == SOFT_SPACE_SHARED && inside && place >> SOFT_RANK_SHIFT != 0) {
            inside = soft_cluster_find(warp->cta, place, &offset) == warp->cta;
        } else if (space == SOFT_SPACE_SHARED && in->mode == SOFT_SPACE_CLUSTER) {
            inside = soft_cluster_find(warp->cta, place, &offset) != NULL;
        }
        bits |= (uint32_t)inside << lane;
    }
    uint32_t *d = &PREDICATE(in->d);
    *d = (*d & ~warp->mask) | bits;
    return in + 1;
}

/* Address + window: the immediate is where the window begins, or minus that. */
OP1(cvta_to, u64, u64, x + (uint64_t)in->u.immediate)
