/*
 * H4: the runtime adds at most 2 us to a launch.
 *
 * `tollens explain H4` prints the text below.
 */
#include "harness/attack.h"
#include "harness/claim.h"
#include "harness/clock.h"
#include "attack/launcher.h"

#include <stdio.h>
#include <string.h>

HYP_WORDS(
    4, .is_timed = true,
    .claim = "A launch through the runtime takes at most 2 us longer than the same cuLaunchKernel "
             "called directly.",
    .prediction = "The median of the added time is below 0.05 us, with 1, 4 and 16 arguments.",
    .falsified_if = "the interval of the added time lies above 2 us for any number of arguments, "
                    "or a timed launch was not made.",
    .method = "One process makes launches of both sides in random order and times each with the "
              "processor's time-stamp counter, or the clock if there is none. The cost of reading "
              "it is measured and subtracted. A block is 64 launches of each side, in two halves, "
              "each on an empty queue. It gives one value: the mean added time per launch. A "
              "launch longer than 5 times the block's median over both sides is discarded and "
              "counted. The median of the blocks has a distribution-free interval, examined after "
              "50, 100, 200, 400 and 800 blocks. In full mode each process has another "
              "environment size and stack offset, chosen by the seed, and on a GPU machine the "
              "timed thread is pinned to one processor.",
    .control = "After each block another block, with the baseline on both sides, must find no "
               "difference larger than a third of the threshold; the rule is corrected for the "
               "number of controls in a run. The kernel counts its launches, and all arguments "
               "enter the count.",
    .confounders = "A busy or throttled machine and a coarse timer: each makes the verdict "
                   "inconclusive, and so do more than 2 % of discarded launches. A change of the "
                   "processor's clock affects both sides of a block alike. The driver's own cost "
                   "cancels out, because both sides pay it. What a launch costs the next one, "
                   "such as evicted cache lines, affects both sides and is not seen. Memory "
                   "layout differs between processes; address space randomisation is left on.")

enum { LAUNCHES = 32, SERIES_CALLS = 2000 };

static void launches_compare_launches(struct hyp_attack *attack, unsigned arguments) {
    struct hyp_launcher launcher;
    char name[64];
    snprintf(name, sizeof name, "launch_%u_argument%s", arguments, arguments == 1 ? "" : "s");
    const struct hyp_pair pair = {.name = name,
                                  .scale = 1e-3,
                                  .rule = hyp_attack_rule(attack, 3),
                                  .calls = LAUNCHES,
                                  .warm_calls = 500,
                                  .call = hyp_launcher_call,
                                  .settle = hyp_launcher_settle,
                                  .user = &launcher};
    if (hyp_launcher_begin(attack, arguments, false, &launcher)) {
        hyp_attack_compare(attack, &pair);
        hyp_launcher_record(&launcher, name, SERIES_CALLS);
    }
    hyp_launcher_end(&launcher);
}

HYP_ATTACK(h04, a_launch_costs_little_more_than_the_drivers) {
    static const unsigned arguments[] = {1, 4, 16};
    for (size_t i = 0; i < 3; i++) launches_compare_launches(attack, arguments[i]);
}

/* ---- other calls ----------------------------------------------------------------------------- */

/* What the calls below use on either side. */
struct launch_stage {
    struct hyp_attack *attack;
    struct tol_stream *stream;
    struct tol_event *event;
    struct tol_module *module;
    struct tol_buffer *buffer;
    struct tol_pinned *pinned;
    CUevent raw_event;
    CUmodule raw_module;
    void *raw_pinned;
};

enum { COPY_BYTES = 4096, CALLS_MAX = 64 };

static double record_events(void *user, enum hyp_side side, unsigned calls) {
    struct launch_stage *s = user;
    bool ok = true;
    CUstream stream = tol_stream_handle(s->stream);
    uint64_t begin_ns = hyp_clock_ns();
    for (unsigned i = 0; i < calls; i++) {
        ok = ok && (side == HYP_SUBJECT
                        ? tol_event_record(s->event, s->stream) == TOL_OK
                        : s->attack->raw->cuEventRecord(s->raw_event, stream) == CUDA_SUCCESS);
    }
    double ns = (double)(hyp_clock_ns() - begin_ns);
    ok = ok && s->attack->raw->cuStreamSynchronize(stream) == CUDA_SUCCESS;
    return ok ? ns : -1;
}

static double create_streams(void *user, enum hyp_side side, unsigned calls) {
    struct launch_stage *s = user;
    struct tol_stream *ours[CALLS_MAX] = {NULL};
    CUstream raw[CALLS_MAX] = {NULL};
    bool ok = calls <= CALLS_MAX;
    uint64_t begin_ns = hyp_clock_ns();
    for (unsigned i = 0; ok && i < calls; i++) {
        ok = side == HYP_SUBJECT
                 ? tol_stream_create(s->attack->context, NULL, &ours[i]) == TOL_OK
                 : s->attack->raw->cuStreamCreateWithPriority(&raw[i], CU_STREAM_NON_BLOCKING, 0) ==
                       CUDA_SUCCESS;
    }
    double ns = (double)(hyp_clock_ns() - begin_ns);
    for (unsigned i = 0; i < calls && i < CALLS_MAX; i++) {
        tol_stream_destroy(ours[i]);
        if (raw[i] != NULL) s->attack->raw->cuStreamDestroy_v2(raw[i]);
    }
    return ok ? ns : -1;
}

