/*
 * Row variants: which kernels take a row, how a row is spread over threads and registers, and
 * the lines of the tables of softmax and norm. A row is *whole* if it begins at a multiple of 16
 * bytes and consists of pieces of 16 bytes; there are faster kernels for whole rows.
 * Internal to the operations: not installed. Thread-safe; pure but for kn_row_shape_on and
 * kn_row_no_slices, which read the driver.
 */
#ifndef KN_ROW_VARIANT_H
#define KN_ROW_VARIANT_H

#include "row/row_place.h"

/* A problem as a variant of softmax, norm, rope, pair, gather or argmax sees it. */
struct kn_row_fit {
    enum kn_type type;
    size_t rows;
    size_t pieces;         /* of 16 bytes that a row may touch */
    size_t row_bytes;      /* of its elements */
    const char *not_whole; /* why a row is not whole, as a clause; NULL: all rows are whole */
    const char *no_slices; /* why persistent blocks do not serve, as a clause; NULL: they do */
};

struct kn_row_fit kn_row_fit_of(enum kn_type type, const struct kn_rows_place *in);

/* NULL if all rows of a place are whole, else why not, as a clause. A place without a buffer (begin
 * is 0) is whole: none of it is read. */
const char *kn_row_whole(const struct kn_rows_place *place);

/* What a kernel needs: whole rows; a driver whose PTX has st.async; shared memory at its launch for
 * weight and bias, which it requests before the row. */
enum { KN_ROW_ANY = 0, KN_ROW_WHOLE = 1, KN_ROW_SLICES = 2, KN_ROW_AHEAD = 4 };

/* As kn_variant.refuse, of a struct kn_row_fit: the row's types, needs, the most pieces of a row
 * that it takes (size; 0: any number) and the blocks of its clusters decide. */
const char *kn_row_refuses(const struct kn_variant *row, const void *fit);

/*
 * Rows of the tables of softmax and norm: the operation, name, entry point, image, least compute
 * capability, type, what it needs, threads of a row at first and at most, rows of a block while a
 * row has that first number of threads (0: one), and pieces that a thread holds in registers (0:
 * none, the kernel takes rows of any length).
 */
#define KN_ROW_VARIANT(operation, name_, entry_, image, capability, type, kind, threads_,          \
                       threads_max, abreast, pieces)                                               \
    {.name = #name_,                                                                               \
     .entry = #operation "_" #entry_,                                                              \
     .images = kn_images_##operation##_##image,                                                    \
     .compute_capability_min = capability,                                                         \
     .types = 1 << KN_##type,                                                                      \
     .needs = KN_ROW_##kind,                                                                       \
     .size = (size_t)(threads_max) * (pieces),                                                     \
     .refuse = kn_row_refuses,                                                                     \
     .threads = threads_,                                                                          \
     .tile = {abreast, pieces, 0}},

/*
 * Rows for kernels that spread a row of a matrix over the blocks of a cluster: name, entry point,
 * image, type, blocks of a cluster, pieces per thread. They take whole rows, have up to
 * KN_ROW_CLUSTER_THREADS per block, and need compute capability 9.0.
 */
enum { KN_ROW_CLUSTER_THREADS = 512 };
#define KN_ROW_CLUSTER_VARIANT(operation, name_, entry_, image, type, blocks, pieces)              \
    {.name = #name_,                                                                               \
     .entry = #operation "_" #entry_,                                                              \
     .images = kn_images_##operation##_##image,                                                    \
     .compute_capability_min = 90,                                                                 \
     .types = 1 << KN_##type,                                                                      \
     .needs = KN_ROW_WHOLE,                                                                        \
     .size = (size_t)KN_ROW_CLUSTER_THREADS * (blocks) * (pieces),                                 \
     .refuse = kn_row_refuses,                                                                     \
     .threads = KN_ROW_CLUSTER_THREADS,                                                            \
     .tile = {1, pieces, 0},                                                                       \
     .cluster = blocks},

/*
 * Rows for persistent thread blocks that keep KN_ROW_SLICE_STAGES slices of
 * rows in shared memory, alone or in clusters (row_slices.cuh). They have up to KN_ROW_SLICE_BYTES
 * of it per block. They refuse what clusters refuse, and everything where fit->no_slices says why.
 * kn_row_no_slices says it where the driver is older than CUDA 12.1, whose PTX has st.async.
 */
