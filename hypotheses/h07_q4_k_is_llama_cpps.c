/*
 * H7: Q4_K dequantisation matches llama.cpp.
 *
 * `tollens explain H7` prints the text below.
 */
#include "files/atomic_file.h"
#include "guarded.h"
#include "harness/attack.h"
#include "harness/claim.h"
#include "harness/sabotage.h"
#include "quantised/formats/dequantise_planted.h"
#include "quantised/formats/quant_draw.h"
#include "record/record.h"
#include "swapped.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

HYP_WORDS(
    7, .is_measured = true,
    .claim = "Blocks of Q4_K, and of Q6_K and Q8_0, which occur in the same files, dequantise to "
             "floats that differ from llama.cpp's by less than 1e-4.",
    .prediction = "0: the elements of every kernel are bit-identical.",
    .falsified_if = "an element differs from llama.cpp's by 1e-4 or more, or in any bit, or is "
                    "not written, or a byte outside the values changes.",
    .method = "Each kernel dequantises blocks with every scale, every quant and every fp16 value "
              "of d, blocks of extreme, subnormal and arbitrary values, and random numbers of "
              "blocks. All elements are compared; fp16 output is compared with the rounded "
              "floats. The evidence has the errors, by size.",
    .control = "llama.cpp's own Python package computed the values in the fixtures. The host's "
               "dequantiser, which is the reference elsewhere, must agree with them. Outputs are "
               "filled with NaN and lie between guard zones.",
    .confounders = "A mistake that the host's dequantiser and the kernels share would show in the "
                   "fixtures alone. These have every scale, every quant and extreme values of d, "
                   "but not every combination.")

/* ---- errors, by size ------------------------------------------------------------------------- */

/* Classes of errors: 0, below 1e-12, 1e-10 ... 1e-4, larger, not finite. */
enum { SIZES = 8 };

struct errors {
    size_t count, same_bits, by_size[SIZES];
};

static size_t q4_size_of(double error) {
    static const double below[SIZES - 3] = {1e-12, 1e-10, 1e-8, 1e-6, 1e-4};
    if (!(error < INFINITY)) return SIZES - 1;
    if (error == 0) return 0;
    size_t size = 0;
    while (size < SIZES - 3 && error >= below[size]) size++;
    return size + 1;
}

struct bench {
    struct hyp_attack *attack;
    struct kn_kernels *kernels;
    struct tol_stream *stream;
    struct hyp_file csv;
    bool has_csv;
};

static void begin_csv(struct bench *bench) {
    char path[1024];
    const struct hyp_attack *attack = bench->attack;
    snprintf(path, sizeof path, "%.800s/%.96s.errors.csv", attack->session.out,
             attack->record->name);
    bench->has_csv = hyp_file_begin(&bench->csv, path);
    cr_assert(bench->has_csv, "the evidence could not be written: %s", hyp_error());
    fprintf(bench->csv.stream,
            "quantisation,type,blocks,variant,seed,elements,same_bits,zero,below_1e-12,"
            "below_1e-10,below_1e-8,below_1e-6,below_1e-4,more,not_finite\n");
}

static bool q4_begin(struct hyp_attack *attack, struct bench *bench) {
    *bench = (struct bench){.attack = attack};
    return HYP_OK(attack, kn_kernels_create(attack->context, &bench->kernels)) &&
           HYP_OK(attack, tol_stream_create(attack->context, NULL, &bench->stream));
}

static void q4_end(struct bench *bench) {
    tol_stream_destroy(bench->stream);
    kn_kernels_destroy(bench->kernels);
    cr_assert(!bench->has_csv || hyp_file_keep(&bench->csv),
              "the evidence could not be written: %s", hyp_error());
}

/* ---- one run --------------------------------------------------------------------------------- */

struct run {
    enum kn_quant quant;
    enum kn_type type;
    const char *variant, *kind; /* kind: of the blocks, "fixture" */
    uint64_t seed;              /* of the blocks; 0 if they are not random */
    size_t blocks, skew;        /* skew: bytes past a multiple of 16 at which the blocks begin */
};

