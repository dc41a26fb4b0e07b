/*
 * Atomics: indivisible read, computation and write. Source: PTX ISA 9.0, sections 9.7.13.5 (atom)
 * and 9.7.13.6 (red).
 *
 * Lanes execute in lane order. On global memory each uses a sequentially consistent operation of
 * the host, which satisfies every order and scope of PTX; shared memory belongs to one host thread
 * and needs none.
 *
 * If the words of all lanes are in one range of bytes, all written, they are found and checked
 * together, and common operations have loops of their own. Everything else, and every error, is
 * executed lane by lane.
 */
#include "machine/access.h"
#include "machine/cluster_member.h"
#include "op_body.h"
#include "ops_half.h"
#include "ops_lines.h"
#include "ptx/ptx.h"

/* What depends on an operation and a type that are constants is decided by the compiler. */
#if defined(__clang__)
#define SOFT_UNROLLED _Pragma("clang loop unroll_count(8)")
#else
#define SOFT_UNROLLED _Pragma("GCC unroll 8")
#endif
#define FOLDED static inline __attribute__((always_inline))

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
FOLDED uint64_t ops_atomic_combine(enum soft_atomic operation, enum ptx_modifier type, uint64_t old,
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

static inline bool ops_atomic_is_integer_sum(enum soft_atomic operation, enum ptx_modifier type) {
    return operation == SOFT_ATOMIC_ADD &&
           (type == PTX_u32 || type == PTX_s32 || type == PTX_u64 || type == PTX_s64);
}

#define SWAP(T)                                                                                    \
    do {                                                                                           \
        T *place = (T *)(void *)host;                                                              \
        if (ops_atomic_is_integer_sum(operation, type)) {                                          \
            return __atomic_fetch_add(place, (T)b, __ATOMIC_SEQ_CST);                              \
        }                                                                                          \
        T old = __atomic_load_n(place, __ATOMIC_RELAXED), new;                                     \
        do {                                                                                       \
            new = (T)ops_atomic_combine(operation, type, old, b, c, 8 * sizeof(T), global);        \
        } while (!__atomic_compare_exchange_n(place, &old, new, 0, __ATOMIC_SEQ_CST,               \
                                              __ATOMIC_RELAXED));                                  \
        return old;                                                                                \
    } while (0)

FOLDED uint64_t ops_atomic_update(enum soft_atomic operation, enum ptx_modifier type, uint8_t *host,
                                  unsigned bytes, uint64_t b, uint64_t c, bool global) {
    if (!global) {
        uint64_t old = 0;
        memcpy(&old, host, bytes);
        uint64_t new = ops_atomic_combine(operation, type, old, b, c, 8 * bytes, global);
        memcpy(host, &new, bytes);
        return old;
    }
    if (bytes == 8) SWAP(uint64_t);
    if (bytes == 4) SWAP(uint32_t);
    SWAP(uint16_t);
}

/* A component's value in a lane. */
static inline uint64_t ops_atomic_read_lane(const struct soft_warp *warp, uint32_t slot,
                                            uint32_t lane, bool wide) {
    return wide ? SLOT(uint64_t, slot)[lane] : SLOT(uint32_t, slot)[lane];
}

static inline void ops_atomic_write_lane(struct soft_warp *warp, uint32_t slot, uint32_t lane,
                                         bool wide, uint64_t value) {
    if (wide) {
        SLOT(uint64_t, slot)[lane] = value;
    } else {
        SLOT(uint32_t, slot)[lane] = (uint32_t)value;
    }
}

/* ---- all lanes in one range ---- */

/* The words of the lanes that run; of the others, that of one that does. */
struct words {
    uint8_t *host, *shadow;
    uint64_t span;
    uint32_t offsets[SOFT_LANES];
    bool global;
    bool adjacent; /* and all lanes run */
};

static void words_in_shared(struct words *words, const struct soft_cta *cta) {
    words->host = cta->shared;
    words->shadow = cta->shared_shadow;
    words->span = cta->warps_alive > 0 ? cta->shared_bytes : 0;
    words->global = false;
}

/* The range that a 64-bit address is in. Returns where it begins. */
static uint64_t words_range(struct words *words, const struct soft_warp *warp,
                            const struct soft_instruction *in, uint64_t address) {
    const struct soft_view *view = &warp->views[in->site];
    const uint64_t window = soft_space_windows()->shared;
    if (soft_access_space(in->mode) == SOFT_SPACE_GENERIC &&
        (address - window) >> SOFT_WINDOW_SHIFT == 0) {
        words_in_shared(words, warp->cta);
        return window;
    }
    words->host = view->host;
    words->shadow = view->shadow;
    words->span = view->high - view->low;
    words->global = true;
    return view->low;
}

/* false: some words are elsewhere, or misaligned. */
static bool words_find_wide(struct words *words, const struct soft_warp *warp,
                            const struct soft_instruction *in, unsigned bytes) {
    const uint64_t *addresses = SLOT(uint64_t, in->a);
    const uint32_t *lane = warp->lane;
    const uint64_t offset = (uint64_t)in->u.immediate;
    const uint64_t one = addresses[__builtin_ctz(warp->mask)];
    const uint64_t begin = words_range(words, warp, in, one + offset);
    uint64_t offsets[SOFT_LANES];
    if (words->span < bytes || words->span > UINT32_MAX || begin % bytes != 0) return false;
    LANES offsets[i] = (lane[i] ? addresses[i] : one) + offset - begin;
    LANES words->offsets[i] = (uint32_t)offsets[i];
    return !soft_any_wrong_64(offsets, words->span - bytes, bytes - 1);
}

static bool words_find_narrow(struct words *words, const struct soft_warp *warp,
                              const struct soft_instruction *in, unsigned bytes) {
    const uint32_t *addresses = SLOT(uint32_t, in->a), *lane = warp->lane;
    const uint32_t offset = (uint32_t)in->u.immediate;
    const uint32_t one = addresses[__builtin_ctz(warp->mask)];
    words_in_shared(words, warp->cta);
    if (words->span < bytes) return false;
    LANES words->offsets[i] = (lane[i] ? addresses[i] : one) + offset;
    return !soft_any_wrong_32(words->offsets, (uint32_t)words->span - bytes, bytes - 1);
}

/* The shadow of a range up to this many bytes, such as a histogram's, is compared whole, which
 * takes less time than a comparison per lane. */
enum { WORDS_WHOLE = 4096 };

FOLDED bool words_are_written(const struct words *words, unsigned bytes) {
    uint8_t written = 0x0f;
    if (words->adjacent) {
        return soft_all_written(words->shadow + words->offsets[0] / 4, 8 * (size_t)bytes);
    }
    if (words->span <= WORDS_WHOLE && words->span % 128 == 0 &&
        soft_all_written(words->shadow, words->span / 4)) {
        return true;
    }
    SOFT_UNROLLED for (int i = 0; i < SOFT_LANES; i++) {
        const uint8_t *shadow = words->shadow + words->offsets[i] / 4;
        written &= shadow[0];
        if (bytes == 8) written &= shadow[1];
    }
    return written == 0x0f;
}

/* false: the lanes must be executed one by one. */
static bool words_find(struct words *words, const struct soft_warp *warp,
                       const struct soft_instruction *in, unsigned bytes) {
    if (soft_access_count(in->mode) != 1 || bytes < 4) return false;
    if (in->mode & SOFT_ACCESS_WIDE_ADDRESS ? !words_find_wide(words, warp, in, bytes)
                                            : !words_find_narrow(words, warp, in, bytes)) {
        return false;
    }
    words->adjacent = warp->partial == 0 && words->offsets[1] - words->offsets[0] == bytes &&
                      soft_has_step_32(words->offsets, bytes);
    return words->shadow == NULL ||
           (bytes == 4 ? words_are_written(words, 4) : words_are_written(words, 8));
}

/* The slots of an instruction: the results of one that has none go elsewhere. */
struct words_slots {
    const uint8_t *b, *c;
    uint8_t *d;
};

FOLDED void words_update_lane(const struct words *words, const struct words_slots *slots,
                              enum soft_atomic operation, enum ptx_modifier type, unsigned bytes,
                              bool global, uint32_t lane) {
    uint64_t b = 0, c = 0;
    memcpy(&b, slots->b + lane * bytes, bytes);
    if (operation == SOFT_ATOMIC_CAS) memcpy(&c, slots->c + lane * bytes, bytes);
    const uint64_t old =
        ops_atomic_update(operation, type, words->host + words->offsets[lane], bytes, b, c, global);
    memcpy(slots->d + lane * bytes, &old, bytes);
}

#define WORDS_LINE(T)                                                                              \
    const T *b = (const T *)(const void *)slots.b, *c = (const T *)(const void *)slots.c;          \
    T *place = (T *)(void *)to, *d = (T *)(void *)slots.d;                                         \
    LANES {                                                                                        \
        T old = place[i];                                                                          \
        T third = operation == SOFT_ATOMIC_CAS ? c[i] : 0;                                         \
        place[i] = (T)ops_atomic_combine(operation, type, old, b[i], third, 8 * sizeof(T), false); \
        d[i] = old;                                                                                \
    }

FOLDED void words_update(struct soft_warp *warp, const struct soft_instruction *in,
                         const struct words *words, enum soft_atomic operation,
                         enum ptx_modifier type, unsigned bytes, bool global) {
    uint64_t nowhere[SOFT_LANES];
    const bool silent = (in->mode & SOFT_ACCESS_NO_RESULT) != 0;
    const struct words_slots slots = {SLOT(uint8_t, in->b), SLOT(uint8_t, in->c),
                                      silent ? (uint8_t *)nowhere : SLOT(uint8_t, in->d)};
    if (!global && words->adjacent) {
        uint8_t *to = words->host + words->offsets[0];
        if (bytes == 4) {
            WORDS_LINE(uint32_t)
        } else {
            WORDS_LINE(uint64_t)
        }
    } else if (warp->partial == 0) {
        SOFT_UNROLLED for (uint32_t i = 0; i < SOFT_LANES; i++) {
            words_update_lane(words, &slots, operation, type, bytes, global, i);
        }
    } else {
        EACH_LANE(lane, warp->mask) {
            words_update_lane(words, &slots, operation, type, bytes, global, lane);
        }
    }
}

#define WORDS_KEY(operation, type) ((unsigned)(operation) << 16 | (unsigned)(type))
#define WORDS_CASE(operation, type, bytes)                                                         \
    case WORDS_KEY(operation, type):                                                               \
        words_update(warp, in, words, operation, type, bytes, global);                             \
        break;

FOLDED void words_choose(struct soft_warp *warp, const struct soft_instruction *in,
                         const struct words *words, bool global) {
    const enum soft_atomic operation = (enum soft_atomic)SOFT_OPERANDS(warp, in)[0];
    const enum ptx_modifier type = (enum ptx_modifier)SOFT_OPERANDS(warp, in)[1];
    switch (WORDS_KEY(operation, type)) {
        WORDS_CASE(SOFT_ATOMIC_ADD, PTX_u32, 4)
        WORDS_CASE(SOFT_ATOMIC_ADD, PTX_s32, 4)
        WORDS_CASE(SOFT_ATOMIC_ADD, PTX_u64, 8)
        WORDS_CASE(SOFT_ATOMIC_ADD, PTX_f32, 4)
        WORDS_CASE(SOFT_ATOMIC_ADD, PTX_f64, 8)
        WORDS_CASE(SOFT_ATOMIC_MIN, PTX_u32, 4)
        WORDS_CASE(SOFT_ATOMIC_MIN, PTX_s32, 4)
        WORDS_CASE(SOFT_ATOMIC_MAX, PTX_u32, 4)
        WORDS_CASE(SOFT_ATOMIC_MAX, PTX_s32, 4)
        WORDS_CASE(SOFT_ATOMIC_INC, PTX_u32, 4)
        WORDS_CASE(SOFT_ATOMIC_AND, PTX_b32, 4)
        WORDS_CASE(SOFT_ATOMIC_OR, PTX_b32, 4)
        WORDS_CASE(SOFT_ATOMIC_EXCH, PTX_b32, 4)
        WORDS_CASE(SOFT_ATOMIC_CAS, PTX_b32, 4)
        WORDS_CASE(SOFT_ATOMIC_CAS, PTX_b64, 8)
    default:
        words_update(warp, in, words, operation, type, soft_access_bytes(in->mode), global);
    }
}

/* ---- any ---- */

/* more: the operation and the type; of a vector, whose components are updated one by one, then the
 * slots of the results and those of the sources. */
__attribute__((noinline)) static HANDLER(ops_atomic_lanes) {
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
            ops_atomic_write_lane(warp, results[i], lane, wide, old[i]);
        }
    }
    return in + 1;
}

OP_ANY(atom) {
    struct words words;
    if (!words_find(&words, warp, in, soft_access_bytes(in->mode))) {
        return ops_atomic_lanes(warp, in);
    }
    if (words.global) {
        words_choose(warp, in, &words, true);
    } else {
        words_choose(warp, in, &words, false);
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
