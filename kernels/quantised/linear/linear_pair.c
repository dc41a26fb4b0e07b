/*
 * The host's side of two products of the same x.
 */
#include "quantised/linear/linear_pair.h"

#include "choose/struct_launch.h"
#include "core/check.h"
#include "quantised/formats/linear_arguments.h"
#include "quantised/linear/linear_product.h"
#include "quantised/product/product_check.h"
#include "quantised/product/product_launch.h"

#include <assert.h>

enum { TILE = 16, BLOCKS_OF_ONE = 2, CAPABILITY = 90 };

KN_IMAGES(linear_7_stay);

#define PAIR(entry_, stride, other)                                                                \
    {                                                                                              \
        .name = "stay", .entry = entry_, .images = kn_images_linear_7_stay,                        \
        .compute_capability_min = CAPABILITY, .pdl = true, .threads = 32 * LINEAR_BYTES_WARPS,     \
        .shared_bytes = LINEAR_STAY_SHARED(stride) > LINEAR_STAY_SHARED(other)                     \
                            ? LINEAR_STAY_SHARED(stride)                                           \
                            : LINEAR_STAY_SHARED(other)                                            \
    }
static const struct kn_variant pairs[KN_WEIGHT_FORMATS] = {
    [KN_WEIGHT_Q4_K] = PAIR("linear_pair_q4_k_q6_k", LINEAR_STRIDE_Q4_K, LINEAR_STRIDE_Q6_K),
    [KN_WEIGHT_Q5_K] = PAIR("linear_pair_q5_k_q6_k", LINEAR_STRIDE_Q5_K, LINEAR_STRIDE_Q6_K)};

static bool pair_is_plain(const struct kn_linear *x) {
    return kn_wish_is_open((struct kn_wish){.name = x->variant}) && x->gate.address == 0 &&
           x->is_rounded && x->rows > 0 && x->rows % TILE == 0;
}

static bool pair_serves(const struct tol_device *device, const struct kn_linear *first,
                        const struct kn_linear *second) {
    return device->compute_capability >= CAPABILITY && first->columns > 0 &&
           first->columns <= LINEAR_STAY_COLUMNS && pair_is_plain(first) && pair_is_plain(second) &&
           pairs[first->format].name != NULL && second->format == KN_WEIGHT_Q6_K;
}

/* The blocks of the first product, so that the block that reads most reads least. */
static size_t pair_share(const struct kn_linear *first, const struct kn_linear *second,
                         size_t blocks) {
    const size_t tiles[2] = {first->rows / TILE, second->rows / TILE};
    const size_t bytes[2] = {kn_weight_row_bytes(first->format, first->k),
                             kn_weight_row_bytes(second->format, second->k)};
    size_t best = 1, least = SIZE_MAX;
    for (size_t own = 1; own < blocks; own++) {
        const size_t rest = blocks - own;
        const size_t a = (tiles[0] + own - 1) / own * bytes[0];
        const size_t b = (tiles[1] + rest - 1) / rest * bytes[1];
        if ((a > b ? a : b) < least) least = a > b ? a : b, best = own;
    }
    assert(best > 0 && best < blocks); /* either product has a block */
    return best;
}

static tol_status linear_pair_prepare(const struct kn_linear *x,
                                      struct linear_bytes_arguments *arguments) {
    tol_status status = TOL_OK;
    struct kn_product product;
    TOL_TRY(kn_linear_product(x, &product));
    TOL_TRY(kn_product_check(&product));
    status = kn_product_bytes_arguments(&product, arguments);
out:
    return status;
}

tol_status kn_linear_pair(struct kn_kernels *kernels, struct tol_stream *stream,
                          const struct kn_linear *first, const struct kn_linear *second) {
    tol_status status = TOL_OK;
    TOL_CHECK(kernels != NULL && stream != NULL && first != NULL && second != NULL,
              TOL_INVALID_ARGUMENT, "linear pair needs kernels, a stream and two problems");
    TOL_CHECK(first->k == second->k && first->columns == second->columns &&
                  first->is_rounded == second->is_rounded &&
                  (first->is_rounded ? first->workspace.address == second->workspace.address
                                     : first->x.address == second->x.address),
              TOL_INVALID_ARGUMENT, "linear pair: the two do not read the same columns");
    const struct tol_device *device = tol_context_device(kn_kernels_context(kernels));
    TOL_CHECK((unsigned)first->format < KN_WEIGHT_FORMATS, TOL_INVALID_ARGUMENT,
              "there is no format %d of weights", (int)first->format);
    if (!pair_serves(device, first, second)) {
        TOL_TRY(kn_linear(kernels, stream, first));
        return kn_linear(kernels, stream, second);
    }
    struct linear_pair_arguments arguments = {0};
    TOL_TRY(linear_pair_prepare(first, &arguments.of[0]));
    TOL_TRY(linear_pair_prepare(second, &arguments.of[1]));
    const size_t tiles = (first->rows + second->rows) / TILE;
    size_t blocks = BLOCKS_OF_ONE * (size_t)device->multiprocessors;
    if (blocks > tiles) blocks = tiles;
    arguments.first_blocks = (uint32_t)pair_share(first, second, blocks);
    const struct kn_variant *variant = &pairs[first->format];
    status = kn_struct_launch(kernels, stream, variant,
                              (struct tol_launch_shape){(unsigned)blocks, 1, 1, variant->threads, 1,
                                                        1, variant->shared_bytes},
                              &arguments, sizeof arguments);
out:
    return status;
}
