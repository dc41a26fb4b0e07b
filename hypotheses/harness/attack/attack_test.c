/*
 * Attacks: what a body finds when it begins.
 */
#include "harness/attack.h"
#include "harness/fault_hooks.h"
#include "harness/sabotage.h"
#include "module_loads.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char queues[32]; /* the environment's value before the driver began; "" for none */

static void look(struct hyp_attack *attack) {
    const char *value = getenv("CUDA_DEVICE_MAX_CONNECTIONS");
    snprintf(queues, sizeof queues, "%s", value != NULL ? value : "");
    HYP_CHECK(attack, attack->context != NULL, "there is no context");
}

static const char *queues_of(struct hyp_attack_wants wants, const char *given) {
    setenv("TOLLENS_DEVICE", "soft", 1);
    unsetenv("TOLLENS_OUT");
    unsetenv("CUDA_DEVICE_MAX_CONNECTIONS");
    if (given != NULL) setenv("CUDA_DEVICE_MAX_CONNECTIONS", given, 1);
    hyp_attack_run("h10", "made_up", &wants, look);
    return queues;
}

/* Goal: queues take time to create, so only attacks that need them have them. */
Test(attack, more_queues_are_had_by_who_wants_them_alone) {
    cr_assert_str_eq(queues_of((struct hyp_attack_wants){.counted = false}, NULL), "");
    cr_assert_str_eq(queues_of((struct hyp_attack_wants){.many_queues = true}, NULL), "32");
}

static int devices;

static void count_devices(struct hyp_attack *attack) {
    HYP_OK(attack, tol_device_count(attack->driver, &devices));
}

/* Goal: an attack on peers has several soft devices, unless a person asked for another number. */
static int devices_of(const char *given) {
    setenv("TOLLENS_DEVICE", "soft", 1);
    unsetenv("TOLLENS_OUT");
    unsetenv("TOLLENS_SOFT_DEVICES");
    if (given != NULL) setenv("TOLLENS_SOFT_DEVICES", given, 1);
    hyp_attack_run("h10", "made_up", &(struct hyp_attack_wants){.soft_devices = "3"},
                   count_devices);
    return devices;
}

Test(attack, soft_devices_are_as_many_as_are_wanted) {
    cr_assert_eq(devices_of(NULL), 3);
}

Test(attack, how_many_soft_devices_a_person_asked_for_stays) {
    cr_assert_eq(devices_of("5"), 5);
}

static char order[64]; /* the environment's order and seed before the driver began */

static void look_at_order(struct hyp_attack *attack) {
    const char *seed = getenv("TOLLENS_SOFT_SEED");
    snprintf(order, sizeof order, "%s %s", getenv("TOLLENS_SOFT_ORDER"), seed != NULL ? seed : "");
    HYP_CHECK(attack, attack->context != NULL, "there is no context");
}

static const char *order_of(const char *wanted) {
    setenv("TOLLENS_DEVICE", "soft", 1);
    setenv("TOLLENS_SEED", "7", 1);
    unsetenv("TOLLENS_OUT");
    unsetenv("TOLLENS_SOFT_SEED");
    hyp_attack_run("h10", "made_up", &(struct hyp_attack_wants){.soft_order = wanted},
                   look_at_order);
    return order;
}

Test(attack, an_order_of_the_soft_device_is_had_by_who_wants_it) {
    cr_assert_str_eq(order_of("newest"), "newest ");
}

Test(attack, a_drawn_order_is_drawn_by_the_attacks_seed) {
    cr_assert_str_eq(order_of("drawn"), "drawn 7");
}

/* Pages of address space. */
static unsigned long mapped_pages(void) {
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    cr_assert(file != NULL && fscanf(file, "%lu", &pages) == 1);
    fclose(file);
    return pages;
}

static void load_several(struct hyp_attack *attack) {
    static const char text[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                               ".visible .entry k() { ret; }\n";
    enum { LOADS = 5, MOST_BYTES = 1 << 30 };
    struct hyp_module_load loads[LOADS];
    for (int i = 0; i < LOADS; i++) {
        loads[i] = (struct hyp_module_load){.text = text, .bytes = sizeof text - 1};
    }
    const unsigned long before = mapped_pages();
    hyp_module_loads(attack->context, loads, LOADS);
    cr_assert((mapped_pages() - before) * 4096 < MOST_BYTES, "more threads than processors");
    for (int i = 0; i < LOADS; i++) {
        HYP_CHECK(attack, loads[i].status == TOL_OK && loads[i].module != NULL, "%s",
                  loads[i].message);
        tol_module_destroy(loads[i].module);
    }
}

Test(attack, modules_are_loaded_by_a_few_threads) {
    setenv("TOLLENS_DEVICE", "soft", 1);
    unsetenv("TOLLENS_OUT");
    hyp_attack_run("h10", "made_up", &(struct hyp_attack_wants){.counted = false}, load_several);
}

Test(attack, how_many_queues_a_person_asked_for_stays) {
    cr_assert_str_eq(queues_of((struct hyp_attack_wants){.many_queues = true}, "5"), "5");
}

static int refusals; /* of contexts, so far */

static void refuse_contexts(struct tol_interpose_call *call, void *user) {
    (void)user;
    if (call->index != TOL_DRIVER_INDEX_cuDevicePrimaryCtxRetain || ++refusals > 3) return;
    call->forward = false;
    call->result = CUDA_ERROR_OUT_OF_MEMORY;
}

/* Goal: an attack waits for memory that a claim beside it has. */
Test(attack, a_context_that_has_no_memory_yet_is_waited_for) {
    static const struct hyp_fault refuses = {
        .name = "test_refuses_contexts", .sentence = "is refused", .before = refuse_contexts};
    cr_assert(hyp_sabotage_add(&refuses));
    setenv("TOLLENS_SABOTAGE", refuses.name, 1);
    queues_of((struct hyp_attack_wants){.many_queues = true}, NULL);
    cr_assert_eq(refusals, 4);
    cr_assert_str_eq(queues, "32", "the attack did not run");
}
