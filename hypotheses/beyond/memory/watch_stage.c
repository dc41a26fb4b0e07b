/*
 * The stage. What is put back or looked at goes past the hooks, by the driver's own functions.
 */
#include "watch_stage.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POISON = 0xa5, COPY_PATHS = 18 };

static struct {
    struct tol_interpose_options watch, saboteur;
    const struct hyp_attack *attack;
    struct watch_stage *stage;
    _Atomic uint64_t clock_ns;
    unsigned calls;
} hooks;

static uint64_t now_ns(void) {
    return atomic_load(&hooks.clock_ns);
}

void watch_stage_wait_ns(uint64_t ns) {
    atomic_fetch_add(&hooks.clock_ns, ns);
}

/* ---- saboteurs that keep a call from the watch ----------------------------------------------- */

static bool is_copy_path(enum tol_driver_index index, unsigned which) {
    static const enum tol_driver_index paths[COPY_PATHS] = {
        TOL_DRIVER_INDEX_cuMemcpyDtoH_v2,      TOL_DRIVER_INDEX_cuMemcpyDtoHAsync_v2,
        TOL_DRIVER_INDEX_cuMemcpy2D_v2,        TOL_DRIVER_INDEX_cuMemcpy2DUnaligned_v2,
        TOL_DRIVER_INDEX_cuMemcpy2DAsync_v2,   TOL_DRIVER_INDEX_cuMemcpy3D_v2,
        TOL_DRIVER_INDEX_cuMemcpy3DAsync_v2,   TOL_DRIVER_INDEX_cuMemcpy,
        TOL_DRIVER_INDEX_cuMemcpyAsync,        TOL_DRIVER_INDEX_cuMemcpyDtoD_v2,
        TOL_DRIVER_INDEX_cuMemcpyDtoDAsync_v2, TOL_DRIVER_INDEX_cuMemcpyPeer,
        TOL_DRIVER_INDEX_cuMemcpyPeerAsync,    TOL_DRIVER_INDEX_cuMemcpy3DPeer,
        TOL_DRIVER_INDEX_cuMemcpy3DPeerAsync,  TOL_DRIVER_INDEX_cuMemsetD32Async,
        TOL_DRIVER_INDEX_cuMemsetD2D8_v2,      TOL_DRIVER_INDEX_cuMemcpyHtoD_v2};
    return paths[which % COPY_PATHS] == index;
}

static bool is_hidden(const struct tol_interpose_call *call) {
    const struct hyp_attack *attack = hooks.attack;
    switch (call->index) {
    case TOL_DRIVER_INDEX_cuGraphLaunch:
        return memory_fault_is(attack, "watch_graph_lost");
    case TOL_DRIVER_INDEX_cuLaunchKernel:
    case TOL_DRIVER_INDEX_cuLaunchKernelEx:
        return memory_fault_is(attack, "watch_kernel_lost");
    case TOL_DRIVER_INDEX_cuIpcGetMemHandle:
    case TOL_DRIVER_INDEX_cuMemMap:
        return memory_fault_is(attack, "watch_share_lost");
    default:
        return memory_fault_is(attack, "watch_copy_lost") &&
               is_copy_path(call->index, (unsigned)attack->session.seed);
    }
}

static void watch_stage_before(struct tol_interpose_call *call, void *user) {
    (void)user;
    if (is_hidden(call)) return;
    hooks.watch.before(call, hooks.watch.user);
    /* It is refused to the watch's caller, and done all the same. */
    if (!call->forward && memory_fault_is(hooks.attack, "watch_refusal_ignored")) {
        call->forward = true;
    }
}

/* ---- alarms ---------------------------------------------------------------------------------- */

static void log_alarm(struct watch_stage *s, const struct tol_watch_alarm *alarm) {
    pthread_mutex_lock(&s->lock);
    const bool is_lost = memory_fault_is(s->attack, "watch_alarm_lost") && ++hooks.calls % 3 == 0;
    if (!is_lost && s->count < WATCH_LOG) {
        struct watch_alarm_seen *seen = &s->log[s->count++];
        *seen = (struct watch_alarm_seen){.kind = alarm->kind,
                                          .value = alarm->value,
                                          .address = alarm->address,
                                          .bytes = alarm->bytes,
                                          .thread = alarm->thread,
                                          .refused = alarm->refused};
        const bool is_mistaken = memory_fault_is(s->attack, "watch_block_mistaken");
        snprintf(seen->label, sizeof seen->label, "%s",
                 is_mistaken && alarm->label[0] != '\0' ? "state" : alarm->label);
        snprintf(seen->call, sizeof seen->call, "%s", alarm->call);
        snprintf(seen->kernel, sizeof seen->kernel, "%s", alarm->kernel);
    }
    pthread_mutex_unlock(&s->lock);
}

