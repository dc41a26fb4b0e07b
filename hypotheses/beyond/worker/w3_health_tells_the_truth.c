/*
 * The attacks on W3: memory that is not the device's own, memory that is allocated and freed, and a
 * lost context. Each is caused on purpose, then health is queried.
 */
#include "worker_faults.h"
#include "worker_stage.h"

#include "harness/ledger.h"

#include <stdio.h>
#include <string.h>

enum { PROMPT = 40 };

static bool begin_session(struct hyp_attack *attack, const struct worker_stage *stage,
                          struct tol_session **session) {
    int tokens[PROMPT], token = 0;
    worker_tokens(hyp_random(attack), stage->vocabulary, tokens, PROMPT);
    return HYP_OK(attack, tol_session_create(stage->loaded, NULL, session)) &&
           HYP_OK(attack, tol_session_prompt(*session, tokens, PROMPT)) &&
           HYP_OK(attack, tol_session_step(*session, &token));
}

/* ---- residency ---- */

/* What the hooks below do; the saboteur's hooks run after them. */
static struct {
    struct tol_interpose_options saboteur;
    uint64_t questions;  /* queries about addresses, so far */
    uint64_t lied_about; /* the query that is answered with host memory, from 1; 0: none */
    size_t host_bytes;   /* an allocation of at least this size is host memory; 0: none */
    void *host;          /* that host memory */
    bool is_lost;        /* every call is answered as by a lost context */
} staged;

static void health_before(struct tol_interpose_call *call, void *user) {
    if (staged.saboteur.before != NULL) staged.saboteur.before(call, user);
    if (staged.is_lost) {
        call->forward = false;
        call->result = CUDA_ERROR_ILLEGAL_ADDRESS;
        return;
    }
    if (call->index == TOL_DRIVER_INDEX_cuMemAlloc_v2 && staged.host_bytes > 0 &&
        staged.host == NULL && *(size_t *)call->arguments[1] >= staged.host_bytes) {
        call->forward = false;
        call->result = call->driver->cuMemHostAlloc(&staged.host, *(size_t *)call->arguments[1], 0);
        **(CUdeviceptr **)call->arguments[0] = (CUdeviceptr)(uintptr_t)staged.host;
    }
    if (call->index == TOL_DRIVER_INDEX_cuMemFree_v2 && staged.host != NULL &&
        *(CUdeviceptr *)call->arguments[0] == (CUdeviceptr)(uintptr_t)staged.host) {
        call->forward = false;
        call->result = call->driver->cuMemFreeHost(staged.host);
        staged.host = NULL;
    }
}

static void health_after(struct tol_interpose_call *call, void *user) {
    if (call->index == TOL_DRIVER_INDEX_cuPointerGetAttribute &&
        *(CUpointer_attribute *)call->arguments[1] == CU_POINTER_ATTRIBUTE_MEMORY_TYPE &&
        ++staged.questions == staged.lied_about) {
        **(unsigned **)call->arguments[0] = CU_MEMORYTYPE_HOST;
    }
    if (staged.saboteur.after != NULL) staged.saboteur.after(call, user);
}

/* A context whose calls go through the hooks, in place of the attack's. */
static bool health_stage_context(struct hyp_attack *attack) {
    const struct tol_interpose_options options = {.before = health_before, .after = health_after};
    worker_fault_hooks(attack, &staged.saboteur);
    tol_context_destroy(attack->context);
    attack->context = NULL;
    tol_interpose_remove(attack->driver);
    return HYP_OK(attack, tol_interpose_install(attack->driver, &options)) &&
           HYP_OK(attack,
                  tol_context_create(attack->driver, attack->session.ordinal, &attack->context));
}

