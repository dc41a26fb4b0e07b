/*
 * Once: device memory whose addresses are handed out once, so that a freed one is known for it.
 *
 * Addresses are cheap, memory is not: a block gets addresses that no block had before, and memory
 * that others may have had. Small blocks lie in frames, pages of memory that may be mapped at more
 * than one place: a window is one sweep of a cursor over a frame, and when the cursor has come to
 * the end, the frame is mapped anew for the next sweep, where the holes that frees have left are
 * handed out under the new window's addresses. A window is unmapped when none of its blocks lives.
 * Large blocks have memory and addresses of their own.
 *
 * The addresses are those of one reservation, many times the device's memory; when its end is
 * reached, those that were freed longest ago begin anew. Until then an address that was freed is
 * refused to copies and known to free. Internal: not installed. Thread-safe.
 *
 * Source: D-19; CUDA Driver API, "Virtual Memory Management": a handle may be mapped repeatedly.
 */
#ifndef TOLLENS_ONCE_H
#define TOLLENS_ONCE_H

#include "once_state.h"
#include "tollens/context.h"

struct tol_once;

/* address_bytes to reserve; 0: as many as is good for the device. TOL_UNSUPPORTED: the driver or
 * the device cannot map memory behind addresses. */
tol_status tol_once_create(struct tol_context *context, uint64_t address_bytes,
                           struct tol_once **once);

/* Gives back all memory. No call may be in progress. NULL is a no-op. */
void tol_once_destroy(struct tol_once *once);

/* bytes at a multiple of 256. TOL_INVALID_ARGUMENT: none. TOL_OUT_OF_DEVICE_MEMORY. */
tol_status tol_once_allocate(struct tol_once *once, size_t bytes, CUdeviceptr *address);

enum tol_once_kind {
    TOL_ONCE_FOREIGN, /* the begin of no block, now or before */
    TOL_ONCE_LIVE,
    TOL_ONCE_FREED,
};

/* What address is the begin of. Of small blocks long freed every multiple of 256 passes for one. */
enum tol_once_kind tol_once_kind_of(struct tol_once *once, CUdeviceptr address);

/* Whether an address is one of the reservation. */
bool tol_once_has(const struct tol_once *once, CUdeviceptr address);

/* Frees the live block at address when the device's work so far is done. kind is what it was
 * before; only a live block is freed, and one of two threads finds it so. TOL_TIMEOUT: the device
 * did not end, and the block lives. Copies that hold it go on: the last one ends it. */
tol_status tol_once_free(struct tol_once *once, CUdeviceptr address, enum tol_once_kind *kind);

/* Holds the live block that address lies in, and gives its bounds. false: there is none. */
bool tol_once_hold(struct tol_once *once, CUdeviceptr address, CUdeviceptr *begin, size_t *bytes);
void tol_once_release(struct tol_once *once, CUdeviceptr begin);

void tol_once_stats(struct tol_once *once, struct tol_once_stats *stats);

#endif
