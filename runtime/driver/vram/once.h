/*
 * Once: device memory whose addresses are not reused, so that a freed address is recognised.
 *
 * Addresses are plentiful, memory is not: a block gets addresses that no block had before, and
 * memory that other blocks may have had. Small blocks are placed in frames, pages of memory that
 * may be mapped at several addresses. A window is one mapping of a frame, filled by one sweep of
 * a cursor. At the end of a sweep the frame is mapped at new addresses, and the next sweep hands
 * out the holes that frees have left, under those addresses. A window is unmapped when it has no
 * live block. Large blocks have memory and addresses of their own.
 *
 * The addresses are one reservation, many times the size of the device's memory. At its end, the
 * addresses that were freed longest ago are reused. Until then copies to a freed address are
 * refused and freeing it is recognised. Thread-safe.
 *
 * Source: D-19; CUDA Driver API, "Virtual Memory Management": a handle may be mapped repeatedly.
 */
#ifndef TOLLENS_ONCE_H
#define TOLLENS_ONCE_H

#include "once_state.h"
#include "tollens/context.h"

struct tol_once;

/* Creates one that reserves address_bytes; 0: a size that suits the device. TOL_UNSUPPORTED: the
 * driver or the device has no virtual memory management. */
tol_status tol_once_create(struct tol_context *context, uint64_t address_bytes,
                           struct tol_once **once);

/* Frees all memory. No call may be using it. NULL is a no-op. */
void tol_once_destroy(struct tol_once *once);

/* Allocates bytes, aligned to 256. TOL_INVALID_ARGUMENT: bytes is 0. TOL_OUT_OF_DEVICE_MEMORY. */
tol_status tol_once_allocate(struct tol_once *once, size_t bytes, CUdeviceptr *address);

enum tol_once_kind {
    TOL_ONCE_FOREIGN, /* not the begin of any block, now or before */
    TOL_ONCE_LIVE,
    TOL_ONCE_FREED,
};

/* What block begins at address. For small blocks freed long ago, every multiple of 256 counts as a
 * begin. */
enum tol_once_kind tol_once_kind_of(struct tol_once *once, CUdeviceptr address);

/* Whether an address is in the reservation. */
bool tol_once_has(const struct tol_once *once, CUdeviceptr address);

/* Frees the live block at address after waiting for the device's work so far. *kind is set to what
 * it was before: only a live block is freed, and of two threads that free it, one sees it live.
 * TOL_TIMEOUT: the work was not done in time; the block is still live. If copies hold the block,
 * the last one to release it ends it. */
tol_status tol_once_free(struct tol_once *once, CUdeviceptr address, enum tol_once_kind *kind);

/* Holds the live block that contains address, and gets its bounds. false: there is none. */
bool tol_once_hold(struct tol_once *once, CUdeviceptr address, CUdeviceptr *begin, size_t *bytes);
void tol_once_release(struct tol_once *once, CUdeviceptr begin);

void tol_once_stats(struct tol_once *once, struct tol_once_stats *stats);

#endif
