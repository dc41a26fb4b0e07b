/*
 * A rank that is late or lost is a status by the deadline, and no hang.
 */
#include "collective/collective_scene.h"
#include "collective/collective_state.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

TestSuite(collective_loss, .timeout = 60);

enum { COUNT = 1000 };

static atomic_bool may_come;

/* A rank is late until the test lets it come: a wait that ended before did not wait for it. */
static tol_status be_late(void *user, char *reason, size_t bytes) {
    const struct timespec pause = {.tv_nsec = 1000000};
    (void)user, (void)reason, (void)bytes;
    while (!atomic_load(&may_come)) nanosleep(&pause, NULL);
    return TOL_OK;
}

/* After a failure nothing more is taken, and nothing hangs. */
static void must_be_over(struct collective_stage *stage) {
    MUST_FAIL(kn_all_reduce(stage->collective, stage->parts, COUNT, KN_F32), TOL_POISONED,
              "failed before");
    MUST_FAIL(kn_collective_wait(stage->collective, 10), TOL_POISONED, "failed before");
}

Test(collective_loss, a_rank_that_is_late_is_a_timeout) {
    static const enum kn_collective_way ways[] = {KN_WAY_DIRECT, KN_WAY_RING};
    struct collective_stage stage;
    stage_begin(&stage, 2, NULL);
    for (size_t i = 0; i < 2; i++) {
        kn_collective_destroy(stage.collective);
        stage.collective = NULL;
        MUST(kn_collective_create(
            stage.contexts, 2, &(struct kn_collective_options){.way = ways[i]}, &stage.collective));
        stage_fill(&stage, COUNT, 0, KN_F32, false, 1);
        atomic_store(&may_come, false);
        MUST(tol_stream_call(stage.streams[1], be_late, NULL));
        MUST(kn_all_reduce(stage.collective, stage.parts, COUNT, KN_F32));
        MUST_FAIL(kn_collective_wait(stage.collective, 100), TOL_TIMEOUT, "");
        must_be_over(&stage);
        atomic_store(&may_come, true);
        for (unsigned rank = 0; rank < 2; rank++) MUST(tol_stream_synchronize(stage.streams[rank]));
    }
    stage_end(&stage);
}

/* A kernel of rank 1 writes where nothing is; the waits of rank 0 end all the same. */
Test(collective_loss, a_device_that_faults_is_its_error) {
    static const char ptx[] = ".version 6.4\n.target sm_70\n.address_size 64\n"
                              ".visible .entry wild()\n{\n.reg .b64 %rd<2>;\n.reg .b32 %r<2>;\n"
                              "mov.u64 %rd1, 64;\nmov.u32 %r1, 1;\nst.global.u32 [%rd1], %r1;\n"
                              "ret;\n}\n";
    struct collective_stage stage;
    struct tol_module *module = NULL;
    struct tol_kernel *wild = NULL;
    stage_begin(&stage, 2, NULL);
    stage_fill(&stage, COUNT, 0, KN_F32, false, 1);
    MUST(tol_module_load(stage.contexts[1], ptx, sizeof ptx - 1, NULL, &module));
    MUST(tol_module_kernel(module, "wild", &wild));
    MUST(tol_launch(stage.streams[1], wild, tol_launch_linear(1, 1), (struct tol_arguments){0}));
    tol_status status = kn_all_reduce(stage.collective, stage.parts, COUNT, KN_F32);
    if (status == TOL_OK) status = kn_collective_wait(stage.collective, 2000);
    cr_assert(status == TOL_POISONED || status == TOL_TIMEOUT || status == TOL_DRIVER_ERROR,
              "%s: %s", tol_status_name(status), tol_message());
    for (unsigned rank = 0; rank < 2; rank++) {
        tol_context_set_patience(stage.contexts[rank], 100);
    }
    tol_module_destroy(module);
    stage_end(&stage);
}

/* Rank 1's kernel never comes within rank 0's patience. A root needs nothing of it, but waits. */
enum flagged { ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, FROM_RANK_0, FROM_RANK_1, FLAGGED };

static tol_status call(const struct collective_stage *stage, enum flagged flagged) {
    switch (flagged) {
    case REDUCE_SCATTER:
        return kn_reduce_scatter(stage->collective, stage->parts, COUNT / 2, KN_F32);
    case ALL_GATHER:
        return kn_all_gather(stage->collective, stage->parts, COUNT, KN_F32);
    case FROM_RANK_0:
    case FROM_RANK_1:
        return kn_broadcast(stage->collective, stage->parts, flagged - FROM_RANK_0, COUNT, KN_F32);
    default:
        return kn_all_reduce(stage->collective, stage->parts, COUNT, KN_F32);
    }
}

static void give_up(bool is_met) {
    const struct kn_collective_options options = {
        .way = KN_WAY_FLAGS, .patience_ms = 100, .blocks = 1};
    struct collective_stage stage;
    setenv("TOLLENS_SOFT_WORKERS", "4", 1);
    stage_begin(&stage, 2, &options);
    for (enum flagged i = ALL_REDUCE; i < FLAGGED; i++) {
        kn_collective_destroy(stage.collective);
        stage.collective = NULL;
        MUST(kn_collective_create(stage.contexts, 2, &options, &stage.collective));
        stage.collective->met_bytes = is_met ? KN_COLLECTIVE_MET_BYTES : 0;
        if (is_met) stage.collective->flags_bytes = 0;
        stage_fill(&stage, COUNT, 0, KN_F32, false, 1);
        atomic_store(&may_come, false);
        MUST(tol_stream_call(stage.streams[1], be_late, NULL));
        MUST(call(&stage, i));
        MUST(tol_stream_synchronize(stage.streams[0])); /* ends although rank 1 has not come */
        atomic_store(&may_come, true);
        MUST_FAIL(kn_collective_wait(stage.collective, 30000), TOL_TIMEOUT,
                  "rank 0 of a collective waited 100 ms for rank 1");
        must_be_over(&stage);
    }
    stage_end(&stage);
}

Test(collective_loss, a_kernel_that_waits_for_flags_gives_up) {
    give_up(false);
}
Test(collective_loss, a_kernel_that_waits_to_meet_gives_up) {
    give_up(true);
}
