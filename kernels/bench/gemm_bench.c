/*
 * Times products of matrices, beside cuBLAS if it is found.
 */
#include "bench_check.h"
#include "cublas.h"
#include "gemm/gemm_oracle.h"

#include "core/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct product {
    struct kn_bench *bench;
    struct kn_cublas *cublas; /* NULL: by our own kernels */
    struct kn_gemm gemm;
    struct tol_buffer *buffers[KN_BENCH_SETS_MAX][3], *workspace;
    size_t sets;
    size_t known;             /* a row of the first set's C */
    double *values, *allowed; /* that it must have */
};

static tol_status gemm_bench_launch(void *user, size_t turn) {
    struct product *p = user;
    struct tol_buffer **set = p->buffers[turn % p->sets];
    p->gemm.a.buffer = set[0], p->gemm.b.buffer = set[1], p->gemm.c.buffer = set[2];
    return p->cublas != NULL ? kn_cublas_gemm(p->cublas, &p->gemm)
                             : kn_gemm(p->bench->kernels, p->bench->stream, &p->gemm);
}

static void gemm_bench_destroy_buffers(struct product *p) {
    for (size_t i = 0; i < p->sets; i++) {
        for (int j = 0; j < 3; j++) tol_buffer_destroy(p->buffers[i][j]);
    }
    tol_buffer_destroy(p->workspace);
    free(p->values);
    free(p->allowed);
}

/* One row of C from whole A and B, for all variants. */
static tol_status gemm_bench_know(struct product *p) {
    tol_status status = TOL_OK;
    const struct kn_gemm *g = &p->gemm;
    const size_t a_bytes = tol_buffer_bytes(p->buffers[0][0]);
    const size_t b_bytes = tol_buffer_bytes(p->buffers[0][1]);
    void *a = malloc(a_bytes), *b = malloc(b_bytes);
    p->known = g->m / 2 + g->m / 4;
    p->values = malloc(g->n * sizeof *p->values), p->allowed = malloc(g->n * sizeof *p->allowed);
    TOL_CHECK(a != NULL && b != NULL && p->values != NULL && p->allowed != NULL,
              TOL_OUT_OF_HOST_MEMORY, "%zu bytes", a_bytes + b_bytes);
    TOL_TRY(tol_buffer_read(p->buffers[0][0], a, a_bytes));
    TOL_TRY(tol_buffer_read(p->buffers[0][1], b, b_bytes));
    const struct kn_gemm_oracle_matrix of_a = {a, g->transpose_a ? g->m : g->k, 0};
    const struct kn_gemm_oracle_matrix of_b = {b, g->transpose_b ? g->k : g->n, 0};
    kn_gemm_oracle(g, KN_GEMM_DRAWN, 0, p->known, &of_a, &of_b, NULL, p->values, p->allowed);
out:
    free(a);
    free(b);
    return status;
}

static tol_status gemm_bench_make_buffers(struct product *p) {
    tol_status status = TOL_OK;
    const struct kn_gemm *g = &p->gemm;
    const enum kn_type type = kn_gemm_input_type(g->precision);
    const size_t inputs = (g->m * g->k + g->k * g->n) * kn_type_bytes(type);
    p->sets = kn_bench_sets(p->bench, inputs + g->m * g->n * kn_type_bytes(g->c_type));
    for (size_t i = 0; i < p->sets; i++) {
        TOL_TRY(kn_bench_buffer(p->bench, type, g->m * g->k, 3 * i, &p->buffers[i][0]));
        TOL_TRY(kn_bench_buffer(p->bench, type, g->k * g->n, 3 * i + 1, &p->buffers[i][1]));
        TOL_TRY(tol_buffer_create(p->bench->context, g->m * g->n, kn_type_bytes(g->c_type),
                                  &p->buffers[i][2]));
    }
out:
    return status;
}

