/*
 * Dequantising on the device: every variant, every kind of block, bit for bit, with guarded
 * outputs; M10; and what is refused.
 */
#include "dequantise.h"

#include "deviation.h"
#include "guarded.h"
#include "inputs.h"
#include "kernel_scene.h"
#include "quant_draw.h"
#include "test/test_device.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(dequantise, .fini = kernel_scene_end);

struct run {
    enum kn_quant quant;
    enum kn_type type;
    size_t blocks, blocks_skew, values_skew;
    const char *variant;
};

static struct kn_place place_of(const struct kn_guarded *guarded) {
    return (struct kn_place){tol_buffer_address(guarded->buffer) + guarded->offset, guarded->bytes};
}

/* Runs it over the blocks and compares all elements with the host's, bit for bit but for the
 * payloads of NaN. */
static void check(struct run run, const void *blocks, const char *what) {
    const size_t count = run.blocks * kn_quant_block_elements(run.quant);
    const size_t bytes = run.blocks * kn_quant_block_bytes(run.quant);
    float *expected = malloc(count * sizeof *expected);
    uint32_t *made = malloc(count * sizeof *made);
    uint16_t *halves = (uint16_t *)made;
    struct kn_guarded in = {0}, out = {0};
    size_t changed = 0;
    MUST(kn_guarded_create(test_context(), bytes, run.blocks_skew, &in));
    MUST(kn_guarded_create(test_context(), count * kn_type_bytes(run.type), run.values_skew, &out));
    MUST(kn_guarded_write(&in, blocks));
    const struct kn_dequantise problem = {.quant = run.quant,
                                          .type = run.type,
                                          .count = count,
                                          .blocks = place_of(&in),
                                          .values = place_of(&out),
                                          .variant = run.variant};
    MUST(kn_dequantise(kernels, stream, &problem));
    MUST(tol_stream_synchronize(stream));
    MUST(kn_guarded_read(&out, made));
    MUST(kn_guarded_check(&out, &changed));
    cr_assert(changed == 0, "%s: %zu bytes outside have changed", what, changed);
    kn_quant_values(run.quant, blocks, run.blocks, expected);
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &expected[i], sizeof bits);
        if (run.type == KN_F16) bits = kn_f16_of(expected[i]);
        const uint32_t got = run.type == KN_F16 ? halves[i] : made[i];
        const bool nan = run.type == KN_F16 ? (got & 0x7fff) > 0x7c00 && got != 0xffff
                                            : (got & 0x7fffffff) > 0x7f800000 && got != UINT32_MAX;
        cr_assert(isnan(expected[i]) ? nan : got == bits, "%s: element %zu is %#x and not %#x",
                  what, i, got, bits);
    }
    kn_guarded_destroy(&in);
    kn_guarded_destroy(&out);
    free(made);
    free(expected);
}

Test(dequantise, every_variant_gives_the_same_bits_for_all_kinds_of_blocks) {
    static const size_t counts[] = {1, 3, 8, 61};
    static const char *const variants[] = {"wide", "naive", NULL};
    char *blocks = malloc(61 * 210), what[160];
    kernel_scene_begin();
    for (int turn = 0; turn < 3 * 2 * 3 * KN_BLOCKS_KINDS; turn++) {
        uint64_t state = (uint64_t)turn + 1;
        const struct run run = {.quant = (enum kn_quant)(turn % 3),
                                .type = turn / 3 % 2 == 0 ? KN_F32 : KN_F16,
                                .blocks = counts[turn / 6 % 4],
                                .variant = variants[turn / 6 % 3]};
        const enum kn_quant_blocks kind = (enum kn_quant_blocks)(turn / 18);
        kn_quant_draw(run.quant, kind, &state, run.blocks, blocks);
        snprintf(what, sizeof what, "%s to %s, %zu blocks %s by %s, seed %d",
                 kn_quant_name(run.quant), kn_type_name(run.type), run.blocks,
                 kn_quant_blocks_name(kind), run.variant == NULL ? "the best" : run.variant,
                 turn + 1);
        check(run, blocks, what);
    }
    free(blocks);
}

