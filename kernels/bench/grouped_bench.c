/*
 * Times products of groups, and what follows them, beside cuBLAS's product of bf16 without it: a
 * call for each group. So a row of e4m3 says how much sooner it is than bf16.
 */
#include "cublas.h"
#include "grouped/grouped.h"
#include "kernel_bench.h"

#include "core/check.h"
#include "inputs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { GROUPS_MAX = 64, PEER_SETS_MAX = 4 };

struct grouped {
    struct kn_bench *bench;
    struct kn_cublas *cublas;
    struct kn_grouped grouped;
    struct tol_buffer *sets[KN_BENCH_SETS_MAX][3], *begins, *bias;
    struct tol_buffer *peers[PEER_SETS_MAX][GROUPS_MAX][3]; /* a, b and c of each group */
    size_t count, peer_count;
};

static tol_status grouped_bench_launch(void *user, size_t turn) {
    struct grouped *p = user;
    struct tol_buffer **set = p->sets[turn % p->count];
    p->grouped.a.buffer = set[0], p->grouped.b.buffer = set[1], p->grouped.c.buffer = set[2];
    if (p->grouped.activation != KN_NO_ACTIVATION) p->grouped.residual.buffer = set[2];
    return kn_grouped(p->bench->kernels, p->bench->stream, &p->grouped);
}

static tol_status launch_peer(void *user, size_t turn) {
    struct grouped *p = user;
    tol_status status = TOL_OK;
    for (size_t g = 0; g < p->grouped.groups && status == TOL_OK; g++) {
        struct tol_buffer **set = p->peers[turn % p->peer_count][g];
        status = kn_cublas_gemm(p->cublas, &(struct kn_gemm){.precision = KN_GEMM_BF16,
                                                             .c_type = KN_BF16,
                                                             .transpose_b = p->grouped.transpose_b,
                                                             .m = p->grouped.m / p->grouped.groups,
                                                             .n = p->grouped.n,
                                                             .k = p->grouped.k,
                                                             .alpha = 1,
                                                             .a = {.buffer = set[0]},
                                                             .b = {.buffer = set[1]},
                                                             .c = {.buffer = set[2]}});
    }
    return status;
}

static void grouped_bench_destroy(struct grouped *p) {
    for (size_t i = 0; i < p->count; i++) {
        for (int j = 0; j < 3; j++) tol_buffer_destroy(p->sets[i][j]);
    }
    for (size_t i = 0; i < PEER_SETS_MAX * GROUPS_MAX * 3; i++) {
        tol_buffer_destroy(p->peers[i / 3 / GROUPS_MAX][i / 3 % GROUPS_MAX][i % 3]);
    }
    tol_buffer_destroy(p->begins);
    tol_buffer_destroy(p->bias);
}

/* Normally distributed elements of e4m3: pieces of the same bytes, each begun elsewhere. */
static tol_status make_bytes(struct kn_bench *bench, size_t count, uint64_t seed,
                             struct tol_buffer **buffer) {
    enum { VALUES = 1 << 16 };
    tol_status status = TOL_OK;
    struct tol_buffer *made = NULL;
    uint8_t *bytes = malloc(2 * VALUES);
    TOL_CHECK(bytes != NULL, TOL_OUT_OF_HOST_MEMORY, "%d bytes", 2 * VALUES);
    for (size_t i = 0; i < 2 * VALUES; i++) {
        const double unit = 1 - kn_random_unit(&seed);
        bytes[i] = kn_e4m3_of((float)(sqrt(-2 * log(unit)) * cos(6.283 * kn_random_unit(&seed))));
    }
    TOL_TRY(tol_buffer_create(bench->context, count, 1, &made));
    for (size_t at = 0; at < count; at += VALUES) {
        const size_t now = count - at < VALUES ? count - at : VALUES;
        TOL_TRY(tol_buffer_write_at(made, at, bytes + kn_random(&seed) % VALUES, now));
    }
    *buffer = made;
    made = NULL;
out:
    tol_buffer_destroy(made);
    free(bytes);
    return status;
}

static tol_status make_factor(struct grouped *p, size_t count, uint64_t seed,
                              struct tol_buffer **buffer) {
    if (p->grouped.type == KN_GROUPED_E4M3) return make_bytes(p->bench, count, seed, buffer);
    return kn_bench_buffer(p->bench, p->grouped.type == KN_GROUPED_F16 ? KN_F16 : KN_BF16, count,
                           seed, buffer);
}