/* Parts of fp32 are multiplied as bf16. */
static enum kn_bench_rate rate_of(enum kn_gemm_precision precision) {
    return precision == KN_GEMM_F32    ? KN_RATE_FLOATS
           : precision == KN_GEMM_TF32 ? KN_RATE_TF32
                                       : KN_RATE_HALVES;
}

static struct kn_bench_row gemm_bench_row_of(const struct kn_gemm *g) {
    const double m = (double)g->m, n = (double)g->n, k = (double)g->k;
    const double in = (double)kn_type_bytes(kn_gemm_input_type(g->precision));
    struct kn_bench_row row = {.operation = "gemm",
                               .operations = 2 * m * n * k,
                               .rate = rate_of(g->precision),
                               .bytes =
                                   (m * k + k * n) * in + m * n * (double)kn_type_bytes(g->c_type)};
    snprintf(row.shape, sizeof row.shape, "%s %zu x %zu x %zu %c%c",
             kn_gemm_precision_name(g->precision), g->m, g->n, g->k, g->transpose_a ? 't' : 'n',
             g->transpose_b ? 't' : 'n');
    return row;
}

/* A workspace, where the kernel can use one: as a program that cares for time would. */
static tol_status make_workspace(struct product *p) {
    tol_status status = TOL_OK;
    size_t bytes = 0;
    tol_buffer_destroy(p->workspace);
    p->gemm.workspace = p->workspace = NULL;
    TOL_TRY(kn_gemm_workspace(p->bench->kernels, &p->gemm, &bytes));
    if (bytes > 0) TOL_TRY(tol_buffer_create(p->bench->context, bytes, 1, &p->workspace));
    p->gemm.workspace = p->workspace;
out:
    return status;
}

/* Whoever works on the first set again, and the row of C that is left. */
static tol_status gemm_bench_check(struct product *p, const struct kn_bench_row *row,
                                   const char *by, const struct kn_bench_peer *peer) {
    tol_status status = TOL_OK;
    struct kn_bench_right right = {p->values, p->allowed, {0, 0}, p->gemm.n};
    if (peer != NULL) { /* may add parts in 16 bits, unlike ours */
        TOL_TRY(peer->launch(peer->user, 0));
        right.allowed = NULL, right.tolerance.absolute = 0.02 * sqrt((double)p->gemm.k);
    } else {
        TOL_TRY(gemm_bench_launch(p, 0));
    }
    TOL_TRY(tol_stream_synchronize(p->bench->stream));
    status = kn_bench_check(p->bench, row, by, p->gemm.c_type, p->buffers[0][2],
                            p->known * p->gemm.n, &right);
out:
    return status;
}

static tol_status time_and_check(struct product *p, struct kn_bench_row *row,
                                 const struct kn_bench_peer *peer) {
    tol_status status = TOL_OK;
    TOL_TRY(kn_bench_compare(p->bench, row, gemm_bench_launch, p, peer));
    if (peer->launch != NULL) TOL_TRY(gemm_bench_check(p, row, peer->name, peer));
    status = gemm_bench_check(p, row, row->variant, NULL);
out:
    return status;
}

