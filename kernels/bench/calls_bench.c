/*
 * What a call costs the host: the second and later calls of a shape, with the driver's launches
 * left out. The driver is opened once more, with an interposer that answers for them.
 */
#include "attention/forward/attention.h"
#include "core/any_driver.h"
#include "core/check.h"
#include "core/monotonic.h"
#include "grouped/grouped.h"
#include "interpose.h"
#include "kernel_bench.h"
#include "norm/norm.h"
#include "softmax/softmax.h"

#include <stdio.h>
#include <stdlib.h>

enum { BUFFERS = 4, SIZE = 1024, BYTES = 8 * SIZE * SIZE, BATCHES = 31, CALLS = 300 };

struct calls {
    struct kn_kernels *kernels;
    struct tol_stream *stream;
    struct tol_buffer *buffers[BUFFERS], *workspace;
};

/* ---- the calls ------------------------------------------------------------------------------- */

static tol_status call_gemm(const struct calls *c, enum kn_gemm_precision precision, size_t m) {
    return kn_gemm(c->kernels, c->stream,
                   &(struct kn_gemm){.precision = precision,
                                     .c_type = kn_gemm_input_type(precision),
                                     .m = m,
                                     .n = SIZE,
                                     .k = SIZE,
                                     .alpha = 1,
                                     .a = {.buffer = c->buffers[0]},
                                     .b = {.buffer = c->buffers[1]},
                                     .c = {.buffer = c->buffers[2]},
                                     .workspace = m < SIZE ? c->workspace : NULL});
}

static tol_status call_gemm_bf16(const struct calls *c) {
    return call_gemm(c, KN_GEMM_BF16, SIZE);
}

static tol_status call_gemm_few(const struct calls *c) {
    return call_gemm(c, KN_GEMM_BF16, 16);
}

static tol_status call_gemm_f32(const struct calls *c) {
    return call_gemm(c, KN_GEMM_F32, SIZE);
}

static tol_status call_grouped(const struct calls *c) {
    return kn_grouped(c->kernels, c->stream,
                      &(struct kn_grouped){.type = KN_GROUPED_BF16,
                                           .c_type = KN_GROUPED_BF16,
                                           .transpose_b = true,
                                           .m = SIZE,
                                           .n = SIZE,
                                           .k = SIZE,
                                           .alpha = 1,
                                           .a = {.buffer = c->buffers[0]},
                                           .b = {.buffer = c->buffers[1]},
                                           .c = {.buffer = c->buffers[2]}});
}

static tol_status call_softmax(const struct calls *c) {
    return kn_softmax(c->kernels, c->stream,
                      &(struct kn_softmax){.type = KN_F32,
                                           .rows = SIZE,
                                           .columns = SIZE,
                                           .in = {.buffer = c->buffers[0]},
                                           .out = {.buffer = c->buffers[1]}});
}

static tol_status call_norm(const struct calls *c) {
    return kn_norm(c->kernels, c->stream,
                   &(struct kn_norm){.kind = KN_RMSNORM,
                                     .type = KN_BF16,
                                     .rows = SIZE,
                                     .columns = SIZE,
                                     .in = {.buffer = c->buffers[0]},
                                     .out = {.buffer = c->buffers[1]},
                                     .epsilon = 1e-5f});
}

static tol_status call_attention(const struct calls *c) {
    return kn_attention(c->kernels, c->stream,
                        &(struct kn_attention){.type = KN_BF16,
                                               .batch = 1,
                                               .heads = 8,
                                               .kv_heads = 8,
                                               .q_length = SIZE,
                                               .kv_length = SIZE,
                                               .head_size = 128,
                                               .causal = true,
                                               .q = {.buffer = c->buffers[0]},
                                               .k = {.buffer = c->buffers[1]},
                                               .v = {.buffer = c->buffers[2]},
                                               .out = {.buffer = c->buffers[3]}});
}

/* ---- timing ---------------------------------------------------------------------------------- */

static tol_status calls_open(struct kn_bench *bench, struct tol_driver **driver,
                             struct tol_context **context, struct calls *c) {
    static const struct tol_interpose_rule rule = {.function = "cuLaunchKernel*",
                                                   .action = TOL_INTERPOSE_DROP};
    tol_status status = TOL_OK;
    TOL_TRY(tol_any_driver_open(bench->library, driver, NULL));
    TOL_TRY(tol_interpose_install(
        *driver, &(struct tol_interpose_options){.rules = &rule, .rule_count = 1}));
    TOL_TRY(tol_context_create(*driver, 0, context));
    TOL_TRY(tol_stream_create(*context, NULL, &c->stream));
    TOL_TRY(kn_kernels_create(*context, &c->kernels));
    for (int i = 0; i < BUFFERS; i++) {
        TOL_TRY(tol_buffer_create(*context, BYTES, 1, &c->buffers[i]));
    }
    TOL_TRY(tol_buffer_create(*context, BYTES, 1, &c->workspace));
out:
    return status;
}

static int calls_bench_compare(const void *left, const void *right) {
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* The median over batches, in microseconds; the first call, which loads kernels, is not timed. */
static tol_status calls_bench_time_calls(const struct calls *c,
                                         tol_status (*call)(const struct calls *c), double *us) {
    tol_status status = TOL_OK;
    double batches[BATCHES];
    TOL_TRY(call(c));
    for (int i = 0; i < BATCHES; i++) {
        const uint64_t begin = tol_now_ns();
        for (int j = 0; j < CALLS; j++) TOL_TRY(call(c));
        batches[i] = (double)(tol_now_ns() - begin) * 1e-3 / CALLS;
    }
    qsort(batches, BATCHES, sizeof *batches, calls_bench_compare);
    *us = batches[BATCHES / 2];
out:
    return status;
}

static tol_status calls_bench_run(struct kn_bench *bench) {
    static const struct {
        const char *operation, *shape;
        tol_status (*call)(const struct calls *c);
    } rows[] = {{"gemm", "bf16 1024 x 1024 x 1024", call_gemm_bf16},
                {"gemm", "bf16 16 x 1024 x 1024 split", call_gemm_few},
                {"gemm", "f32 1024 x 1024 x 1024", call_gemm_f32},
                {"grouped", "bf16 1024 x 1024 x 1024", call_grouped},
                {"softmax", "f32 1024 x 1024", call_softmax},
                {"norm", "bf16 1024 x 1024", call_norm},
                {"attention", "bf16 1024, 8 heads", call_attention}};
    tol_status status = TOL_OK;
    struct calls c = {0};
    struct tol_driver *driver = NULL;
    struct tol_context *context = NULL;
    TOL_TRY(calls_open(bench, &driver, &context, &c));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct kn_bench_row row = {.operation = "calls"};
        snprintf(row.shape, sizeof row.shape, "%s %s", rows[i].operation, rows[i].shape);
        snprintf(row.variant, sizeof row.variant, "host");
        if (!kn_bench_wants(bench, &row)) continue;
        TOL_TRY(calls_bench_time_calls(&c, rows[i].call, &row.us));
        kn_bench_keep(bench, &row);
    }
out:
    for (int i = 0; i < BUFFERS; i++) tol_buffer_destroy(c.buffers[i]);
    tol_buffer_destroy(c.workspace);
    kn_kernels_destroy(c.kernels);
    tol_stream_destroy(c.stream);
    tol_context_destroy(context);
    if (driver != NULL) tol_interpose_remove(driver);
    tol_driver_close(driver);
    return status;
}

KN_BENCH(calls, calls_bench_run)
