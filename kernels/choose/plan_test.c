/*
 * Plans: what is kept is found under its key alone, and a tuning that comes into use ends it.
 */
#include "choose/cost.h"
#include "choose/plan_map.h"

#include "interpose.h"
#include "test/test_device.h"

#include <pthread.h>
#include <string.h>

TestSuite(plan, .fini = test_end);

static const char owner[] = "plan test", other[] = "plan test";

static struct kn_plan_key key_of(const char *whose, int64_t number, int64_t last) {
    struct kn_plan_key key = {.owner = whose};
    key.numbers[0] = number, key.numbers[KN_PLAN_NUMBERS - 1] = last;
    return key;
}

Test(plan, a_plan_is_found_under_its_key_alone) {
    struct kn_plans *plans = kn_plans_create();
    const struct kn_plan_key key = key_of(owner, 1, 2),
                             unlike[] = {key_of(owner, 2, 2), key_of(owner, 1, 3),
                                         key_of(other, 1, 2)};
    int64_t found = 0;
    cr_assert(!kn_plans_find(plans, &key, &found, sizeof found));
    kn_plans_keep(plans, &key, &(int64_t){42}, sizeof found);
    cr_assert(kn_plans_find(plans, &key, &found, sizeof found) && found == 42);
    for (int i = 0; i < 3; i++) cr_assert(!kn_plans_find(plans, &unlike[i], &found, sizeof found));
    kn_plans_keep(plans, &key, &(int64_t){43}, sizeof found);
    cr_assert(kn_plans_find(plans, &key, &found, sizeof found) && found == 43);
    kn_plans_clear(plans);
    cr_assert(!kn_plans_find(plans, &key, &found, sizeof found));
    kn_plans_destroy(plans);
}

/* Goal: more keys than places lose plans, and none gets the plan of another. */
Test(plan, keys_of_one_place_replace_each_other) {
    enum { KEYS = 5000 };
    struct kn_plans *plans = kn_plans_create();
    int found_count = 0;
    for (int64_t i = 0; i < KEYS; i++) {
        const struct kn_plan_key key = key_of(owner, i, 0);
        kn_plans_keep(plans, &key, &i, sizeof i);
    }
    for (int64_t i = 0; i < KEYS; i++) {
        const struct kn_plan_key key = key_of(owner, i, 0);
        int64_t found = -1;
        const bool is_there = kn_plans_find(plans, &key, &found, sizeof found);
        cr_assert(!is_there || found == i, "%d", (int)i);
        found_count += is_there;
    }
    cr_assert(found_count > 100 && found_count < KEYS, "%d", found_count);
    kn_plans_destroy(plans);
}

enum { WORDS = KN_PLAN_BYTES / sizeof(int64_t), ROUNDS = 20000 };

static void *keep_and_find(void *of) {
    struct kn_plans *plans = of;
    int64_t words[WORDS], torn = 0;
    for (int64_t i = 0; i < ROUNDS; i++) {
        const struct kn_plan_key key = key_of(owner, i % 3, 0);
        for (size_t w = 0; w < WORDS; w++) words[w] = i;
        kn_plans_keep(plans, &key, words, sizeof words);
        if (!kn_plans_find(plans, &key, words, sizeof words)) continue;
        for (size_t w = 1; w < WORDS; w++) torn += words[w] != words[0];
    }
    return (void *)(uintptr_t)torn;
}

Test(plan, threads_find_whole_plans) {
    struct kn_plans *plans = kn_plans_create();
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, keep_and_find, plans);
    for (int i = 0; i < 4; i++) {
        void *torn = NULL;
        pthread_join(threads[i], &torn);
        cr_assert(torn == NULL);
    }
    kn_plans_destroy(plans);
}

Test(plan, a_tuning_in_use_ends_what_was_kept) {
    const struct kn_tuning_identity identity = {
        .device = "d", .multiprocessors = 1, .driver = 1, .commit = "c"};
    const struct kn_tuning_key problem = {"gemm", {1}};
    const struct kn_tuned tuned = {"naive", 1, 2, 1};
    struct kn_kernels *kernels = NULL;
    struct kn_tuning *tuning = NULL;
    struct kn_plan_key key = {.owner = owner};
    int64_t found = 0;
    MUST(kn_kernels_create(test_context(), &kernels));
    MUST(kn_tuning_create(&identity, &tuning));
    cr_assert(!kn_kernels_recall(kernels, &key, &found, sizeof found));
    kn_kernels_keep(kernels, &key, &(int64_t){1}, sizeof found);
    cr_assert(kn_kernels_recall(kernels, &key, &found, sizeof found));
    kn_kernels_use(kernels, tuning);
    cr_assert(!kn_kernels_recall(kernels, &key, &found, sizeof found));
    kn_kernels_keep(kernels, &key, &(int64_t){2}, sizeof found);
    MUST(kn_tuning_add(tuning, &problem, &tuned));
    cr_assert(!kn_kernels_recall(kernels, &key, &found, sizeof found));
    kn_kernels_use(kernels, NULL);
    cr_assert(!kn_kernels_recall(kernels, &key, &found, sizeof found));
    kn_kernels_destroy(kernels);
    kn_tuning_destroy(tuning);
}