/* Under a saboteur called dequantise_DEFECT, Q4_K to floats uses the kernel with that defect. */
static void q4_plant(const struct hyp_attack *attack, struct kn_dequantise *problem) {
    const char *mistake = hyp_sabotage_mistake(attack->session.sabotage, "dequantise");
    if (mistake == NULL) return;
    if (problem->quant != KN_Q4_K || problem->type != KN_F32) return;
    problem->variants = &kn_dequantise_planted;
    problem->variant = mistake;
}

static tol_status q4_dequantise(struct bench *bench, const struct run *run, const void *blocks,
                                void *made, size_t *changed) {
    const size_t count = run->blocks * kn_quant_block_elements(run->quant);
    struct kn_guarded in = {0}, out = {0};
    tol_status status = kn_guarded_create(
        bench->attack->context, run->blocks * kn_quant_block_bytes(run->quant), run->skew, &in);
    if (status == TOL_OK) {
        status =
            kn_guarded_create(bench->attack->context, count * kn_type_bytes(run->type), 0, &out);
    }
    if (status == TOL_OK) status = kn_guarded_write(&in, blocks);
    if (status == TOL_OK) {
        struct kn_dequantise problem = {.quant = run->quant,
                                        .type = run->type,
                                        .count = count,
                                        .blocks = kn_place_of(in.buffer, in.offset),
                                        .values = kn_place_of(out.buffer, out.offset),
                                        .variant = run->variant};
        q4_plant(bench->attack, &problem);
        status = kn_dequantise(bench->kernels, bench->stream, &problem);
    }
    if (status == TOL_OK) status = tol_stream_synchronize_for(bench->stream, KN_PATIENCE_MS);
    if (status == TOL_OK) status = kn_guarded_read(&out, made);
    if (hyp_sabotage_turn(bench->attack->session.sabotage, "dequantise_swap_one_in")) {
        (void)kn_swap_last(made, kn_type_bytes(run->type), count);
    }
    if (status == TOL_OK) status = kn_guarded_check(&out, changed);
    kn_guarded_destroy(&in);
    kn_guarded_destroy(&out);
    return status;
}

static bool same_bits(enum kn_type type, const void *made, float expected, size_t i) {
    if (type == KN_F16) {
        const uint16_t bits = ((const uint16_t *)made)[i];
        return isnan(expected) ? isnan(kn_f16_value(bits)) : bits == kn_f16_of(expected);
    }
    uint32_t bits;
    memcpy(&bits, &expected, sizeof bits);
    return isnan(expected) ? isnan(((const float *)made)[i]) : bits == ((const uint32_t *)made)[i];
}

static struct errors q4_compare(const struct run *run, const void *made, const float *expected,
                                double *worst) {
    struct errors errors = {.count = run->blocks * kn_quant_block_elements(run->quant)};
    *worst = 0;
    for (size_t i = 0; i < errors.count; i++) {
        const float value = run->type == KN_F16 ? kn_f16_value(((const uint16_t *)made)[i])
                                                : ((const float *)made)[i];
        const float oracle =
            run->type == KN_F16 ? kn_f16_value(kn_f16_of(expected[i])) : expected[i];
        const bool same = same_bits(run->type, made, expected[i], i);
        const double error = same ? 0 : fabs((double)value - (double)oracle);
        errors.same_bits += same;
        errors.by_size[q4_size_of(error)]++;
        *worst = error <= *worst ? *worst : isnan(error) ? INFINITY : error;
    }
    return errors;
}

static void q4_report(struct bench *bench, const struct run *run, const struct errors *errors) {
    if (bench->attack->session.out == NULL) return;
    if (!bench->has_csv) begin_csv(bench);
    fprintf(bench->csv.stream, "%s,%s,%s,%s,%llu,%zu,%zu", kn_quant_name(run->quant),
            kn_type_name(run->type), run->kind, run->variant, (unsigned long long)run->seed,
            errors->count, errors->same_bits);
    for (size_t i = 0; i < SIZES; i++) fprintf(bench->csv.stream, ",%zu", errors->by_size[i]);
    fprintf(bench->csv.stream, "\n");
}

