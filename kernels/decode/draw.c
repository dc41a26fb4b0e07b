/*
 * The host's side of draws on the device.
 */
#include "decode/draw.h"

#include "choose/struct_launch.h"
#include "core/check.h"
#include "place_check.h"

#include <assert.h>
#include <stddef.h>

KN_IMAGES(draw_1_parts);
KN_IMAGES(draw_2_early);

enum { ROWS_MAX = 1 << 16, STEPS = 5, WARP = 32 };

#define DRAW(name_, entry_, file, capability, threads_)                                            \
    {                                                                                              \
        .name = name_, .entry = entry_, .images = kn_images_draw_##file,                           \
        .compute_capability_min = capability, .threads = threads_, .pdl = (capability) >= 90       \
    }
#define STEP(entry, threads)                                                                       \
    {                                                                                              \
        DRAW("early", "draw_" entry "_early", 2_early, 90, threads),                               \
            DRAW("parts", "draw_" entry, 1_parts, 75, threads)                                     \
    }
/* In the order of their launches. */
static const struct kn_variant steps[STEPS][2] = {
    STEP("largest", DRAW_THREADS), STEP("weigh", DRAW_THREADS), STEP("cut", DRAW_CUT_THREADS),
    STEP("sum", DRAW_THREADS), STEP("pick", DRAW_THREADS)};
static const bool has_parts[STEPS] = {true, true, false, true, false};

size_t kn_draw_workspace(size_t rows) {
    return rows * sizeof(struct draw_work);
}

/* Tokens of a part: whole warps, and no more than DRAW_PARTS of them. */
static uint32_t draw_part(size_t columns) {
    const size_t least = (columns + DRAW_PARTS - 1) / DRAW_PARTS;
    const size_t part = (least + WARP - 1) / WARP * WARP;
    const size_t tokens = part > DRAW_PART_LEAST ? part : DRAW_PART_LEAST;
    assert(tokens % WARP == 0 && tokens * DRAW_PARTS >= columns);
    return (uint32_t)tokens;
}

static tol_status draw_check(const struct kn_draw *x) {
    tol_status status = TOL_OK;
    TOL_CHECK(x->columns > 0, TOL_INVALID_ARGUMENT, "draw: rows of no elements");
    TOL_CHECK(x->columns <= DRAW_COLUMNS && x->rows < ROWS_MAX, TOL_OVER_LIMIT,
              "draw: %zu rows of %zu elements", x->rows, x->columns);
    TOL_TRY(kn_place_check_rows("in", x->in, x->rows, x->in_stride, x->columns, sizeof(float), 4));
    TOL_TRY(kn_place_check("by", x->by, x->rows * sizeof(struct draw_device_row), 8));
    TOL_TRY(kn_place_check("out", x->out, x->rows * sizeof(int), sizeof(int)));
    status = kn_place_check("the workspace", x->workspace, kn_draw_workspace(x->rows), 8);
out:
    return status;
}

tol_status kn_draw(struct kn_kernels *kernels, struct tol_stream *stream, const struct kn_draw *x) {
    tol_status status = TOL_OK;
    TOL_CHECK(kernels != NULL && stream != NULL && x != NULL, TOL_INVALID_ARGUMENT,
              "draw needs kernels, a stream and a problem");
    if (x->rows == 0) return TOL_OK;
    TOL_TRY(draw_check(x));
    const struct tol_device *device = tol_context_device(kn_kernels_context(kernels));
    const uint32_t part = draw_part(x->columns);
    const struct draw_arguments arguments = {.logits = x->in.address,
                                             .rows = x->by.address,
                                             .tokens = x->by.address +
                                                       offsetof(struct draw_device_row, tokens),
                                             .work = x->workspace.address,
                                             .out = x->out.address,
                                             .stride = x->in_stride,
                                             .row_stride = sizeof(struct draw_device_row),
                                             .columns = (uint32_t)x->columns,
                                             .part = part};
    const unsigned rows = (unsigned)x->rows, parts = ((unsigned)x->columns + part - 1) / part;
    for (int i = 0; i < STEPS; i++) {
        const struct kn_variants both = {"draw", steps[i], 2};
        const struct kn_variant *variant = NULL;
        TOL_TRY(kn_variant_pick(&both, device, x->variant, x, &variant));
        const struct tol_launch_shape shape = {
            has_parts[i] ? parts : 1, rows, 1, variant->threads, 1, 1, 0};
        TOL_TRY(kn_struct_launch(kernels, stream, variant, shape, &arguments, sizeof arguments));
    }
out:
    return status;
}