static void watch_stage_after(struct tol_interpose_call *call, void *user) {
    (void)user;
    if (!is_hidden(call)) hooks.watch.after(call, hooks.watch.user);
    if (call->index == TOL_DRIVER_INDEX_cuMemcpyHtoDAsync_v2 &&
        memory_fault_is(hooks.attack, "watch_false_alarm")) {
        log_alarm(hooks.stage,
                  &(struct tol_watch_alarm){
                      .rule = "", .label = "state", .call = "", .kernel = "", .unit = ""});
    }
}

static void on_alarm(const struct tol_watch_alarm *alarm, void *user) {
    log_alarm(user, alarm);
}

static bool watch_stage_is_wanted(const struct watch_stage *s, const struct watch_alarm_seen *seen,
                                  const struct watch_alarm_wanted *wanted) {
    const bool is_of_weights = strcmp(wanted->label, "weights.0") == 0;
    return !seen->is_matched && seen->kind == wanted->kind && seen->value == wanted->value &&
           strcmp(seen->label, wanted->label) == 0 &&
           (wanted->call == NULL || strcmp(seen->call, wanted->call) == 0) &&
           (!is_of_weights ||
            (seen->address == tol_buffer_address(s->weights) && seen->bytes == s->bytes)) &&
           seen->refused == (s->refuses && strcmp(seen->call, "a kernel") != 0);
}

bool watch_stage_expect(struct watch_stage *s, const char *what,
                        const struct watch_alarm_wanted *wanted, unsigned count) {
    bool ok = true;
    pthread_mutex_lock(&s->lock);
    for (unsigned i = 0; i < count; i++) {
        struct watch_alarm_seen *found = NULL;
        for (unsigned j = 0; j < s->count && found == NULL; j++) {
            if (watch_stage_is_wanted(s, &s->log[j], &wanted[i])) found = &s->log[j];
        }
        ok =
            HYP_CHECK(s->attack, found != NULL,
                      "%s: no alarm of the kind %d on \"%s\" with %.0f (%u alarms were raised%s%s)",
                      what, (int)wanted[i].kind, wanted[i].label, wanted[i].value, s->count,
                      s->count > 0 ? ", the first on " : "", s->count > 0 ? s->log[0].label : "") &&
            ok;
        if (found != NULL) found->is_matched = true;
    }
    unsigned more = 0;
    const struct watch_alarm_seen *first = NULL;
    for (unsigned j = 0; j < s->count; j++) {
        more += !s->log[j].is_matched;
        if (first == NULL && !s->log[j].is_matched) first = &s->log[j];
    }
    ok = HYP_CHECK(s->attack, more == 0,
                   "%s: %u alarms more than expected, the first by %s on \"%s\", kind %d, %.0f",
                   what, more, first != NULL ? first->call : "", first != NULL ? first->label : "",
                   first != NULL ? (int)first->kind : 0, first != NULL ? first->value : 0.0) &&
         ok;
    s->count = 0;
    pthread_mutex_unlock(&s->lock);
    return ok;
}

bool watch_stage_unchanged(struct watch_stage *s, bool expected, const char *what) {
    unsigned char *now = malloc(s->bytes);
    const CUdeviceptr at = tol_buffer_address(s->weights);
    bool ok =
        HYP_CHECK(s->attack, now != NULL, "no host memory") &&
        HYP_CHECK(s->attack, s->attack->raw->cuMemcpyDtoH_v2(now, at, s->bytes) == CUDA_SUCCESS,
                  "the weights cannot be read");
    const bool is_same = ok && memcmp(now, s->content, s->bytes) == 0;
    ok = ok && HYP_CHECK(s->attack, is_same == expected, "%s: the weights %s", what,
                         is_same ? "are as before" : "were changed");
    if (now != NULL && !is_same) {
        (void)memory_write(s->attack->raw, at, s->content, s->bytes);
    }
    free(now);
    return ok;
}