/* Dequantises blocks and compares them with the expected values. Returns the largest error. */
static double q4_judge(struct bench *bench, const struct run *run, const void *blocks,
                       const float *expected) {
    struct hyp_attack *attack = bench->attack;
    const size_t count = run->blocks * kn_quant_block_elements(run->quant);
    size_t changed = 0;
    double worst = INFINITY;
    void *made = calloc(count, sizeof(float));
    cr_assert(made != NULL, "no memory for %zu values", count);
    if (HYP_OK(attack, q4_dequantise(bench, run, blocks, made, &changed))) {
        const struct errors errors = q4_compare(run, made, expected, &worst);
        HYP_CHECK(attack, changed == 0, "%s: %zu bytes outside the values changed", run->variant,
                  changed);
        HYP_CHECK(attack, errors.same_bits == errors.count,
                  "%s to %s by %s, %s blocks, seed %llu: %zu of %zu elements are not bit-identical",
                  kn_quant_name(run->quant), kn_type_name(run->type), run->variant, run->kind,
                  (unsigned long long)run->seed, errors.count - errors.same_bits, errors.count);
        q4_report(bench, run, &errors);
    }
    free(made);
    return worst;
}

static const char *const variants[] = {"wide", "naive"};

enum { VARIANTS = 2 };

/* ---- the attacks ----------------------------------------------------------------------------- */

HYP_ATTACK(h07, the_fixtures_are_what_llama_cpp_makes_of_them) {
    struct bench bench;
    bool ok = q4_begin(attack, &bench);
    for (enum kn_quant quant = 0; ok && quant < KN_QUANTS; quant++) {
        char path[64];
        size_t bytes = 0, value_bytes = 0;
        snprintf(path, sizeof path, "fixtures/quant/%s.blocks", kn_quant_name(quant));
        char *blocks = hyp_attack_file(attack, path, &bytes);
        snprintf(path, sizeof path, "fixtures/quant/%s.f32", kn_quant_name(quant));
        char *expected = hyp_attack_file(attack, path, &value_bytes);
        const size_t count = bytes / kn_quant_block_bytes(quant);
        float *host = malloc(value_bytes);
        ok =
            blocks != NULL && expected != NULL && host != NULL &&
            HYP_CHECK(attack, count * kn_quant_block_elements(quant) * sizeof(float) == value_bytes,
                      "%s: %zu blocks do not match %zu bytes of values", path, count, value_bytes);
        if (ok) {
            kn_quant_values(quant, blocks, count, host);
            HYP_CHECK(attack, memcmp(host, expected, value_bytes) == 0,
                      "the host's %s values differ from llama.cpp's", kn_quant_name(quant));
            memcpy(host, expected, value_bytes); /* aligned; from here on llama.cpp's */
        }
        for (size_t v = 0; ok && v < VARIANTS; v++) {
            const struct run run = {quant, KN_F32, variants[v], "fixture", 0, count, 0};
            hyp_attack_measure(attack, q4_judge(&bench, &run, blocks, host), "%s, %s",
                               kn_quant_name(quant), variants[v]);
        }
        free(host);
        free(expected);
        free(blocks);
    }
    q4_end(&bench);
}

