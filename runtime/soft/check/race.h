/*
 * Race: whether what threads do to one place of shared or global memory is ordered, as the PTX
 * memory model has it, in whatever order we happen to run them.
 *
 * Two accesses of different threads to one byte, of which one is a write, race unless one is
 * certain to come before the other, or both are strong (volatile, relaxed and the like, atomics)
 * with scopes that reach each other. What makes an order: barriers, mbarriers, __syncwarp and its
 * kin, and a fence before a strong write that another thread's strong read sees. So each word has a
 * cell with its last write and its reads since, and each thread a clock that says what it knows of
 * all others. Source: PTX ISA 9.0, chapter 8 (Memory Consistency Model).
 *
 * Where TOLLENS_SOFT_CHECK lacks race nothing of this exists: CTAs have no race state, and the
 * instructions of a module get their usual handlers when it is loaded.
 */
#ifndef SOFT_RACE_H
#define SOFT_RACE_H

#include "lower/code.h"
#include "lower/modes.h"

struct soft_warp;

/* The lanes that run have come together in a .sync operation; or execute a fence. */
void soft_race_warp_sync(struct soft_warp *warp);
void soft_race_fence(struct soft_warp *warp, enum soft_scope scope);

/* The lanes that run are about to execute a load, a store or an atomic. */
void soft_race_access(struct soft_warp *warp, const struct soft_instruction *instruction);

/* The same of ldmatrix, stmatrix, wmma.load, wmma.store, for which all lanes have come. */
void soft_race_matrix(struct soft_warp *warp, const struct soft_instruction *instruction);

#endif