/* ---- the stage ------------------------------------------------------------------------------- */

/* The rules, but the one that a saboteur takes out. */
static void write_rules(const struct watch_stage *s, char *text, size_t bytes) {
    static const char *const rules[] = {"blocks = \"weights*\"\nkind = \"written_once\"",
                                        "blocks = \"weights*\"\nkind = \"no_read_back\"",
                                        "blocks = \"weights*\"\nkind = \"no_copy\"",
                                        "blocks = \"weights*\"\nkind = \"no_share\"",
                                        "kind = \"known_modules\"",
                                        "blocks = \"weights*\"\nkind = \"known_kernels\"",
                                        "blocks = \"state\"\nkind = \"copy_out_limit\""};
    enum { RULES = sizeof rules / sizeof rules[0] };
    const bool loses = memory_fault_is(s->attack, "watch_rule_lost");
    const double limit =
        memory_fault_is(s->attack, "watch_limit_tenfold") ? 10 * s->mb_per_s : s->mb_per_s;
    size_t used = 0;
    for (unsigned i = 0; i < RULES; i++) {
        if (loses && s->attack->session.seed % RULES == i) continue;
        used += (size_t)snprintf(text + used, bytes - used, "[[rule]]\nname = \"rule %u\"\n%s\n", i,
                                 rules[i]);
        if (i == RULES - 1) {
            used += (size_t)snprintf(text + used, bytes - used, "mb_per_s = %g\n", limit);
        }
        if (s->refuses) used += (size_t)snprintf(text + used, bytes - used, "refuse = true\n");
    }
}

static bool make_watch(struct watch_stage *s) {
    struct hyp_attack *attack = s->attack;
    char rules[2048];
    const struct tol_interpose_options options = {.before = watch_stage_before,
                                                  .after = watch_stage_after};
    write_rules(s, rules, sizeof rules);
    atomic_store(&hooks.clock_ns, 1000000000);
    hooks.attack = attack;
    hooks.stage = s;
    hooks.calls = 0;
    tol_context_destroy(attack->context);
    attack->context = NULL;
    tol_interpose_remove(attack->driver);
    if (!HYP_OK(attack, tol_watch_create(
                            &(struct tol_watch_options){
                                .rules = rules, .on_alarm = on_alarm, .user = s, .now_ns = now_ns},
                            &s->watch))) {
        return false;
    }
    hooks.watch = tol_watch_hooks(s->watch);
    s->sees_bytes = attack->kind == HYP_DEVICE_SOFT;
    return HYP_OK(attack, tol_interpose_install(attack->driver, &options)) &&
           HYP_OK(attack,
                  tol_context_create(attack->driver, attack->session.ordinal, &attack->context)) &&
           (!s->sees_bytes || memory_fault_is(attack, "watch_kernel_lost") ||
            HYP_OK(attack, tol_watch_accesses(s->watch, attack->driver)));
}

static bool watch_stage_make_memory(struct watch_stage *s) {
    struct hyp_attack *attack = s->attack;
    struct tol_context *context = attack->context;
    void *host = NULL;
    s->bytes = 64 * (128 + (size_t)hyp_random_below(attack, 500));
    s->content = malloc(s->bytes);
    if (!HYP_CHECK(attack, s->content != NULL, "no host memory") ||
        !HYP_OK(attack, tol_stream_create(context, NULL, &s->stream)) ||
        !HYP_OK(attack, tol_stream_create(context, NULL, &s->second)) ||
        !HYP_OK(attack, tol_buffer_create(context, s->bytes, 1, &s->weights)) ||
        !HYP_OK(attack, tol_buffer_create(context, s->bytes, 1, &s->target)) ||
        !HYP_OK(attack, tol_buffer_create(context, WATCH_STATE_BYTES, 1, &s->state)) ||
        !HYP_OK(attack, tol_pinned_create(context, s->bytes, &s->pinned)) ||
        !HYP_OK(attack, tol_pinned_access(s->pinned, &host))) {
        return false;
    }
    for (size_t i = 0; i < s->bytes; i++) s->content[i] = (unsigned char)hyp_random(attack);
    s->host = host;
    memset(s->host, POISON, s->bytes);
    return HYP_OK(attack, tol_buffer_fill_at(s->target, 0, 1, 1, s->bytes)) &&
           HYP_OK(attack, tol_buffer_fill_at(s->state, 0, 1, 1, WATCH_STATE_BYTES)) &&
           HYP_OK(attack,
                  tol_watch_add(s->watch, tol_buffer_address(s->weights), s->bytes, "weights.0")) &&
           HYP_OK(attack, tol_watch_add(s->watch, tol_buffer_address(s->state), WATCH_STATE_BYTES,
                                        "state"));
}

