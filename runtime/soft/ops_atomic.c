/*
 * Atomics: read, compute, write, without anyone in between. Source: PTX ISA 9.0, sections 9.7.13.5
 * (atom) and 9.7.13.6 (red).
 *
 * Lanes take their turn in lane order. On global memory each does a compare-and-swap of the host's,
 * sequentially consistent, which is as strong as any order and scope that PTX can ask for; shared
 * memory belongs to one host thread and needs none.
 */
#include "access.h"
#include "ops.h"
#include "ops_float.h"
#include "ptx.h"

static uint64_t signed_order(uint64_t x, uint64_t bits) {
    return x ^ 1ull << (bits - 1);
}

/* The new value; bits is the width. */
static uint64_t combine(enum soft_atomic operation, enum ptx_modifier type, uint64_t old,
                        uint64_t b, uint64_t c, unsigned bits) {
    uint64_t mask = bits == 64 ? UINT64_MAX : (1ull << bits) - 1;
    bool is_signed = type == PTX_s32 || type == PTX_s64;
    uint64_t old_key = is_signed ? signed_order(old, bits) : old;
    uint64_t b_key = is_signed ? signed_order(b, bits) : b;
    switch (operation) {
    case SOFT_ATOMIC_ADD:
        if (type == PTX_f32) {
            float sum = float_f32((uint32_t)old) + float_f32((uint32_t)b);
            return bits_f32(canonical_f32(sum));
        }
        if (type == PTX_f64) return bits_f64(float_f64(old) + float_f64(b));
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
            new = (T)combine(operation, type, old, b, c, 8 * sizeof(T));                           \
        } while (!__atomic_compare_exchange_n(place, &old, new, 0, __ATOMIC_SEQ_CST,               \
                                              __ATOMIC_RELAXED));                                  \
        return old;                                                                                \
    } while (0)

static uint64_t update(enum soft_atomic operation, enum ptx_modifier type, uint8_t *host,
                       unsigned bytes, uint64_t b, uint64_t c) {
    if (bytes == 8) SWAP(uint64_t);
    if (bytes == 4) SWAP(uint32_t);
    SWAP(uint16_t);
}

/* more: the operation and the type. */
OP_ANY(atom) {
    const uint32_t *operands = SOFT_OPERANDS(warp, in);
    enum soft_atomic operation = (enum soft_atomic)operands[0];
    enum ptx_modifier type = (enum ptx_modifier)operands[1];
    unsigned bytes = soft_access_bytes(in->mode);
    bool wide = (in->mode & SOFT_ACCESS_WIDE_DATA) != 0;
    EACH_LANE(lane, warp->mask) {
        struct soft_place place;
        uint64_t address = soft_access_address(warp, in, lane);
        if (!soft_access_find(warp, in, lane, address, bytes, soft_access_space(in->mode),
                              &place)) {
            return NULL;
        }
        if (place.view.high != 0) warp->views[in->site] = place.view;
        soft_access_check_read(warp, in, lane, address, bytes, &place);
        soft_shadow_mark(place.shadow, place.offset, bytes);
        uint64_t b = wide ? SLOT(uint64_t, in->b)[lane] : SLOT(uint32_t, in->b)[lane];
        uint64_t c = wide ? SLOT(uint64_t, in->c)[lane] : SLOT(uint32_t, in->c)[lane];
        uint64_t old = update(operation, type, place.host, bytes, b, c);
        if (in->mode & SOFT_ACCESS_NO_RESULT) continue;
        if (wide) {
            SLOT(uint64_t, in->d)[lane] = old;
        } else {
            SLOT(uint32_t, in->d)[lane] = (uint32_t)old;
        }
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
        bits |= (uint32_t)(space == (enum soft_access_space)in->mode) << lane;
    }
    uint32_t *d = &PREDICATE(in->d);
    *d = (*d & ~warp->mask) | bits;
    return in + 1;
}

/* Address + window: the immediate is where the window begins, or minus that. */
OP1(cvta_to, u64, u64, x + (uint64_t)in->u.immediate)