static tol_status make_peers(struct grouped *p) {
    tol_status status = TOL_OK;
    const struct kn_grouped *g = &p->grouped;
    const size_t m = g->m / g->groups;
    p->peer_count = p->count < PEER_SETS_MAX ? p->count : PEER_SETS_MAX;
    for (size_t i = 0; i < p->peer_count * g->groups; i++) {
        struct tol_buffer **set = p->peers[i / g->groups][i % g->groups];
        TOL_TRY(kn_bench_buffer(p->bench, KN_BF16, m * g->k, 3 * i, &set[0]));
        TOL_TRY(kn_bench_buffer(p->bench, KN_BF16, g->n * g->k, 3 * i + 1, &set[1]));
        TOL_TRY(tol_buffer_create(p->bench->context, m * g->n, 2, &set[2]));
    }
out:
    return status;
}

/* Groups of the same length. */
static tol_status grouped_bench_make(struct grouped *p) {
    tol_status status = TOL_OK;
    struct kn_grouped *g = &p->grouped;
    const size_t in = kn_grouped_type_bytes(g->type), out_bytes = kn_grouped_type_bytes(g->c_type);
    int32_t begins[GROUPS_MAX + 1];
    const size_t bytes = (g->m * g->k + g->groups * g->n * g->k) * in + g->m * g->n * out_bytes;
    p->count = kn_bench_sets(p->bench, bytes);
    for (size_t i = 0; i < p->count; i++) {
        TOL_TRY(make_factor(p, g->m * g->k, 3 * i, &p->sets[i][0]));
        TOL_TRY(make_factor(p, g->groups * g->n * g->k, 3 * i + 1, &p->sets[i][1]));
        TOL_TRY(tol_buffer_create(p->bench->context, g->m * g->n, out_bytes, &p->sets[i][2]));
        TOL_TRY(tol_buffer_fill_at(p->sets[i][2], 0, 0, 1, g->m * g->n * out_bytes));
    }
    for (size_t i = 0; i <= g->groups; i++) begins[i] = (int32_t)(i * (g->m / g->groups));
    TOL_TRY(tol_buffer_create(p->bench->context, g->groups + 1, 4, &p->begins));
    TOL_TRY(tol_buffer_write(p->begins, begins, (g->groups + 1) * sizeof begins[0]));
    TOL_TRY(kn_bench_buffer(p->bench, KN_F32, g->groups * g->n, 5, &p->bias));
    g->begins.buffer = p->begins;
    g->b.batch_stride = g->n * g->k;
    if (g->activation != KN_NO_ACTIVATION) {
        g->bias = (struct kn_vector){p->bias, 0, g->n};
        g->residual_type = g->c_type;
    }
    if (p->cublas != NULL) TOL_TRY(make_peers(p));
out:
    return status;
}

/* "+": with a bias and a residual. */
static struct kn_bench_row grouped_bench_row_of(const struct kn_grouped *g) {
    const double m = (double)g->m, n = (double)g->n, k = (double)g->k;
    const double in = (double)kn_grouped_type_bytes(g->type);
    struct kn_bench_row row = {.operation = "grouped",
                               .operations = 2 * m * n * k,
                               .bytes = (m * k + (double)g->groups * k * n) * in +
                                        m * n * (double)kn_grouped_type_bytes(g->c_type)};
    char groups[32] = "";
    if (g->groups > 1) snprintf(groups, sizeof groups, ", %zu groups", g->groups);
    snprintf(row.shape, sizeof row.shape, "%s %zu x %zu x %zu n%c%s%s%s",
             kn_grouped_type_name(g->type), g->m, g->n, g->k, g->transpose_b ? 't' : 'n', groups,
             g->activation != KN_NO_ACTIVATION ? ", +, " : "",
             g->activation != KN_NO_ACTIVATION ? kn_activation_name(g->activation) : "");
    return row;
}

