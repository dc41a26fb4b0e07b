/*
 * The host's side of rounded.
 */
#include "quantised/formats/rounded.h"

#include "choose/struct_launch.h"
#include "core/check.h"
#include "place_check.h"
#include "quantised/formats/linear_arguments.h"

#include <limits.h>

KN_IMAGES(rounded_1_warp);
KN_IMAGES(rounded_2_early);

_Static_assert(KN_ROUNDED_NORM_MAX ==
                   ROUNDED_THREADS / 32 * ROUNDED_NORM_CHUNKS * (int)LINEAR_CHUNK,
               "what a block has in registers");

enum { COLUMNS_MAX = 1 << 16, WARPS = ROUNDED_THREADS / 32 };

#define ROUNDED(name_, entry_, file, capability)                                                   \
    {                                                                                              \
        .name = name_, .entry = entry_, .images = kn_images_rounded_##file,                        \
        .compute_capability_min = capability, .threads = ROUNDED_THREADS,                          \
        .pdl = (capability) >= 90                                                                  \
    }
static const struct kn_variant rows[2][2] = {
    {ROUNDED("early", "rounded_early", 2_early, 90), ROUNDED("warp", "rounded", 1_warp, 75)},
    {ROUNDED("early", "rounded_norm_early", 2_early, 90),
     ROUNDED("warp", "rounded_norm", 1_warp, 75)}};

size_t kn_rounded_bytes(size_t columns, size_t k) {
    const size_t tiles = (columns + ROUNDED_COLUMNS - 1) / ROUNDED_COLUMNS;
    _Static_assert(ROUNDED_CHUNK % 16 == 0, "a chunk is whole units of 16 bytes");
    return tiles * (k / LINEAR_CHUNK) * ROUNDED_CHUNK;
}

static tol_status rounded_check(const struct kn_rounded *x) {
    tol_status status = TOL_OK;
    const size_t bytes = kn_rounded_bytes(x->columns, x->k);
    TOL_CHECK(x->k > 0 && x->k % LINEAR_CHUNK == 0, TOL_INVALID_ARGUMENT,
              "rounded: columns of %zu elements, no multiple of %d", x->k, (int)LINEAR_CHUNK);
    TOL_CHECK(x->k <= INT_MAX && x->columns < COLUMNS_MAX, TOL_OVER_LIMIT,
              "rounded: %zu columns of %zu elements", x->columns, x->k);
    TOL_TRY(kn_place_check_rows("x", x->x, x->columns, x->x_stride, x->k, sizeof(float), 16));
    TOL_TRY(kn_place_check("the rounded columns", x->out, bytes, 16));
    if (x->norm.address != 0) {
        TOL_CHECK(x->k <= KN_ROUNDED_NORM_MAX, TOL_OVER_LIMIT,
                  "rounded: a norm of %zu elements; at most %d", x->k, KN_ROUNDED_NORM_MAX);
        TOL_TRY(kn_place_check("the norm's weight", x->norm, x->k * sizeof(float), 16));
    }
    TOL_CHECK(!kn_place_overlap(x->out, bytes, x->x,
                                ((x->columns - 1) * x->x_stride + x->k) * sizeof(float)),
              TOL_INVALID_ARGUMENT, "rounded: the result overlaps x");
out:
    return status;
}

tol_status kn_rounded(struct kn_kernels *kernels, struct tol_stream *stream,
                      const struct kn_rounded *x) {
    tol_status status = TOL_OK;
    TOL_CHECK(kernels != NULL && stream != NULL && x != NULL, TOL_INVALID_ARGUMENT,
              "rounded needs kernels, a stream and a problem");
    if (x->columns == 0) return TOL_OK;
    TOL_TRY(rounded_check(x));
    const bool has_norm = x->norm.address != 0;
    const struct tol_device *device = tol_context_device(kn_kernels_context(kernels));
    const struct kn_variants variants = {"rounded", rows[has_norm], 2};
    const struct kn_variant *variant = NULL;
    TOL_TRY(kn_variant_pick(&variants, device, x->variant, x, &variant));
    const struct rounded_arguments arguments = {.x = x->x.address,
                                                .weight = x->norm.address,
                                                .out = x->out.address,
                                                .x_stride = x->x_stride,
                                                .k = (uint32_t)x->k,
                                                .epsilon = x->epsilon};
    const unsigned columns = (unsigned)x->columns;
    const unsigned parts = (unsigned)((x->k / LINEAR_CHUNK + WARPS - 1) / WARPS);
    status = kn_struct_launch(kernels, stream, variant,
                              (struct tol_launch_shape){has_norm ? columns : parts,
                                                        has_norm ? 1 : columns, 1, variant->threads,
                                                        1, 1, 0},
                              &arguments, sizeof arguments);
out:
    return status;
}