enum { KN_ROW_SLICE_STAGES = 3, KN_ROW_SLICE_BYTES = 224 << 10, KN_ROW_SLICE_BLOCKS = 8 };
const char *kn_row_no_slices(const struct kn_kernels *kernels);
#define KN_ROW_SLICES_VARIANT(operation, name_, entry_, image, type, blocks, pieces)               \
    {.name = #name_,                                                                               \
     .entry = #operation "_" #entry_,                                                              \
     .images = kn_images_##operation##_##image,                                                    \
     .compute_capability_min = 90,                                                                 \
     .types = 1 << KN_##type,                                                                      \
     .needs = KN_ROW_WHOLE | KN_ROW_SLICES,                                                        \
     .pdl = true,                                                                                  \
     .size = (size_t)KN_ROW_CLUSTER_THREADS * (blocks) * (pieces),                                 \
     .refuse = kn_row_refuses,                                                                     \
     .threads = KN_ROW_CLUSTER_THREADS,                                                            \
     .shared_bytes = KN_ROW_SLICE_BYTES,                                                           \
     .tile = {KN_ROW_SLICE_STAGES, pieces, KN_ROW_SLICE_BLOCKS},                                   \
     .cluster = blocks},

/* ---- lines of the tables: a row for each type or number of pieces ---------------------------- */

/* clang-format off */
/* A row of a table for each type: ROW(f16, F16, ...). */
#define KN_ROW_EACH(ROW, ...)                                                                      \
    ROW(f32, F32, __VA_ARGS__) ROW(f16, F16, __VA_ARGS__) ROW(bf16, BF16, __VA_ARGS__)
/* Whole rows of 16 bits, held by a warp with one, two or four pieces per thread, or by a block;
 * what else the kernels need, and whether they are launched by PDL. */
#define KN_ROW_PIECE(operation, name_, entry_, image, capability, type, more, is_early, pieces,    \
                     threads_max)                                                                  \
    {.name = #name_, .entry = #operation "_" #entry_, .images = kn_images_##operation##_##image,   \
     .compute_capability_min = capability, .types = 1 << KN_##type,                                \
     .needs = KN_ROW_WHOLE | (more), .size = (size_t)(threads_max) * (pieces),                     \
     .refuse = kn_row_refuses, .threads = 32, .tile = {4, pieces, 0}, .pdl = is_early},
