/*
 * The checks of a sealed product, how its rows are shared out, and its launch.
 */
#include "seal/sealed_product.h"

#include "core/check.h"
#include "quantised/formats/quant_block.h"
#include "seal/chacha.h"
#include "seal/sealed_product_arguments.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <string.h>

KN_IMAGES(seal_2_product);
KN_IMAGES(seal_3_early);

enum {
    WARPS_MAX = 16, /* of a block of threads */
    LANES = 32,
    GROUP_BLOCKS = 4,
    SCHEDULERS = 4, /* of a multiprocessor */
    SHARED_BYTES_ALWAYS = 48 << 10
};

size_t kn_sealed_row_bytes(size_t k) {
    const size_t bytes = k / 256 * sizeof(struct kn_block_q4_k);
    return (bytes + SEAL_UNIT_BYTES - 1) / SEAL_UNIT_BYTES * SEAL_UNIT_BYTES;
}

/* x as bytes and its scales, with a gap after each 16 items of 64. */
static size_t shared_bytes(size_t k) {
    const size_t items = k / 64, spaced = items + items / 16;
    return 5 * 16 * spaced;
}

/* How rows are shared out: block_rows to a block of threads, whose warps have 32 groups each; the
 * groups of the last warps are cut in halves, each with a warp of its own. */
struct shares {
    unsigned blocks, block_rows, wholes, warps;
    double cost; /* in units of 64 bytes that a lane decrypts */
};

/* A warp alone on its scheduler waits for its own instructions. Measured on an H100, as what
 * rounding k elements of x costs. */
static const double ALONE = 1.46, OF_TWO = 1.05, ELEMENTS_OF_A_UNIT = 12400;

static double sealed_product_cost_of(unsigned wholes, unsigned halves) {
    double most = 0;
    for (unsigned i = 0; i < SCHEDULERS; i++) {
        const unsigned whole = (wholes + SCHEDULERS - 1 - i) / SCHEDULERS;
        const unsigned warps = (wholes + halves + SCHEDULERS - 1 - i) / SCHEDULERS;
        const double units = 9.0 * whole + 5.0 * (warps - whole);
        const double cost = units * (warps == 1 ? ALONE : warps == 2 ? OF_TWO : 1);
        if (cost > most) most = cost;
    }
    return most;
}

