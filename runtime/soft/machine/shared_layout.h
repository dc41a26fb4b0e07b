/*
 * Shared layout: the swizzle with which TMA boxes were written into shared memory.
 *
 * Memory does not show how a tile is swizzled, so a wgmma descriptor with another swizzle than the
 * tensor map's multiplies wrong elements without any invalid access. For each 16 bytes that a copy
 * of a box writes, the swizzle and a checksum are recorded. If the bytes have changed, something
 * else has written them since, and their swizzle is unknown.
 */
#ifndef SOFT_SHARED_LAYOUT_H
#define SOFT_SHARED_LAYOUT_H

#include "machine_state.h"

/* A copy of a box has written the 16 bytes at an offset, a multiple of 16, of a CTA's shared
 * memory; swizzle as in a tensor map. Does nothing if the check (sync) is off. */
void soft_layout_note(struct soft_cta *cta, uint32_t offset, unsigned swizzle);

/* The swizzle of the box that wrote the 16 bytes at an offset, if they are unchanged; otherwise
 * 0. */
unsigned soft_layout_at(const struct soft_cta *cta, uint32_t offset);

/* A CTA begins: its shared memory is new. A CTA is freed. */
void soft_layout_begin(struct soft_cta *cta);
void soft_layout_drop(struct soft_cta *cta);

#endif
