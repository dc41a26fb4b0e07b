/*
 * Async: copies that a thread starts and does not wait for (cp.async), and their arrival at an
 * mbarrier.
 *
 * A GPU may execute such a copy at once or much later; a correct kernel works in both cases. Here
 * it is executed as late as possible: when its thread waits for it, or when a thread tests the
 * mbarrier for a second time. A kernel that does not wait reads the old data every time, not only
 * when memory is slow. Addresses are checked when the copy starts, so a report names the right
 * instruction; the source is read when the copy is executed.
 */
#ifndef SOFT_ASYNC_H
#define SOFT_ASYNC_H

#include "machine/access.h"
#include "lower/modes.h"
#include "tensor_walk.h"

/* The copies that one instruction started and that are not yet executed, or arrivals that wait for
 * copies. */
struct soft_async_op {
    struct soft_async_op *next;
    const struct soft_instruction *in;
    const struct soft_code *code; /* that it is in */
    uint32_t mask;                /* the lanes whose copies are pending */
    uint64_t group;               /* the number of groups that the lanes had committed before */
    uint64_t serial;              /* counts a warp's copies and arrivals */
    enum soft_access_space from, to;
    unsigned alignment;
    unsigned width;  /* bytes written; 0: the same as read */
    bool looked_for; /* an arrival: a test of the mbarrier has failed */
    bool waited;     /* the warp's value when it started: machine/prior.h */
    bool holds;      /* source has the bytes themselves, the first eight; high has the others */
    uint64_t source[SOFT_LANES], destination[SOFT_LANES], high[SOFT_LANES];
    struct soft_clock *known[SOFT_LANES]; /* with holds: soft_race_known when it started */
    uint32_t bytes[SOFT_LANES];           /* that are read */
    uint32_t mbarrier[SOFT_LANES]; /* of an arrival: the object's name, as in soft_mbarrier_find */
    uint64_t map_address;          /* cp_tensor: generic */
    /* cp_tensor: the box of its one lane; the address in shared memory is the destination, or the
     * source of a copy to global memory. */
    struct soft_tensor_map map;
    struct soft_box_place place;
};

/* Oldest first. */
struct soft_copies {
    struct soft_async_op *first, **end;
    uint32_t count;
    uint64_t committed[SOFT_LANES]; /* groups */
};

/* A warp's pending copies: two lists that are waited for by groups, one at mbarriers. */
enum { SOFT_COPIES_ASYNC, SOFT_COPIES_BULK, SOFT_COPIES_MBARRIER, SOFT_COPIES_LISTS };
struct soft_async {
    struct soft_copies lists[SOFT_COPIES_LISTS];
    uint64_t serial;
    struct soft_async_op *free;
};

/* cp.async: a is the address in shared memory, b in global memory, whose offset is more[0]. */
const struct soft_instruction *soft_async_copy(struct soft_warp *warp,
                                               const struct soft_instruction *in);

/* Commits the lanes' copies in a list that are in no group yet to a group. */
const struct soft_instruction *soft_async_commit(struct soft_warp *warp,
                                                 const struct soft_instruction *in, unsigned list);

/* Executes all groups of a list except the latest in->mode ones. */
const struct soft_instruction *soft_async_wait(struct soft_warp *warp,
                                               const struct soft_instruction *in, unsigned list);

/* cp.async.mbarrier.arrive: an arrival at a's mbarrier once the lanes' copies so far are done. The
 * mode is that of an access, with SOFT_ASYNC_NOINC; u.immediate is the offset. */
const struct soft_instruction *soft_async_arrival(struct soft_warp *warp,
                                                  const struct soft_instruction *in);

/* A thread of the CTA tests the mbarrier at an offset: copies that were tested for before are
 * executed. false: a copy is invalid, and the launch has failed. */
bool soft_async_arrive(struct soft_warp *warp, uint32_t offset);

/* The test was in vain. */
void soft_async_look_for(struct soft_cta *cta, uint32_t offset);

/* A warp's last thread has exited: reports copies out of shared memory that were not waited for. */
void soft_async_end(struct soft_warp *warp);

/* A CTA of a cluster has ended: reports pending copies into its memory. */
void soft_async_lost(struct soft_cta *cta);

/* A warp begins or has exited: copies that were not waited for are dropped. */
void soft_async_begin(struct soft_warp *warp);
void soft_async_drop(struct soft_warp *warp);

/* cp.async.bulk: a is the destination's address, b the source's, c the bytes. */
const struct soft_instruction *soft_bulk_copy(struct soft_warp *warp,
                                              const struct soft_instruction *in);

/* st.async, red.async: a is the address in shared memory; more is the mbarrier's address, its
 * offset, and the values. */
const struct soft_instruction *soft_bulk_store(struct soft_warp *warp,
                                               const struct soft_instruction *in);

/* Applies values to the memory at a resolved address, with the operation of the copy's
 * instruction. */
void soft_reduce(struct soft_warp *warp, const struct soft_async_op *copy, uint64_t address,
                 const uint8_t *values, unsigned bytes);

/* cp.async.bulk.tensor: a is the address in shared memory, b the map's. And: executes one. */
const struct soft_instruction *soft_tensor_copy(struct soft_warp *warp,
                                                const struct soft_instruction *in);
bool soft_tensor_carry_out(struct soft_warp *warp, const struct soft_async_op *copy, uint32_t lane);

/* tensormap.replace: a is the map's address, b the new value; more is an enum soft_map_field and a
 * dimension, if the field has one. tensormap.cp_fenceproxy: a is the address in global memory, b in
 * shared memory; more is the latter's offset. */
const struct soft_instruction *soft_map_replace(struct soft_warp *warp,
                                                const struct soft_instruction *in);
const struct soft_instruction *soft_map_copy(struct soft_warp *warp,
                                             const struct soft_instruction *in);

/* ---- for other instructions that copy ---- */

/* A new copy of the current split, without lanes; NULL: the launch has failed. */
struct soft_async_op *soft_async_op_new(struct soft_warp *warp, const struct soft_instruction *in);

/* Whether a lane's source and destination are valid; if not, the launch has failed, and the copy is
 * freed. */
bool soft_async_op_check(struct soft_warp *warp, struct soft_async_op *copy, uint32_t lane);

/* The name of a place in shared memory, or of the same place in the block of a rank. */
uint32_t soft_async_in_block(struct soft_cta *cta, uint32_t rank, uint64_t address);

/* The blocks of the cluster in the mask of a lane's multicast copy. false: the mask is empty or
 * names a block that does not exist, and the launch has failed. */
bool soft_async_blocks(struct soft_warp *warp, const struct soft_instruction *in, uint32_t lane,
                       uint32_t mask, uint32_t *blocks);

/* Finds the mbarrier of a lane's copy, which must be in the same block as the destination. false:
 * it is not, and the launch has failed. */
bool soft_async_find_mbarrier(struct soft_warp *warp, const struct soft_instruction *in,
                              struct soft_async_op *copy, uint32_t lane, uint64_t address);

/* Puts a copy into a list. false: the launch has failed. */
bool soft_async_op_begin(struct soft_warp *warp, struct soft_async_op *copy, unsigned list);

#endif
