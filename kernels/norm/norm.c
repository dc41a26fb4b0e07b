/*
 * The host's side of layernorm and RMSNorm, and their oracle.
 */
#include "norm/norm.h"

#include "core/check.h"
#include "row/row_arguments.h"
#include "row/row_variant.h"

#include <assert.h>
#include <math.h>

KN_IMAGES(norm_1_naive);
KN_IMAGES(norm_2_registers);
KN_IMAGES(norm_3_whole);
KN_IMAGES(norm_5_ahead);
KN_IMAGES(norm_6_early);
KN_IMAGES(norm_7_cluster);
KN_IMAGES(norm_9_slices);
KN_IMAGES(norm_10_behind);

static const struct kn_variant variants[] = {
#include "norm/norm_rows.def"
};

const struct kn_variants kn_norm_variants = {"norm", variants,
                                             sizeof variants / sizeof variants[0]};

/* What the checks derive from a problem. */
struct norm_places {
    struct kn_rows_place in, out, weight, bias;
    struct kn_row_fit fit;
};

static tol_status check_words(const struct kn_norm *x) {
    tol_status status = TOL_OK;
    TOL_TRY(kn_rows_type(x->type));
    TOL_CHECK((unsigned)x->kind <= KN_RMSNORM, TOL_INVALID_ARGUMENT,
              "kind of norm %d does not exist", (int)x->kind);
    TOL_CHECK(x->affine_type == KN_F32 || x->affine_type == x->type, TOL_INVALID_ARGUMENT,
              "weight and bias of type %s do not go with rows of %s", kn_type_name(x->affine_type),
              kn_type_name(x->type));
    TOL_CHECK(isfinite(x->epsilon) && x->epsilon >= 0, TOL_INVALID_ARGUMENT, "an epsilon of %g",
              (double)x->epsilon);
out:
    return status;
}

/* Where weight or bias lies, if there is one. */
static tol_status locate_affine(const struct kn_rows *rows, const struct kn_rows_place *out_place,
                                struct kn_rows_place *place) {
    tol_status status = TOL_OK;
    if (rows->buffer == NULL) return TOL_OK;
    TOL_TRY(kn_rows_locate(rows, place));
    TOL_CHECK(out_place->end <= place->begin || place->end <= out_place->begin,
              TOL_INVALID_ARGUMENT, "out overlaps %s", place->name);
out:
    return status;
}

static tol_status norm_check(struct kn_kernels *kernels, struct tol_stream *stream,
                             const struct kn_norm *x, struct norm_places *p) {
    tol_status status = TOL_OK;
    TOL_TRY(kn_rows_given("norm", kernels, stream, x));
    TOL_TRY(check_words(x));
    const size_t affine = kn_type_bytes(x->affine_type);
    p->weight = (struct kn_rows_place){"weight", 1, x->columns, affine, false, 0, 0, 0};
    p->bias = (struct kn_rows_place){"bias", 1, x->columns, affine, false, 0, 0, 0};
    TOL_TRY(kn_rows_locate_in_out(x->type, x->rows, x->columns, &x->in, &x->out, &p->in, &p->out));
    TOL_TRY(locate_affine(&x->weight, &p->out, &p->weight));
    TOL_TRY(locate_affine(&x->bias, &p->out, &p->bias));
    if (x->rows == 0 || x->columns == 0) return TOL_OK;
    p->fit = kn_row_fit_of(x->type, &p->in);
    p->fit.no_slices = kn_row_no_slices(kernels);
    const struct kn_rows_place *const places[] = {&p->in, &p->out, &p->weight, &p->bias};
    p->fit.not_whole = NULL;
    for (int i = 0; i < 4 && p->fit.not_whole == NULL; i++) {
        p->fit.not_whole = kn_row_whole(places[i]);
    }
    if (x->affine_type != x->type && (p->weight.begin != 0 || p->bias.begin != 0)) {
        p->fit.not_whole = "weight and bias are not of the type of the rows";
    }
out:
    return status;
}

static struct kn_tuning_key norm_key_of(const struct kn_norm *x, const struct norm_places *p) {
    const int parameters = (p->weight.begin != 0) + (p->bias.begin != 0);
    return (struct kn_tuning_key){"norm",
                                  {(int64_t)x->kind, (int64_t)x->type, (int64_t)x->rows,
                                   (int64_t)x->columns, p->fit.not_whole == NULL,
                                   (int64_t)x->affine_type, parameters}};
}

