/*
 * Modes: the modifiers of instructions that access memory, packed into 32 bits by the lowering and
 * read by the machine. Those of other instructions are in code.h.
 */
#ifndef SOFT_MODES_H
#define SOFT_MODES_H

#include <stdint.h>

/* The mode of a load, store or atomic. */
enum {
    SOFT_ACCESS_BYTES = 0x1f,    /* of one component: 1, 2, 4, 8, 16 */
    SOFT_ACCESS_COUNT_SHIFT = 5, /* components: 1, 2, 4, 8 */
    SOFT_ACCESS_COUNT = 0xf << 5,
    SOFT_ACCESS_SIGNED = 1 << 9, /* a load extends by the sign */
    SOFT_ACCESS_SPACE_SHIFT = 10,
    SOFT_ACCESS_SPACE = 7 << 10,
    SOFT_ACCESS_STORE = 1 << 13,
    SOFT_ACCESS_WIDE_ADDRESS = 1 << 14, /* the address is a 64-bit slot */
    SOFT_ACCESS_WIDE_DATA = 1 << 15,    /* so is each component */
    SOFT_ACCESS_SHORT_DATA = 1 << 16,   /* components are 16-bit registers */
    SOFT_ACCESS_NO_RESULT = 1 << 17,    /* an atomic whose old value nobody wants */
    SOFT_ACCESS_SCOPE_SHIFT = 18,       /* enum soft_scope: of a strong access, which may overlap
                                   * others */
    SOFT_ACCESS_SCOPE = 3 << 18,
    SOFT_ACCESS_RELEASE = 1 << 20, /* a strong write with a fence of its own */
    SOFT_ACCESS_ACQUIRE = 1 << 21  /* a strong read with a fence of its own */
};

/* The scope of a strong operation or a fence. There are no threads outside the device, so .sys is
 * .gpu. */
enum soft_scope { SOFT_SCOPE_WEAK, SOFT_SCOPE_CTA, SOFT_SCOPE_CLUSTER, SOFT_SCOPE_GPU };

/* fence: a scope, and whether it orders only initialisations of mbarriers. */
enum { SOFT_FENCE_INITS = 8 };

/* The memory of a fence.proxy.async; or reads of tensor maps by copies. */
enum { SOFT_PROXY_SHARED = 1, SOFT_PROXY_GLOBAL = 2, SOFT_PROXY_MAP = 4 };

/* The part of a tensor map that tensormap.replace changes. */
enum soft_map_field {
    SOFT_MAP_ADDRESS,
    SOFT_MAP_RANK,
    SOFT_MAP_BOX, /* this and the next three: along a dimension */
    SOFT_MAP_SIZE,
    SOFT_MAP_STRIDE,
    SOFT_MAP_STEP,
    SOFT_MAP_TYPE,
    SOFT_MAP_INTERLEAVE,
    SOFT_MAP_SWIZZLE,
    SOFT_MAP_FILL
};

/* setmaxnreg: a number of registers, and whether it is .inc. */
enum { SOFT_REGISTERS = 0x1ff, SOFT_REGISTERS_MORE = 0x200 };

/* The operation of an atomic; its further operands have the operation and the type. */
enum soft_atomic {
    SOFT_ATOMIC_ADD,
    SOFT_ATOMIC_MIN,
    SOFT_ATOMIC_MAX,
    SOFT_ATOMIC_INC,
    SOFT_ATOMIC_DEC,
    SOFT_ATOMIC_AND,
    SOFT_ATOMIC_OR,
    SOFT_ATOMIC_XOR,
    SOFT_ATOMIC_EXCH,
    SOFT_ATOMIC_CAS
};

/* The state spaces of instructions. */
enum soft_access_space {
    SOFT_SPACE_GENERIC,
    SOFT_SPACE_GLOBAL,
    SOFT_SPACE_SHARED,
    SOFT_SPACE_LOCAL,
    SOFT_SPACE_PARAM,
    SOFT_SPACE_CLUSTER /* the shared memory of all blocks of a cluster */
};

