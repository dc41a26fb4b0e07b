/*
 * Products that round their result to bytes, against the kernel for that, and what is refused.
 */
#include "guarded.h"
#include "inputs.h"
#include "kernel_scene.h"
#include "number.h"
#include "quantised/linear/linear_pair.h"
#include "quantised/formats/quant_draw.h"
#include "quantised/formats/rounded.h"

#include "test/test_device.h"

#include <stdlib.h>
#include <string.h>

TestSuite(linear_rounded, .fini = kernel_scene_end);

/* A gated product that rounds its result, against the kernel for that, twice: tickets are zeros
 * again. */
static void try_rounded(enum kn_weight_format format, const char *variant, size_t columns) {
    enum { ROWS = 512, K = 512 };
    uint64_t state = 5;
    const size_t matrix = ROWS * kn_weight_row_bytes(format, K), count = columns * ROWS;
    const size_t bytes = kn_rounded_bytes(columns, ROWS);
    const size_t tickets = kn_linear_tickets(columns, ROWS);
    const enum kn_quant quant = format == KN_WEIGHT_Q4_K ? KN_Q4_K : KN_Q6_K;
    uint8_t *blocks = malloc(2 * matrix);
    float *values = malloc(columns * K * sizeof *values);
    uint8_t *zeros = calloc(3, bytes), *got[2] = {zeros + bytes, zeros + 2 * bytes};
    tol_auto_buffer struct tol_buffer *weights = NULL, *x = NULL, *y = NULL, *room = NULL;
    tol_auto_buffer struct tol_buffer *rounded = NULL, *again = NULL, *ticket = NULL;
    cr_assert(zeros != NULL && blocks != NULL && values != NULL && tickets <= bytes);
    kn_quant_draw(quant, KN_BLOCKS_USUAL, &state, 2 * ROWS * K / 256, blocks);
    kn_inputs_draw(KN_NORMAL, &state, 1, values, columns * K);
    MUST(tol_buffer_create(test_context(), 2 * matrix, 1, &weights));
    MUST(tol_buffer_create(test_context(), columns * K, sizeof(float), &x));
    MUST(tol_buffer_create(test_context(), count, sizeof(float), &y));
    MUST(tol_buffer_create(test_context(), kn_linear_workspace(columns, K), 1, &room));
    MUST(tol_buffer_create(test_context(), bytes, 1, &rounded));
    MUST(tol_buffer_create(test_context(), bytes, 1, &again));
    MUST(tol_buffer_create(test_context(), tickets, 1, &ticket));
    MUST(tol_buffer_write(weights, blocks, 2 * matrix));
    MUST(tol_buffer_write(x, values, columns * K * sizeof(float)));
    MUST(tol_buffer_write(ticket, zeros, tickets));
    for (int turn = 0; turn < 2; turn++) {
        MUST(tol_buffer_write(rounded, zeros, bytes));
        MUST(tol_buffer_write(again, zeros, bytes));
        MUST(kn_linear(kernels, stream,
                       &(struct kn_linear){.format = format,
                                           .rows = ROWS,
                                           .columns = columns,
                                           .k = K,
                                           .weights = kn_place_of(weights, 0),
                                           .gate = kn_place_of(weights, matrix),
                                           .x = kn_place_of(x, 0),
                                           .y = kn_place_of(y, 0),
                                           .x_stride = K,
                                           .y_stride = ROWS,
                                           .workspace = kn_place_of(room, 0),
                                           .rounded = kn_place_of(rounded, 0),
                                           .tickets = kn_place_of(ticket, 0),
                                           .variant = variant}));
        MUST(kn_rounded(kernels, stream,
                        &(struct kn_rounded){.columns = columns,
                                             .k = ROWS,
                                             .x = kn_place_of(y, 0),
                                             .x_stride = ROWS,
                                             .out = kn_place_of(again, 0)}));
        MUST(tol_stream_synchronize(stream));
        MUST(tol_buffer_read(rounded, got[0], bytes));
        MUST(tol_buffer_read(again, got[1], bytes));
        cr_assert(memcmp(got[0], got[1], bytes) == 0, "%s, %s, turn %d", kn_weight_name(format),
                  variant, turn);
    }
    free(zeros), free(blocks), free(values);
}