/* The variants, each beside cuBLAS. What is split is shown whole as well. */
static tol_status gemm_bench_measure(struct product *p, const char *const *variants, size_t count) {
    tol_status status = TOL_OK;
    struct kn_cublas *const cublas = p->cublas;
    TOL_TRY(gemm_bench_make_buffers(p));
    TOL_TRY(gemm_bench_know(p));
    struct product peers = *p;
    const struct kn_bench_peer peer = {
        .name = "cublas", .launch = cublas != NULL ? gemm_bench_launch : NULL, .user = &peers};
    p->cublas = NULL;
    for (size_t i = 0; i < count; i++) {
        const struct kn_variant *variant = NULL;
        struct kn_bench_row row = gemm_bench_row_of(&p->gemm);
        p->gemm.variant = variants[i];
        p->gemm.a.buffer = p->buffers[0][0], p->gemm.b.buffer = p->buffers[0][1];
        p->gemm.c.buffer = p->buffers[0][2];
        status = make_workspace(p); /* some kernels take no problem without one */
        if (status == TOL_UNSUPPORTED && variants[i] != NULL) { /* on this device */
            status = TOL_OK;
            continue;
        }
        if (status != TOL_OK) goto out;
        TOL_TRY(kn_gemm_pick(p->bench->kernels, &p->gemm, &variant));
        const char *how = p->workspace == NULL ? "" : variant->packs ? ", copied" : ", split";
        snprintf(row.variant, sizeof row.variant, "%s%s%s", variant->name, how,
                 variants[i] == NULL ? " (chosen)" : "");
        TOL_TRY(time_and_check(p, &row, &peer));
        if (p->workspace == NULL || variant->packs) continue;
        p->gemm.workspace = NULL;
        snprintf(row.variant, sizeof row.variant, "%s, not split", variant->name);
        TOL_TRY(time_and_check(p, &row, &peer));
    }
out:
    gemm_bench_destroy_buffers(p);
    p->cublas = cublas;
    return status;
}

/* Those of compute capability 9.0, beside those that they replace. */
#define HOPPER "wgmma_256", "wgmma_128", "async_128"
#define NARROW "wgmma_64_k2", "wgmma_64", "wgmma_128", "wgmma_k4", "async_128"
#define PACKED "packed_256", "packed_128"
/* Of floats without tensor cores. */
#define FLOATS "wide_64", "wide_short", "vector"

