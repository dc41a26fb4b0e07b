/*
 * The host's side of best.
 */
#include "decode/best.h"

#include "choose/struct_launch.h"
#include "core/check.h"
#include "decode/decode_arguments.h"
#include "place_check.h"

#include <limits.h>

KN_IMAGES(best_1_parts);
KN_IMAGES(best_2_early);

enum { ROWS_MAX = 1 << 16, MERGE_THREADS = 32 };

#define BEST(name_, entry_, file, capability, threads_)                                            \
    {                                                                                              \
        .name = name_, .entry = entry_, .images = kn_images_best_##file,                           \
        .compute_capability_min = capability, .threads = threads_, .pdl = (capability) >= 90       \
    }
static const struct kn_variant parts[] = {
    BEST("early", "best_parts_early", 2_early, 90, BEST_THREADS),
    BEST("parts", "best_parts", 1_parts, 75, BEST_THREADS)};
static const struct kn_variant merges[] = {
    BEST("early", "best_merge_early", 2_early, 90, MERGE_THREADS),
    BEST("parts", "best_merge", 1_parts, 75, MERGE_THREADS)};

size_t kn_best_workspace(size_t rows) {
    return rows * BEST_PARTS * sizeof(uint64_t);
}

uint32_t kn_best_order(const void *keys, size_t row) {
    const uint64_t *key = (const uint64_t *)keys + row * BEST_PARTS;
    uint64_t best = 0;
    for (int i = 0; i < BEST_PARTS; i++) best = key[i] > best ? key[i] : best;
    return (uint32_t)(best >> 32);
}

tol_status kn_best(struct kn_kernels *kernels, struct tol_stream *stream, const struct kn_best *x) {
    tol_status status = TOL_OK;
    TOL_CHECK(kernels != NULL && stream != NULL && x != NULL, TOL_INVALID_ARGUMENT,
              "best needs kernels, a stream and a problem");
    if (x->rows == 0) return TOL_OK;
    TOL_CHECK(x->columns > 0, TOL_INVALID_ARGUMENT, "best: rows of no elements");
    TOL_CHECK(x->columns <= INT_MAX && x->rows < ROWS_MAX, TOL_OVER_LIMIT,
              "best: %zu rows of %zu elements", x->rows, x->columns);
    TOL_TRY(kn_place_check_rows("in", x->in, x->rows, x->in_stride, x->columns, sizeof(float), 4));
    TOL_TRY(kn_place_check("out", x->out, x->rows * sizeof(int), sizeof(int)));
    TOL_TRY(kn_place_check("the workspace", x->workspace, kn_best_workspace(x->rows), 8));
    const struct tol_device *device = tol_context_device(kn_kernels_context(kernels));
    const struct kn_variants both[] = {{"best", parts, 2}, {"best", merges, 2}};
    const struct best_arguments arguments = {.in = x->in.address,
                                             .keys = x->workspace.address,
                                             .out = x->out.address,
                                             .in_stride = x->in_stride,
                                             .columns = (uint32_t)x->columns};
    const unsigned rows = (unsigned)x->rows;
    const unsigned grids[2][2] = {{BEST_PARTS, rows}, {rows, 1}};
    for (int i = 0; i < 2; i++) {
        const struct kn_variant *variant = NULL;
        TOL_TRY(kn_variant_pick(&both[i], device, x->variant, x, &variant));
        TOL_TRY(kn_struct_launch(
            kernels, stream, variant,
            (struct tol_launch_shape){grids[i][0], grids[i][1], 1, variant->threads, 1, 1, 0},
            &arguments, sizeof arguments));
    }
out:
    return status;
}