HYP_ATTACK(w3, weights_in_host_memory_are_refused) {
    struct worker_stage stage = {.model = NULL};
    if (!health_stage_context(attack)) return;
    const char *path = worker_file(attack, "llama-f32");
    if (path != NULL && HYP_OK(attack, tol_model_open(path, &stage.model))) {
        staged.host_bytes = (size_t)tol_model_shape(stage.model)->weight_bytes;
        HYP_REFUSED(attack, tol_model_load(stage.model, attack->context, NULL, &stage.loaded),
                    TOL_NOT_RESIDENT, "not in the device's own memory");
        HYP_CHECK(attack, staged.host == NULL || stage.loaded != NULL,
                  "the memory of a model that was not loaded was not freed");
        worker_stage_end(&stage);
        staged.host_bytes = 0;
        HYP_OK(attack, tol_model_open(path, &stage.model));
        HYP_OK(attack, tol_model_load(stage.model, attack->context, NULL, &stage.loaded));
    }
    worker_file_end();
    worker_stage_end(&stage);
}

/* The driver reports one address after another as host memory. */
HYP_ATTACK(w3, each_tensor_and_page_counts) {
    struct worker_stage stage = {.model = NULL};
    struct tol_session *session = NULL;
    bool resident = false;
    if (health_stage_context(attack) && worker_stage_begin(attack, "llama-f32", NULL, &stage) &&
        begin_session(attack, &stage, &session)) {
        staged.questions = 0;
        HYP_OK(attack, tol_loaded_is_resident(stage.loaded, &resident));
        HYP_CHECK(attack, resident, "a model on the device is reported as not resident");
        const uint64_t questions = staged.questions;
        size_t tensors = 0;
        while (tol_gguf_tensor_at(tol_model_file(stage.model), tensors) != NULL) tensors++;
        HYP_CHECK(attack, questions > tensors,
                  "the driver got %llu queries about %zu "
                  "tensors",
                  (unsigned long long)questions, tensors);
        const uint64_t step = attack->session.full ? 1 : 3;
        for (uint64_t i = 1 + hyp_random_below(attack, step); i <= questions; i += step) {
            staged.questions = 0;
            staged.lied_about = i;
            HYP_OK(attack, tol_loaded_is_resident(stage.loaded, &resident));
            HYP_CHECK(attack, !resident,
                      "address %llu of %llu is host memory, but the model is reported as resident",
                      (unsigned long long)i, (unsigned long long)questions);
        }
        staged.lied_about = 0;
    }
    tol_session_destroy(session);
    worker_stage_end(&stage);
}

/* ---- the ledger ---- */

static uint64_t held_by(const struct tol_health *health) {
    return health->held[TOL_HELD_BUFFER].bytes;
}

HYP_ATTACK_WITH(w3, what_is_held_is_what_the_driver_gave, .ledger = true) {
    const uint64_t before_all = hyp_ledger_read().bytes;
    const unsigned rounds = attack->session.full ? 8 : 2;
    struct tol_health health;
    for (unsigned round = 0; round < rounds; round++) {
        struct worker_stage stage;
        struct tol_session *session = NULL;
        struct tol_loaded_stats stats;
        HYP_NEED(attack, tol_health_check(attack->context, NULL, &health));
        const uint64_t buffers = held_by(&health), driver = hyp_ledger_read().bytes;
        if (worker_stage_begin(attack, round % 2 == 0 ? "llama-f32" : "qwen2-q8_0",
                               &(struct tol_load_options){.context = 256}, &stage)) {
            tol_loaded_stats(stage.loaded, &stats);
            const uint64_t own = stats.weight_bytes + stats.scratch_bytes;
            HYP_OK(attack, tol_health_check(attack->context, NULL, &health));
            HYP_CHECK(attack, held_by(&health) - buffers == own,
                      "the model reports %llu bytes, and the runtime's ledger %llu",
                      (unsigned long long)own, (unsigned long long)(held_by(&health) - buffers));
            HYP_CHECK(attack, hyp_ledger_read().bytes - driver == own,
                      "the model reports %llu bytes, and the driver allocated %llu",
                      (unsigned long long)own,
                      (unsigned long long)(hyp_ledger_read().bytes - driver));
        }
        if (stage.loaded != NULL && begin_session(attack, &stage, &session)) {
            tol_loaded_stats(stage.loaded, &stats);
            HYP_OK(attack, tol_health_check(attack->context, NULL, &health));
            HYP_CHECK(attack, stats.pages == (PROMPT + 15) / 16, "%llu pages of %d positions",
                      (unsigned long long)stats.pages, PROMPT);
            HYP_CHECK(attack, health.held[TOL_HELD_BLOCK].bytes == stats.pages * stats.page_bytes,
                      "%llu bytes of pages, and the runtime's ledger has %llu",
                      (unsigned long long)(stats.pages * stats.page_bytes),
                      (unsigned long long)health.held[TOL_HELD_BLOCK].bytes);
        }
        tol_session_destroy(session);
        worker_stage_end(&stage);
        HYP_CHECK(attack, hyp_ledger_read().bytes == before_all, "%llu bytes were not freed",
                  (unsigned long long)(hyp_ledger_read().bytes - before_all));
        HYP_OK(attack, tol_health_check(attack->context, NULL, &health));
        HYP_CHECK(attack, held_by(&health) == buffers, "the runtime's ledger still has %llu bytes",
                  (unsigned long long)(held_by(&health) - buffers));
    }
}