static tol_status gemm_bench_run(struct kn_bench *bench) {
    static const struct {
        enum kn_gemm_precision precision;
        size_t m, n, k;
        bool transpose_a, transpose_b;
        const char *variants[8]; /* beside the one that is chosen */
    } products[] = {
        {KN_GEMM_F32, 4096, 4096, 4096, 0, 0, {"naive", "shared", "registers", FLOATS}},
        {KN_GEMM_F32, 4096, 4096, 4096, 0, 1, {FLOATS}},
        {KN_GEMM_F32, 4096, 4096, 4096, 1, 0, {FLOATS}},
        {KN_GEMM_F32, 4096, 4096, 4096, 1, 1, {FLOATS}},
        {KN_GEMM_F32, 8192, 8192, 8192, 0, 0, {FLOATS}},
        {KN_GEMM_F32, 1024, 1024, 1024, 0, 0, {FLOATS}},
        {KN_GEMM_F32, 1024, 1024, 1024, 0, 1, {FLOATS}},
        {KN_GEMM_F32, 16, 4096, 4096, 0, 1, {NULL}},
        {KN_GEMM_F32, 4096, 16, 4096, 0, 0, {NULL}},
        {KN_GEMM_F32_TENSOR, 4096, 4096, 4096, 0, 0, {"parts_128"}},
        {KN_GEMM_F32_TENSOR, 4096, 4096, 4096, 0, 1, {"parts_128"}},
        {KN_GEMM_F32_TENSOR, 1024, 1024, 1024, 0, 0, {"parts_128"}},
        {KN_GEMM_TF32, 4096, 4096, 4096, 0, 0, {"tensor", HOPPER}},
        {KN_GEMM_TF32, 4096, 4096, 4096, 0, 1, {HOPPER}},
        {KN_GEMM_TF32, 4096, 4096, 4096, 1, 0, {PACKED, "async_128"}},
        {KN_GEMM_TF32, 4096, 4096, 4096, 1, 1, {HOPPER}},
        {KN_GEMM_TF32, 8192, 8192, 8192, 0, 0, {HOPPER}},
        {KN_GEMM_TF32, 1024, 1024, 1024, 0, 0, {HOPPER}},
        {KN_GEMM_TF32, 16, 4096, 4096, 0, 1, {NULL}},
        {KN_GEMM_TF32, 4096, 16, 4096, 0, 0, {NULL}},
        {KN_GEMM_BF16, 4096, 4096, 4096, 0, 0, {"tensor", HOPPER}},
        {KN_GEMM_BF16, 4096, 4096, 4096, 0, 1, {HOPPER}},
        {KN_GEMM_BF16, 4096, 4096, 4096, 1, 0, {HOPPER}},
        {KN_GEMM_BF16, 4096, 4096, 4096, 1, 1, {HOPPER}},
        {KN_GEMM_BF16, 8192, 8192, 8192, 0, 0, {HOPPER}},
        {KN_GEMM_BF16, 8192, 8192, 8192, 0, 1, {HOPPER}},
        {KN_GEMM_BF16, 2048, 2048, 2048, 0, 1, {HOPPER}},
        {KN_GEMM_BF16, 1024, 1024, 1024, 0, 1, {NARROW}},
        {KN_GEMM_BF16, 128, 4096, 14336, 0, 1, {NARROW}},
        {KN_GEMM_BF16, 128, 4096, 4096, 0, 1, {NARROW}},
        {KN_GEMM_BF16, 64, 4096, 14336, 0, 1, {NARROW}},
        {KN_GEMM_BF16, 32, 4096, 4096, 0, 1, {NARROW}},
        {KN_GEMM_BF16, 16, 4096, 14336, 0, 1, {NARROW}},
        {KN_GEMM_BF16, 16, 4096, 4096, 0, 1, {NARROW}},
        {KN_GEMM_BF16, 4096, 16, 4096, 0, 0, {NARROW}},
        {KN_GEMM_F16, 4096, 4096, 4096, 0, 1, {HOPPER}},
        {KN_GEMM_BF16, 4095, 4095, 4095, 0, 0, {"gathered", PACKED}}, /* not aligned */
        {KN_GEMM_BF16, 4095, 4095, 4095, 0, 1, {"gathered", PACKED}},
        {KN_GEMM_BF16, 999, 999, 999, 0, 0, {"tensor", "gathered", PACKED}},
        {KN_GEMM_BF16, 17, 4095, 4095, 0, 1, {"tensor", "gathered"}},
        {KN_GEMM_TF32, 4095, 4095, 4095, 0, 0, {"tensor", "gathered", PACKED}},
    };
    tol_status status = TOL_OK;
    struct kn_cublas *cublas = kn_cublas_open(bench->cublas, bench->stream);
    if (cublas == NULL) printf("gemm: no cuBLAS was found, so no ceiling is shown\n");
    for (size_t i = 0; i < sizeof products / sizeof products[0]; i++) {
        const char *variants[9] = {NULL};
        size_t count = 1;
        const size_t least = bench->is_small ? 16 : 1; /* of the soft device, a sixteenth */
        const bool is_skinny = products[i].m <= 16 || products[i].n <= 16;
        const size_t least_k = is_skinny && bench->is_small ? 4 : least; /* so that it is split */
        struct product p = {.bench = bench,
                            .cublas = cublas,
                            .gemm = {.precision = products[i].precision,
                                     .m = products[i].m / least,
                                     .n = products[i].n / least,
                                     .k = products[i].k / least_k,
                                     .transpose_a = products[i].transpose_a,
                                     .transpose_b = products[i].transpose_b,
                                     .c_type = kn_gemm_input_type(products[i].precision),
                                     .alpha = 1}};
        const struct kn_bench_row row = gemm_bench_row_of(&p.gemm);
        const size_t most = bench->is_small ? 3 : 9; /* the soft device takes seconds for each */
        while (count < most && products[i].variants[count - 1] != NULL) {
            variants[count] = products[i].variants[count - 1];
            count++;
        }
        if (kn_bench_wants(bench, &row)) TOL_TRY(gemm_bench_measure(&p, variants, count));
    }
out:
    kn_cublas_close(cublas);
    return status;
}

KN_BENCH(gemm, gemm_bench_run)
