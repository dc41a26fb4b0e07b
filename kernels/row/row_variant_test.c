/*
 * Row variants: the shapes of clusters that stay, for an H100.
 */
#include "row/row_variant.h"

#include <criterion/criterion.h>

TestSuite(row_variant);

static const struct tol_device h100 = {.multiprocessors = 132,
                                       .shared_bytes_per_multiprocessor = 228 << 10,
                                       .shared_bytes_per_block_optin = 227 << 10};

static struct tol_launch_shape shape(unsigned blocks, unsigned pieces, size_t row_pieces,
                                     size_t rows) {
    const struct kn_variant slices = {.threads = KN_ROW_CLUSTER_THREADS,
                                      .shared_bytes = KN_ROW_SLICE_BYTES,
                                      .tile = {KN_ROW_SLICE_STAGES, pieces, KN_ROW_SLICE_BLOCKS},
                                      .cluster = blocks};
    const struct kn_row_fit fit = {.pieces = row_pieces};
    return kn_row_shape(&slices, &fit, rows, &h100);
}

static void expect(struct tol_launch_shape got, unsigned clusters, unsigned blocks,
                   unsigned threads, unsigned shared_bytes) {
    cr_assert(got.grid_x == clusters * blocks, "a grid of %u blocks", got.grid_x);
    cr_assert(got.block_x == threads, "%u threads", got.block_x);
    cr_assert(got.shared_bytes == shared_bytes, "%u bytes", got.shared_bytes);
}

/* 32,000 columns of bf16: as many bytes by two large blocks a multiprocessor as by eight small. */
Test(row_variant, clusters_fill_the_multiprocessors) {
    expect(shape(2, 4, 4000, 1024), 128, 2, 512, 3 * 32000);
    expect(shape(4, 4, 4000, 1024), 128, 4, 256, 3 * 16000);
    expect(shape(8, 4, 4000, 1024), 128, 8, 128, 3 * 8000);
}

/* 129 rows are two rounds, of 65 clusters as well as of 128. */
Test(row_variant, no_cluster_is_without_rows) {
    expect(shape(2, 4, 4000, 7), 7, 2, 512, 3 * 32000);
    expect(shape(2, 4, 4000, 129), 65, 2, 512, 3 * 32000);
}

/* Slices have three shares, and a multiprocessor has as many blocks as have memory. */
Test(row_variant, slices_have_three_shares) {
    expect(shape(1, 8, 4000, 1024), 128, 1, 512, 3 * 64000);
    expect(shape(4, 8, 16032, 256), 32, 4, 512, 3 * 64128);
    expect(shape(8, 8, 32064, 256), 16, 8, 512, 3 * 64128);
    expect(shape(2, 8, 4000, 1024), 128, 2, 256, 3 * 32000);
}

/* An H100 whose parts have room for 14 clusters of eight: 19 rounds of 256 rows. */
Test(row_variant, clusters_are_as_many_as_run_at_once) {
    struct tol_launch_shape got = shape(8, 8, 32064, 256);
    kn_row_clusters(&got, 8, 256, 14);
    expect(got, 14, 8, 512, 3 * 64128);
    kn_row_clusters(&got, 8, 256, 0);
    expect(got, 14, 8, 512, 3 * 64128);
    kn_row_clusters(&got, 8, 5, 14);
    expect(got, 5, 8, 512, 3 * 64128);
}