/* ---- a lost context ---- */

/* Has a kernel write to an unmapped address. */
static void write_nowhere(struct hyp_attack *attack) {
    struct tol_kernel *kernel = hyp_attack_kernel(attack, "fill");
    struct tol_stream *stream = NULL;
    uint64_t address = (uint64_t)1 << 46, count = 1;
    unsigned value = 1;
    const unsigned sizes[] = {sizeof address, sizeof value, sizeof count};
    void *values[] = {&address, &value, &count};
    HYP_NEED(attack, tol_stream_create(attack->context, NULL, &stream));
    if (kernel != NULL) {
        (void)tol_launch(stream, kernel, (struct tol_launch_shape){1, 1, 1, 1, 1, 1, 0},
                         (struct tol_arguments){3, values, sizes});
        const tol_status status = tol_stream_synchronize(stream);
        HYP_CHECK(attack, status != TOL_OK, "a write to %#llx is reported as success",
                  (unsigned long long)address);
    }
    tol_stream_destroy(stream);
}

/* Loses the context. On the soft device such a write would be a finding against the run, so there
 * the driver's answers are changed to those of a lost context. */
static void lose_context(struct hyp_attack *attack) {
    if (attack->kind == HYP_DEVICE_SOFT) {
        staged.is_lost = true;
    } else {
        write_nowhere(attack);
    }
}

HYP_ATTACK(w3, a_lost_context_is_said_to_be_lost) {
    struct worker_stage stage = {.model = NULL};
    struct tol_session *session = NULL;
    struct tol_health health;
    bool resident = true;
    int token = 0;
    if (health_stage_context(attack) && worker_stage_begin(attack, "llama-f32", NULL, &stage) &&
        begin_session(attack, &stage, &session)) {
        HYP_OK(attack, tol_health_check(attack->context, NULL, &health));
        HYP_CHECK(attack, health.is_healthy, "a healthy context is reported as unhealthy: %s",
                  health.complaint);
        lose_context(attack);
        HYP_CHECK(attack, tol_session_step(session, &token) != TOL_OK,
                  "a lost context produced token %d", token);
        HYP_REFUSED(attack, tol_session_step(session, &token), TOL_POISONED, "");
        HYP_OK(attack, tol_health_check(attack->context, NULL, &health));
        HYP_CHECK(attack, !health.is_healthy && health.is_lost && health.complaint[0] != '\0',
                  "a lost context is reported as healthy");
        const tol_status asked = tol_loaded_is_resident(stage.loaded, &resident);
        HYP_CHECK(attack, asked != TOL_OK, "a lost context answers a query about memory");
        staged.is_lost = false; /* its memory can be freed */
    }
    tol_session_destroy(session);
    worker_stage_end(&stage);
}
