/*
 * Shared layout: with what swizzle the boxes of tensors have come into shared memory.
 *
 * Nothing in memory tells a swizzled tile from another one, so a descriptor of wgmma with another
 * swizzle than the tensor map's multiplies wrong elements and no access is out of order. Each 16
 * bytes that a copy of a box writes are noted, with a checksum of what they were: where they are
 * other bytes now, somebody else has written them since, and nothing is known.
 */
#ifndef SOFT_SHARED_LAYOUT_H
#define SOFT_SHARED_LAYOUT_H

#include "machine_state.h"

/* A copy of a box has written the 16 bytes at an offset, a multiple of 16, of a CTA's shared
 * memory; swizzle: the chunks that change places, as in a tensor map. Nothing where the check
 * (sync) is off. */
void soft_layout_note(struct soft_cta *cta, uint32_t offset, unsigned swizzle);

/* The swizzle of the box that the 16 bytes at an offset came with, if they are still what it wrote;
 * otherwise 0. */
unsigned soft_layout_at(const struct soft_cta *cta, uint32_t offset);

/* A CTA begins: its shared memory is new. It is gone. */
void soft_layout_begin(struct soft_cta *cta);
void soft_layout_drop(struct soft_cta *cta);

#endif
