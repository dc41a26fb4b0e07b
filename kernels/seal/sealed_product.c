/*
 * The checks of a sealed product, how its rows are shared out, and its launch.
 */
#include "seal/sealed_product.h"

#include "core/check.h"
#include "quant/quant_block.h"
#include "seal/chacha.h"
#include "seal/sealed_product_arguments.h"

#include <limits.h>
#include <string.h>

KN_IMAGES(seal_2_product);

enum {
    THREADS_MAX = 512,
    THREADS_MIN = 128,
    GROUP_BLOCKS = 4,
    SCHEDULERS = 4, /* of a multiprocessor */
    SHARED_BYTES_ALWAYS = 48 << 10
};

#define ROW(rounds)                                                                                \
    {                                                                                              \
        .name = rounds, .entry = "seal_product_" rounds, .images = kn_images_seal_2_product,       \
        .compute_capability_min = 75                                                               \
    }

static const struct kn_variant rows_of[] = {ROW("20"), ROW("12"), ROW("8")};

size_t kn_sealed_row_bytes(size_t k) {
    const size_t bytes = k / 256 * sizeof(struct kn_block_q4_k);
    return (bytes + SEAL_UNIT_BYTES - 1) / SEAL_UNIT_BYTES * SEAL_UNIT_BYTES;
}

/* x as bytes and its scales, with a gap behind each 16 items of 64. */
static size_t shared_bytes(size_t k) {
    const size_t items = k / 64, spaced = items + items / 16;
    return 5 * 16 * spaced;
}

/* How many lanes share a row: so that the slowest scheduler has the least to do. What is equal is
 * shared by more, which hides latencies better. */
static uint32_t lanes_of(const struct kn_sealed_product *p, const struct tol_device *device) {
    const uint64_t groups = (p->k / 256 + GROUP_BLOCKS - 1) / GROUP_BLOCKS;
    const uint64_t schedulers = (uint64_t)device->multiprocessors * SCHEDULERS;
    uint64_t least = UINT64_MAX;
    uint32_t best = 1;
    for (uint32_t lanes = 1; lanes <= 32; lanes *= 2) {
        const uint64_t warps = (p->rows * lanes + 31) / 32;
        const uint64_t cost =
            (warps + schedulers - 1) / schedulers * ((groups + lanes - 1) / lanes);
        if (cost > least) continue;
        least = cost;
        best = lanes;
    }
    return best;
}

static tol_status check_numbers(const struct kn_sealed_product *p) {
    tol_status status = TOL_OK;
    TOL_CHECK(p->stream != NULL && kn_chacha_has(p->rounds), TOL_INVALID_ARGUMENT,
              "sealed product: the key stream is NULL, or has %u rounds; there are 20, 12 and 8",
              p->rounds);
    TOL_CHECK(p->k % 256 == 0, TOL_INVALID_ARGUMENT,
              "sealed product: k is %zu, no whole blocks of q4_k, which have 256", p->k);
    TOL_CHECK(p->rows <= INT_MAX && p->k <= SHARED_BYTES_ALWAYS &&
                  shared_bytes(p->k) <= SHARED_BYTES_ALWAYS,
              TOL_OVER_LIMIT, "sealed product: %zu rows and k of %zu; x as bytes must fit 48 KiB",
              p->rows, p->k);
    const uint64_t units = p->rows * (uint64_t)(kn_sealed_row_bytes(p->k) / SEAL_UNIT_BYTES);
    TOL_CHECK(units <= (uint64_t)UINT32_MAX + 1 - p->first_unit, TOL_OUT_OF_RANGE,
              "sealed product: %llu units from %u on exceed the counter, which has 32 bits",
              (unsigned long long)units, p->first_unit);
out:
    return status;
}

static tol_status check_place(const char *what, struct kn_place place, size_t bytes,
                              unsigned alignment) {
    tol_status status = TOL_OK;
    TOL_CHECK(bytes == 0 || (place.address != 0 && place.address % alignment == 0),
              TOL_INVALID_ARGUMENT,
              "sealed product: %s at %#llx is NULL or not aligned to %u bytes", what,
              (unsigned long long)place.address, alignment);
    TOL_CHECK(bytes <= place.bytes, TOL_OUT_OF_RANGE,
              "sealed product: %s needs %zu bytes, and has %zu", what, bytes, place.bytes);
out:
    return status;
}

static tol_status check_places(const struct kn_sealed_product *p) {
    tol_status status = TOL_OK;
    const size_t weights = p->rows * kn_sealed_row_bytes(p->k);
    const size_t x = p->k * sizeof(float), y = p->rows * sizeof(float);
    TOL_TRY(check_place("W", p->weights, weights, 16));
    TOL_TRY(check_place("x", p->x, x, 16));
    TOL_TRY(check_place("y", p->y, y, sizeof(float)));
    TOL_CHECK(!kn_place_overlap(p->y, y, p->weights, weights) &&
                  !kn_place_overlap(p->y, y, p->x, x),
              TOL_INVALID_ARGUMENT, "sealed product: y overlaps what is read");
out:
    return status;
}

static tol_status launch(struct kn_kernels *kernels, struct tol_stream *stream,
                         const struct kn_sealed_product *p) {
    tol_status status = TOL_OK;
    const struct tol_kernel *kernel = NULL;
    const struct tol_device *device = tol_context_device(kn_kernels_context(kernels));
    struct sealed_product_arguments arguments = {
        .weights = p->weights.address,
        .x = p->x.address,
        .y = p->y.address,
        .rows = (uint32_t)p->rows,
        .k = (uint32_t)p->k,
        .blocks = (uint32_t)(p->k / 256),
        .row_units = (uint32_t)(kn_sealed_row_bytes(p->k) / SEAL_UNIT_BYTES),
        .row_lanes = lanes_of(p, device),
        .first_unit = p->first_unit,
        .stream = *p->stream};
    const unsigned bytes = sizeof arguments;
    void *value = &arguments;
    const uint64_t threads = (uint64_t)p->rows * arguments.row_lanes;
    unsigned block = THREADS_MAX;
    while (block > THREADS_MIN && threads / block < (unsigned)device->multiprocessors) block /= 2;
    const struct tol_launch_shape shape = {
        (unsigned)((threads + block - 1) / block), 1, 1, block, 1, 1, (unsigned)shared_bytes(p->k)};
    const int width = p->rounds == 20 ? 0 : p->rounds == 12 ? 1 : 2;
    TOL_TRY(kn_kernels_find(kernels, &rows_of[width], &kernel));
    status = tol_launch(stream, kernel, shape, (struct tol_arguments){1, &value, &bytes});
out:
    explicit_bzero(&arguments, sizeof arguments);
    return status;
}

tol_status kn_sealed_product(struct kn_kernels *kernels, struct tol_stream *stream,
                             const struct kn_sealed_product *problem) {
    tol_status status = TOL_OK;
    TOL_CHECK(kernels != NULL && stream != NULL && problem != NULL, TOL_INVALID_ARGUMENT,
              "sealed product needs kernels, a stream and a problem");
    if (problem->rows == 0) return TOL_OK;
    TOL_TRY(check_numbers(problem));
    TOL_TRY(check_places(problem));
    status = launch(kernels, stream, problem);
out:
    return status;
}
