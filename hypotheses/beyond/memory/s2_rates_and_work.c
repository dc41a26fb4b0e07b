/*
 * Attacks on S2, rates, threads and controls: what may be read is read no faster than its limit,
 * threads at once lose no alarm, and ordinary work raises none.
 */
#include "watch_stage.h"

#include <stdlib.h>
#include <string.h>

/* ---- a rate ---------------------------------------------------------------------------------- */

/* Reads the state at a share of the limit, in steps; returns whether an alarm came. */
static bool rates_read_at(struct watch_stage *s, double share, unsigned steps) {
    bool has_alarm = false;
    for (unsigned i = 0; i < steps && !has_alarm; i++) {
        const size_t bytes = s->bytes / 2 + (size_t)hyp_random_below(s->attack, s->bytes / 2);
        const CUresult result =
            s->cu->cuMemcpyDtoH_v2(s->host, tol_buffer_address(s->state), bytes);
        pthread_mutex_lock(&s->lock);
        has_alarm = s->count > 0;
        pthread_mutex_unlock(&s->lock);
        HYP_CHECK(s->attack,
                  result == (has_alarm && s->refuses ? CUDA_ERROR_NOT_PERMITTED : CUDA_SUCCESS),
                  "reading the state: error %d", (int)result);
        watch_stage_wait_ns((uint64_t)((double)bytes / (share * s->mb_per_s * 1e6) * 1e9));
    }
    return has_alarm;
}

static void rates(struct hyp_attack *attack, bool refuses) {
    struct watch_stage *s = malloc(sizeof *s);
    if (!HYP_CHECK(attack, s != NULL, "no host memory")) return;
    if (watch_stage_begin(attack, s, refuses)) {
        /* A second's bytes are stored up; a tenth too many use them up after ten of these. */
        const unsigned steps = (unsigned)(25 * s->mb_per_s * 1e6 / (double)(s->bytes / 2));
        HYP_CHECK(attack, !rates_read_at(s, 0.95, steps), "an alarm at 0.95 of the limit");
        watch_stage_wait_ns(2000000000);
        HYP_CHECK(attack, rates_read_at(s, 1.1, steps), "no alarm at 1.1 of the limit");
        HYP_CHECK(attack,
                  s->count == 1 && strcmp(s->log[0].label, "state") == 0 &&
                      s->log[0].kind == TOL_WATCH_COPY_OUT_LIMIT && s->log[0].value > s->mb_per_s &&
                      s->log[0].refused == refuses,
                  "the alarm is not the limit's: %u, on \"%s\"", s->count, s->log[0].label);
        s->count = 0;
    }
    watch_stage_end(s);
    free(s);
}

HYP_ATTACK(s2, what_is_read_too_fast_is_noticed) {
    rates(attack, false);
}

HYP_ATTACK(s2, what_is_read_too_fast_is_refused_where_rules_refuse) {
    rates(attack, true);
}

/* ---- threads --------------------------------------------------------------------------------- */

enum { THREADS = 4, READS = 40 };

struct reader {
    struct watch_stage *s;
    size_t bytes;
    unsigned failed;
};

static void *read_much(void *user) {
    struct reader *reader = user;
    struct watch_stage *s = reader->s;
    unsigned char *to = malloc(reader->bytes);
    if (to == NULL || tol_context_bind(s->attack->context) != TOL_OK) reader->failed = READS;
    for (unsigned i = 0; reader->failed == 0 && i < READS; i++) {
        const CUdeviceptr at = tol_buffer_address(s->weights) + i;
        if (s->cu->cuMemcpyDtoH_v2(to, at, reader->bytes) != CUDA_SUCCESS) reader->failed++;
    }
    free(to);
    return NULL;
}

HYP_ATTACK(s2, threads_at_once_lose_no_alarm) {
    struct watch_stage *s = malloc(sizeof *s);
    struct reader readers[THREADS];
    pthread_t threads[THREADS];
    if (!HYP_CHECK(attack, s != NULL, "no host memory")) return;
    if (watch_stage_begin(attack, s, false)) {
        unsigned started = 0;
        for (; started < THREADS; started++) {
            readers[started] = (struct reader){s, 100 + started, 0};
            if (pthread_create(&threads[started], NULL, read_much, &readers[started]) != 0) break;
        }
        for (unsigned i = 0; i < started; i++) pthread_join(threads[i], NULL);
        unsigned of_kind[2][THREADS] = {{0}}, callers = 0;
        uint64_t known[THREADS + 1] = {0};
        for (unsigned i = 0; i < s->count; i++) {
            const struct watch_alarm_seen *seen = &s->log[i];
            const size_t which = (size_t)(seen->value - 100);
            unsigned t = 0;
            while (t < callers && known[t] != seen->thread) t++;
            if (t == callers && callers < THREADS + 1) known[callers++] = seen->thread;
            if (which >= THREADS || strcmp(seen->label, "weights.0") != 0) continue;
            of_kind[0][which] += seen->kind == TOL_WATCH_NO_READ_BACK;
            of_kind[1][which] += seen->kind == TOL_WATCH_NO_COPY;
        }
        for (unsigned i = 0; i < started; i++) {
            HYP_CHECK(attack,
                      readers[i].failed == 0 && of_kind[0][i] == READS && of_kind[1][i] == READS,
                      "thread %u made %d copies; %u and %u alarms were raised", i, READS,
                      of_kind[0][i], of_kind[1][i]);
        }
        HYP_CHECK(attack, callers == started && s->count == 2 * READS * started,
                  "%u threads read, and %u alarms name %u", started, s->count, callers);
        s->count = 0;
    }
    watch_stage_end(s);
    free(s);
}