tol_status kn_norm_key(struct kn_kernels *kernels, struct tol_stream *stream,
                       const struct kn_norm *norm, struct kn_tuning_key *key) {
    tol_status status = TOL_OK;
    struct norm_places places = {0};
    TOL_CHECK(key != NULL, TOL_INVALID_ARGUMENT, "a key needs a place");
    TOL_TRY(norm_check(kernels, stream, norm, &places));
    *key = norm_key_of(norm, &places);
out:
    return status;
}

static tol_status norm_pick(struct kn_kernels *kernels, const struct kn_norm *x,
                            const struct norm_places *p, const struct kn_variant **variant,
                            const struct tol_kernel **kernel) {
    const struct kn_tuning_key key = norm_key_of(x, p);
    return kn_kernels_choose(kernels, &kn_norm_variants, (struct kn_wish){x->variant, x->variants},
                             &key, &p->fit, variant, kernel);
}

tol_status kn_norm_pick(struct kn_kernels *kernels, struct tol_stream *stream,
                        const struct kn_norm *norm, const struct kn_variant **variant) {
    tol_status status = TOL_OK;
    const struct tol_kernel *kernel = NULL;
    struct norm_places places = {0};
    TOL_TRY(norm_check(kernels, stream, norm, &places));
    TOL_CHECK(norm->rows > 0 && norm->columns > 0, TOL_INVALID_ARGUMENT,
              "there are no rows or no columns");
    status = norm_pick(kernels, norm, &places, variant, &kernel);
out:
    return status;
}

enum { PIECE_BYTES = 16, SHARED_BYTES_ALWAYS = 48 << 10 };

/* Shared memory for the pieces of weight and bias that each thread loads ahead. */
static unsigned ahead_bytes(const struct tol_launch_shape *shape, unsigned pieces,
                            const struct norm_arguments *x) {
    const unsigned parameters = (x->weight != 0 ? 1u : 0u) + (x->bias != 0 ? 1u : 0u);
    return shape->block_x * shape->block_y * pieces * PIECE_BYTES * parameters;
}

static tol_status norm_launch(struct tol_stream *stream, const struct kn_variant *variant,
                              const struct tol_kernel *kernel, struct tol_launch_shape shape,
                              struct norm_arguments arguments) {
    if ((variant->needs & KN_ROW_AHEAD) != 0) {
        shape.shared_bytes = ahead_bytes(&shape, variant->tile[1], &arguments);
        assert(shape.shared_bytes <= SHARED_BYTES_ALWAYS);
    }
    return (variant->pdl ? kn_rows_launch_early : kn_rows_launch)(stream, kernel, shape, &arguments,
                                                                  sizeof arguments);
}

tol_status kn_norm(struct kn_kernels *kernels, struct tol_stream *stream, const struct kn_norm *x) {
    tol_status status = TOL_OK;
    const struct kn_variant *variant = NULL;
    const struct tol_kernel *kernel = NULL;
    struct norm_places places = {0};
    TOL_TRY(norm_check(kernels, stream, x, &places));
    if (x->rows == 0 || x->columns == 0) return TOL_OK;
    TOL_TRY(norm_pick(kernels, x, &places, &variant, &kernel));
    const struct norm_arguments arguments = {.in = places.in.begin,
                                             .out = places.out.begin,
                                             .weight = places.weight.begin,
                                             .bias = places.bias.begin,
                                             .rows = (long long)x->rows,
                                             .columns = (long long)x->columns,
                                             .in_stride = (long long)places.in.stride,
                                             .out_stride = (long long)places.out.stride,
                                             .epsilon = x->epsilon,
                                             .centred = x->kind == KN_LAYERNORM,
                                             .affine_f32 = x->affine_type == KN_F32};
    status = norm_launch(stream, variant, kernel,
                         kn_row_shape_on(kernels, variant, &places.fit, x->rows), arguments);
out:
    return status;
}

void kn_norm_oracle(enum kn_norm_kind kind, const float *in, const float *weight, const float *bias,
                    size_t columns, double epsilon, double *out) {
    double mean = 0, square = 0;
    if (kind == KN_LAYERNORM) {
        for (size_t c = 0; c < columns; c++) mean += (double)in[c] / (double)columns;
    }
    for (size_t c = 0; c < columns; c++) {
        out[c] = (double)in[c] - mean;
        square += out[c] * out[c] / (double)columns;
    }
    for (size_t c = 0; c < columns; c++) {
        out[c] = out[c] / sqrt(square + epsilon) * (weight != NULL ? (double)weight[c] : 1) +
                 (bias != NULL ? (double)bias[c] : 0);
    }
}
