/*
 * Access: one thread's load or store in any state space, with all checks.
 *
 * This is the slow path. The handlers first try a fast path, for a whole warp inside a known range.
 * Otherwise they call this one, which finds the range or reports the error.
 */
#ifndef SOFT_ACCESS_H
#define SOFT_ACCESS_H

#include "machine_state.h"
#include "lower/modes.h"
#include "memory/space.h"
#include "memory/touch.h"

/* Where the bytes of an access are. */
struct soft_place {
    uint8_t *host;
    uint8_t *shadow;       /* the shadow of the whole range; NULL where writes are not tracked */
    uint64_t offset;       /* of the access in it */
    struct soft_view view; /* of a global access: its range; otherwise high is 0 */
};

/* Returns the space that contains a generic address, and converts the address to that space. */
enum soft_access_space soft_access_resolve(uint64_t *address);

/* Finds the host memory of bytes bytes at a thread's address. false: there is none; the launch has
 * failed with a report, and the handler returns NULL. */
bool soft_access_find(struct soft_warp *warp, const struct soft_instruction *instruction,
                      uint32_t lane, uint64_t address, unsigned bytes, enum soft_access_space space,
                      struct soft_place *place);

/* The same for any number of bytes at a multiple of an alignment (a power of two), and with an
 * explicit kind of access instead of the instruction's mode. */
bool soft_access_range(struct soft_warp *warp, const struct soft_instruction *instruction,
                       uint32_t lane, uint64_t address, unsigned bytes, unsigned alignment,
                       enum soft_access_space space, enum soft_access_kind kind,
                       struct soft_place *place);

/* Records an access of global memory whose place was found, if the order of streams or of
 * programmatic launches is checked. It empties the range of the place, so that the next access is
 * recorded as well. */
void soft_access_note(struct soft_warp *warp, const struct soft_instruction *instruction,
                      uint32_t lane, uint64_t address, unsigned bytes, enum soft_touch touch,
                      struct soft_place *place);

/* The address of a lane's access: the base register plus the instruction's offset. */
uint64_t soft_access_address(const struct soft_warp *warp,
                             const struct soft_instruction *instruction, uint32_t lane);

/* Reports a read of bytes none of which was ever written, and of a word of which most was. Other
 * reads of partly written bytes are not reported, because compilers copy whole structures with
 * their padding. */
void soft_access_check_read(struct soft_warp *warp, const struct soft_instruction *instruction,
                            uint32_t lane, uint64_t address, unsigned bytes,
                            const struct soft_place *place);

/* Swaps 16 bytes if they equal expected (NULL: always); old gets the previous ones. */
void soft_access_swap_128(uint8_t *host, const uint64_t expected[2], const uint64_t wanted[2],
                          uint64_t old[2]);

/* A whole load or store, lane by lane. */
const struct soft_instruction *soft_access_load(struct soft_warp *warp,
                                                const struct soft_instruction *instruction);
const struct soft_instruction *soft_access_store(struct soft_warp *warp,
                                                 const struct soft_instruction *instruction);

#endif