/* Returns the worst error over several draws of blocks of a kind. */
static double draw_often(struct bench *bench, struct run run, enum kn_quant_blocks kind,
                         unsigned turns) {
    enum { BLOCKS_MAX = 400 };
    double worst = 0;
    char *blocks = malloc(BLOCKS_MAX * kn_quant_block_bytes(run.quant));
    float *expected = malloc(BLOCKS_MAX * 256 * sizeof *expected);
    cr_assert(blocks != NULL && expected != NULL, "no memory for %d blocks", BLOCKS_MAX);
    run.kind = kn_quant_blocks_name(kind);
    for (unsigned turn = 0; turn < turns; turn++) {
        uint64_t state = run.seed = hyp_random(bench->attack) & HYP_SEED_MAX;
        const size_t most =
            turn == 0 ? 3 : BLOCKS_MAX; /* once so few that no thread block is full */
        run.blocks = 1 + (size_t)hyp_random_below(bench->attack, most);
        kn_quant_draw(run.quant, kind, &state, run.blocks, blocks);
        kn_quant_values(run.quant, blocks, run.blocks, expected);
        worst = fmax(worst, q4_judge(bench, &run, blocks, expected));
    }
    free(expected);
    free(blocks);
    return worst;
}

HYP_ATTACK(h07, drawn_blocks_of_every_kind_become_the_hosts_floats) {
    struct bench bench;
    const unsigned turns = attack->session.full ? 60 : 3;
    bool ok = q4_begin(attack, &bench);
    for (unsigned i = 0; ok && i < KN_QUANTS * VARIANTS * KN_BLOCKS_KINDS; i++) {
        const enum kn_quant_blocks kind = (enum kn_quant_blocks)(i / KN_QUANTS / VARIANTS);
        const struct run run = {.quant = (enum kn_quant)(i % KN_QUANTS),
                                .type = KN_F32,
                                .variant = variants[i / KN_QUANTS % VARIANTS]};
        const double worst = draw_often(&bench, run, kind, turns);
        hyp_attack_measure(attack, worst, "%s, %s, %s blocks", kn_quant_name(run.quant),
                           run.variant, kn_quant_blocks_name(kind));
        hyp_attack_progress(attack, (i + 1.0) / (KN_QUANTS * VARIANTS * KN_BLOCKS_KINDS));
    }
    q4_end(&bench);
}

HYP_ATTACK(h07, halves_are_the_floats_rounded) {
    struct bench bench;
    const unsigned turns = attack->session.full ? 30 : 2;
    bool ok = q4_begin(attack, &bench);
    for (unsigned i = 0; ok && i < KN_QUANTS * VARIANTS * KN_BLOCKS_KINDS; i++) {
        const struct run run = {.quant = (enum kn_quant)(i % KN_QUANTS),
                                .type = KN_F16,
                                .variant = variants[i / KN_QUANTS % VARIANTS]};
        (void)draw_often(&bench, run, (enum kn_quant_blocks)(i / KN_QUANTS / VARIANTS), turns);
        hyp_attack_progress(attack, (i + 1.0) / (KN_QUANTS * VARIANTS * KN_BLOCKS_KINDS));
    }
    q4_end(&bench);
}

/* Every finite fp16 value of d, 63488 of them; in quick mode one in 31, from a random one on. */
HYP_ATTACK(h07, every_d_there_is) {
    struct bench bench;
    const unsigned step = attack->session.full ? 1 : 31;
    size_t count = 0;
    struct kn_block_q4_k *blocks = malloc(((size_t)0x10000 / step + 1) * sizeof *blocks);
    float *expected = malloc(((size_t)0x10000 / step + 1) * 256 * sizeof *expected);
    cr_assert(blocks != NULL && expected != NULL, "no memory for the blocks");
    uint64_t state = hyp_random(attack) & HYP_SEED_MAX;
    const uint64_t seed = state;
    for (unsigned d = (unsigned)hyp_random_below(attack, step); d < 0x10000; d += step) {
        if ((d & 0x7c00) == 0x7c00) continue;
        kn_quant_draw(KN_Q4_K, KN_BLOCKS_ANY, &state, 1, &blocks[count]);
        blocks[count++].d = (uint16_t)d;
    }
    kn_quant_values(KN_Q4_K, blocks, count, expected);
    bool ok = q4_begin(attack, &bench);
    for (size_t v = 0; ok && v < VARIANTS; v++) {
        const struct run run = {KN_Q4_K, KN_F32, variants[v], "every d", seed, count, 0};
        hyp_attack_measure(attack, q4_judge(&bench, &run, blocks, expected), "q4_k, %s",
                           variants[v]);
    }
    q4_end(&bench);
    free(expected);
    free(blocks);
}

