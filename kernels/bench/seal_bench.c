/*
 * What sealed memory costs: passes over it beside a copy of as many bytes, and the sealed product
 * beside the plain one, with which its batches alternate. Bytes are those that are sealed, counted
 * once, and no more where a pass reads and writes them. Cold: weights from device memory each time.
 */
#include "alike.h"
#include "core/check.h"
#include "inputs.h"
#include "quantised/formats/quant_draw.h"
#include "quantised/product/quant_product.h"
#include "seal/chacha.h"
#include "seal/seal_chunks.h"
#include "seal/sealed_product.h"
#include "seal/tagger.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const unsigned rounds_of[] = {20, 12, 8};

struct secrets {
    struct seal_stream from, to;
    struct seal_tagger before, after;
};

static void draw_secrets(struct secrets *secrets) {
    uint64_t random = 17;
    uint8_t keys[4][32], nonce[12] = {0};
    for (size_t i = 0; i < sizeof keys; i++) keys[i / 32][i % 32] = (uint8_t)kn_random(&random);
    kn_chacha_begin(keys[0], nonce, &secrets->from);
    kn_chacha_begin(keys[1], nonce, &secrets->to);
    kn_tagger_begin(keys[2], keys[3], &secrets->before);
    kn_tagger_begin(keys[3], keys[2], &secrets->after);
}

/* ---- passes ---- */

struct passes {
    struct kn_bench *bench;
    struct tol_buffer *data[KN_BENCH_SETS_MAX], *other[KN_BENCH_SETS_MAX], *tags, *tops;
    size_t sets, bytes;
    struct secrets secrets;
    struct kn_seal_chunks pass;
};

static tol_status launch_pass(void *user, size_t turn) {
    struct passes *p = user;
    p->pass.in = p->pass.out = kn_place_of(p->data[turn % p->sets], 0);
    return kn_seal_chunks(p->bench->kernels, p->bench->stream, &p->pass);
}

/* Tags of all bytes, and tags of these: all that a verification does on the device. */
static tol_status launch_verify(void *user, size_t turn) {
    struct passes *p = user;
    const tol_status status = launch_pass(user, turn);
    const struct kn_seal_chunks of_tags = {.how = KN_SEAL_TAGS,
                                           .bytes = tol_buffer_bytes(p->tags) / 2,
                                           .level = 1,
                                           .in = kn_place_of(p->tags, 0),
                                           .tags_before = kn_place_of(p->tops, 0),
                                           .before = &p->secrets.before};
    if (status != TOL_OK) return status;
    return kn_seal_chunks(p->bench->kernels, p->bench->stream, &of_tags);
}

static tol_status make_passes(struct passes *p) {
    tol_status status = TOL_OK;
    const size_t tags = (kn_seal_tag_bytes(p->bytes) + 63) / 64 * 64;
    const size_t sets = kn_bench_sets(p->bench, p->bytes);
    draw_secrets(&p->secrets);
    for (p->sets = 0; p->sets < sets; p->sets++) {
        const size_t i = p->sets;
        TOL_TRY(kn_bench_buffer(p->bench, KN_F32, p->bytes / 4, i, &p->data[i]));
        TOL_TRY(tol_buffer_create(p->bench->context, p->bytes, 1, &p->other[i]));
    }
    TOL_TRY(tol_buffer_create(p->bench->context, 2, tags, &p->tags));
    TOL_TRY(tol_buffer_fill_at(p->tags, 0, 0, 1, 2 * tags));
    TOL_TRY(tol_buffer_create(p->bench->context, kn_seal_tag_bytes(tags), 1, &p->tops));
    p->pass = (struct kn_seal_chunks){.bytes = p->bytes,
                                      .tags_before = kn_place_of(p->tags, 0),
                                      .tags_after = kn_place_of(p->tags, tags),
                                      .from = &p->secrets.from,
                                      .to = &p->secrets.to,
                                      .before = &p->secrets.before,
                                      .after = &p->secrets.after};
out:
    return status;
}