Test(linear_rounded, a_gated_product_rounds_its_result) {
    kernel_scene_begin();
    const int capability = tol_context_device(test_context())->compute_capability;
    if (capability >= 80) try_rounded(KN_WEIGHT_Q4_K, "bytes", 11);
    if (capability >= 80) try_rounded(KN_WEIGHT_Q6_K, "bytes", 2);
    if (capability >= 90) try_rounded(KN_WEIGHT_Q4_K, "early", 3);
    if (capability >= 90) try_rounded(KN_WEIGHT_Q4_K, "stay", 8);
    if (capability >= 90) try_rounded(KN_WEIGHT_Q6_K, "stay", 1);
    if (capability >= 90) try_rounded(KN_WEIGHT_Q4_K, "kept", 33);
    if (capability >= 90) try_rounded(KN_WEIGHT_Q6_K, "long", 12);
}

/* Blocks take tickets: the last rounds what all have written. */
Test(linear_rounded, one_block_is_the_last_in_any_order) {
    kernel_scene_reorder();
    kernel_scene_begin();
    const int capability = tol_context_device(test_context())->compute_capability;
    if (capability >= 80) try_rounded(KN_WEIGHT_Q4_K, "bytes", 11);
    if (capability >= 90) try_rounded(KN_WEIGHT_Q6_K, "early", 3);
    if (capability >= 90) try_rounded(KN_WEIGHT_Q4_K, "stay", 8);
    if (capability >= 90) try_rounded(KN_WEIGHT_Q4_K, "kept", 29);
}

/* Blocks of weights with random quants and scales, and a usual d. */
static void draw_blocks(enum kn_weight_format format, uint64_t *state, uint8_t *blocks,
                        size_t bytes) {
    const size_t each = kn_weight_row_bytes(format, 256);
    const size_t at[2] = {format == KN_WEIGHT_Q6_K ? each - 2 : 0,
                          format == KN_WEIGHT_Q6_K ? each - 2 : 2}; /* of d, and of dmin */
    for (size_t i = 0; i < bytes; i++) blocks[i] = (uint8_t)(256 * kn_random_unit(state));
    for (size_t i = 0; i < bytes; i += each) {
        for (int j = 0; j < 2; j++) {
            const uint16_t d = kn_f16_of((float)(1 + kn_random_unit(state)) * 1e-3f);
            memcpy(blocks + i + at[j], &d, sizeof d);
        }
    }
}

/* Persistent thread blocks, with more tiles than blocks, against step 5: the same bits. */
static void try_stay(const char *variant, enum kn_weight_format format, size_t columns, size_t k,
                     bool gated) {
    const size_t own = columns > 8 ? 32 : 16; /* rows of a tile at most */
    const size_t tiles = 64 / own * (size_t)tol_context_device(test_context())->multiprocessors + 3;
    const size_t rows = tiles * own, count = columns * rows;
    const size_t matrix = rows * kn_weight_row_bytes(format, k);
    const char *const variants[2] = {"bytes", variant};
    uint64_t state = 7;
    uint8_t *blocks = malloc(2 * matrix);
    float *values = malloc((columns * k + rows) * sizeof *values), *got[2];
    tol_auto_buffer struct tol_buffer *weights = NULL, *gate = NULL, *x = NULL, *room = NULL;
    cr_assert(blocks != NULL && values != NULL);
    draw_blocks(format, &state, blocks, 2 * matrix);
    kn_inputs_draw(KN_NORMAL, &state, 1, values, columns * k + rows);
    MUST(tol_buffer_create(test_context(), matrix, 1, &weights)); /* each ends where it ends */
    MUST(tol_buffer_create(test_context(), matrix, 1, &gate));
    MUST(tol_buffer_create(test_context(), columns * k + rows, sizeof(float), &x));
    MUST(tol_buffer_create(test_context(), kn_linear_workspace(columns, k), 1, &room));
    MUST(tol_buffer_write(weights, blocks, matrix));
    MUST(tol_buffer_write(gate, blocks + matrix, matrix));
    MUST(tol_buffer_write(x, values, (columns * k + rows) * sizeof(float)));
    for (int i = 0; i < 2; i++) {
        const struct kn_place none = {0, 0};
        struct kn_guarded y = {0};
        size_t changed = 1;
        got[i] = malloc(count * sizeof(float));
        cr_assert(got[i] != NULL);
        MUST(kn_guarded_create(test_context(), count * sizeof(float), 4, &y));
        MUST(kn_linear(kernels, stream,
                       &(struct kn_linear){.format = format,
                                           .rows = rows,
                                           .columns = columns,
                                           .k = k,
                                           .weights = kn_place_of(weights, 0),
                                           .gate = gated ? kn_place_of(gate, 0) : none,
                                           .bias = gated ? none : kn_place_of(x, columns * k * 4),
                                           .x = kn_place_of(x, 0),
                                           .y = {tol_buffer_address(y.buffer) + y.offset, y.bytes},
                                           .x_stride = k,
                                           .y_stride = rows,
                                           .workspace = kn_place_of(room, 0),
                                           .variant = variants[i]}));
        MUST(tol_stream_synchronize(stream));
        MUST(kn_guarded_read(&y, got[i]));
        MUST(kn_guarded_check(&y, &changed));
        cr_assert(changed == 0);
        kn_guarded_destroy(&y);
    }
    cr_assert(memcmp(got[0], got[1], count * sizeof(float)) == 0, "%s, %zu columns of %zu",
              kn_weight_name(format), columns, k);
    free(got[0]), free(got[1]), free(blocks), free(values);
}