/* Specification 004: Q4_K as llama.cpp. */
Test(dequantise, milestone_10_q4_k_is_llama_cpps) {
    kernel_scene_begin();
    for (enum kn_quant quant = 0; quant < KN_QUANTS; quant++) {
        char name[64];
        size_t bytes = 0, value_bytes = 0;
        snprintf(name, sizeof name, "quant/%s.blocks", kn_quant_name(quant));
        char *blocks = test_fixture(name, &bytes);
        snprintf(name, sizeof name, "quant/%s.f32", kn_quant_name(quant));
        char *expected = test_fixture(name, &value_bytes);
        float *made = malloc(value_bytes);
        tol_auto_buffer struct tol_buffer *in = NULL, *out = NULL;
        MUST(tol_buffer_create(test_context(), bytes, 1, &in));
        MUST(tol_buffer_create(test_context(), value_bytes, 1, &out));
        MUST(tol_buffer_write(in, blocks, bytes));
        MUST(tol_buffer_fill_at(out, 0, 0xff, 1, value_bytes));
        MUST(kn_dequantise(kernels, stream,
                           &(struct kn_dequantise){.quant = quant,
                                                   .type = KN_F32,
                                                   .count = value_bytes / sizeof(float),
                                                   .blocks = kn_place_of(in, 0),
                                                   .values = kn_place_of(out, 0)}));
        MUST(tol_stream_synchronize(stream));
        MUST(tol_buffer_read(out, made, value_bytes));
        cr_assert(memcmp(made, expected, value_bytes) == 0, "%s", name);
        free(made);
        free(expected);
        free(blocks);
    }
}

/* Blocks and values where only the naive variant can read and write them. */
Test(dequantise, places_may_be_less_aligned) {
    char blocks[4 * 210];
    uint64_t state = 11;
    kernel_scene_begin();
    for (enum kn_quant quant = 0; quant < KN_QUANTS; quant++) {
        kn_quant_draw(quant, KN_BLOCKS_ANY, &state, 4, blocks);
        for (enum kn_type type = KN_F32; type <= KN_F16; type++) {
            check((struct run){quant, type, 4, 2, 0, NULL}, blocks, "blocks 2 bytes off");
            check((struct run){quant, type, 4, 0, 4, NULL}, blocks, "values 4 bytes off");
            check((struct run){quant, type, 4, 30, 12, NULL}, blocks, "both");
        }
    }
}

/* A valid problem with two blocks, at addresses that nobody reads. */
static struct kn_dequantise good(void) {
    return (struct kn_dequantise){.quant = KN_Q4_K,
                                  .type = KN_F32,
                                  .count = 512,
                                  .blocks = {0x10000, 288},
                                  .values = {0x20000, 2048}};
}

#define REFUSED(change, status, text)                                                              \
    do {                                                                                           \
        struct kn_dequantise p = good();                                                           \
        change;                                                                                    \
        MUST_FAIL(kn_dequantise(kernels, stream, &p), status, text);                               \
    } while (0)

Test(dequantise, what_cannot_be_done_is_refused) {
    kernel_scene_begin();
    REFUSED(p.quant = KN_QUANTS, TOL_INVALID_ARGUMENT, "no quantisation 3");
    REFUSED(p.type = KN_BF16, TOL_INVALID_ARGUMENT, "not bf16");
    REFUSED(p.count = 511, TOL_INVALID_ARGUMENT, "511 elements are no whole blocks of q4_k");
    REFUSED(p.blocks.address = 0, TOL_INVALID_ARGUMENT, "the blocks are NULL");
    REFUSED(p.values.address = 0, TOL_INVALID_ARGUMENT, "the values are NULL");
    REFUSED(p.blocks.bytes = 287, TOL_OUT_OF_RANGE, "there are 287 bytes");
    REFUSED(p.values.bytes = 2047, TOL_OUT_OF_RANGE, "there are 2047 bytes");
    REFUSED(p.count = SIZE_MAX / 256 * 256, TOL_OUT_OF_RANGE, "there are 288 bytes");
    REFUSED(p.blocks.address++, TOL_INVALID_ARGUMENT, "aligned to 2 bytes");
    REFUSED(p.values.address += 2, TOL_INVALID_ARGUMENT, "to 4");
    REFUSED(p.values.address = p.blocks.address + 284, TOL_INVALID_ARGUMENT, "overlap");
    REFUSED(p.variant = "fast", TOL_NOT_FOUND, "there are wide, naive");
    REFUSED((p.variant = "wide", p.values.address += 4), TOL_UNSUPPORTED,
            "the values are not aligned");
    REFUSED((p.variant = "wide", p.blocks.address += 2), TOL_UNSUPPORTED,
            "the blocks are not aligned");
    struct kn_dequantise p = good();
    MUST_FAIL(kn_dequantise(NULL, stream, &p), TOL_INVALID_ARGUMENT, "needs kernels");
    MUST_FAIL(kn_dequantise(kernels, NULL, &p), TOL_INVALID_ARGUMENT, "needs kernels");
    MUST_FAIL(kn_dequantise(kernels, stream, NULL), TOL_INVALID_ARGUMENT, "needs kernels");
    MUST(kn_dequantise(kernels, stream, &(struct kn_dequantise){.count = 0}));
}
