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
                                     unsigned parameters, size_t rows) {
    const struct kn_variant ring = {.threads = KN_ROW_CLUSTER_THREADS,
                                    .shared_bytes = KN_ROW_RING_BYTES,
                                    .tile = {1, pieces, KN_ROW_RING_BLOCKS},
                                    .cluster = blocks};
    const struct kn_row_fit fit = {.pieces = row_pieces, .parameters = parameters};
    return kn_row_shape(&ring, &fit, rows, &h100);
}

static void expect(struct tol_launch_shape got, unsigned clusters, unsigned blocks,
                   unsigned threads, unsigned shared_bytes) {
    cr_assert(got.grid_x == clusters * blocks, "a grid of %u blocks", got.grid_x);
    cr_assert(got.block_x == threads, "%u threads", got.block_x);
    cr_assert(got.shared_bytes == shared_bytes, "%u bytes", got.shared_bytes);
}

/* 32,000 columns of bf16: as many bytes by two large blocks a multiprocessor as by eight small. */
Test(row_variant, clusters_fill_the_multiprocessors) {
    expect(shape(2, 4, 4000, 0, 1024), 128, 2, 512, 3 * 32000);
    expect(shape(4, 4, 4000, 0, 1024), 128, 4, 256, 3 * 16000);
    expect(shape(8, 4, 4000, 0, 1024), 128, 8, 128, 3 * 8000);
}

Test(row_variant, parameters_take_the_place_of_stages) {
    expect(shape(2, 4, 4000, 1, 1024), 128, 2, 512, 3 * 32000);
    expect(shape(2, 4, 4000, 2, 1024), 128, 2, 512, 3 * 32000);
}

/* 128,256 columns of fp32: a stage in half of a multiprocessor's memory; with weight and bias,
 * which stay, most of all of it. */
Test(row_variant, a_long_share_has_a_multiprocessor) {
    expect(shape(8, 8, 32064, 0, 256), 32, 8, 512, 64128);
    expect(shape(8, 8, 32064, 1, 256), 16, 8, 512, 3 * 64128);
    expect(shape(8, 8, 32064, 2, 256), 16, 8, 512, 3 * 64128);
}

/* 129 rows are two rounds, of 65 clusters as well as of 128. */
Test(row_variant, no_cluster_is_without_rows) {
    expect(shape(2, 4, 4000, 0, 7), 7, 2, 512, 3 * 32000);
    expect(shape(2, 4, 4000, 0, 129), 65, 2, 512, 3 * 32000);
}
