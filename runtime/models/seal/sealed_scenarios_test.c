/*
 * A scenario of sealed weights, repeated with another driver call refused each time: it ends with a
 * status, and nothing leaks.
 */
#include "seal.h"

#include "test/test_scenarios.h"

#include <string.h>

enum { BYTES = 3 * 16384 + 64, ROWS = BYTES / 64 };

static struct test_refusal refusal;
static char plain[BYTES];
static int held; /* allocations of device memory */

static void before(struct tol_interpose_call *call, void *user) {
    test_refuse(call, user);
}

static void after(struct tol_interpose_call *call, void *user) {
    test_refuse_after(call, user);
    if (call->result != CUDA_SUCCESS) return;
    if (call->index == TOL_DRIVER_INDEX_cuMemAlloc_v2) held++;
    if (call->index == TOL_DRIVER_INDEX_cuMemFree_v2) held--;
}

/* Everything that a program does with sealed weights; a failed part ends the later ones. */
static tol_status live(struct tol_context *context, const struct tol_seal_key *key) {
    const struct tol_seal_options options = {.shape = {ROWS, 64}, .label = "scenario"};
    static char read[BYTES];
    struct tol_sealer *sealer = NULL;
    struct tol_sealed *sealed = NULL, *computed = NULL;
    struct tol_buffer *buffer = NULL;
    tol_status status = tol_sealer_create(context, key, &sealer);
    if (status == TOL_OK) status = tol_seal_host(sealer, &options, plain, &sealed);
    if (status == TOL_OK) status = tol_seal_rotate(sealed);
    if (status == TOL_OK) status = tol_seal_verify(sealed);
    if (status == TOL_OK) status = tol_seal_read(sealed, read, BYTES);
    if (status == TOL_OK) cr_assert_arr_eq(read, plain, BYTES);
    if (status == TOL_OK) status = tol_buffer_create(context, BYTES, 1, &buffer);
    if (status == TOL_OK) status = tol_seal_open(sealed, tol_place_of_buffer(buffer));
    if (status == TOL_OK) {
        status = tol_seal_device(sealer, &options, tol_place_of_buffer(buffer), &computed);
    }
    if (status == TOL_OK) status = tol_seal_read(computed, read, BYTES);
    if (status == TOL_OK) cr_assert_arr_eq(read, plain, BYTES);
    tol_sealed_destroy(computed);
    tol_sealed_destroy(sealed);
    tol_sealer_destroy(sealer);
    tol_buffer_destroy(buffer);
    return status;
}

TestSuite(sealed_scenarios, .timeout = 600);

Test(sealed_scenarios, each_refused_driver_call_ends_with_a_status_and_loses_nothing) {
    struct tol_seal_key *key = NULL;
    const struct tol_interpose_options hooks = {.before = before, .after = after, .user = &refusal};
    if (tol_seal_key_draw(&key) == TOL_UNSUPPORTED) cr_skip_test("there is no libcrypto.so.3");
    for (size_t i = 0; i < BYTES; i++) plain[i] = (char)(i * 7 + i / 251);
    struct tol_driver *driver = test_driver();
    uint64_t scenarios = 0;
    for (uint64_t n = test_next_scenario(0); n < 2000; n = test_next_scenario(n)) {
        struct tol_context *context = NULL;
        test_scenario_begin(driver, n, 1);
        refusal = (struct test_refusal){
            .nth = n, .result = CUDA_ERROR_OUT_OF_MEMORY, .refused = TOL_DRIVER_FUNCTIONS};
        MUST(tol_interpose_install(driver, &hooks));
        tol_status status = tol_context_create(driver, 0, &context);
        if (status == TOL_OK) status = live(context, key);
        const bool is_refused = refusal.refused != TOL_DRIVER_FUNCTIONS;
        tol_context_destroy(context);
        tol_interpose_remove(driver);
        scenarios++;
        /* What the driver refuses to free is lost. */
        const int lost = refusal.refused == TOL_DRIVER_INDEX_cuMemFree_v2;
        cr_assert(held == 0 || (lost && held == 1), "call %llu refused, %d allocations are left",
                  (unsigned long long)n, held);
        held = 0;
        if (!is_refused) {
            cr_assert_eq(status, TOL_OK, "%s", tol_message());
            break;
        }
    }
    test_scenarios_end();
    cr_assert_gt(scenarios, 5);
    tol_seal_key_destroy(key);
    test_end();
}
