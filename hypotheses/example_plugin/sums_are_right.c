/*
 * The claim about it, how it is attacked, and the faults under which it must fall.
 */
#include <tollens/harness/plugin.h>

#include "reduce_sum.h"

#include <stdlib.h>

/* ---- a fault of our own: the last number is left out ----------------------------------------- */

static void lose_last(struct tol_interpose_call *call, void *user) {
    (void)user;
    if (call->index != TOL_DRIVER_INDEX_cuLaunchKernel) return;
    void **parameters = *(void ***)call->arguments[9];
    --*(uint32_t *)parameters[1];
}

static const struct hyp_fault faults[] = {
    {.name = "sum_loses_last", .sentence = "a sum lacks its last number", .before = lose_last},
    {.name = NULL}};

/* ---- the claim ------------------------------------------------------------------------------- */

static const struct hyp_saboteur saboteurs[] = {
    {.name = "sum_loses_last", .forced = HYP_MUST_FALSIFY},
    {.name = "launch_twice", .forced = HYP_MUST_FALSIFY},
    {.name = "copy_flip_bit", .forced = HYP_MUST_FALSIFY},
    {.name = NULL}};

static const struct hyp_plugin_claim claims[] = {
    {.id = "SUM",
     .title = "A sum on the device is the sum",
     .unit = "violations",
     .source = "reduce_sum.h",
     .threshold = 0,
     .direction = HYP_AT_MOST,
     .words = {.claim = "Whatever the length and wherever the numbers lie, reduce_sum_run gives "
                        "their sum, and refuses more numbers than there are.",
               .prediction = "0 violations over lengths of 0 to 65537 at odd places.",
               .falsified_if = "one sum is another than the host's, or a number too many is taken.",
               .method = "Random numbers are added up by the host in 64 bits, too.",
               .control = "On both sides of the numbers stand large ones that must not be summed.",
               .confounders = "A total that happened to be right before the sum would hide a sum "
                              "that was not made: each length has other numbers."},
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
    HYP_CHECK(attack, sum == expected, "%u numbers from the %u. on: %llu, and not %llu", count,
              first, (unsigned long long)sum, (unsigned long long)expected);
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
