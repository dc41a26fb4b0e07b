/*
 * Attacks on S2, kernels and graphs: kernels of unknown modules, kernels of known modules that did
 * not use the weights before, kernels that find the address in memory, and graphs of all that.
 */
#include "watch_stage.h"

#include <stdlib.h>
#include <string.h>

/* ---- kernels --------------------------------------------------------------------------------- */

static bool launch_carry(struct watch_stage *s, struct tol_kernel *kernel, CUdeviceptr from,
                         unsigned words) {
    const tol_status status = tol_launch(s->stream, kernel, tol_launch_linear(words, 64),
                                         TOL_ARGUMENTS(tol_buffer_address(s->target), from, words));
    return HYP_CHECK(s->attack, (status == TOL_OK) == !s->refuses, "a launch: %s",
                     status == TOL_OK ? "it was not refused" : tol_message()) &&
           watch_stage_settle(s);
}

/* What it carried is in the target, or is not. */
static void check_carried(struct watch_stage *s, unsigned words, bool expected, const char *what) {
    const size_t bytes = 4 * (size_t)words;
    const bool is_read = s->attack->raw->cuMemcpyDtoH_v2(s->host, tol_buffer_address(s->target),
                                                         bytes) == CUDA_SUCCESS;
    const bool is_there = is_read && memcmp(s->host, s->content, bytes) == 0;
    HYP_CHECK(s->attack, is_read && is_there == expected, "%s: the weights %s", what,
              is_there ? "were carried" : "were not carried");
    watch_stage_clear(s);
}

/* A kernel that copies the weights: of an unknown module, or of a known one. */
static void try_carry(struct watch_stage *s, struct tol_module *module, bool is_known) {
    const unsigned words = 2 + (unsigned)hyp_random_below(s->attack, s->bytes / 4 - 2);
    const char *what = is_known ? "a copying kernel of a known module" : "an unknown module";
    struct watch_alarm_wanted wanted[3] = {
        {TOL_WATCH_KNOWN_KERNELS, "weights.0", "cuLaunchKernel", 1}};
    unsigned count = 1;
    struct tol_kernel *kernel = watch_stage_kernel(s, module, "carry");
    if (!is_known) {
        wanted[count++] =
            (struct watch_alarm_wanted){TOL_WATCH_KNOWN_MODULES, "", "cuLaunchKernel", 1};
    }
    if (s->sees_bytes && !s->refuses) {
        wanted[count++] = (struct watch_alarm_wanted){TOL_WATCH_KNOWN_KERNELS, "weights.0",
                                                      "a kernel", 4.0 * words};
    }
    if (kernel == NULL || !launch_carry(s, kernel, tol_buffer_address(s->weights), words)) return;
    watch_stage_expect(s, what, wanted, count);
    check_carried(s, words, !s->refuses, what);
}

/* The address is in memory, not in the arguments: only the accessed bytes show it. */
static void try_hidden(struct watch_stage *s) {
    const unsigned words = 2 + (unsigned)hyp_random_below(s->attack, s->bytes / 4 - 2);
    const CUdeviceptr from = tol_buffer_address(s->weights),
                      holder = tol_buffer_address(s->target) + s->bytes - 8;
    struct tol_kernel *kernel = watch_stage_kernel(s, s->module, "carry_hidden");
    const unsigned fits = words > (unsigned)(s->bytes / 4) - 2 ? words - 2 : words;
    if (kernel == NULL || !s->sees_bytes) return;
    (void)s->attack->raw->cuMemcpyHtoD_v2(holder, &from, sizeof from);
    const tol_status status =
        tol_launch(s->stream, kernel, tol_launch_linear(fits, 64),
                   TOL_ARGUMENTS(tol_buffer_address(s->target), holder, fits));
    if (!HYP_CHECK(s->attack, status == TOL_OK, "a launch: %s", tol_message())) return;
    watch_stage_settle(s);
    watch_stage_expect(s, "a kernel that loads the address",
                       WANTED({TOL_WATCH_KNOWN_KERNELS, "weights.0", "a kernel", 4.0 * fits}), 1);
    check_carried(s, fits, true, "a kernel that loads the address");
}

/* A known kernel that knows the weights writes its result over them. */
static void try_overwrite(struct watch_stage *s) {
    const double bytes = 64;
    if (!s->sees_bytes || !watch_stage_weigh(s, tol_buffer_address(s->weights))) return;
    watch_stage_settle(s);
    watch_stage_expect(
        s, "a result over the weights",
        WANTED({TOL_WATCH_WRITTEN_ONCE, "weights.0", "a kernel", (double)s->written + bytes}), 1);
    s->written += (uint64_t)bytes;
    watch_stage_unchanged(s, false, "a result over the weights");
}

static void kernels(struct hyp_attack *attack, bool refuses) {
    const unsigned rounds = attack->session.full ? 40 : 5;
    const struct tol_module_options unshared = {.unshared = true};
    struct tol_module *late = NULL;
    struct watch_stage *s = malloc(sizeof *s);
    if (!HYP_CHECK(attack, s != NULL, "no host memory")) return;
    bool ok =
        watch_stage_begin(attack, s, refuses) &&
        HYP_OK(attack, tol_module_load(attack->context, s->ptx, strlen(s->ptx), &unshared, &late));
    for (unsigned i = 0; ok && i < rounds; i++) {
        try_carry(s, late, false);
        try_carry(s, s->module, true);
        try_hidden(s);
        if (!refuses) try_overwrite(s);
    }
    tol_module_destroy(late);
    watch_stage_end(s);
    free(s);
}