#define KN_ROW_PIECES(operation, name, entry, image, capability, more, is_early)                   \
    KN_ROW_PIECE(operation, name, entry##_f16_1, image, capability, F16, more, is_early, 1, 32)    \
    KN_ROW_PIECE(operation, name, entry##_f16_2, image, capability, F16, more, is_early, 2, 32)    \
    KN_ROW_PIECE(operation, name, entry##_f16_4, image, capability, F16, more, is_early, 4, 256)   \
    KN_ROW_PIECE(operation, name, entry##_bf16_1, image, capability, BF16, more, is_early, 1, 32)  \
    KN_ROW_PIECE(operation, name, entry##_bf16_2, image, capability, BF16, more, is_early, 2, 32)  \
    KN_ROW_PIECE(operation, name, entry##_bf16_4, image, capability, BF16, more, is_early, 4, 256)
/* Any rows, held by a warp, and of floats by a block. */
#define KN_ROW_SHORT(operation, name, image)                                                       \
    KN_ROW_VARIANT(operation, name, f32_1, image, 75, F32, ANY, 32, 32, 4, 1)                      \
    KN_ROW_VARIANT(operation, name, f32_2, image, 75, F32, ANY, 32, 32, 4, 2)                      \
    KN_ROW_VARIANT(operation, name, f32_8, image, 75, F32, ANY, 32, 32, 4, 8)                      \
    KN_ROW_VARIANT(operation, name, f32_4, image, 75, F32, ANY, 32, 512, 4, 4)                     \
    KN_ROW_VARIANT(operation, name, f16_1, image, 75, F16, ANY, 32, 32, 4, 1)                      \
    KN_ROW_VARIANT(operation, name, f16_2, image, 75, F16, ANY, 32, 32, 4, 2)                      \
    KN_ROW_VARIANT(operation, name, bf16_1, image, 75, BF16, ANY, 32, 32, 4, 1)                    \
    KN_ROW_VARIANT(operation, name, bf16_2, image, 75, BF16, ANY, 32, 32, 4, 2)
/* Any rows, held by a block of up to `threads`; of floats, whole rows alone. */
#define KN_ROW_LONG_HALVES(operation, name, image, threads)                                        \
    KN_ROW_VARIANT(operation, name, f16_4, image, 75, F16, ANY, 32, threads, 4, 4)                 \
    KN_ROW_VARIANT(operation, name, bf16_4, image, 75, BF16, ANY, 32, threads, 4, 4)
#define KN_ROW_LONG(operation, name, image, threads)                                               \
    KN_ROW_VARIANT(operation, name, f32_4, image, 75, F32, ANY, 32, threads, 4, 4)                 \
    KN_ROW_LONG_HALVES(operation, name, image, threads)
#define KN_ROW_LONG_F32(operation, name, entry, image, threads)                                    \
    KN_ROW_VARIANT(operation, name, entry##_f32_8, image, 75, F32, WHOLE, 32, threads, 4, 8)
/* Rows of any length, by a number of threads each. */
#define KN_ROW_OF_ANY(type, TYPE, operation, name, entry, image, threads, abreast)                 \
    KN_ROW_VARIANT(operation, name, entry##_##type, image, 75, TYPE, ANY, threads, threads,        \
                   abreast, 0)
#define KN_ROW_EVERY(...) KN_ROW_EACH(KN_ROW_OF_ANY, __VA_ARGS__)
/* Slices, and clusters. */
#define KN_ROW_SLICES_F32(operation, name, entry, image, blocks)                                   \
    KN_ROW_SLICES_VARIANT(operation, name, entry##_f32_##blocks, image, F32, blocks, 8)
#define KN_ROW_SLICES_HALVES(operation, name, entry, image, blocks)                                \
    KN_ROW_SLICES_VARIANT(operation, name, entry##_f16_##blocks, image, F16, blocks, 8)            \
    KN_ROW_SLICES_VARIANT(operation, name, entry##_bf16_##blocks, image, BF16, blocks, 8)
#define KN_ROW_SLICES(operation, name, entry, image, blocks)                                       \
    KN_ROW_SLICES_F32(operation, name, entry, image, blocks)                                       \
    KN_ROW_SLICES_HALVES(operation, name, entry, image, blocks)
#define KN_ROW_CLUSTERS_HALVES(operation, name, image, blocks)                                     \
    KN_ROW_CLUSTER_VARIANT(operation, name, cluster_f16_##blocks, image, F16, blocks, 4)           \
    KN_ROW_CLUSTER_VARIANT(operation, name, cluster_bf16_##blocks, image, BF16, blocks, 4)
#define KN_ROW_CLUSTERS(operation, name, image, blocks)                                            \
    KN_ROW_CLUSTER_VARIANT(operation, name, cluster_f32_##blocks, image, F32, blocks, 8)           \
    KN_ROW_CLUSTERS_HALVES(operation, name, image, blocks)
/* clang-format on */

/*
 * The shape of a launch over a number of rows, by the tile of the variant: {rows of a block, pieces
 * per thread, blocks per multiprocessor}, as above. For persistent thread blocks it includes the
 * dynamic shared memory, and the first number of the tile is how many slices that holds.
 */
struct tol_launch_shape kn_row_shape(const struct kn_variant *variant, const struct kn_row_fit *fit,
                                     size_t rows, const struct tol_device *device);

/* Limits the grid to the clusters that run at once, or to fewer, none of which then has more rows.
 * 0: their number is not known, and the shape stays. */
void kn_row_clusters(struct tol_launch_shape *shape, unsigned cluster, size_t rows, size_t at_once);

/* kn_row_shape, with the number of persistent clusters that run at once, which the driver says. */
struct tol_launch_shape kn_row_shape_on(struct kn_kernels *kernels,
                                        const struct kn_variant *variant,
                                        const struct kn_row_fit *fit, size_t rows);

#endif