/* Loads the weights and the module, and learns what the module's product does. */
static bool make_ready(struct watch_stage *s) {
    struct hyp_attack *attack = s->attack;
    size_t bytes = 0;
    s->ptx = hyp_attack_file(attack, "fixtures/ptx/handwritten/watched.ptx", &bytes);
    const bool ok =
        s->ptx != NULL && HYP_OK(attack, tol_buffer_write(s->weights, s->content, s->bytes)) &&
        HYP_OK(attack, tol_module_load(attack->context, s->ptx, bytes, NULL, &s->module)) &&
        watch_stage_weigh(s, tol_buffer_address(s->state)) && watch_stage_settle(s);
    s->written = s->bytes;
    if (!ok) return false;
    (void)watch_stage_kernel(s, s->module, "carry");
    (void)watch_stage_kernel(s, s->module, "carry_hidden");
    (void)watch_stage_kernel(s, s->module, "count_up");
    tol_watch_close_modules(s->watch);
    tol_watch_close_kernels(s->watch);
    return HYP_OK(attack, tol_context_bind(attack->context)) &&
           watch_stage_expect(s, "loading and learning", NULL, 0);
}

bool watch_stage_begin(struct hyp_attack *attack, struct watch_stage *s, bool refuses) {
    memset(s, 0, sizeof *s);
    s->attack = attack;
    s->refuses = refuses;
    s->mb_per_s = 1 + (double)hyp_random_below(attack, 8);
    pthread_mutex_init(&s->lock, NULL);
    if (!make_watch(s)) return false;
    s->cu = tol_driver_functions(attack->driver);
    return watch_stage_make_memory(s) && make_ready(s);
}

void watch_stage_end(struct watch_stage *s) {
    tol_module_destroy(s->module);
    tol_buffer_destroy(s->weights);
    tol_buffer_destroy(s->target);
    tol_buffer_destroy(s->state);
    tol_pinned_destroy(s->pinned);
    tol_stream_destroy(s->stream);
    tol_stream_destroy(s->second);
    tol_context_destroy(s->attack->context);
    s->attack->context = NULL;
    tol_interpose_remove(s->attack->driver);
    tol_watch_destroy(s->watch);
    pthread_mutex_destroy(&s->lock);
    free(s->content);
    free(s->ptx);
}

struct tol_kernel *watch_stage_kernel(struct watch_stage *s, struct tol_module *module,
                                      const char *name) {
    struct tol_kernel *kernel = NULL;
    (void)HYP_OK(s->attack, tol_module_kernel(module, name, &kernel));
    return kernel;
}

bool watch_stage_weigh(struct watch_stage *s, CUdeviceptr y) {
    enum { ROWS = 16 };
    struct tol_kernel *kernel = watch_stage_kernel(s, s->module, "weigh");
    const unsigned k = (unsigned)(s->bytes / 4 / ROWS);
    return kernel != NULL &&
           HYP_OK(s->attack,
                  tol_launch(s->stream, kernel, tol_launch_linear(ROWS, 32),
                             TOL_ARGUMENTS(y, tol_buffer_address(s->weights),
                                           tol_buffer_address(s->state) + WATCH_STATE_BYTES / 2,
                                           (unsigned)ROWS, k)));
}

void watch_stage_clear(struct watch_stage *s) {
    (void)s->attack->raw->cuMemsetD8_v2(tol_buffer_address(s->target), 1, s->bytes);
    (void)s->attack->raw->cuCtxSynchronize();
    memset(s->host, POISON, s->bytes);
}

bool watch_stage_settle(struct watch_stage *s) {
    return HYP_OK(s->attack, tol_stream_synchronize_for(s->stream, 60000)) &&
           HYP_OK(s->attack, tol_stream_synchronize_for(s->second, 60000)) &&
           HYP_CHECK(s->attack, s->attack->raw->cuCtxSynchronize() == CUDA_SUCCESS,
                     "the default stream's work has failed");
}
