/*
 * Race: whether accesses of threads to the same byte of shared or global memory are ordered by the
 * PTX memory model, independent of the order in which they happened to run.
 *
 * Two accesses of different threads to one byte, at least one a write, race unless one is ordered
 * before the other, or both are strong (volatile, relaxed and so on, atomics) with scopes that
 * include each other. Barriers, mbarriers, __syncwarp and similar order accesses, and so does a
 * fence before a strong write that another thread's strong read observes. Each word has a cell with
 * its last write and the reads since; each thread has a clock of what is ordered before it. Source:
 * PTX ISA 9.0, chapter 8 (Memory Consistency Model).
 *
 * Without race in TOLLENS_SOFT_CHECK there is no cost: CTAs have no race state, and instructions
 * get their usual handlers when a module is loaded.
 */
#ifndef SOFT_RACE_H
#define SOFT_RACE_H

#include "lower/code.h"
#include "lower/modes.h"

struct soft_warp;

/* The active lanes have met in a .sync operation; or execute a fence. */
void soft_race_warp_sync(struct soft_warp *warp);
void soft_race_fence(struct soft_warp *warp, enum soft_scope scope);

/* The active lanes execute a fence: what their strong reads observed orders what follows. That
 * matters with race=strict alone; without it, the reads did so themselves. */
void soft_race_fence_reads(struct soft_warp *warp);

/* The active lanes are about to change a tensor map, or copy one together. */
void soft_race_map(struct soft_warp *warp, const struct soft_instruction *instruction);

/* The active lanes execute a fence.proxy.async for the memory of the SOFT_PROXY_ bits. */
void soft_race_proxy_fence(struct soft_warp *warp, uint32_t spaces);

/* The active lanes are about to execute a load, a store or an atomic. */
void soft_race_access(struct soft_warp *warp, const struct soft_instruction *instruction);

/* The same for ldmatrix, stmatrix, wmma.load, wmma.store, at which all lanes have met. */
void soft_race_matrix(struct soft_warp *warp, const struct soft_instruction *instruction);

#endif