HYP_ATTACK(s2, kernels_that_copy_are_noticed) {
    kernels(attack, false);
}

HYP_ATTACK(s2, kernels_that_copy_are_refused_where_rules_refuse) {
    kernels(attack, true);
}

/* ---- graphs ---------------------------------------------------------------------------------- */

struct captured {
    CUgraph graph, outer; /* outer: NULL, or a graph that has it as a node */
    CUgraphExec exec;
    size_t out, aside;
    unsigned words;
};

/* Copies out, aside and a copying kernel, recorded. Nothing of it happens now. */
static bool kernels_capture(struct watch_stage *s, struct captured *c) {
    const struct tol_driver_table *cu = s->cu;
    const CUstream stream = tol_stream_handle(s->stream);
    const CUdeviceptr weights = tol_buffer_address(s->weights),
                      target = tol_buffer_address(s->target);
    struct tol_kernel *kernel = watch_stage_kernel(s, s->module, "carry");
    CUgraphNode node = NULL;
    c->out = 16 + (size_t)hyp_random_below(s->attack, s->bytes - 16);
    c->aside = 16 + (size_t)hyp_random_below(s->attack, s->bytes - 16);
    c->words = 2 + (unsigned)hyp_random_below(s->attack, s->bytes / 4 - 2);
    if (kernel == NULL ||
        !HYP_CHECK(s->attack,
                   cu->cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) ==
                       CUDA_SUCCESS,
                   "a capture cannot begin")) {
        return false;
    }
    bool ok = cu->cuMemcpyDtoHAsync_v2(s->host, weights, c->out, stream) == CUDA_SUCCESS &&
              cu->cuMemcpyDtoDAsync_v2(target, weights, c->aside, stream) == CUDA_SUCCESS &&
              tol_launch(s->stream, kernel, tol_launch_linear(c->words, 64),
                         TOL_ARGUMENTS(target, weights, c->words)) == TOL_OK;
    ok = cu->cuStreamEndCapture(stream, &c->graph) == CUDA_SUCCESS && ok;
    CUgraph made = c->graph;
    if (ok && hyp_random_below(s->attack, 2) == 0) {
        ok = cu->cuGraphCreate(&c->outer, 0) == CUDA_SUCCESS &&
             cu->cuGraphAddChildGraphNode(&node, c->outer, NULL, 0, c->graph) == CUDA_SUCCESS;
        made = c->outer;
    }
    ok = ok && cu->cuGraphInstantiateWithFlags(&c->exec, made, 0) == CUDA_SUCCESS;
    return HYP_CHECK(s->attack, ok, "a graph of copies cannot be created: %s", tol_message()) &&
           watch_stage_expect(s, "a capture", NULL, 0);
}

static void kernels_replay(struct watch_stage *s, const struct captured *c) {
    const struct watch_alarm_wanted wanted[] = {
        {TOL_WATCH_NO_READ_BACK, "weights.0", "cuGraphLaunch", (double)c->out},
        {TOL_WATCH_NO_COPY, "weights.0", "cuGraphLaunch", (double)c->out},
        {TOL_WATCH_NO_COPY, "weights.0", "cuGraphLaunch", (double)c->aside},
        {TOL_WATCH_KNOWN_KERNELS, "weights.0", "cuGraphLaunch", 1},
        {TOL_WATCH_KNOWN_KERNELS, "weights.0", "a kernel", 4.0 * c->words}};
    const CUresult result = s->cu->cuGraphLaunch(c->exec, tol_stream_handle(s->second));
    HYP_CHECK(s->attack, result == (s->refuses ? CUDA_ERROR_NOT_PERMITTED : CUDA_SUCCESS),
              "a launch of a graph: error %d", (int)result);
    watch_stage_settle(s);
    watch_stage_expect(s, "a graph", wanted, s->sees_bytes && !s->refuses ? 5 : 4);
    const bool is_there = memcmp(s->host, s->content, c->out) == 0;
    HYP_CHECK(s->attack, is_there != s->refuses, "a graph of copies: %s",
              is_there ? "it was refused, but the bytes arrived" : "the bytes did not arrive");
    memset(s->host, 0xa5, s->bytes);
}

static void kernels_graphs(struct hyp_attack *attack, bool refuses) {
    const unsigned rounds = attack->session.full ? 20 : 3;
    struct watch_stage *s = malloc(sizeof *s);
    if (!HYP_CHECK(attack, s != NULL, "no host memory")) return;
    bool ok = watch_stage_begin(attack, s, refuses);
    for (unsigned i = 0; ok && i < rounds; i++) {
        struct captured c = {.graph = NULL};
        ok = kernels_capture(s, &c);
        for (unsigned j = 0; ok && j < 3; j++) kernels_replay(s, &c);
        if (c.exec != NULL) (void)s->cu->cuGraphExecDestroy(c.exec);
        if (c.outer != NULL) (void)s->cu->cuGraphDestroy(c.outer);
        if (c.graph != NULL) (void)s->cu->cuGraphDestroy(c.graph);
        hyp_attack_progress(attack, (i + 1.0) / rounds);
    }
    watch_stage_end(s);
    free(s);
}

HYP_ATTACK(s2, each_launch_of_a_graph_is_noticed) {
    kernels_graphs(attack, false);
}

HYP_ATTACK(s2, graphs_are_refused_where_rules_refuse) {
    kernels_graphs(attack, true);
}
