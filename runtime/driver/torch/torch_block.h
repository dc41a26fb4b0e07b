/*
 * From an address to its block. PyTorch frees by address, and the pool by handle.
 *
 * A table of 64 parts, each with a lock and open addressing. Thread-safe.
 */
#ifndef TOLLENS_TORCH_BLOCK_H
#define TOLLENS_TORCH_BLOCK_H

#include "tollens/pool.h"

struct torch_arena;
struct torch_device;
struct tol_span;
struct tol_stream;

/* Streams that a block was recorded for. */
struct torch_uses {
    size_t count, room;
    struct tol_stream *streams[];
};

struct torch_block {
    CUdeviceptr address; /* 0: none */
    size_t bytes;        /* as requested */
    struct torch_device *device;
    struct tol_stream *stream; /* that it was allocated for */
    struct tol_block block;    /* of the pool; none for a block of an arena */
    struct torch_arena *arena;
    struct tol_span *span;   /* in the arena */
    struct torch_uses *uses; /* NULL: none */
};

/* Adds a block. false: no host memory. */
bool torch_blocks_add(const struct torch_block *block);

/* Takes a block out, with its uses. false: no block begins at the address. */
bool torch_blocks_remove(CUdeviceptr address, struct torch_block *block);

/* Records a further stream for a block; the stream of its allocation is not recorded. find
 * translates the handle for the block's device. false: there is no such block, or no host
 * memory. */
bool torch_blocks_record(CUdeviceptr address, void *stream,
                         struct tol_stream *(*find)(struct torch_device *, CUstream));

/* Finds the block that contains an address: looks at all blocks if none begins there. */
bool torch_blocks_find(CUdeviceptr address, struct torch_block *block);

#endif