/* ---- controls: ordinary work ----------------------------------------------------------------- */

/* More weights come in pieces, each byte once. */
static bool load_more(struct watch_stage *s, struct tol_buffer **more) {
    struct hyp_attack *attack = s->attack;
    if (!HYP_OK(attack, tol_buffer_create(attack->context, s->bytes, 1, more)) ||
        !HYP_OK(attack,
                tol_watch_add(s->watch, tol_buffer_address(*more), s->bytes, "weights.1"))) {
        return false;
    }
    for (size_t at = 0; at < s->bytes;) {
        size_t bytes = 1 + (size_t)hyp_random_below(attack, s->bytes / 3);
        if (bytes > s->bytes - at) bytes = s->bytes - at;
        const CUresult result = s->cu->cuMemcpyHtoDAsync_v2(tol_buffer_address(*more) + at, s->host,
                                                            bytes, tol_stream_handle(s->stream));
        if (!HYP_CHECK(attack, result == CUDA_SUCCESS, "loading: error %d", (int)result)) {
            return false;
        }
        at += bytes;
    }
    return watch_stage_settle(s);
}

/* A step: copies an input to the device, launches products, one of them in a graph, and copies the
 * result back. */
static bool rates_step(struct watch_stage *s, struct tol_graph_exec *exec) {
    const CUdeviceptr state = tol_buffer_address(s->state), target = tol_buffer_address(s->target);
    const CUstream stream = tol_stream_handle(s->stream);
    const bool ok =
        s->cu->cuMemcpyHtoDAsync_v2(state + WATCH_STATE_BYTES / 2, s->host, 256, stream) ==
            CUDA_SUCCESS &&
        watch_stage_weigh(s, state) && HYP_OK(s->attack, tol_graph_launch(exec, s->stream)) &&
        s->cu->cuMemcpyDtoHAsync_v2(s->host, state, 64, stream) == CUDA_SUCCESS &&
        s->cu->cuMemsetD8Async(target, 2, s->bytes / 2, stream) == CUDA_SUCCESS &&
        s->cu->cuMemcpyDtoDAsync_v2(target + s->bytes / 2, target, s->bytes / 2, stream) ==
            CUDA_SUCCESS &&
        watch_stage_settle(s);
    watch_stage_wait_ns(1000000);
    return HYP_CHECK(s->attack, ok, "ordinary work failed");
}

static void rates_work(struct hyp_attack *attack, bool refuses) {
    const unsigned steps = attack->session.full ? 400 : 30;
    struct watch_stage *s = malloc(sizeof *s);
    struct tol_graph *graph = NULL;
    struct tol_graph_exec *exec = NULL;
    struct tol_buffer *more = NULL;
    if (!HYP_CHECK(attack, s != NULL, "no host memory")) return;
    bool ok = watch_stage_begin(attack, s, refuses) && load_more(s, &more) &&
              HYP_OK(attack, tol_graph_capture_begin(s->stream)) &&
              watch_stage_weigh(s, tol_buffer_address(s->state) + 256) &&
              HYP_OK(attack, tol_graph_capture_end(s->stream, &graph)) &&
              HYP_OK(attack, tol_graph_instantiate(graph, &exec));
    for (unsigned i = 0; ok && i < steps; i++) ok = rates_step(s, exec);
    if (ok) {
        struct tol_watch_block block;
        watch_stage_expect(s, "ordinary work", NULL, 0);
        HYP_OK(attack, tol_watch_find(s->watch, tol_buffer_address(s->weights), &block));
        HYP_CHECK(attack, block.launches == 1 + 2 * (uint64_t)steps && block.bytes_out == 0,
                  "%u steps with a product and a graph each are %llu launches", steps,
                  (unsigned long long)block.launches);
        HYP_CHECK(attack, !s->sees_bytes || block.bytes_loaded == block.launches * s->bytes,
                  "%llu products of %zu bytes of weights read %llu bytes",
                  (unsigned long long)block.launches, s->bytes,
                  (unsigned long long)block.bytes_loaded);
        watch_stage_unchanged(s, true, "after ordinary work");
    }
    tol_graph_exec_destroy(exec);
    tol_graph_destroy(graph);
    tol_buffer_destroy(more);
    watch_stage_end(s);
    free(s);
}

HYP_ATTACK(s2, ordinary_work_raises_no_alarm) {
    rates_work(attack, false);
}

HYP_ATTACK(s2, ordinary_work_is_not_refused) {
    rates_work(attack, true);
}