/* Every scale with every minimum and every quant: 4096 sub-blocks, each with every quant twice. */
HYP_ATTACK(h07, every_scale_minimum_and_quant_of_q4_k) {
    enum { BLOCKS = 64 * 64 / 8 };
    struct bench bench;
    static struct kn_block_q4_k blocks[BLOCKS];
    static float expected[BLOCKS * 256];
    for (unsigned b = 0; b < BLOCKS; b++) {
        blocks[b].d = (uint16_t)(0x1000 + hyp_random_below(attack, 0x1800));
        blocks[b].dmin = (uint16_t)(0x1000 + hyp_random_below(attack, 0x1800));
        for (int j = 0; j < 8; j++) {
            kn_q4_k_set_scale(blocks[b].scales, j, (uint8_t)(b % 64), (uint8_t)(b / 64 * 8 + j));
        }
        for (unsigned i = 0; i < 128; i++) {
            blocks[b].qs[i] = (uint8_t)((i + b) % 16 | (i + 3 * b + 5) % 16 << 4);
        }
    }
    kn_quant_values(KN_Q4_K, blocks, BLOCKS, expected);
    bool ok = q4_begin(attack, &bench);
    for (size_t v = 0; ok && v < VARIANTS; v++) {
        const struct run run = {KN_Q4_K, KN_F32, variants[v], "every scale", 0, BLOCKS, 0};
        hyp_attack_measure(attack, q4_judge(&bench, &run, blocks, expected), "q4_k, %s",
                           variants[v]);
    }
    q4_end(&bench);
}

HYP_ATTACK(h07, what_does_not_fit_is_refused_and_changes_nothing) {
    struct bench bench;
    struct kn_guarded out = {0};
    struct tol_buffer *in = NULL;
    unsigned char bytes[1024];
    size_t changed = 0, written = 0;
    bool ok = q4_begin(attack, &bench) &&
              HYP_OK(attack, kn_guarded_create(attack->context, sizeof bytes, 0, &out)) &&
              HYP_OK(attack, tol_buffer_create(attack->context, 144, 1, &in));
    struct kn_dequantise good = {.quant = KN_Q4_K, .type = KN_F32, .count = 256};
    if (ok) {
        good.blocks = kn_place_of(in, 0);
        good.values = (struct kn_place){tol_buffer_address(out.buffer) + out.offset, 1024};
        struct kn_dequantise bad[6] = {good, good, good, good, good, good};
        bad[0].count = 512;
        bad[1].count = 100;
        bad[2].blocks.address = 0;
        bad[3].values.bytes = 1023;
        bad[4].values.address += 1;
        bad[5].blocks = good.values;
        static const tol_status expected[] = {TOL_OUT_OF_RANGE,     TOL_INVALID_ARGUMENT,
                                              TOL_INVALID_ARGUMENT, TOL_OUT_OF_RANGE,
                                              TOL_INVALID_ARGUMENT, TOL_INVALID_ARGUMENT};
        for (size_t i = 0; i < 6; i++) {
            HYP_REFUSED(attack, kn_dequantise(bench.kernels, bench.stream, &bad[i]), expected[i],
                        "dequantise");
        }
        HYP_OK(attack, tol_stream_synchronize_for(bench.stream, KN_PATIENCE_MS));
        HYP_OK(attack, kn_guarded_read(&out, bytes));
        HYP_OK(attack, kn_guarded_check(&out, &changed));
        for (size_t i = 0; i < sizeof bytes; i++) written += bytes[i] != 0xff;
        HYP_CHECK(attack, changed == 0 && written == 0,
                  "rejected calls changed %zu bytes outside the values and %zu inside", changed,
                  written);
    }
    kn_guarded_destroy(&out);
    tol_buffer_destroy(in);
    q4_end(&bench);
}
