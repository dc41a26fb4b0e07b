/*
 * Retrying under a clock that only pauses move: how often, how long, and what is never tried again.
 */
#include "retry.h"

#include <criterion/criterion.h>

static uint64_t time_ns, pauses[64];
static unsigned pause_count;

static uint64_t fake_now(void) {
    return time_ns;
}

static void fake_pause(uint64_t ns) {
    pauses[pause_count++] = ns;
    time_ns += ns;
}

static const struct tol_retry_clock fake = {fake_now, fake_pause};

Test(retry, pauses_double_until_the_attempts_are_used_up) {
    _Atomic(uint64_t) made = 0;
    const struct tol_retry_policy policy = {&fake, 6, 1000, 1000000, &made};
    struct tol_retry retry = {.policy = &policy};
    unsigned attempts = 0;
    do attempts++;
    while (tol_retry_again(&retry, CUDA_ERROR_SYSTEM_NOT_READY));
    cr_assert_eq(attempts, 6);
    cr_assert_eq(pause_count, 5);
    for (unsigned i = 0; i < 5; i++) cr_assert_eq(pauses[i], 1000u << i);
    cr_assert_eq(made, 5);
}

Test(retry, no_pause_goes_beyond_the_deadline) {
    const struct tol_retry_policy policy = {&fake, 1000, 1000, 10000, NULL};
    struct tol_retry retry = {.policy = &policy};
    while (tol_retry_again(&retry, CUDA_ERROR_OUT_OF_MEMORY)) cr_assert(pause_count < 64);
    cr_assert_eq(time_ns, 10000); /* 1 + 2 + 4 and what is left of 10 us */
    cr_assert_eq(pause_count, 4);
    cr_assert_eq(pauses[3], 3000);
}

Test(retry, many_doublings_do_not_overflow) {
    const struct tol_retry_policy policy = {&fake, 60, 1ull << 33, UINT64_MAX / 2, NULL};
    struct tol_retry retry = {.policy = &policy};
    while (tol_retry_again(&retry, CUDA_ERROR_OPERATING_SYSTEM)) cr_assert(pause_count < 64);
    for (unsigned i = 1; i < pause_count; i++) cr_assert(pauses[i] > 0);
    cr_assert(time_ns <= UINT64_MAX / 2);
}

Test(retry, success_and_what_cannot_pass_are_final) {
    static const CUresult final[] = {CUDA_SUCCESS,
                                     CUDA_ERROR_INVALID_VALUE,
                                     CUDA_ERROR_NO_DEVICE,
                                     CUDA_ERROR_ILLEGAL_ADDRESS,
                                     CUDA_ERROR_ECC_UNCORRECTABLE,
                                     CUDA_ERROR_LAUNCH_FAILED,
                                     CUDA_ERROR_UNKNOWN};
    const struct tol_retry_policy policy = {&fake, 10, 1000, 1000000, NULL};
    for (size_t i = 0; i < sizeof final / sizeof final[0]; i++) {
        struct tol_retry retry = {.policy = &policy};
        cr_assert_not(tol_retry_again(&retry, final[i]), "code %d is retried", (int) final[i]);
    }
    cr_assert_eq(pause_count, 0);
}
