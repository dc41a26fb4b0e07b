/*
 * Arenas: memory that belongs to a graph. A replay writes to all addresses that the graph was
 * captured with, including those of blocks that were freed during the capture. So these addresses
 * are reused only by the same pool of PyTorch, and released only when PyTorch releases that pool.
 *
 * An arena takes segments from the device's pool and divides them into blocks (pool/spans.h). A
 * freed piece can be reused by the stream that freed it, and by others once that stream is idle and
 * not capturing: an order by an event would have to become part of the graph.
 */
#ifndef TOLLENS_TORCH_ARENA_H
#define TOLLENS_TORCH_ARENA_H

#include "torch_device.h"

/* The arena for an allocation on a stream; NULL: the device's pool. The device must be entered,
 * here and below. */
struct torch_arena *torch_arena_for(struct torch_device *device, const struct tol_stream *stream);

/* Allocates a block from an arena: fills address, arena and span. */
tol_status torch_arena_take(struct torch_device *device, struct torch_arena *arena, size_t bytes,
                            struct tol_stream *stream, struct torch_block *block);

/* Frees a block of an arena. */
void torch_arena_give(struct torch_device *device, const struct torch_block *block);

/* Begins and ends the calling thread's use of the arena of that name, and takes one use back. */
void torch_arena_begin(struct torch_device *device, struct tol_torch_pool_id id);
void torch_arena_end(struct torch_device *device, struct tol_torch_pool_id id);
void torch_arena_release(struct torch_device *device, struct tol_torch_pool_id id);

/* Gives back the memory of released arenas without a block, if nothing is being captured and all
 * work ends. Returns the bytes. */
size_t torch_arena_reap(struct torch_device *device);

/* The bytes of all segments, and of the blocks in them. */
void torch_arena_sum(struct torch_device *device, size_t *held, size_t *used);

#endif
