/*
 * The blocks of attention's kernels, for hosts: threads, bytes of dynamic shared memory and tiles,
 * for heads of d elements. Each .cuh file computes the same sizes for itself. ATTENTION_TURN_ROWS
 * and KN_ATTENTION_COMBINE_THREADS are those of the operation that includes this. Internal.
 */
#ifndef KN_ATTENTION_SHAPES_H
#define KN_ATTENTION_SHAPES_H

/* attention_tile.cuh: rows of q, keys of a tile, and two tiles each of keys and values. A row is
 * padded unless the swizzle keeps it free of bank conflicts. */
#define ATTENTION_TENSOR_KEYS(d) ((d) == 64 ? 128 : (d) == 256 ? 32 : 64)
#define ATTENTION_TENSOR_ROWS(d) ((d) == 256 ? 64 : 128)
#define ATTENTION_TENSOR_PITCH(d) ((d) / 8 % 8 == 0 ? 2 * (d) : 2 * (d) + 16)
#define ATTENTION_TENSOR_BYTES(d)                                                                  \
    ((ATTENTION_TENSOR_ROWS(d) + 4 * ATTENTION_TENSOR_KEYS(d)) * ATTENTION_TENSOR_PITCH(d))

/* attention_hopper.cuh: rows of q, two tiles of keys and two of values, for one producer and two or
 * three consumers. */
#define ATTENTION_HOPPER_ROWS(d) ((d) == 64 ? 192 : 128)
#define ATTENTION_HOPPER_THREADS(d) ((d) == 64 ? 512 : 384)
#define ATTENTION_HOPPER_KEYS(d) ((d) == 256 ? 64 : 128)
#define ATTENTION_HOPPER_BYTES(d)                                                                  \
    ((ATTENTION_HOPPER_ROWS(d) + 4 * ATTENTION_HOPPER_KEYS(d)) * 2 * (d) + 2048)

/* attention_e4m3_hopper.cuh: besides, two tiles of values in fp16. */
#define ATTENTION_E4M3_BYTES(d)                                                                    \
    (ATTENTION_HOPPER_BYTES(d) + 2 * ((d) == 256 ? 2 * 64 : 128) * 128 + 1024)

/* attention_6_grouped.cu: 16 rows of q, and for each warp two tiles of 16 keys and values. */
#define ATTENTION_GROUPED_WARPS(d) ((d) == 256 ? 2 : 4)
#define ATTENTION_GROUPED_BYTES(d)                                                                 \
    ((16 + ATTENTION_GROUPED_WARPS(d) * 2 * 2 * 16) * ATTENTION_TENSOR_PITCH(d))

/* attention_2_tiled.cu: rows of q, of keys or values, and of weights. */
#define ATTENTION_TILED_ROWS(d) ((d) == 256 ? 32 : 64)
#define ATTENTION_TILED_BYTES(d)                                                                   \
    (ATTENTION_TILED_ROWS(d) * (2 * ((d) + 4) + ATTENTION_TILED_ROWS(d) + 4) * 4)

/* attention_backward_tensor.cuh: the rows that a block owns, and tiles of 32 rows that move. */
#define ATTENTION_GRADIENT_ROWS(d) ((d) == 64 ? 128 : 64)
#define ATTENTION_GRADIENT_BYTES(d)                                                                \
    ((2 * ATTENTION_GRADIENT_ROWS(d) + 4 * 32) * 2 * (d) + 2 * 32 * 8)

/* attention_backward_hopper.cuh: tiles of 64 rows, two for each consumer and two per stage, with
 * figures. attention_backward_ordered.cuh: besides, two tiles of gradients and one of floats. */
#define ATTENTION_GRADIENT_STAGES(d) ((d) == 64 ? 4 : 3)
#define ATTENTION_GRADIENT_TILES(d) ((4 + 2 * ATTENTION_GRADIENT_STAGES(d)) * 64 * 2 * (d))
#define ATTENTION_GRADIENT_HOPPER_BYTES(d)                                                         \
    (ATTENTION_GRADIENT_TILES(d) + ATTENTION_GRADIENT_STAGES(d) * 512 + 2048)
#define ATTENTION_ORDERED_BYTES(d)                                                                 \
    (ATTENTION_GRADIENT_TILES(d) + 2 * 128 * 128 + 64 * 4 * (d) +                                  \
     ATTENTION_GRADIENT_STAGES(d) * 1024)

/* The members of a row that the shape of a block decides. tile: the rows of q, or of q and keys,
 * that a block owns, 0 if a warp owns one; and the rows of q of a tile to which blocks add in
 * turn. */
#define ATTENTION_SHAPE(threads_, bytes, ...)                                                      \
    .threads = threads_, .shared_bytes = bytes, .tile = {__VA_ARGS__}
#define ATTENTION_SHAPE_WARPS(d) ATTENTION_SHAPE(32, 0, 0)
#define ATTENTION_SHAPE_DECODE(d) ATTENTION_SHAPE(128, 0, 0)
#define ATTENTION_SHAPE_COMBINE(d) ATTENTION_SHAPE(KN_ATTENTION_COMBINE_THREADS, 0, 0)
#define ATTENTION_SHAPE_GROUPED(d)                                                                 \
    ATTENTION_SHAPE(32 * ATTENTION_GROUPED_WARPS(d), ATTENTION_GROUPED_BYTES(d), 0)
#define ATTENTION_SHAPE_HOPPER(d)                                                                  \
    ATTENTION_SHAPE(ATTENTION_HOPPER_THREADS(d), ATTENTION_HOPPER_BYTES(d),                        \
                    ATTENTION_HOPPER_ROWS(d))
#define ATTENTION_SHAPE_E4M3(d)                                                                    \
    ATTENTION_SHAPE(ATTENTION_HOPPER_THREADS(d), ATTENTION_E4M3_BYTES(d), ATTENTION_HOPPER_ROWS(d))
#define ATTENTION_SHAPE_TENSOR(d)                                                                  \
    ATTENTION_SHAPE(128, ATTENTION_TENSOR_BYTES(d), ATTENTION_TENSOR_ROWS(d))
#define ATTENTION_SHAPE_TILED(d)                                                                   \
    ATTENTION_SHAPE(256, ATTENTION_TILED_BYTES(d), ATTENTION_TILED_ROWS(d))
#define ATTENTION_SHAPE_ORDERED(d)                                                                 \
    ATTENTION_SHAPE(384, ATTENTION_ORDERED_BYTES(d), 128, ATTENTION_TURN_ROWS)
#define ATTENTION_SHAPE_GRADIENT_HOPPER(d)                                                         \
    ATTENTION_SHAPE(384, ATTENTION_GRADIENT_HOPPER_BYTES(d), 128)
#define ATTENTION_SHAPE_GRADIENT_TENSOR(d)                                                         \
    ATTENTION_SHAPE(128, ATTENTION_GRADIENT_BYTES(d), ATTENTION_GRADIENT_ROWS(d))
#define ATTENTION_SHAPE_BEGIN(d) ATTENTION_SHAPE(256, 0, 0)
#define ATTENTION_SHAPE_FINISH(d) ATTENTION_SHAPE(4 * (d), 0, 0)

#endif
