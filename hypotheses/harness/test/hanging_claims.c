/*
 * A plugin for tests: a claim with a saboteur that never ends, then one that is caught.
 */
#include "harness/plugin.h"

#include <unistd.h>

static void hang(struct tol_interpose_call *call, void *user) {
    (void)user;
    while (call->index == TOL_DRIVER_INDEX_cuMemAlloc_v2) pause();
}

static void refuse(struct tol_interpose_call *call, void *user) {
    (void)user;
    if (call->index != TOL_DRIVER_INDEX_cuMemAlloc_v2) return;
    call->forward = false;
    call->result = CUDA_ERROR_OUT_OF_MEMORY;
}

static const struct hyp_fault faults[] = {
    {.name = "test_hangs", .sentence = "an allocation never ends", .before = hang},
    {.name = "test_refuses", .sentence = "an allocation is refused", .before = refuse},
    {.name = NULL}};

static const struct hyp_saboteur saboteurs[] = {
    {.name = "test_hangs", .forced = HYP_MUST_FALSIFY},
    {.name = "test_refuses", .forced = HYP_MUST_FALSIFY},
    {.name = NULL}};

static const struct hyp_plugin_claim claims[] = {
    {.id = "HANGS",
     .title = "An allocation ends",
     .unit = "violations",
     .source = "a test",
     .threshold = 0,
     .direction = HYP_AT_MOST,
     .words = {.claim = "An allocation ends.",
               .prediction = "0 violations.",
               .falsified_if = "an allocation is refused.",
               .method = "One byte is allocated.",
               .control = "None.",
               .confounders = "None."},
     .saboteurs = saboteurs},
    {.id = NULL}};

HYP_PLUGIN(.name = "hanging", .version = "1", .claims = claims, .faults = faults);

HYP_ATTACK_WITH(hangs, a_byte_is_allocated, .soft_devices = "1") {
    struct tol_buffer *buffer = NULL;
    if (HYP_OK(attack, tol_buffer_create(attack->context, 1, 1, &buffer))) {
        tol_buffer_destroy(buffer);
    }
}

HYP_ATTACK_WITH(hangs, another_byte_is_allocated, .soft_devices = "1") {
    attack_a_byte_is_allocated(attack);
}
