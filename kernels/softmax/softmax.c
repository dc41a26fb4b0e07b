/*
 * The host's side of softmax, and its oracle.
 */
#include "softmax/softmax.h"

#include "core/check.h"
#include "row/row_arguments.h"
#include "row/row_variant.h"

#include <assert.h>
#include <math.h>

KN_IMAGES(softmax_1_naive);
KN_IMAGES(softmax_2_registers);
KN_IMAGES(softmax_3_online);
KN_IMAGES(softmax_4_whole);
KN_IMAGES(softmax_6_cluster);
KN_IMAGES(softmax_8_slices);
KN_IMAGES(softmax_9_behind);

static const struct kn_variant variants[] = {
#include "softmax/softmax_rows.def"
};

const struct kn_variants kn_softmax_variants = {"softmax", variants,
                                                sizeof variants / sizeof variants[0]};

/* What the checks derive from a problem. */
struct softmax_places {
    struct kn_rows_place in, out, mask;
    struct kn_row_fit fit;
};

static tol_status softmax_check(struct kn_kernels *kernels, struct tol_stream *stream,
                                const struct kn_softmax *x, struct softmax_places *p) {
    tol_status status = TOL_OK;
    TOL_TRY(kn_rows_given("softmax", kernels, stream, x));
    TOL_CHECK(isfinite(x->scale), TOL_INVALID_ARGUMENT, "a scale of %g", (double)x->scale);
    p->mask = (struct kn_rows_place){"mask", x->rows, x->columns, 1, true, 0, 0, 0};
    TOL_TRY(kn_rows_locate_in_out(x->type, x->rows, x->columns, &x->in, &x->out, &p->in, &p->out));
    if (x->mask.buffer != NULL) {
        TOL_TRY(kn_rows_locate(&x->mask, &p->mask));
        TOL_TRY(kn_rows_apart(&p->out, &p->mask));
    }
    if (x->rows == 0 || x->columns == 0) return TOL_OK;
    p->fit = kn_row_fit_of(x->type, &p->in);
    p->fit.no_slices = kn_row_no_slices(kernels);
    p->fit.not_whole = kn_row_whole(&p->in) != NULL ? kn_row_whole(&p->in) : kn_row_whole(&p->out);
    if (x->mask.buffer != NULL) p->fit.not_whole = "there is a mask";
out:
    return status;
}

static struct kn_tuning_key softmax_key_of(const struct kn_softmax *x,
                                           const struct softmax_places *p) {
    return (struct kn_tuning_key){"softmax",
                                  {(int64_t)x->type, (int64_t)x->rows, (int64_t)x->columns,
                                   p->fit.not_whole == NULL, x->mask.buffer != NULL}};
}

tol_status kn_softmax_key(struct kn_kernels *kernels, struct tol_stream *stream,
                          const struct kn_softmax *softmax, struct kn_tuning_key *key) {
    tol_status status = TOL_OK;
    struct softmax_places places = {0};
    TOL_CHECK(key != NULL, TOL_INVALID_ARGUMENT, "a key needs a place");
    TOL_TRY(softmax_check(kernels, stream, softmax, &places));
    *key = softmax_key_of(softmax, &places);
out:
    return status;
}

static tol_status softmax_pick(struct kn_kernels *kernels, const struct kn_softmax *x,
                               const struct softmax_places *p, const struct kn_variant **variant,
                               const struct tol_kernel **kernel) {
    const struct kn_tuning_key key = softmax_key_of(x, p);
    return kn_kernels_choose(kernels, &kn_softmax_variants,
                             (struct kn_wish){x->variant, x->variants}, &key, &p->fit, variant,
                             kernel);
}

tol_status kn_softmax_pick(struct kn_kernels *kernels, struct tol_stream *stream,
                           const struct kn_softmax *softmax, const struct kn_variant **variant) {
    tol_status status = TOL_OK;
    const struct tol_kernel *kernel = NULL;
    struct softmax_places places = {0};
    TOL_TRY(softmax_check(kernels, stream, softmax, &places));
    TOL_CHECK(softmax->rows > 0 && softmax->columns > 0, TOL_INVALID_ARGUMENT,
              "there are no rows or no columns");
    status = softmax_pick(kernels, softmax, &places, variant, &kernel);
out:
    return status;
}

tol_status kn_softmax(struct kn_kernels *kernels, struct tol_stream *stream,
                      const struct kn_softmax *x) {
    tol_status status = TOL_OK;
    const struct kn_variant *variant = NULL;
    const struct tol_kernel *kernel = NULL;
    struct softmax_places places = {0};
    TOL_TRY(softmax_check(kernels, stream, x, &places));
    if (x->rows == 0 || x->columns == 0) return TOL_OK;
    TOL_TRY(softmax_pick(kernels, x, &places, &variant, &kernel));
    const struct softmax_arguments arguments = {.in = places.in.begin,
                                                .out = places.out.begin,
                                                .mask = places.mask.begin,
                                                .rows = (long long)x->rows,
                                                .columns = (long long)x->columns,
                                                .in_stride = (long long)places.in.stride,
                                                .out_stride = (long long)places.out.stride,
                                                .mask_stride = (long long)places.mask.stride,
                                                .scale = x->scale != 0 ? x->scale : 1};
    assert(places.fit.pieces > 0 && places.fit.rows == x->rows);
    status = (variant->pdl ? kn_rows_launch_early : kn_rows_launch)(
        stream, kernel, kn_row_shape_on(kernels, variant, &places.fit, x->rows), &arguments,
        sizeof arguments);
out:
    return status;
}

void kn_softmax_oracle(const float *in, const unsigned char *mask, size_t columns, double scale,
                       double *out) {
    double largest = -INFINITY, sum = 0;
    for (size_t c = 0; c < columns; c++) {
        const bool counts = mask == NULL || mask[c] != 0;
        out[c] = counts ? scale * (double)in[c] : -INFINITY;
        /* isgreater would pass over a NaN, which must reach the sum. */
        if (!(out[c] <= largest)) largest = out[c];
    }
    for (size_t c = 0; c < columns; c++) {
        out[c] = largest == -INFINITY ? 0 : exp(out[c] - largest);
        sum += out[c];
    }
    for (size_t c = 0; c < columns; c++) out[c] = sum == 0 ? 0 : out[c] / sum;
}
