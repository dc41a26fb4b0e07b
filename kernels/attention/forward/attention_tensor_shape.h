/*
 * The shape of a block of attention_tensor.cuh, for hosts: rows of q, keys of a tile, and bytes of
 * shared memory for the rows and two tiles each of keys and values. As attention_shared_bytes of
 * attention_tile.cuh, for heads of d elements.
 */
#ifndef ATTENTION_TENSOR_SHAPE_H
#define ATTENTION_TENSOR_SHAPE_H

#define ATTENTION_TENSOR_KEYS(d) ((d) == 64 ? 128 : (d) == 256 ? 32 : 64)
#define ATTENTION_TENSOR_ROWS(d) ((d) == 256 ? 64 : 128)
/* The bytes from row to row. */
#define ATTENTION_TENSOR_PITCH(d) ((d) / 8 % 8 == 0 ? 2 * (d) : 2 * (d) + 16)
#define ATTENTION_TENSOR_BYTES(d)                                                                  \
    ((ATTENTION_TENSOR_ROWS(d) + 4 * ATTENTION_TENSOR_KEYS(d)) * ATTENTION_TENSOR_PITCH(d))

#endif