/* Two products of the same rounded columns, against each by itself by step 5: the same bits. */
static void try_pair(enum kn_weight_format format, size_t first_tiles, size_t second_tiles,
                     size_t columns) {
    enum { K = 512, TILE = 16 };
    const size_t rows[2] = {first_tiles * TILE, second_tiles * TILE}, all = rows[0] + rows[1];
    const enum kn_weight_format formats[2] = {format, KN_WEIGHT_Q6_K};
    uint64_t state = 3;
    struct kn_linear problems[2];
    struct kn_guarded y = {0};
    float *values = malloc(columns * K * sizeof *values);
    float *got[2] = {malloc(columns * all * sizeof(float)), malloc(columns * all * sizeof(float))};
    tol_auto_buffer struct tol_buffer *x = NULL, *room = NULL;
    struct tol_buffer *weights[2] = {NULL, NULL};
    cr_assert(values != NULL && got[0] != NULL && got[1] != NULL);
    kn_inputs_draw(KN_NORMAL, &state, 1, values, columns * K);
    MUST(tol_buffer_create(test_context(), columns * K, sizeof(float), &x));
    MUST(tol_buffer_write(x, values, columns * K * sizeof(float)));
    MUST(tol_buffer_create(test_context(), kn_rounded_bytes(columns, K), 1, &room));
    MUST(kn_guarded_create(test_context(), columns * all * sizeof(float), 4, &y));
    MUST(kn_rounded(kernels, stream,
                    &(struct kn_rounded){.columns = columns,
                                         .k = K,
                                         .x = kn_place_of(x, 0),
                                         .x_stride = K,
                                         .out = kn_place_of(room, 0)}));
    for (int i = 0; i < 2; i++) {
        const size_t matrix = rows[i] * kn_weight_row_bytes(formats[i], K);
        const size_t at = i * rows[0] * sizeof(float);
        uint8_t *blocks = malloc(matrix);
        cr_assert(blocks != NULL);
        draw_blocks(formats[i], &state, blocks, matrix);
        MUST(tol_buffer_create(test_context(), matrix, 1, &weights[i]));
        MUST(tol_buffer_write(weights[i], blocks, matrix));
        problems[i] =
            (struct kn_linear){.format = formats[i],
                               .rows = rows[i],
                               .columns = columns,
                               .k = K,
                               .weights = kn_place_of(weights[i], 0),
                               .y = {tol_buffer_address(y.buffer) + y.offset + at, y.bytes - at},
                               .y_stride = all,
                               .workspace = kn_place_of(room, 0),
                               .is_rounded = true};
        free(blocks);
    }
    for (int turn = 0; turn < 2; turn++) {
        size_t changed = 1;
        MUST(kn_guarded_poison(&y));
        for (int i = 0; i < 2; i++) problems[i].variant = turn == 0 ? "bytes" : NULL;
        if (turn == 0) {
            for (int i = 0; i < 2; i++) MUST(kn_linear(kernels, stream, &problems[i]));
        } else {
            MUST(kn_linear_pair(kernels, stream, &problems[0], &problems[1]));
        }
        MUST(tol_stream_synchronize(stream));
        MUST(kn_guarded_read(&y, got[turn]));
        MUST(kn_guarded_check(&y, &changed));
        cr_assert(changed == 0);
    }
    cr_assert(memcmp(got[0], got[1], columns * all * sizeof(float)) == 0, "%s, %zu and %zu tiles",
              kn_weight_name(format), first_tiles, second_tiles);
    problems[1].k = 256;
    MUST_FAIL(kn_linear_pair(kernels, stream, &problems[0], &problems[1]), TOL_INVALID_ARGUMENT,
              "do not read the same columns");
    kn_guarded_destroy(&y);
    tol_buffer_destroy(weights[0]);
    tol_buffer_destroy(weights[1]);
    free(values), free(got[0]), free(got[1]);
}