static tol_status grouped_bench_measure(struct grouped *p, const char *const variants[4]) {
    tol_status status = TOL_OK;
    TOL_TRY(grouped_bench_make(p));
    const struct kn_bench_peer peer = {
        .name = "cublas bf16", .launch = p->cublas != NULL ? launch_peer : NULL, .user = p};
    const int most = p->bench->is_small ? 1 : 4; /* the soft device takes long for each */
    for (int i = 0; i < most && (i == 0 || variants[i - 1] != NULL); i++) {
        struct kn_bench_row row = grouped_bench_row_of(&p->grouped);
        const struct kn_variant *variant = NULL;
        p->grouped.variant = i == 0 ? NULL : variants[i - 1];
        p->grouped.a.buffer = p->sets[0][0], p->grouped.b.buffer = p->sets[0][1];
        p->grouped.c.buffer = p->sets[0][2];
        status = kn_grouped_pick(p->bench->kernels, &p->grouped, &variant);
        if (status == TOL_UNSUPPORTED && i > 0) { /* on this device */
            status = TOL_OK;
            continue;
        }
        if (status != TOL_OK) goto out;
        snprintf(row.variant, sizeof row.variant, "%s%s", variant->name, i == 0 ? " (chosen)" : "");
        TOL_TRY(kn_bench_compare(p->bench, &row, grouped_bench_launch, p, &peer));
    }
out:
    grouped_bench_destroy(p);
    return status;
}

static tol_status grouped_bench_run(struct kn_bench *bench) {
    static const struct {
        enum kn_grouped_type type;
        size_t m, n, k, groups;
        bool transpose_b;
        enum kn_activation activation;
        const char *variants[4];
    } products[] = {
        {KN_GROUPED_BF16, 4096, 4096, 4096, 1, 1, 0, {"wgmma_256", "wgmma_128"}},
        {KN_GROUPED_BF16, 4096, 4096, 4096, 1, 0, 0, {"wgmma_256"}},
        {KN_GROUPED_BF16, 4096, 4096, 4096, 1, 1, KN_SILU, {"wgmma_256", "wgmma_128"}},
        {KN_GROUPED_BF16, 4096, 4096, 4096, 1, 1, KN_GELU, {NULL}},
        {KN_GROUPED_BF16, 8192, 14336, 4096, 8, 1, 0, {"wgmma_256", "wgmma_128"}},
        {KN_GROUPED_BF16, 8192, 2048, 4096, 64, 1, 0, {"wgmma_256", "wgmma_128"}},
        {KN_GROUPED_BF16, 512, 2048, 4096, 64, 1, 0, {"wgmma_256", "wgmma_128"}},
        {KN_GROUPED_E4M3, 4096, 4096, 4096, 1, 1, 0, {"wgmma_128", "wgmma_pair", "wgmma_192"}},
        {KN_GROUPED_E4M3, 8192, 8192, 8192, 1, 1, 0, {"wgmma_128", "wgmma_pair", "wgmma_192"}},
        {KN_GROUPED_E4M3, 4096, 4096, 4096, 1, 1, KN_SILU, {"wgmma_192"}},
        {KN_GROUPED_E4M3, 8192, 14336, 4096, 8, 1, 0, {"wgmma_128", "wgmma_pair", "wgmma_192"}},
        {KN_GROUPED_E4M3, 512, 2048, 4096, 64, 1, 0, {NULL}},
    };
    tol_status status = TOL_OK;
    struct kn_cublas *cublas = kn_cublas_open(bench->cublas, bench->stream);
    const size_t least = bench->is_small ? 32 : 1; /* of the soft device */
    for (size_t i = 0; i < sizeof products / sizeof products[0]; i++) {
        const size_t groups = products[i].groups;
        struct grouped p = {.bench = bench,
                            .cublas = cublas,
                            .grouped = {.type = products[i].type,
                                        .c_type = KN_GROUPED_BF16,
                                        .transpose_b = products[i].transpose_b,
                                        .m = products[i].m / least,
                                        .n = products[i].n / least,
                                        .k = products[i].k / least,
                                        .groups = bench->is_small && groups > 2 ? 2 : groups,
                                        .alpha = 1,
                                        .activation = products[i].activation}};
        const struct kn_bench_row row = grouped_bench_row_of(&p.grouped);
        if (kn_bench_wants(bench, &row)) TOL_TRY(grouped_bench_measure(&p, products[i].variants));
    }
out:
    kn_cublas_close(cublas);
    return status;
}

KN_BENCH(grouped, grouped_bench_run)
