/*
 * The claim, its attacks, and the faults under which it must be falsified.
 */
#include <tollens/harness/plugin.h>

#include "reduce_sum.h"

#include <stdlib.h>

/* ---- a fault of our own: a sum omits its last number ----------------------------------------- */

static void lose_last(struct tol_interpose_call *call, void *user) {
    (void)user;
    if (call->index != TOL_DRIVER_INDEX_cuLaunchKernel) return;
    void **parameters = *(void ***)call->arguments[9];
    --*(uint32_t *)parameters[1];
}

static const struct hyp_fault faults[] = {
    {.name = "sum_loses_last", .sentence = "a sum omits its last number", .before = lose_last},
    {.name = NULL}};

/* ---- the claim ------------------------------------------------------------------------------- */

static const struct hyp_saboteur saboteurs[] = {
    {.name = "sum_loses_last", .forced = HYP_MUST_FALSIFY},
    {.name = "launch_twice", .forced = HYP_MUST_FALSIFY},
    {.name = "copy_flip_bit", .forced = HYP_MUST_FALSIFY},
    {.name = NULL}};

static const struct hyp_plugin_claim claims[] = {
    {.id = "SUM",
     .title = "A sum on the device is correct",
     .unit = "violations",
     .source = "reduce_sum.h",
     .threshold = 0,
     .direction = HYP_AT_MOST,
     .words = {.claim =
                   "reduce_sum_run returns the sum of any number of elements at any offset, and "
                   "rejects a range beyond the end of the buffer.",
               .prediction = "0 violations for lengths of 0 to 65537 at random offsets.",
               .falsified_if =
                   "a sum differs from the host's, or a range that is too long is accepted.",
               .method = "The host sums the same random numbers in 64 bits.",
               .control = "Large numbers on both sides of the range must not be summed.",
               .confounders = "A correct total from an earlier call could hide a missing sum, so "
                              "each length has other numbers."},
     .saboteurs = saboteurs},
    {.id = NULL}};

HYP_PLUGIN(.name = "sums", .version = "1.0", .claims = claims, .faults = faults);

/* ---- the attacks ----------------------------------------------------------------------------- */

enum { MARGIN = 16, MOST = 65537 };

static void try_length(struct hyp_attack *attack, struct reduce_sum *reduce,
                       struct tol_stream *stream, struct tol_buffer *buffer, uint32_t *numbers,
                       uint32_t count) {
    uint32_t first = 1 + (uint32_t)hyp_random_below(attack, MARGIN - 1);
    uint64_t expected = 0, sum = 0;
    for (uint32_t i = 0; i < first + count + MARGIN; i++) {
        bool is_inside = i >= first && i < first + count;
        numbers[i] = is_inside ? (uint32_t)hyp_random(attack) : UINT32_MAX;
        if (is_inside) expected += numbers[i];
    }
    HYP_NEED(attack,
             tol_buffer_write_at(buffer, 0, numbers, (first + count + MARGIN) * sizeof numbers[0]));
    HYP_NEED(attack, reduce_sum_run(reduce, stream, buffer, first, count, &sum));
    HYP_CHECK(attack, sum == expected, "the sum of %u numbers from index %u is %llu, expected %llu",
              count, first, (unsigned long long)sum, (unsigned long long)expected);
}

HYP_ATTACK(sum, every_length_is_right) {
    static const uint32_t lengths[] = {127,  128,  129,  255,   256,   257,  1000,
                                       4095, 4096, 4097, 65535, 65536, MOST, 12345};
    enum { LENGTHS = sizeof lengths / sizeof lengths[0], SMALL = 70 };
    static uint32_t numbers[MOST + 2 * MARGIN];
    tol_auto_stream struct tol_stream *stream = NULL;
    tol_auto_buffer struct tol_buffer *buffer = NULL;
    struct reduce_sum *reduce = NULL;
    HYP_NEED(attack, tol_stream_create(attack->context, NULL, &stream));
    HYP_NEED(attack, tol_buffer_create(attack->context, MOST + 2 * MARGIN, 4, &buffer));
    HYP_NEED(attack, reduce_sum_create(attack->context, &reduce));
    for (uint32_t count = 0; count <= SMALL; count++) {
        try_length(attack, reduce, stream, buffer, numbers, count);
    }
    for (size_t i = 0; i < LENGTHS; i++) {
        try_length(attack, reduce, stream, buffer, numbers, lengths[i]);
        hyp_attack_progress(attack, (double)(i + 1) / LENGTHS);
    }
    reduce_sum_destroy(reduce);
}

HYP_ATTACK(sum, too_many_are_refused) {
    tol_auto_stream struct tol_stream *stream = NULL;
    tol_auto_buffer struct tol_buffer *buffer = NULL;
    struct reduce_sum *reduce = NULL;
    uint64_t sum = 0;
    HYP_NEED(attack, tol_stream_create(attack->context, NULL, &stream));
    HYP_NEED(attack, tol_buffer_create(attack->context, 100, 4, &buffer));
    HYP_NEED(attack, reduce_sum_create(attack->context, &reduce));
    HYP_REFUSED(attack, reduce_sum_run(reduce, stream, buffer, 0, 101, &sum), TOL_OUT_OF_RANGE, "");
    HYP_REFUSED(attack, reduce_sum_run(reduce, stream, buffer, 100, 1, &sum), TOL_OUT_OF_RANGE, "");
    HYP_REFUSED(attack, reduce_sum_run(reduce, stream, buffer, 2, UINT32_MAX, &sum),
                TOL_OUT_OF_RANGE, "");
    reduce_sum_destroy(reduce);
}