static void destroy_passes(struct passes *p) {
    for (size_t i = 0; i < KN_BENCH_SETS_MAX; i++) {
        tol_buffer_destroy(p->data[i]);
        tol_buffer_destroy(p->other[i]);
    }
    tol_buffer_destroy(p->tags);
    tol_buffer_destroy(p->tops);
}

static tol_status measure_pass(struct passes *p, const struct kn_bench_row *like, const char *name,
                               enum kn_seal_how how, unsigned rounds) {
    struct kn_bench_row row = *like;
    p->pass.how = how;
    p->pass.rounds = rounds;
    snprintf(row.variant, sizeof row.variant, rounds > 0 ? "%s %u" : "%s", name, rounds);
    return kn_bench_measure(p->bench, &row, how == KN_SEAL_TAGS ? launch_verify : launch_pass, p);
}

static tol_status measure_passes(struct kn_bench *bench, size_t bytes) {
    static const char *const names[] = {NULL, "seal", "open", "reseal"};
    tol_status status = TOL_OK;
    struct passes p = {.bench = bench, .bytes = bytes};
    struct kn_bench_row row = {.operation = "seal", .bytes = (double)bytes};
    snprintf(row.shape, sizeof row.shape, "%zu KiB", bytes >> 10);
    if (!kn_bench_wants(bench, &row)) return TOL_OK;
    TOL_TRY(make_passes(&p));
    struct kn_bench_row copy = row;
    snprintf(copy.variant, sizeof copy.variant, "copy");
    TOL_TRY(kn_bench_copying(bench, &copy, p.data, p.other, p.sets, bytes));
    row.ceiling = "copy";
    row.ceiling_us = copy.us;
    TOL_TRY(measure_pass(&p, &row, "verify", KN_SEAL_TAGS, 0));
    for (enum kn_seal_how how = KN_SEAL_CLOSE; how < KN_SEAL_HOWS; how++) {
        for (int i = 0; i < 3; i++) {
            TOL_TRY(measure_pass(&p, &row, names[how], how, rounds_of[i]));
        }
    }
out:
    destroy_passes(&p);
    return status;
}

/* ---- products ---- */

struct products {
    struct kn_bench *bench;
    struct tol_buffer *plain[KN_BENCH_SETS_MAX], *sealed[KN_BENCH_SETS_MAX], *x, *y, *workspace;
    size_t sets, used;
    struct secrets secrets;
    struct kn_quant_product plain_product;
    struct kn_sealed_product sealed_product;
};

static tol_status seal_bench_launch_plain(void *user, size_t turn) {
    struct products *p = user;
    p->plain_product.weights = kn_place_of(p->plain[turn % p->used], 0);
    return kn_quant_product(p->bench->kernels, p->bench->stream, &p->plain_product);
}

static tol_status launch_sealed(void *user, size_t turn) {
    struct products *p = user;
    p->sealed_product.weights = kn_place_of(p->sealed[turn % p->used], 0);
    return kn_sealed_product(p->bench->kernels, p->bench->stream, &p->sealed_product);
}

