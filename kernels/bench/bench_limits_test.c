/*
 * Rooflines of an H100, against figures worked out by hand.
 */
#include "bench/bench_limits.h"

#include "test/test_device.h"

#include <math.h>

/* As the driver reports an H100 SXM with 80 GB. */
static const struct tol_device h100 = {.compute_capability = 90,
                                       .multiprocessors = 132,
                                       .l2_bytes = 52428800,
                                       .clock_khz = 1980000,
                                       .memory_clock_khz = 2619000,
                                       .memory_bus_bits = 5120};

static void must_be(double us, double expected) {
    cr_assert(fabs(us - expected) <= 1e-3 * expected, "%.4f us instead of %.4f", us, expected);
}

/* 8192^3 products and sums: 1070.5 TFLOP/s of bf16, a half of tf32, a sixteenth of fp32. */
Test(bench_limits, operations_take_at_least_what_all_multiprocessors_do_in_a_cycle) {
    struct kn_bench_work work = {.operations = 2.0 * 8192 * 8192 * 8192, .launches = 1};
    work.rate = KN_RATE_HALVES;
    must_be(kn_bench_least_us(&h100, &work), 1027.1);
    work.rate = KN_RATE_BYTES;
    must_be(kn_bench_least_us(&h100, &work), 513.5);
    work.rate = KN_RATE_TF32;
    must_be(kn_bench_least_us(&h100, &work), 2054.1);
    work.rate = KN_RATE_FLOATS;
    must_be(kn_bench_least_us(&h100, &work), 16433);
}

/* 3352 GB/s. Of ten sets of 100 MB in ten launches the cache spares 52 MB in the round, and 52 MB
 * are in it at the end. */
Test(bench_limits, bytes_take_at_least_what_the_cache_cannot_spare) {
    struct kn_bench_work work = {.turns = 10, .turn_bytes = 1e8, .launches = 10};
    must_be(kn_bench_least_us(&h100, &work), (1e8 - 10485760) / 3352320.0 * 1);
    work.launches = 1000; /* a hundred rounds */
    must_be(kn_bench_least_us(&h100, &work), (1e8 - 5295308.8) / 3352320.0);
    work.launches = 11; /* a second round has begun */
    must_be(kn_bench_least_us(&h100, &work), (1e8 - 3 * 52428800.0 / 11) / 3352320.0);
}

Test(bench_limits, the_slower_of_both_counts) {
    struct kn_bench_work work = {.rate = KN_RATE_HALVES,
                                 .operations = 1070.5e6,
                                 .turns = 10,
                                 .turn_bytes = 1e9,
                                 .launches = 1000};
    must_be(kn_bench_least_us(&h100, &work), 296.7);
    work.operations = 1070.5e9;
    must_be(kn_bench_least_us(&h100, &work), 1000);
}

Test(bench_limits, what_the_cache_may_hold_has_no_limit) {
    struct kn_bench_work work = {.turns = 1, .turn_bytes = 33e6, .launches = 1000};
    cr_assert_eq(kn_bench_least_us(&h100, &work), 0);
    work = (struct kn_bench_work){.turns = 3, .turn_bytes = 17e6, .launches = 30};
    cr_assert_eq(kn_bench_least_us(&h100, &work), 0);
}

Test(bench_limits, nothing_is_said_of_a_device_that_is_not_known) {
    const struct kn_bench_work operations = {.operations = 1e12, .launches = 1};
    const struct kn_bench_work bytes = {.turns = 10, .turn_bytes = 1e9, .launches = 10};
    struct tol_device other = h100;
    other.compute_capability = 100;
    cr_assert_eq(kn_bench_least_us(&other, &operations), 0);
    cr_assert(kn_bench_least_us(&other, &bytes) > 0);
    other.memory_clock_khz = 0;
    cr_assert_eq(kn_bench_least_us(&other, &bytes), 0);
    other = h100;
    other.soft = true;
    cr_assert_eq(kn_bench_least_us(&other, &operations), 0);
    cr_assert_eq(kn_bench_least_us(&other, &bytes), 0);
}