/* Blocks of threads come in waves, one to a multiprocessor. */
static struct shares shares_of(const struct kn_sealed_product *p, const struct tol_device *device) {
    const size_t groups = (p->k / 256 + GROUP_BLOCKS - 1) / GROUP_BLOCKS;
    const size_t processors = (size_t)device->multiprocessors;
    const size_t rows_max = groups > 0 ? WARPS_MAX * LANES / groups : p->rows;
    const size_t least = (p->rows + processors * rows_max - 1) / (processors * rows_max);
    struct shares best = {.cost = INFINITY};
    for (size_t waves = least; waves < least + 4; waves++) {
        const size_t rows = (p->rows + waves * processors - 1) / (waves * processors);
        const unsigned tasks = (unsigned)((rows * groups + LANES - 1) / LANES);
        for (unsigned cut = 0; cut <= tasks && tasks + cut <= WARPS_MAX; cut++) {
            struct shares one = {.blocks = (unsigned)((p->rows + rows - 1) / rows),
                                 .block_rows = (unsigned)rows,
                                 .wholes = tasks - cut,
                                 .warps = tasks + cut};
            one.cost = (double)waves * (sealed_product_cost_of(one.wholes, 2 * cut) +
                                        (double)p->k / ELEMENTS_OF_A_UNIT);
            if (one.cost < best.cost) best = one;
        }
    }
    if (best.warps == 0) best.warps = 1;
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

static tol_status sealed_product_check_place(const char *what, struct kn_place place, size_t bytes,
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

static tol_status sealed_product_check_places(const struct kn_sealed_product *p) {
    tol_status status = TOL_OK;
    const size_t weights = p->rows * kn_sealed_row_bytes(p->k);
    const size_t x = p->k * sizeof(float), y = p->rows * sizeof(float);
    TOL_TRY(sealed_product_check_place("W", p->weights, weights, 16));
    TOL_TRY(sealed_product_check_place("x", p->x, x, 16));
    TOL_TRY(sealed_product_check_place("y", p->y, y, sizeof(float)));
    TOL_CHECK(!kn_place_overlap(p->y, y, p->weights, weights) &&
                  !kn_place_overlap(p->y, y, p->x, x),
              TOL_INVALID_ARGUMENT, "sealed product: y overlaps what is read");
out:
    return status;
}

/* Blocks that leave a multiprocessor to others gained nothing by PDL on an H100. */
static const char *early_declines(const struct kn_variant *row, const void *shares,
                                  const struct tol_device *device) {
    (void)row, (void)device;
    return ((const struct shares *)shares)->warps <= WARPS_MAX / 2 ? "there are few warps" : NULL;
}

/* The key stream has 20, 12 or 8 rounds; on devices that have programmatic dependent launch (PDL)
 * there is a kernel that may begin before the previous one has ended. */
#define ROW(of, file, rounds, capability, ...)                                                     \
    {                                                                                              \
        .name = #of, .entry = "seal_" #of "_" rounds, .images = kn_images_##file,                  \
        .compute_capability_min = capability, __VA_ARGS__                                          \
    }
#define ROWS(rounds)                                                                               \
    {                                                                                              \
        ROW(early, seal_3_early, rounds, 90, .pdl = true, .decline = early_declines),              \
            ROW(product, seal_2_product, rounds, 75, .decline = NULL)                              \
    }

static const struct kn_variant rows_of[][2] = {ROWS("20"), ROWS("12"), ROWS("8")};
static const struct kn_variants tables[] = {{"sealed product", rows_of[0], 2},
                                            {"sealed product", rows_of[1], 2},
                                            {"sealed product", rows_of[2], 2}};

static tol_status sealed_product_launch(struct kn_kernels *kernels, struct tol_stream *stream,
                                        const struct kn_sealed_product *p) {
    tol_status status = TOL_OK;
    const struct kn_variant *variant = NULL;
    const struct tol_kernel *kernel = NULL;
    struct tol_context *context = kn_kernels_context(kernels);
    const struct shares shares = shares_of(p, tol_context_device(context));
    struct sealed_product_arguments arguments = {
        .weights = p->weights.address,
        .x = p->x.address,
        .y = p->y.address,
        .rows = (uint32_t)p->rows,
        .k = (uint32_t)p->k,
        .blocks = (uint32_t)(p->k / 256),
        .row_units = (uint32_t)(kn_sealed_row_bytes(p->k) / SEAL_UNIT_BYTES),
        .groups = (uint32_t)((p->k / 256 + GROUP_BLOCKS - 1) / GROUP_BLOCKS),
        .block_rows = shares.block_rows,
        .wholes = shares.wholes,
        .first_unit = p->first_unit,
        .stream = *p->stream};
    const unsigned bytes = sizeof arguments;
    void *value = &arguments;
    const size_t sums = 2 * sizeof(float) * shares.block_rows * arguments.groups,
                 shared = shared_bytes(p->k) > sums ? shared_bytes(p->k) : sums;
    const struct tol_launch_shape shape = {shares.blocks,   1, 1, shares.warps * LANES, 1, 1,
                                           (unsigned)shared};
    const struct tol_arguments passed = {1, &value, &bytes};
    const int width = p->rounds == 20 ? 0 : p->rounds == 12 ? 1 : 2;
    assert(shares.blocks >= 1 && shares.warps >= 1 && shares.warps <= WARPS_MAX);
    TOL_TRY(kn_kernels_pick(kernels, &tables[width], p->variant, &shares, &variant, &kernel));
    status = variant->pdl ? tol_launch_programmatic(stream, kernel, shape, passed)
                          : tol_launch(stream, kernel, shape, passed);
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
    TOL_TRY(sealed_product_check_places(problem));
    status = sealed_product_launch(kernels, stream, problem);
out:
    return status;
}
