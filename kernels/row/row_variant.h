/*
 * Row variants: which kernels serve a row, how a row is spread over threads and registers, and the
 * tables of softmax and norm. A row is *whole* if it begins at a multiple of 16 bytes and consists
 * of pieces of 16 bytes; there are faster kernels for whole rows.
 * Internal to the operations: not installed. Thread-safe; pure but for kn_row_shape_on and
 * kn_row_no_slices, which ask the driver.
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
    const char *no_slices; /* why blocks that stay do not serve, as a clause; NULL: they do */
};

struct kn_row_fit kn_row_fit_of(enum kn_type type, const struct kn_rows_place *in);

/* NULL if all rows of a place are whole, else why not, as a clause. A place without a buffer (begin
 * is 0) is whole: none of it is read. */
const char *kn_row_whole(const struct kn_rows_place *place);

/* What a kernel needs of rows: that they are whole; a driver whose PTX has st.async. */
enum { KN_ROW_ANY = 0, KN_ROW_WHOLE = 1, KN_ROW_SLICES = 2 };

/* As kn_variant.refuse, of a struct kn_row_fit: the row's types, needs, the most pieces of a row
 * that it takes (size; 0: any number) and the blocks of its clusters decide. */
const char *kn_row_refuses(const struct kn_variant *row, const void *fit);

/*
 * The reader of softmax_variants.def and norm_variants.def. A row of these tables is: name, entry
 * point, image, least compute capability, type, what it needs, threads of a row at first and at
 * most, rows of a block while a row has that first number of threads (0: one), pieces that a thread
 * holds in registers (0: none, the kernel takes rows of any length), and blocks per multiprocessor
 * of kernels with persistent blocks (0: a block is done after its rows).
 */
#define KN_ROW_VARIANT(operation, name_, entry_, image, capability, type, kind, threads_,          \
                       threads_max, abreast, pieces, blocks)                                       \
    {.name = #name_,                                                                               \
     .entry = #operation "_" #entry_,                                                              \
     .images = kn_images_##operation##_##image,                                                    \
     .compute_capability_min = capability,                                                         \
     .types = 1 << KN_##type,                                                                      \
     .needs = KN_ROW_##kind,                                                                       \
     .size = (size_t)(threads_max) * (pieces),                                                     \
     .refuse = kn_row_refuses,                                                                     \
     .threads = threads_,                                                                          \
     .tile = {abreast, pieces, blocks}},

/*
 * The reader of their rows for kernels that spread a row over the blocks of a cluster: name, entry
 * point, image, type, blocks of a cluster, pieces per thread. They take whole rows, have up to
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
 * The reader of their rows for persistent thread blocks that keep KN_ROW_SLICE_STAGES slices of
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
     .size = (size_t)KN_ROW_CLUSTER_THREADS * (blocks) * (pieces),                                 \
     .refuse = kn_row_refuses,                                                                     \
     .threads = KN_ROW_CLUSTER_THREADS,                                                            \
     .shared_bytes = KN_ROW_SLICE_BYTES,                                                           \
     .tile = {KN_ROW_SLICE_STAGES, pieces, KN_ROW_SLICE_BLOCKS},                                   \
     .cluster = blocks},

/*
 * The shape of a launch over so many rows, by the tile of the variant: {rows of a block, pieces a
 * thread, blocks a multiprocessor}, as above. For blocks that stay it has the shared memory, and
 * the first number of the tile is how many shares of a row that is.
 */
struct tol_launch_shape kn_row_shape(const struct kn_variant *variant, const struct kn_row_fit *fit,
                                     size_t rows, const struct tol_device *device);

/* The grid of clusters that stay where so many run at once: these, or fewer that have as many rows
 * each at most. 0: it is not known, and the shape stays. */
void kn_row_clusters(struct tol_launch_shape *shape, unsigned cluster, size_t rows, size_t at_once);

/* kn_row_shape, with as many clusters that stay as the driver says that run at once. */
struct tol_launch_shape kn_row_shape_on(struct kn_kernels *kernels,
                                        const struct kn_variant *variant,
                                        const struct kn_row_fit *fit, size_t rows);

#endif
