/*
 * Cases of sealed memory: each pass with each number of rounds, in place, with a last chunk that is
 * short; and the sealed product with blocks and rows left over.
 */
#include "core/check.h"
#include "guarded.h"
#include "inputs.h"
#include "kernel_sweep.h"
#include "quantised/formats/quant_draw.h"
#include "seal/chacha.h"
#include "seal/seal_chunks.h"
#include "seal/sealed_product.h"
#include "seal/tagger.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = SEAL_CHUNK_BYTES + 64 * 37, TAGS = 2 };

/* The bytes of a run: what is sealed, and its tags. */
struct sealed_bytes {
    uint8_t data[BYTES], before[TAGS * SEAL_TAG_BYTES], after[TAGS * SEAL_TAG_BYTES];
};

struct secrets {
    struct seal_stream from, to;
    struct seal_tagger before, after;
};

static void seal_sweep_draw(struct sweep *sweep, struct secrets *secrets) {
    uint8_t keys[4][32], nonce[12] = {1};
    for (size_t i = 0; i < sizeof keys; i++) {
        keys[i / 32][i % 32] = (uint8_t)kn_random(&sweep->random);
    }
    kn_chacha_begin(keys[0], nonce, &secrets->from);
    kn_chacha_begin(keys[1], nonce, &secrets->to);
    kn_tagger_begin(keys[2], keys[3], &secrets->before);
    kn_tagger_begin(keys[3], keys[2], &secrets->after);
}

/* What the host makes of the bytes; tags that a pass does not make stay as they are. */
static void seal_sweep_expect(const struct secrets *s, enum kn_seal_how how, unsigned rounds,
                              struct sealed_bytes *bytes) {
    if (how != KN_SEAL_CLOSE) kn_tagger_tags(&s->before, 0, 0, bytes->data, BYTES, bytes->before);
    if (how == KN_SEAL_OPEN || how == KN_SEAL_TURN) {
        kn_chacha_add(&s->from, rounds, 0, bytes->data, bytes->data, BYTES);
    }
    if (how != KN_SEAL_CLOSE && how != KN_SEAL_TURN) return;
    kn_chacha_add(&s->to, rounds, 0, bytes->data, bytes->data, BYTES);
    kn_tagger_tags(&s->after, 0, 0, bytes->data, BYTES, bytes->after);
}

static struct kn_deviation seal_sweep_compare(const struct sealed_bytes *made,
                                              const struct sealed_bytes *wanted) {
    static float found[sizeof *made];
    static double oracle[sizeof *made];
    for (size_t i = 0; i < sizeof *made; i++) {
        found[i] = (float)((const uint8_t *)made)[i];
        oracle[i] = (double)((const uint8_t *)wanted)[i];
    }
    return kn_deviation_of(KN_F32, found, oracle, sizeof *made, (struct kn_tolerance){0, 0}, NULL);
}

static void seal_sweep_run_pass(struct sweep *sweep, enum kn_seal_how how, unsigned rounds) {
    static const char *const names[] = {"tags", "close", "open", "turn"};
    static struct sealed_bytes wanted, made;
    tol_status status = TOL_OK;
    struct kn_deviation deviation = {.first = KN_NOWHERE, .worst = KN_NOWHERE};
    struct kn_guarded all = {0};
    struct secrets secrets;
    size_t touched = 0;
    if (!sweep_begin(sweep, "seal %s, %u rounds", names[how], rounds)) return;
    seal_sweep_draw(sweep, &secrets);
    for (size_t i = 0; i < sizeof wanted; i++) {
        ((uint8_t *)&wanted)[i] = (uint8_t)kn_random(&sweep->random);
    }
    TOL_TRY(kn_guarded_create(kn_kernels_context(sweep->kernels), sizeof wanted, 0, &all));
    TOL_TRY(kn_guarded_write(&all, &wanted));
    const CUdeviceptr at = tol_buffer_address(all.buffer) + all.offset;
    const struct kn_place tags_after = {at + offsetof(struct sealed_bytes, after),
                                        sizeof wanted.after};
    const struct kn_seal_chunks problem = {
        .how = how,
        .rounds = rounds,
        .bytes = BYTES,
        .in = {at, BYTES},
        .out = {at, BYTES},
        .tags_before = {at + offsetof(struct sealed_bytes, before), sizeof wanted.before},
        .tags_after = tags_after,
        .from = &secrets.from,
        .to = &secrets.to,
        .before = &secrets.before,
        .after = &secrets.after};
    TOL_TRY(kn_seal_chunks(sweep->kernels, sweep->stream, &problem));
    TOL_TRY(tol_stream_synchronize_for(sweep->stream, KN_PATIENCE_MS));
    TOL_TRY(kn_guarded_read(&all, &made));
    TOL_TRY(kn_guarded_check(&all, &touched));
    seal_sweep_expect(&secrets, how, rounds, &wanted);
    deviation = seal_sweep_compare(&made, &wanted);
out:
    sweep_judge(sweep, status, &deviation, touched);
    kn_guarded_destroy(&all);
}