/* An address in the shared memory of a cluster. Below 2^SOFT_RANK_SHIFT it is an offset in the
 * block's own; mapa's address for another block has that block's rank, and 1, above those bits. */
enum { SOFT_RANK_SHIFT = 24 };
static inline uint32_t soft_cluster_address(uint32_t rank, uint32_t offset) {
    return (rank + 1) << SOFT_RANK_SHIFT | offset;
}

static inline unsigned soft_access_bytes(uint32_t mode) {
    return mode & SOFT_ACCESS_BYTES;
}
static inline unsigned soft_access_count(uint32_t mode) {
    return (mode & SOFT_ACCESS_COUNT) >> SOFT_ACCESS_COUNT_SHIFT;
}
static inline enum soft_access_space soft_access_space(uint32_t mode) {
    return (enum soft_access_space)((mode & SOFT_ACCESS_SPACE) >> SOFT_ACCESS_SPACE_SHIFT);
}

static inline enum soft_scope soft_access_scope(uint32_t mode) {
    return (enum soft_scope)((mode & SOFT_ACCESS_SCOPE) >> SOFT_ACCESS_SCOPE_SHIFT);
}

/* What cp.async does, packed into its mode. */
enum {
    SOFT_ASYNC_BYTES = 0x1f,    /* that are written: 4, 8, 16 */
    SOFT_ASYNC_SIZED = 1 << 5,  /* c: the number of bytes read; the rest is zeros */
    SOFT_ASYNC_IGNORE = 1 << 6, /* c: a predicate for zeros alone */
    SOFT_ASYNC_NEGATED = 1 << 7
};

/* The bit that cp.async.mbarrier.arrive adds to the mode of an access. */
enum { SOFT_ASYNC_NOINC = 1 << 18 };

/* What cp.async.bulk and its kin do. */
enum {
    SOFT_BULK_FROM_GLOBAL = 1,
    SOFT_BULK_GROUP = 2, /* into global memory; else the copy completes on an mbarrier */
    SOFT_BULK_MULTICAST = 4,
    SOFT_BULK_REDUCE = 8,      /* an atomic operation on a type, which follow */
    SOFT_BULK_COUNT_SHIFT = 4, /* st.async, red.async: components */
    SOFT_BULK_IM2COL = 16,     /* of tensors */
    SOFT_BULK_PREFETCH = 32,   /* of tensors: nothing is copied */
    SOFT_BULK_CLUSTER = 128,   /* the destination may be in another block's shared memory */
    SOFT_BULK_OPERATION_SHIFT = 8,
    SOFT_BULK_TYPE_SHIFT = 16
};

/* The mode of an mbarrier instruction, in the bits that SOFT_ACCESS_ leaves. */
enum {
    SOFT_MBARRIER_INIT = 0,
    SOFT_MBARRIER_INVAL = 1,
    SOFT_MBARRIER_ARRIVE = 2, /* b: how often */
    SOFT_MBARRIER_EXPECT_TX = 3,
    SOFT_MBARRIER_COMPLETE_TX = 4,
    SOFT_MBARRIER_ACT = 7,
    SOFT_MBARRIER_SHIFT = 18,
    SOFT_MBARRIER_DROP = 1 << 21,        /* an arrival that later phases need not wait for */
    SOFT_MBARRIER_NO_COMPLETE = 1 << 22, /* it does not end the phase */
    SOFT_MBARRIER_EXPECTS = 1 << 23,     /* b: bytes to come; it arrives once */
    SOFT_MBARRIER_STATE = 1 << 24,       /* d: the state before */
    SOFT_MBARRIER_PARITY = 1 << 25,      /* of a test: b is a parity, not a state */
    SOFT_MBARRIER_RELAXED = 1 << 26      /* relaxed: an arrival passes nothing on, a test gets
                                          * nothing */
};

#endif
