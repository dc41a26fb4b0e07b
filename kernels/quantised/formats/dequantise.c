/*
 * Dequantise: a table for each kind of blocks and values, and the checks before a launch.
 */
#include "dequantise.h"

#include "core/check.h"

#include <assert.h>
#include <limits.h>

KN_IMAGES(dequantise_1_naive);
KN_IMAGES(dequantise_2_wide);

enum { THREADS = 256, PIECES = 4 }; /* dequantise_2_wide.cu */

static const char *wide_refuses(const struct kn_variant *row, const void *problem) {
    (void)row;
    const struct kn_dequantise *p = problem;
    if (p->values.address % 16 != 0) return "the values are not aligned to 16 bytes";
    if (p->quant == KN_Q4_K && p->blocks.address % 16 != 0) {
        return "the blocks are not aligned to 16 bytes";
    }
    return NULL;
}

/* elements: of a piece, which is of 16 bytes of one, two or four runs of values. */
#define ROWS(quant, values, elements)                                                              \
    {                                                                                              \
        {.name = "wide",                                                                           \
         .entry = "dequantise_wide_" #quant "_" #values,                                           \
         .images = kn_images_dequantise_2_wide,                                                    \
         .refuse = wide_refuses,                                                                   \
         .compute_capability_min = 75,                                                             \
         .threads = THREADS,                                                                       \
         .tile = {THREADS * PIECES * (elements)}},                                                 \
        {                                                                                          \
            .name = "naive", .entry = "dequantise_naive_" #quant "_" #values,                      \
            .images = kn_images_dequantise_1_naive, .compute_capability_min = 75,                  \
            .threads = THREADS, .tile = {                                                          \
                THREADS                                                                            \
            }                                                                                      \
        }                                                                                          \
    }

enum { VARIANTS = 2, VALUE_TYPES = 2 };

static const struct kn_variant rows[KN_QUANTS][VALUE_TYPES][VARIANTS] = {
    {ROWS(q4_k, f32, 8), ROWS(q4_k, f16, 16)},
    {ROWS(q6_k, f32, 16), ROWS(q6_k, f16, 32)},
    {ROWS(q8_0, f32, 4), ROWS(q8_0, f16, 8)},
};

static const struct kn_variants variants[KN_QUANTS][VALUE_TYPES] = {
    {{"dequantise", rows[0][0], VARIANTS}, {"dequantise", rows[0][1], VARIANTS}},
    {{"dequantise", rows[1][0], VARIANTS}, {"dequantise", rows[1][1], VARIANTS}},
    {{"dequantise", rows[2][0], VARIANTS}, {"dequantise", rows[2][1], VARIANTS}},
};

const struct kn_variants *kn_dequantise_variants(enum kn_quant quant, enum kn_type type) {
    return &variants[quant][type == KN_F16];
}

static tol_status dequantise_check(const struct kn_dequantise *p) {
    tol_status status = TOL_OK;
    TOL_CHECK((unsigned)p->quant < KN_QUANTS, TOL_INVALID_ARGUMENT,
              "dequantise: there is no quantisation %d", (int)p->quant);
    TOL_CHECK(p->type == KN_F32 || p->type == KN_F16, TOL_INVALID_ARGUMENT,
              "dequantise makes f32 and f16, not %s", kn_type_name(p->type));
    const size_t elements = kn_quant_block_elements(p->quant), size = kn_type_bytes(p->type);
    TOL_CHECK(p->count % elements == 0, TOL_INVALID_ARGUMENT,
              "dequantise: %zu elements are no whole blocks of %s, which have %zu", p->count,
              kn_quant_name(p->quant), elements);
    if (p->count == 0) return TOL_OK;
    const size_t blocks = p->count / elements, block_bytes = kn_quant_block_bytes(p->quant);
    TOL_CHECK(p->blocks.address != 0 && p->values.address != 0, TOL_INVALID_ARGUMENT,
              "dequantise: the %s are NULL", p->blocks.address == 0 ? "blocks" : "values");
    TOL_CHECK(blocks <= p->blocks.bytes / block_bytes, TOL_OUT_OF_RANGE,
              "dequantise reads %zu blocks of %zu bytes, and there are %zu bytes", blocks,
              block_bytes, p->blocks.bytes);
    TOL_CHECK(p->count <= p->values.bytes / size, TOL_OUT_OF_RANGE,
              "dequantise writes %zu values of %zu bytes, and there are %zu bytes", p->count, size,
              p->values.bytes);
    TOL_CHECK(p->blocks.address % 2 == 0 && p->values.address % size == 0, TOL_INVALID_ARGUMENT,
              "dequantise: the blocks at %#llx must be aligned to 2 bytes and the values at %#llx "
              "to %zu",
              (unsigned long long)p->blocks.address, (unsigned long long)p->values.address, size);
    TOL_CHECK(!kn_place_overlap(p->blocks, blocks * block_bytes, p->values, p->count * size),
              TOL_INVALID_ARGUMENT, "dequantise: blocks and values overlap");
out:
    return status;
}

tol_status kn_dequantise(struct kn_kernels *kernels, struct tol_stream *stream,
                         const struct kn_dequantise *problem) {
    tol_status status = TOL_OK;
    const struct kn_variant *variant = NULL;
    const struct tol_kernel *kernel = NULL;
    TOL_CHECK(kernels != NULL && stream != NULL && problem != NULL, TOL_INVALID_ARGUMENT,
              "dequantise needs kernels, a stream and a problem");
    TOL_TRY(dequantise_check(problem));
    TOL_TRY(kn_kernels_choose(kernels, kn_dequantise_variants(problem->quant, problem->type),
                              (struct kn_wish){problem->variant, problem->variants}, NULL, problem,
                              &variant, &kernel));
    if (problem->count == 0) return TOL_OK;
    const size_t grid = (problem->count - 1) / variant->tile[0] + 1;
    assert(grid > 0 && grid * variant->tile[0] >= problem->count);
    TOL_CHECK(grid <= INT_MAX, TOL_OVER_LIMIT, "dequantise: %zu elements are too many",
              problem->count);
    status = tol_launch(
        stream, kernel, (struct tol_launch_shape){(unsigned)grid, 1, 1, variant->threads, 1, 1, 0},
        TOL_ARGUMENTS(problem->blocks.address, problem->values.address, (uint64_t)problem->count));
out:
    return status;
}