/* Blocks of zero quants and minimums of one: each row of y is -dmin times the sum of x, which is
 * whole numbers that rounding to bytes keeps. */
static void seal_sweep_run_product(struct sweep *sweep, unsigned rounds, const char *variant) {
    enum { ROWS = 37, GROUPS = 6, K = GROUPS * 256, PITCH = 896 };
    tol_status status = TOL_OK;
    struct kn_deviation deviation = {.first = KN_NOWHERE, .worst = KN_NOWHERE};
    static uint8_t weights[ROWS][PITCH];
    static float x[K], y[ROWS];
    static double oracle[ROWS];
    struct kn_guarded of_w = {0}, of_x = {0}, of_y = {0};
    struct secrets secrets;
    size_t touched = 0;
    if (!sweep_begin(sweep, "sealed product, %u rounds, %s", rounds, variant)) return;
    seal_sweep_draw(sweep, &secrets);
    double sum = 0;
    for (int i = 0; i < K; i++) {
        x[i] = i % 32 == 0 ? 127 : (float)(kn_random(&sweep->random) % 255) - 127;
        sum += (double)x[i];
    }
    memset(weights, 0, sizeof weights);
    for (int i = 0; i < ROWS; i++) {
        for (int b = 0; b < GROUPS; b++) {
            struct kn_block_q4_k block = {.d = 0x3c00, .dmin = 0x3c00}; /* 1 */
            for (int j = 0; j < 8; j++) kn_q4_k_set_scale(block.scales, j, 0, (uint8_t)(i % 4));
            memcpy(weights[i] + (size_t)b * sizeof block, &block, sizeof block);
        }
        oracle[i] = -sum * (i % 4);
    }
    kn_chacha_add(&secrets.from, rounds, 5, weights, weights, sizeof weights);
    struct tol_context *context = kn_kernels_context(sweep->kernels);
    TOL_TRY(kn_guarded_create(context, sizeof weights, 0, &of_w));
    TOL_TRY(kn_guarded_create(context, sizeof x, 0, &of_x));
    TOL_TRY(kn_guarded_create(context, sizeof y, 4, &of_y));
    TOL_TRY(kn_guarded_write(&of_w, weights));
    TOL_TRY(kn_guarded_write(&of_x, x));
    const struct kn_sealed_product problem = {
        .rows = ROWS,
        .k = K,
        .weights = {tol_buffer_address(of_w.buffer) + of_w.offset, of_w.bytes},
        .x = {tol_buffer_address(of_x.buffer) + of_x.offset, of_x.bytes},
        .y = {tol_buffer_address(of_y.buffer) + of_y.offset, of_y.bytes},
        .rounds = rounds,
        .first_unit = 5,
        .stream = &secrets.from,
        .variant = variant};
    TOL_TRY(kn_sealed_product(sweep->kernels, sweep->stream, &problem));
    TOL_TRY(tol_stream_synchronize_for(sweep->stream, KN_PATIENCE_MS));
    TOL_TRY(kn_guarded_read(&of_y, y));
    TOL_TRY(kn_guarded_check(&of_y, &touched));
    deviation = kn_deviation_of(KN_F32, y, oracle, ROWS, (struct kn_tolerance){1e-3, 1e-5}, NULL);
out:
    sweep_judge(sweep, status, &deviation, touched);
    kn_guarded_destroy(&of_w), kn_guarded_destroy(&of_x), kn_guarded_destroy(&of_y);
}

void sweep_seal(struct sweep *sweep) {
    static const unsigned rounds[] = {20, 12, 8};
    const bool has_early =
        tol_context_device(kn_kernels_context(sweep->kernels))->compute_capability >= 90;
    for (int i = 0; i < 3; i++) {
        for (enum kn_seal_how how = 0; how < KN_SEAL_HOWS; how++) {
            if (how != KN_SEAL_TAGS || i == 0) seal_sweep_run_pass(sweep, how, rounds[i]);
        }
        seal_sweep_run_product(sweep, rounds[i], "product");
        if (has_early) seal_sweep_run_product(sweep, rounds[i], "early");
    }
}
