/*
 * Which kernels serve a row, and how many threads and blocks they get.
 */
#include "row/row_variant.h"

#include <assert.h>

enum { WARP = 32, PIECE_BYTES = 16, THREADS_MAX = 1024 };

struct kn_row_fit kn_row_fit_of(enum kn_type type, const struct kn_rows_place *in) {
    const size_t bytes = in->columns * in->element_bytes;
    const bool aligned = in->begin % PIECE_BYTES == 0 &&
                         (in->rows == 1 || in->stride * in->element_bytes % PIECE_BYTES == 0);
    const size_t before = aligned ? 0 : PIECE_BYTES - in->element_bytes;
    return (struct kn_row_fit){.type = type,
                               .rows = in->rows,
                               .pieces = (before + bytes + PIECE_BYTES - 1) / PIECE_BYTES,
                               .row_bytes = bytes,
                               .not_whole = "the operation has no kernels for whole rows"};
}

const char *kn_row_whole(const struct kn_rows_place *place) {
    if (place->begin == 0) return NULL;
    if (place->begin % PIECE_BYTES != 0) return "a row begins at no multiple of 16 bytes";
    if (place->rows > 1 && place->stride * place->element_bytes % PIECE_BYTES != 0) {
        return "a row begins at no multiple of 16 bytes";
    }
    return place->columns * place->element_bytes % PIECE_BYTES == 0
               ? NULL
               : "a row has no multiple of 16 bytes";
}

const char *kn_row_refuses(const struct kn_variant *row, const void *of) {
    const struct kn_row_fit *fit = of;
    if ((row->needs & KN_ROW_SLICES) != 0 && fit->no_slices != NULL) return fit->no_slices;
    if (row->cluster != 0 && fit->rows > INT32_MAX / row->cluster) return "there are too many rows";
    const char *why = kn_types_refuse(row->types, fit->type);
    if (why != NULL) return why;
    if ((row->needs & KN_ROW_WHOLE) != 0 && fit->not_whole != NULL) return fit->not_whole;
    if (row->size != 0 && fit->pieces > row->size) return "the registers do not hold a row";
    return NULL;
}

const char *kn_row_no_slices(const struct kn_kernels *kernels) {
    enum { CUDA_12_1 = 12010 };
    const struct tol_driver *driver = tol_context_driver(kn_kernels_context(kernels));
    return tol_driver_version(driver) < CUDA_12_1 ? "the driver is older than CUDA 12.1" : NULL;
}

/* A cluster per row; each block has a part of the pieces. */
static struct tol_launch_shape shape_of_clusters(const struct kn_variant *variant, size_t pieces,
                                                 size_t rows) {
    const size_t share = (pieces + variant->cluster - 1) / variant->cluster;
    const size_t threads = (share + variant->tile[1] - 1) / variant->tile[1];
    return (struct tol_launch_shape){.grid_x = (unsigned)rows * variant->cluster,
                                     .grid_y = 1,
                                     .grid_z = 1,
                                     .block_x = (unsigned)(threads + WARP - 1) / WARP * WARP,
                                     .block_y = 1,
                                     .block_z = 1};
}

/*
 * The number of clusters that run at once if a multiprocessor holds `abreast` blocks. All blocks of
 * a cluster run in one GPC. The driver does not tell how many multiprocessors each GPC has; on an
 * H100 and an H200 it is 18 at most, and differs from one device to the next. This assumes GPCs of
 * one size. If one cluster too many is launched, it runs after all others, alone: kn_row_shape_on
 * asks the driver.
 */
static size_t clusters_at_once(const struct tol_device *device, unsigned abreast,
                               unsigned cluster) {
    enum { GPC_MULTIPROCESSORS = 18 };
    const unsigned count = (unsigned)device->multiprocessors;
    const unsigned gpcs = (count + GPC_MULTIPROCESSORS - 1) / GPC_MULTIPROCESSORS;
    const size_t clusters = (size_t)gpcs * (count * abreast / gpcs / cluster);
    return clusters > 0 ? clusters : 1;
}

void kn_row_clusters(struct tol_launch_shape *shape, unsigned cluster, size_t rows,
                     size_t at_once) {
    if (at_once == 0) return;
    const size_t rounds = (rows + at_once - 1) / at_once;
    shape->grid_x = (unsigned)((rows + rounds - 1) / rounds) * cluster;
}

/* The clusters that run at once, or fewer if no cluster then has more rows. Shared memory for
 * slices limits the blocks of a multiprocessor. */
static struct tol_launch_shape shape_of_slices(const struct kn_variant *variant, size_t pieces,
                                               size_t rows, const struct tol_device *device) {
    enum { STATIC_BYTES = 2048, THREADS_AT_ONCE = 1024 }; /* with 64 registers each */
    struct tol_launch_shape shape = shape_of_clusters(variant, pieces, 1);
    const size_t share = (pieces + variant->cluster - 1) / variant->cluster * PIECE_BYTES;
    unsigned abreast = THREADS_AT_ONCE / shape.block_x;
    if (abreast > variant->tile[2]) abreast = variant->tile[2];
    size_t shares = 0;
    for (abreast++; shares < variant->tile[0] && abreast > 1;) {
        abreast--;
        size_t room = (size_t)device->shared_bytes_per_multiprocessor / abreast - STATIC_BYTES;
        if (room > variant->shared_bytes) room = variant->shared_bytes;
        shares = room / share;
    }
    if (shares > variant->tile[0]) shares = variant->tile[0];
    kn_row_clusters(&shape, variant->cluster, rows,
                    clusters_at_once(device, abreast, variant->cluster));
    shape.shared_bytes = (unsigned)(shares * share);
    assert(shares > 0 && shape.grid_x > 0 && shape.shared_bytes <= variant->shared_bytes);
    return shape;
}

struct tol_launch_shape kn_row_shape(const struct kn_variant *variant, const struct kn_row_fit *fit,
                                     size_t rows, const struct tol_device *device) {
    unsigned threads = variant->threads, abreast = variant->tile[0];
    const unsigned pieces = variant->tile[1];
    if (variant->cluster != 0) {
        return variant->tile[2] != 0 ? shape_of_slices(variant, fit->pieces, rows, device)
                                     : shape_of_clusters(variant, fit->pieces, rows);
    }
    if (pieces != 0 && fit->pieces > (size_t)WARP * pieces) {
        threads = (unsigned)((fit->pieces + pieces - 1) / pieces + WARP - 1) / WARP * WARP;
        abreast = 1;
    }
    if (abreast == 0) abreast = 1;
    const unsigned blocks = (unsigned)((rows + abreast - 1) / abreast);
    assert(threads % WARP == 0 && threads * abreast <= THREADS_MAX && (blocks > 0 || rows == 0));
    return (struct tol_launch_shape){.grid_x = blocks,
                                     .grid_y = 1,
                                     .grid_z = 1,
                                     .block_x = threads,
                                     .block_y = abreast,
                                     .block_z = 1};
}

struct tol_launch_shape kn_row_shape_on(struct kn_kernels *kernels,
                                        const struct kn_variant *variant,
                                        const struct kn_row_fit *fit, size_t rows) {
    const struct tol_device *device = tol_context_device(kn_kernels_context(kernels));
    struct tol_launch_shape shape = kn_row_shape(variant, fit, rows, device);
    if (variant->cluster > 1 && variant->tile[2] >= KN_ROW_SLICE_BLOCKS) {
        kn_row_clusters(&shape, variant->cluster, rows,
                        kn_kernels_clusters(kernels, variant, &shape));
    }
    return shape;
}
