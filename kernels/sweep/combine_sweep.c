/*
 * Cases of the kernels that merge the parts of blocks that split attention's keys. Only one of them
 * is chosen on a device, and the soft device has too few multiprocessors for many parts, so each
 * kernel is launched alone here, on drawn parts: more than the threads of a block read at once, one
 * of them without any key, and a row without any.
 */
#include "attention/forward/attention_combine.h"
#include "attention/forward/attention_variants.h"
#include "core/check.h"
#include "sweep_matrix.h"

#include <math.h>
#include <stdlib.h>

enum { HEADS = 3, QUERIES = 2, BATCH = 2, ROWS = BATCH * HEADS * QUERIES, SHARES = 70, EMPTY = 7 };

/* Row r of out and the logarithm of its sum of weights: rows of all shares, each with the binary
 * logarithm of its own sum. */
static void combine_sweep_merge(const float *parts, size_t r, size_t width, double *out,
                                double *lse) {
    double sum = 0;
    for (size_t d = 0; d < width; d++) out[d] = 0;
    for (size_t s = 0; s < SHARES; s++) {
        const float *part = parts + (s * ROWS + r) * (width + 1);
        const double weight = exp2((double)part[width]);
        for (size_t d = 0; d < width; d++) out[d] += weight * (double)part[d];
        sum += weight;
    }
    for (size_t d = 0; d < width && sum > 0; d++) out[d] /= sum;
    *lse = log(sum);
}

static tol_status combine_sweep_run(struct sweep *sweep, const char *name, enum kn_type type,
                                    size_t width, struct kn_deviation *deviation, size_t *touched) {
    tol_status status = TOL_OK;
    struct sweep_matrix parts = {0}, out = {0}, lse = {0};
    const struct kn_variant *variant = NULL;
    const struct tol_kernel *kernel = NULL;
    const size_t apart = width + 1;
    double *oracle = malloc(ROWS * width * sizeof *oracle), lse_oracle[ROWS];
    TOL_CHECK(oracle != NULL, TOL_OUT_OF_HOST_MEMORY, "%zu elements", ROWS * width);
    TOL_TRY(sweep_matrix_make(sweep, KN_F32, SHARES * ROWS, apart, 0, 0, 1, &parts));
    TOL_TRY(sweep_matrix_make(sweep, type, ROWS, width, 0, 0, 0, &out));
    TOL_TRY(sweep_matrix_make(sweep, KN_F32, ROWS, 1, 0, 0, 0, &lse));
    for (size_t i = 0; i < SHARES * ROWS; i++) {
        float *part = parts.values + i * apart;
        if (i / ROWS != EMPTY && i % ROWS != 0) continue;
        for (size_t d = 0; d < width; d++) part[d] = 0;
        part[width] = -INFINITY;
    }
    TOL_TRY(kn_guarded_write(&parts.guarded, parts.values));
    for (size_t r = 0; r < ROWS; r++) {
        combine_sweep_merge(parts.values, r, width, oracle + r * width, lse_oracle + r);
    }
    const long long w = (long long)width;
    struct attention_arguments arguments = {
        .out = tol_buffer_address(out.guarded.buffer) + out.guarded.offset,
        .lse = tol_buffer_address(lse.guarded.buffer) + lse.guarded.offset,
        .part = tol_buffer_address(parts.guarded.buffer) + parts.guarded.offset,
        .out_strides = {HEADS * QUERIES * w, QUERIES * w, w},
        .batch = BATCH,
        .heads = HEADS,
        .group = 1,
        .q_length = QUERIES,
        .head_size = (int)width,
        .splits = SHARES};
    const unsigned bytes = sizeof arguments;
    void *value = &arguments;
    const struct tol_launch_shape shape = {
        HEADS, BATCH * QUERIES, 1, KN_ATTENTION_COMBINE_THREADS, 1, 1, 0};
    const struct kn_attention of_type = {.type = type};
    const struct attention_problem problem = {.attention = &of_type};
    TOL_TRY(
        kn_kernels_pick(sweep->kernels, &kn_attention_combine, name, &problem, &variant, &kernel));
    TOL_TRY(tol_launch(sweep->stream, kernel, shape, (struct tol_arguments){1, &value, &bytes}));
    TOL_TRY(sweep_matrix_judge(
        sweep, &out, oracle,
        (struct kn_tolerance){1e-5, type == KN_F32 ? 1e-5 : 2 * kn_type_roundoff(type)}, deviation,
        touched));
    status = sweep_matrix_judge(sweep, &lse, lse_oracle, (struct kn_tolerance){1e-5, 1e-5},
                                deviation, touched);
out:
    sweep_matrix_end(&parts);
    sweep_matrix_end(&out);
    sweep_matrix_end(&lse);
    free(oracle);
    return status;
}

void sweep_combine(struct sweep *sweep) {
    static const size_t widths[] = {64, 80, 256};
    for (enum kn_type type = 0; type < KN_TYPES; type++) {
        static const char *const names[] = {"combine_early", "combine"};
        for (size_t i = 0; i < 6; i++) {
            const char *name = names[i % 2];
            const size_t width = widths[i / 2];
            struct kn_deviation deviation = {.first = KN_NOWHERE, .worst = KN_NOWHERE};
            size_t touched = 0;
            if (!sweep_begin(sweep, "attention %s %s heads of %zu", name, kn_type_name(type),
                             width)) {
                continue;
            }
            const tol_status status =
                combine_sweep_run(sweep, name, type, width, &deviation, &touched);
            sweep_judge(sweep, status, &deviation, touched);
        }
    }
}