/* Plain weights, and bytes at random for sealed ones: what they decrypt to costs the same. */
static tol_status make_products(struct products *p, size_t rows, size_t k) {
    tol_status status = TOL_OK;
    const size_t blocks = rows * k / 256, row_bytes = kn_sealed_row_bytes(k);
    const size_t sets = kn_bench_sets(p->bench, blocks * sizeof(struct kn_block_q4_k));
    const size_t space = kn_quant_product_workspace(KN_QUANT_Q8_1, 1, k);
    uint64_t random = 3;
    char *drawn = malloc(rows * row_bytes);
    TOL_CHECK(drawn != NULL, TOL_OUT_OF_HOST_MEMORY, "%zu bytes", rows * row_bytes);
    draw_secrets(&p->secrets);
    kn_quant_draw(KN_Q4_K, KN_BLOCKS_USUAL, &random, blocks, drawn);
    for (p->sets = 0; p->sets < sets; p->sets++) {
        const size_t i = p->sets;
        TOL_TRY(tol_buffer_create(p->bench->context, blocks, sizeof(struct kn_block_q4_k),
                                  &p->plain[i]));
        TOL_TRY(tol_buffer_write(p->plain[i], drawn, blocks * sizeof(struct kn_block_q4_k)));
        TOL_TRY(kn_bench_buffer(p->bench, KN_F32, rows * row_bytes / 4, i, &p->sealed[i]));
    }
    TOL_TRY(kn_bench_buffer(p->bench, KN_F32, k, 1, &p->x));
    TOL_TRY(tol_buffer_create(p->bench->context, rows, sizeof(float), &p->y));
    TOL_TRY(tol_buffer_create(p->bench->context, space, 1, &p->workspace));
    p->plain_product = (struct kn_quant_product){.quant = KN_Q4_K,
                                                 .arithmetic = KN_QUANT_Q8_1,
                                                 .rows = rows,
                                                 .columns = 1,
                                                 .k = k,
                                                 .x = kn_place_of(p->x, 0),
                                                 .y = kn_place_of(p->y, 0),
                                                 .workspace = kn_place_of(p->workspace, 0)};
    p->sealed_product = (struct kn_sealed_product){.rows = rows,
                                                   .k = k,
                                                   .x = kn_place_of(p->x, 0),
                                                   .y = kn_place_of(p->y, 0),
                                                   .stream = &p->secrets.from};
out:
    free(drawn);
    return status;
}

static void destroy_products(struct products *p) {
    for (size_t i = 0; i < KN_BENCH_SETS_MAX; i++) {
        tol_buffer_destroy(p->plain[i]);
        tol_buffer_destroy(p->sealed[i]);
    }
    tol_buffer_destroy(p->x);
    tol_buffer_destroy(p->y);
    tol_buffer_destroy(p->workspace);
}

static tol_status measure_products(struct kn_bench *bench, size_t rows, size_t k) {
    tol_status status = TOL_OK;
    struct products p = {.bench = bench};
    const struct kn_bench_peer plain = {"plain product", seal_bench_launch_plain, &p};
    struct kn_bench_row row = {.operation = "seal",
                               .bytes = (double)(rows * kn_sealed_row_bytes(k))};
    snprintf(row.shape, sizeof row.shape, "q4_k product %zu x 1 x %zu", rows, k);
    if (!kn_bench_wants(bench, &row)) return TOL_OK;
    TOL_TRY(make_products(&p, rows, k));
    for (int i = 0; i < 6; i++) {
        struct kn_bench_row one = row;
        p.sealed_product.rounds = rounds_of[i % 3];
        p.used = i < 3 ? p.sets : 1;
        snprintf(one.variant, sizeof one.variant, "sealed %u %s", rounds_of[i % 3],
                 i < 3 ? "cold" : "hot");
        TOL_TRY(kn_bench_compare(bench, &one, launch_sealed, &p, &plain));
    }
out:
    destroy_products(&p);
    return status;
}

static tol_status seal_bench_run(struct kn_bench *bench) {
    tol_status status = TOL_OK;
    if (bench->is_small) {
        TOL_TRY(measure_passes(bench, 256 << 10));
        return measure_products(bench, 64, 1024);
    }
    TOL_TRY(measure_passes(bench, (size_t)33 << 20));
    TOL_TRY(measure_passes(bench, (size_t)1 << 30));
    TOL_TRY(measure_products(bench, 4096, 14336));
    TOL_TRY(measure_products(bench, 4096, 4096));
    TOL_TRY(measure_products(bench, 14336, 4096));
out:
    return status;
}

KN_BENCH(seal, seal_bench_run)
