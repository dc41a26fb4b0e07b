/*
 * The host's side of rope, and its oracle.
 */
#include "row/rope.h"

#include "core/check.h"
#include "row/row_arguments.h"
#include "row/row_variant.h"

#include <math.h>

KN_IMAGES(rope_1_naive);

/* clang-format off */
#define NAIVE(type, TYPE, threads_)                                                                \
    {.name = "naive", .entry = "rope_" #type, .images = kn_images_rope_1_naive,                    \
     .compute_capability_min = 75, .types = 1 << KN_##TYPE, .refuse = kn_row_refuses,              \
     .threads = threads_},
static const struct kn_variant variants[] = { KN_ROW_EACH(NAIVE, 256) };
/* clang-format on */
const struct kn_variants kn_rope_variants = {"rope", variants,
                                             sizeof variants / sizeof variants[0]};

static size_t rotated_of(const struct kn_rope *x) {
    return x->rotated != 0 ? x->rotated : x->head_size;
}

static float rope_base_of(const struct kn_rope *x) {
    return x->base != 0 ? x->base : 10000.0f;
}

static float rope_scale_of(const struct kn_rope *x) {
    return x->scale != 0 ? x->scale : 1.0f;
}

static tol_status rope_check(const struct kn_rope *x, size_t *columns) {
    tol_status status = TOL_OK;
    TOL_TRY(kn_rows_type(x->type));
    TOL_CHECK((unsigned)x->pairs <= KN_ROPE_HALVES, TOL_INVALID_ARGUMENT,
              "pairing %d does not exist", (int)x->pairs);
    TOL_CHECK(rotated_of(x) % 2 == 0 && rotated_of(x) <= x->head_size, TOL_INVALID_ARGUMENT,
              "%zu elements of a head of %zu cannot be rotated in pairs", rotated_of(x),
              x->head_size);
    TOL_CHECK(isfinite(rope_base_of(x)) && rope_base_of(x) > 0 && isfinite(rope_scale_of(x)) &&
                  rope_scale_of(x) > 0,
              TOL_INVALID_ARGUMENT, "a base of %g and a scale of %g", (double)x->base,
              (double)x->scale);
    TOL_CHECK(x->head_size <= INT32_MAX && x->heads <= INT32_MAX &&
                  x->heads * x->head_size <= INT32_MAX,
              TOL_OVER_LIMIT, "%zu heads of %zu elements", x->heads, x->head_size);
    *columns = x->heads * x->head_size;
out:
    return status;
}

tol_status kn_rope(struct kn_kernels *kernels, struct tol_stream *stream, const struct kn_rope *x) {
    tol_status status = TOL_OK;
    const struct kn_variant *variant = NULL;
    const struct tol_kernel *kernel = NULL;
    size_t columns = 0;
    TOL_TRY(kn_rows_given("rope", kernels, stream, x));
    TOL_TRY(rope_check(x, &columns));
    const size_t element = kn_type_bytes(x->type);
    struct kn_rows_place in = {"in", x->rows, columns, element, false, 0, 0, 0};
    struct kn_rows_place out = {"out", x->rows, columns, element, false, 0, 0, 0};
    struct kn_rows_place positions = {"positions", 1, x->rows, sizeof(int), false, 0, 0, 0};
    TOL_TRY(kn_rows_locate(&x->in, &in));
    TOL_TRY(kn_rows_locate(&x->out, &out));
    TOL_TRY(kn_rows_apart(&out, &in));
    if (x->rows == 0 || columns == 0) return TOL_OK;
    TOL_TRY(kn_rows_locate(&x->positions, &positions));
    TOL_TRY(kn_rows_apart(&out, &positions));
    const struct kn_row_fit fit = kn_row_fit_of(x->type, &in);
    TOL_TRY(kn_kernels_pick(kernels, &kn_rope_variants, NULL, &fit, &variant, &kernel));
    const struct rope_arguments arguments = {.in = in.begin,
                                             .out = out.begin,
                                             .positions = positions.begin,
                                             .rows = (long long)x->rows,
                                             .in_stride = (long long)in.stride,
                                             .out_stride = (long long)out.stride,
                                             .heads = (int)x->heads,
                                             .head_size = (int)x->head_size,
                                             .rotated = (int)rotated_of(x),
                                             .halves = x->pairs == KN_ROPE_HALVES,
                                             .base_log2 = log2f(rope_base_of(x)),
                                             .scale = rope_scale_of(x)};
    const struct tol_device *device = tol_context_device(kn_kernels_context(kernels));
    status = kn_rows_launch(stream, kernel, kn_row_shape(variant, &fit, x->rows, device),
                            &arguments, sizeof arguments);
out:
    return status;
}

void kn_rope_oracle(const struct kn_rope *x, const float *in, int position, double *out) {
    const size_t pairs = rotated_of(x) / 2;
    for (size_t i = 0; i < x->heads * x->head_size; i++) out[i] = (double)in[i];
    for (size_t head = 0; head < x->heads; head++) {
        for (size_t i = 0; i < pairs; i++) {
            const size_t at = head * x->head_size;
            const size_t first = at + (x->pairs == KN_ROPE_HALVES ? i : 2 * i);
            const size_t second = at + (x->pairs == KN_ROPE_HALVES ? i + pairs : 2 * i + 1);
            const double angle = (double)position * (double)rope_scale_of(x) *
                                 pow((double)rope_base_of(x), -(double)i / (double)pairs);
            const double a = (double)in[first], b = (double)in[second];
            out[first] = a * cos(angle) - b * sin(angle);
            out[second] = a * sin(angle) + b * cos(angle);
        }
    }
}
