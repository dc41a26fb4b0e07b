/*
 * Access: one thread's load or store in any state space, with all checks.
 *
 * This is the slow path. The handlers first try a fast path, a whole warp inside a range that they
 * know. If that does not apply they call this one, which finds the range or reports the error.
 */
#ifndef SOFT_ACCESS_H
#define SOFT_ACCESS_H

#include "grid.h"
#include "memory/space.h"

/* What a load, store or atomic does, packed into an instruction's mode. */
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
    SOFT_ACCESS_SCOPE_SHIFT = 18, /* enum soft_scope: of a strong access, which may meet others */
    SOFT_ACCESS_SCOPE = 3 << 18,
    SOFT_ACCESS_RELEASE = 1 << 20 /* a strong write with a fence of its own */
};

/* How far a strong operation or a fence reaches. We have no thread outside the device to tell .sys
 * from .gpu for. */
enum soft_scope { SOFT_SCOPE_WEAK, SOFT_SCOPE_CTA, SOFT_SCOPE_CLUSTER, SOFT_SCOPE_GPU };

/* What an atomic does; its operand list says which, and on what type. */
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

/* The state spaces as an instruction names them. */
enum soft_access_space {
    SOFT_SPACE_GENERIC,
    SOFT_SPACE_GLOBAL,
    SOFT_SPACE_SHARED,
    SOFT_SPACE_LOCAL,
    SOFT_SPACE_PARAM
};

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

/* Where the bytes of an access are. */
struct soft_place {
    uint8_t *host;
    uint8_t *shadow;       /* the shadow of the whole range; NULL where writes are not tracked */
    uint64_t offset;       /* of the access in it */
    struct soft_view view; /* of a global access: the range around it; high 0 otherwise */
};

/* The space that a generic address lies in; the address becomes one of that space. */
enum soft_access_space soft_access_resolve(uint64_t *address);

/* Finds the place of bytes bytes at a thread's address. false: there is none; the launch has failed
 * with a report, and the handler returns NULL. */
bool soft_access_find(struct soft_warp *warp, const struct soft_instruction *instruction,
                      uint32_t lane, uint64_t address, unsigned bytes, enum soft_access_space space,
                      struct soft_place *place);

/* The same for any number of bytes at a multiple of an alignment (a power of two), and for a wish
 * that the instruction's mode does not tell. */
bool soft_access_range(struct soft_warp *warp, const struct soft_instruction *instruction,
                       uint32_t lane, uint64_t address, unsigned bytes, unsigned alignment,
                       enum soft_access_space space, enum soft_wish wish, struct soft_place *place);

/* The address of a lane's access: the base register plus the instruction's offset. */
uint64_t soft_access_address(const struct soft_warp *warp,
                             const struct soft_instruction *instruction, uint32_t lane);

/* Notes a read of bytes of which none was ever written. Of a part there is nothing to note:
 * compilers copy structures whole, with the padding between their members. */
void soft_access_check_read(struct soft_warp *warp, const struct soft_instruction *instruction,
                            uint32_t lane, uint64_t address, unsigned bytes,
                            const struct soft_place *place);

/* Swaps 16 bytes if they are what is expected (NULL: whatever they are); old is what they were. */
void soft_access_swap_128(uint8_t *host, const uint64_t expected[2], const uint64_t wanted[2],
                          uint64_t old[2]);

/* A whole load or store, lane by lane. */
const struct soft_instruction *soft_access_load(struct soft_warp *warp,
                                                const struct soft_instruction *instruction);
const struct soft_instruction *soft_access_store(struct soft_warp *warp,
                                                 const struct soft_instruction *instruction);

#endif