static double find_kernels(void *user, enum hyp_side side, unsigned calls) {
    struct launch_stage *s = user;
    struct tol_kernel *kernel = NULL;
    CUfunction function = NULL;
    bool ok = true;
    uint64_t begin_ns = hyp_clock_ns();
    for (unsigned i = 0; i < calls; i++) {
        ok = ok && (side == HYP_SUBJECT ? tol_module_kernel(s->module, "tick_1", &kernel) == TOL_OK
                                        : s->attack->raw->cuModuleGetFunction(
                                              &function, s->raw_module, "tick_1") == CUDA_SUCCESS);
    }
    double ns = (double)(hyp_clock_ns() - begin_ns);
    return ok ? ns : -1;
}

static double submit_copies(void *user, enum hyp_side side, unsigned calls) {
    struct launch_stage *s = user;
    bool ok = true;
    CUstream stream = tol_stream_handle(s->stream);
    CUdeviceptr address = tol_buffer_address(s->buffer);
    uint64_t begin_ns = hyp_clock_ns();
    for (unsigned i = 0; i < calls; i++) {
        ok = ok &&
             (side == HYP_SUBJECT
                  ? tol_copy_to_device(s->stream, s->buffer, 0, s->pinned, 0, COPY_BYTES) == TOL_OK
                  : s->attack->raw->cuMemcpyHtoDAsync_v2(address, s->raw_pinned, COPY_BYTES,
                                                         stream) == CUDA_SUCCESS);
    }
    double ns = (double)(hyp_clock_ns() - begin_ns);
    ok = ok && s->attack->raw->cuStreamSynchronize(stream) == CUDA_SUCCESS;
    return ok ? ns : -1;
}

static bool h04_launches_cost_little_begin(struct hyp_attack *attack, struct launch_stage *s) {
    size_t bytes = 0;
    memset(s, 0, sizeof *s);
    s->attack = attack;
    char *text = hyp_attack_file(attack, "fixtures/ptx/kernels/tick_1.ptx", &bytes);
    bool ok = text != NULL &&
              HYP_OK(attack, tol_stream_create(attack->context, NULL, &s->stream)) &&
              HYP_OK(attack, tol_event_create(attack->context, false, &s->event)) &&
              HYP_OK(attack, tol_buffer_create(attack->context, COPY_BYTES, 1, &s->buffer)) &&
              HYP_OK(attack, tol_pinned_create(attack->context, COPY_BYTES, &s->pinned)) &&
              HYP_OK(attack, tol_module_load(attack->context, text, bytes, NULL, &s->module)) &&
              HYP_CHECK(attack,
                        attack->raw->cuEventCreate(&s->raw_event, CU_EVENT_DISABLE_TIMING) ==
                                CUDA_SUCCESS &&
                            attack->raw->cuModuleLoadData(&s->raw_module, text) == CUDA_SUCCESS &&
                            attack->raw->cuMemHostAlloc(&s->raw_pinned, COPY_BYTES,
                                                        CU_MEMHOSTALLOC_PORTABLE) == CUDA_SUCCESS,
                        "the driver's own objects could not be created");
    free(text);
    if (ok) memset(s->raw_pinned, 1, COPY_BYTES);
    return ok;
}

static void h04_launches_cost_little_end(struct launch_stage *s) {
    const struct tol_driver_table *raw = s->attack->raw;
    if (s->raw_event != NULL) raw->cuEventDestroy_v2(s->raw_event);
    if (s->raw_module != NULL) raw->cuModuleUnload(s->raw_module);
    if (s->raw_pinned != NULL) raw->cuMemFreeHost(s->raw_pinned);
    tol_pinned_destroy(s->pinned);
    tol_buffer_destroy(s->buffer);
    tol_module_destroy(s->module);
    tol_event_destroy(s->event);
    tol_stream_destroy(s->stream);
}

/* The claim is about launches; what the runtime adds to other calls is recorded and not judged. */
HYP_ATTACK(h04, what_other_calls_add_is_recorded) {
    static const struct {
        const char *name;
        double (*batch)(void *user, enum hyp_side side, unsigned calls);
        unsigned calls;
    } calls[] = {{"event_record", record_events, CALLS_MAX},
                 {"stream_create", create_streams, CALLS_MAX},
                 {"module_lookup", find_kernels, 1000},
                 {"copy_submit", submit_copies, CALLS_MAX}};
    struct launch_stage stage;
    if (h04_launches_cost_little_begin(attack, &stage)) {
        for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
            const struct hyp_pair pair = {.name = calls[i].name,
                                          .scale = 1e-3,
                                          .rule = hyp_attack_rule(attack, 1),
                                          .recorded_only = true,
                                          .calls = calls[i].calls,
                                          .warm_calls = calls[i].calls,
                                          .batch = calls[i].batch,
                                          .user = &stage};
            hyp_attack_compare(attack, &pair);
        }
    }
    h04_launches_cost_little_end(&stage);
}