/* A description that differs in one number gets a map of its own. */
Test(plan, a_tensor_map_is_made_once_for_a_description) {
    struct tol_driver *driver = test_driver();
    MUST(tol_interpose_install(driver, NULL));
    struct tol_context *context = test_context();
    if (!kn_tensor_map_has(context)) cr_skip_test("the driver makes no tensor maps");
    struct kn_kernels *kernels = NULL;
    struct tol_buffer *buffer = NULL;
    CUtensorMap first, again;
    MUST(kn_kernels_create(context, &kernels));
    MUST(tol_buffer_create(context, 1 << 20, 1, &buffer));
    struct kn_tensor tensor = {.name = "a",
                               .address = tol_buffer_address(buffer),
                               .type = KN_F16,
                               .columns = 64,
                               .rows = 64,
                               .matrices = 1,
                               .leading = 64,
                               .box_rows = 64};
    MUST(kn_kernels_map(kernels, &tensor, &first));
    MUST(kn_kernels_map(kernels, &tensor, &again));
    cr_assert(tol_interpose_count(TOL_DRIVER_INDEX_cuTensorMapEncodeTiled) == 1);
    cr_assert(memcmp(&first, &again, sizeof first) == 0);
    tensor.address += 4096;
    MUST(kn_kernels_map(kernels, &tensor, &again));
    cr_assert(tol_interpose_count(TOL_DRIVER_INDEX_cuTensorMapEncodeTiled) == 2);
    kn_kernels_destroy(kernels);
    tol_buffer_destroy(buffer);
}

/* 133 narrow tiles take two waves of 132 multiprocessors, and 67 wide ones take one. */
Test(cost, wide_tiles_win_where_waves_are_full) {
    cr_assert(kn_cost_wide_wins(132, 1 / 0.52, 264));
    cr_assert(!kn_cost_wide_wins(66, 1 / 0.52, 132), "one wave each, and half a tile is shorter");
    cr_assert(kn_cost_wide_wins(67, 1 / 0.52, 133));
}

static const char *declines(unsigned cost, unsigned cluster, double m, double n, double k) {
    const struct kn_variant row = {.cost = cost, .tile = {128, 128, 64}, .cluster = cluster};
    const struct kn_cost_product product = {
        .m = m, .n = n, .k = k, .batch = 1, .has_split = true, .packed_bytes = 1e6};
    return kn_cost_declines(&row, &product);
}

Test(cost, models_have_edges) {
    cr_assert(declines(KN_COST_NARROW, 1, 128 * 132, 128, 256) == NULL);
    cr_assert(declines(KN_COST_NARROW, 1, 128 * 133, 128, 256) != NULL, "two waves");
    cr_assert(declines(KN_COST_NARROW, 1, 128, 128, 255) != NULL, "few steps");
    cr_assert(declines(KN_COST_CLUSTER, 4, 128 * 16, 128, 1024) == NULL);
    cr_assert(declines(KN_COST_CLUSTER, 4, 128 * 17, 128, 1024) != NULL, "too many clusters");
    cr_assert(declines(KN_COST_NO_SPLIT, 1, 64, 4096, 4096) != NULL);
    cr_assert(declines(KN_COST_NO_SPLIT, 1, 65, 65, 4096) == NULL);
    cr_assert(declines(KN_COST_LARGE, 0, 64, 64, 4096) != NULL);
    cr_assert(declines(KN_COST_LARGE, 0, 65, 64, 4096) == NULL);
    cr_assert(declines(KN_COST_FULL, 0, 128 * 127, 128, 64) != NULL);
    cr_assert(declines(KN_COST_FULL, 0, 128 * 128, 128, 64) == NULL);
    cr_assert(declines(KN_COST_PACKED, 1, 4096, 4096, 4096) == NULL, "3.2 ms against 2.1");
    cr_assert(declines(KN_COST_PACKED, 1, 64, 64, 64) != NULL, "5 us to launch");
}
