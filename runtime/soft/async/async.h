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
    uint32_t mask;                /* the lanes whose copies are still to come */
    uint64_t group;               /* how many groups the lanes had committed before */
    uint64_t serial;              /* counts a warp's copies and arrivals */
    enum soft_access_space from, to;
    unsigned alignment;
    unsigned width;  /* bytes written; 0: the same as read */
    bool looked_for; /* an arrival: somebody has tested the mbarrier, and in vain */
    bool waited;     /* what the warp's was when it began: machine/prior.h */
    bool holds; /* the sources are the bytes themselves, the first eight; high has the others */
    uint64_t source[SOFT_LANES], destination[SOFT_LANES], high[SOFT_LANES];
    struct soft_clock *known[SOFT_LANES]; /* of one that holds: soft_race_known when it began */
    uint32_t bytes[SOFT_LANES];           /* that are read */
    uint32_t mbarrier[SOFT_LANES]; /* of an arrival: the object's name, as soft_mbarrier_find's */
    uint64_t map_address;          /* cp_tensor: generic */
    /* cp_tensor: where the box is, of its one lane; the address in shared memory is the
     * destination, or the source of what goes to global memory. */
    struct soft_tensor_map map;
    struct soft_box_place place;
};

/* Oldest first. */
struct soft_copies {
    struct soft_async_op *first, **end;
    uint32_t count;
    uint64_t committed[SOFT_LANES]; /* groups */
};

/* A warp's: those that are waited for by groups, and what is waited for at mbarriers. */
enum { SOFT_COPIES_ASYNC, SOFT_COPIES_BULK, SOFT_COPIES_MBARRIER, SOFT_COPIES_LISTS };
struct soft_async {
    struct soft_copies lists[SOFT_COPIES_LISTS];
    uint64_t serial;
    struct soft_async_op *free;
};

/* cp.async: a is the address in shared memory, b in global memory, whose offset is more[0]. */
const struct soft_instruction *soft_async_copy(struct soft_warp *warp,
                                               const struct soft_instruction *in);

/* The lanes' copies in a list that are in no group yet become one. */
const struct soft_instruction *soft_async_commit(struct soft_warp *warp,
                                                 const struct soft_instruction *in, unsigned list);

/* Executes all groups of a list except the latest in->mode ones. */
const struct soft_instruction *soft_async_wait(struct soft_warp *warp,
                                               const struct soft_instruction *in, unsigned list);

/* cp.async.mbarrier.arrive: an arrival at a's mbarrier once the lanes' copies so far are done. The
 * mode is as of an access; u.immediate the offset; SOFT_ASYNC_NOINC besides. */
const struct soft_instruction *soft_async_arrival(struct soft_warp *warp,
                                                  const struct soft_instruction *in);

/* A thread of the CTA tests the mbarrier at an offset: what has been looked for there comes. false:
 * a copy cannot be carried out, and the launch has failed. */
bool soft_async_arrive(struct soft_warp *warp, uint32_t offset);

/* The test was in vain. */
void soft_async_look_for(struct soft_cta *cta, uint32_t offset);

/* A warp's last thread has exited: reports copies out of shared memory that were not waited for. */
void soft_async_end(struct soft_warp *warp);

/* A CTA of a cluster has ended: reports copies that were to come into its memory. */
void soft_async_lost(struct soft_cta *cta);

/* A warp begins or is gone: what was not waited for is never done. */
void soft_async_begin(struct soft_warp *warp);
void soft_async_drop(struct soft_warp *warp);

/* cp.async.bulk: a is the destination's address, b the source's, c the bytes. */
const struct soft_instruction *soft_bulk_copy(struct soft_warp *warp,
                                              const struct soft_instruction *in);

/* st.async, red.async: a is the address in shared memory; more is the mbarrier's address, its
 * offset, and the values. */
const struct soft_instruction *soft_bulk_store(struct soft_warp *warp,
                                               const struct soft_instruction *in);

/* Applies values to what is at an address that has been found, as the copy's instruction says. */
void soft_reduce(struct soft_warp *warp, const struct soft_async_op *copy, uint64_t address,
                 const uint8_t *values, unsigned bytes);

/* cp.async.bulk.tensor: a is the address in shared memory, b the map's. And: carries one out. */
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

/* A copy of the current split's, without lanes; NULL: the launch has failed. */
struct soft_async_op *soft_async_op_new(struct soft_warp *warp, const struct soft_instruction *in);

/* Whether a lane's source and destination are there; if not, the launch has failed, and the copy is
 * gone. */
bool soft_async_op_check(struct soft_warp *warp, struct soft_async_op *copy, uint32_t lane);

/* The name of a place in shared memory, or of the same place in the block of a rank. */
uint32_t soft_async_in_block(struct soft_cta *cta, uint32_t rank, uint64_t address);

/* Which blocks of the cluster a lane's multicast copy is for, by its mask. false: there is none, or
 * one that there is not, and the launch has failed. */
bool soft_async_blocks(struct soft_warp *warp, const struct soft_instruction *in, uint32_t lane,
                       uint32_t mask, uint32_t *blocks);

/* Finds the mbarrier of a lane's copy, which must be in the block that its destination is in.
 * false: it is not, and the launch has failed. */
bool soft_async_find_mbarrier(struct soft_warp *warp, const struct soft_instruction *in,
                              struct soft_async_op *copy, uint32_t lane, uint64_t address);

/* Puts a copy into a list. false: the launch has failed. */
bool soft_async_op_begin(struct soft_warp *warp, struct soft_async_op *copy, unsigned list);

#endif