Test(linear_rounded, a_pair_is_its_two_products) {
    kernel_scene_begin();
    if (tol_context_device(test_context())->compute_capability < 80) return;
    if (test_takes_trial()) try_pair(KN_WEIGHT_Q4_K, 70, 13, 1); /* more tiles than blocks */
    if (test_takes_trial()) try_pair(KN_WEIGHT_Q5_K, 5, 2, 4);
    if (test_takes_trial()) try_pair(KN_WEIGHT_Q4_K, 1, 1, 2);
    if (test_takes_trial()) try_pair(KN_WEIGHT_Q4_K, 2, 3, 9); /* two kernels */
    if (test_takes_trial()) try_pair(KN_WEIGHT_Q6_K, 2, 2, 1);
}

Test(linear_rounded, blocks_that_stay_give_the_same_bits) {
    kernel_scene_begin();
    if (tol_context_device(test_context())->compute_capability < 90) return;
    for (int gated = 0; gated < 2; gated++) {
        if (test_takes_trial())
            try_stay("stay", KN_WEIGHT_Q4_K, 3, 512, gated); /* six idle warps */
        if (test_takes_trial()) try_stay("stay", KN_WEIGHT_Q5_K, 1, 768, gated);
        if (test_takes_trial()) try_stay("stay", KN_WEIGHT_Q6_K, 8, 256, gated);
        if (test_takes_trial()) try_stay("stay", KN_WEIGHT_Q6_K, 1, 2304, gated); /* one has two */
    }
}

/* Up to 32 columns: k of at most 4096 is kept in registers; tiles of "long" have twice the rows. */
Test(linear_rounded, many_columns_give_the_same_bits) {
    kernel_scene_begin();
    if (tol_context_device(test_context())->compute_capability < 90) return;
    for (int gated = 0; gated < 2; gated++) {
        if (test_takes_trial()) try_stay("kept", KN_WEIGHT_Q4_K, 9, 512, gated); /* idle warps */
        if (test_takes_trial()) try_stay("kept", KN_WEIGHT_Q5_K, 32, 4096, gated);
        if (test_takes_trial()) try_stay("kept", KN_WEIGHT_Q6_K, 17, 2304, gated);
        if (test_takes_trial()) try_stay("kept", KN_WEIGHT_Q6_K, 33, 256, gated); /* two blocks */
        if (test_takes_trial()) try_stay("long", KN_WEIGHT_Q4_K, 31, 4352, gated);
        if (test_takes_trial()) try_stay("long", KN_WEIGHT_Q5_K, 10, 512, gated);
        if (test_takes_trial()) try_stay("long", KN_WEIGHT_Q6_K, 40, 2304, gated);
    }
}

Test(linear_rounded, what_makes_no_sense_is_refused) {
    struct kn_linear p = {.format = KN_WEIGHT_Q4_K,
                          .rows = 256,
                          .columns = 1,
                          .k = 256,
                          .weights = {0x100000, 256 * 144},
                          .gate = {0x200000, 256 * 144},
                          .x = {0x300000, 1024},
                          .y = {0x400000, 1024},
                          .x_stride = 256,
                          .y_stride = 256,
                          .workspace = {0x500000, 1 << 20},
                          .rounded = {0x700000, 2560},
                          .tickets = {0x800000, 3}};
    kernel_scene_begin();
    if (tol_context_device(test_context())->compute_capability < 80) return;
    MUST_FAIL(kn_linear(kernels, stream, &p), TOL_OUT_OF_RANGE, "tickets needs 4");
    p.tickets.bytes = 4, p.rounded.bytes--;
    MUST_FAIL(kn_linear(kernels, stream, &p), TOL_OUT_OF_RANGE, "rounded y needs 2560");
    p.rounded.bytes++, p.gate.address = 0;
    MUST_FAIL(kn_linear(kernels, stream, &p), TOL_INVALID_ARGUMENT, "without a gate");
    p.rounded.address = 0, p.is_rounded = true, p.format = KN_WEIGHT_F16;
    p.weights.bytes = 256 * 512;
    MUST_FAIL(kn_linear(kernels, stream, &p), TOL_UNSUPPORTED, "rounded x");
    p.workspace.address = 0;
    MUST_FAIL(kn_linear(kernels, stream, &p), TOL_INVALID_ARGUMENT, "without a workspace");
}
