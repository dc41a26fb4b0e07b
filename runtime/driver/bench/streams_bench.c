/*
 * What streams, graphs, threads and traces cost and gain, side by side in one run:
 *
 *     launches per second with 1 to 16 threads, through the runtime and by the driver's own calls
 *     a kernel in a batch, and launched by itself
 *     an event after each launch, by the driver's own calls
 *     a launch under a trace, and without: what the host pays, and what the device
 *     streams that wait while a host function holds another up
 *     blocks through a pipeline, and one step after the other
 *
 *     bench-streams [--library PATH] [--json FILE] [--trace FILE]
 *
 * Without a library it takes the platform's, or the soft device beside it. --trace writes the
 * pipeline's timeline, for ui.perfetto.dev. `ninja bench-streams` runs it. Nothing is asserted; the
 * goals are for an H200: 0.97 of raw at every count, a third of a launch for a kernel in a batch,
 * less than 1 us more of the host for a traced operation, and 1.6 times as fast through a pipeline.
 */
#include "streams_bench.h"

#include "core/any_driver.h"
#include "tollens/batch.h"
#include "core/check.h"
#include "tollens/event.h"
#include "tollens/pipeline.h"
#include "tollens/trace.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS_MAX = 16, KERNELS = 100, BLOCKS = 32 };

static const unsigned counts[COUNTS] = {1, 2, 4, 8, 16};

const char streams_ptx[] =
    ".version 6.4\n.target sm_70\n.address_size 64\n"
    ".visible .entry none(.param .u64 a, .param .u32 b)\n{\n    ret;\n}\n"
    /* Each thread makes a number of steps of a generator, and adds the last to its word. */
    ".visible .entry grind(.param .u64 words, .param .u32 steps)\n{\n"
    "  .reg .u64 %a, %o; .reg .u32 %x, %i, %n, %b, %t; .reg .pred %p;\n"
    "  ld.param.u64 %a, [words]; ld.param.u32 %n, [steps];\n"
    "  mov.u32 %b, %ctaid.x; mov.u32 %t, %ntid.x; mov.u32 %x, %tid.x;\n"
    "  mad.lo.u32 %x, %b, %t, %x; mul.wide.u32 %o, %x, 4; add.u64 %a, %a, %o;\n"
    "  mov.u32 %i, 0;\nAGAIN:\n  mad.lo.u32 %x, %x, 1664525, 1013904223;\n"
    "  add.u32 %i, %i, 1; setp.lt.u32 %p, %i, %n;\n  @%p bra AGAIN;\n"
    "  ld.global.u32 %i, [%a]; add.u32 %i, %i, %x; st.global.u32 [%a], %i;\n  ret;\n}\n";
const size_t streams_ptx_bytes = sizeof streams_ptx;

/* ---- threads --------------------------------------------------------------------------------- */

struct thread {
    struct bench *bench;
    struct tol_stream *stream;
    pthread_barrier_t *start;
    bool is_raw, failed;
};

static void *streams_bench_launch_all(void *user) {
    struct thread *t = user;
    struct bench *b = t->bench;
    CUdeviceptr address = tol_buffer_address(b->buffer);
    CUfunction function = tol_kernel_handle(b->none);
    CUstream handle = tol_stream_handle(t->stream);
    const struct tol_launch_shape shape = {1, 1, 1, 32, 1, 1, 0};
    t->failed = tol_context_bind(b->context) != TOL_OK;
    pthread_barrier_wait(t->start);
    for (unsigned i = 0; i < b->launches && !t->failed; i++) {
        if (t->is_raw) {
            void *values[] = {&address, &i};
            t->failed = b->raw->cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, handle, values,
                                               NULL) != CUDA_SUCCESS;
        } else {
            t->failed = tol_launch(t->stream, b->none, shape, TOL_ARGUMENTS(address, i)) != TOL_OK;
        }
    }
    return NULL;
}

/* Launches a second of all threads together; negative where one failed. */
static double launch_with(struct bench *b, struct thread *threads, unsigned count, bool is_raw) {
    pthread_t ids[THREADS_MAX];
    pthread_barrier_t start;
    bool failed = false;
    pthread_barrier_init(&start, NULL, count + 1);
    for (unsigned i = 0; i < count; i++) {
        threads[i].start = &start;
        threads[i].is_raw = is_raw;
        if (pthread_create(&ids[i], NULL, streams_bench_launch_all, &threads[i]) != 0) abort();
    }
    pthread_barrier_wait(&start);
    double begin = (double)tol_now_ns();
    for (unsigned i = 0; i < count; i++) {
        pthread_join(ids[i], NULL);
        failed = failed || threads[i].failed;
    }
    double ns = (double)tol_now_ns() - begin;
    for (unsigned i = 0; i < count; i++) {
        failed = tol_stream_synchronize(threads[i].stream) != TOL_OK || failed;
    }
    pthread_barrier_destroy(&start);
    return failed ? -1 : (double)count * b->launches / ns * 1e9;
}

static tol_status measure_threads(struct bench *b) {
    tol_status status = TOL_OK;
    struct thread threads[THREADS_MAX] = {{.bench = NULL}};
    for (unsigned i = 0; i < THREADS_MAX; i++) {
        threads[i].bench = b;
        TOL_TRY(tol_stream_create(b->context, NULL, &threads[i].stream));
    }
    printf("%-34s %12s %12s %8s\n", "launches per second, by threads", "raw", "runtime", "ratio");
    for (unsigned c = 0; c < COUNTS; c++) {
        double rates[2][TURNS], ratios[TURNS];
        for (int turn = -1; turn < TURNS; turn++) {
            double found[2];
            for (int k = 0; k < 2; k++) {
                int way = (turn + k) & 1;
                found[way] = launch_with(b, threads, counts[c], way == 0);
                TOL_CHECK(found[way] > 0, TOL_DRIVER_ERROR, "a launch of %u threads failed",
                          counts[c]);
            }
            if (turn < 0) continue;
            rates[0][turn] = found[0];
            rates[1][turn] = found[1];
            ratios[turn] = found[1] / found[0];
        }
        b->per_second[c][0] = median(rates[0], TURNS);
        b->per_second[c][1] = median(rates[1], TURNS);
        b->ratio[c] = median(ratios, TURNS);
        printf("%34u %12.0f %12.0f %8.3f\n", counts[c], b->per_second[c][0], b->per_second[c][1],
               b->ratio[c]);
    }
out:
    for (unsigned i = 0; i < THREADS_MAX; i++) tol_stream_destroy(threads[i].stream);
    return status;
}

/* ---- batches --------------------------------------------------------------------------------- */

static tol_status fill_batch(struct bench *b, struct tol_batch *batch, unsigned first) {
    tol_status status = tol_batch_clear(batch);
    for (unsigned i = 0; i < KERNELS && status == TOL_OK; i++) {
        status = tol_batch_add(batch, b->none, tol_launch_linear(32, 32),
                               TOL_ARGUMENTS(tol_buffer_address(b->buffer), first + i));
    }
    return status;
}

static tol_status measure_batches(struct bench *b) {
    tol_status status = TOL_OK;
    struct tol_stream *stream = NULL;
    struct tol_batch *batch = NULL;
    double ns[3][TURNS];
    TOL_TRY(tol_stream_create(b->context, NULL, &stream));
    TOL_TRY(tol_batch_create(b->context, NULL, &batch));
    TOL_TRY(fill_batch(b, batch, 0));
    TOL_TRY(tol_batch_launch(batch, stream));
    for (unsigned turn = 0; turn < TURNS; turn++) {
        TOL_TRY(tol_stream_synchronize(stream));
        double begin = (double)tol_now_ns();
        for (unsigned i = 0; i < KERNELS; i++) {
            TOL_TRY(tol_launch(stream, b->none, tol_launch_linear(32, 32),
                               TOL_ARGUMENTS(tol_buffer_address(b->buffer), i)));
        }
        TOL_TRY(tol_stream_synchronize(stream));
        ns[0][turn] = ((double)tol_now_ns() - begin) / KERNELS;
        begin = (double)tol_now_ns();
        TOL_TRY(tol_batch_launch(batch, stream));
        TOL_TRY(tol_stream_synchronize(stream));
        ns[1][turn] = ((double)tol_now_ns() - begin) / KERNELS;
        begin = (double)tol_now_ns();
        TOL_TRY(fill_batch(b, batch, 1000 * (turn + 1)));
        TOL_TRY(tol_batch_launch(batch, stream));
        TOL_TRY(tol_stream_synchronize(stream));
        ns[2][turn] = ((double)tol_now_ns() - begin) / KERNELS;
    }
    for (int way = 0; way < 3; way++) b->kernel_ns[way] = median(ns[way], TURNS);
    printf("\n%-34s %12.0f ns\n", "a kernel launched by itself", b->kernel_ns[0]);
    printf("%-34s %12.0f ns, %.2f times as fast\n", "a kernel in a batch of 100", b->kernel_ns[1],
           b->kernel_ns[0] / b->kernel_ns[1]);
    printf("%-34s %12.0f ns\n", "the same, all arguments changed", b->kernel_ns[2]);
out:
    tol_batch_destroy(batch);
    tol_stream_destroy(stream);
    return status;
}

/* ---- the pipeline ---------------------------------------------------------------------------- */

struct flow {
    struct tol_kernel *grind;
    unsigned steps;
    size_t bytes;
    unsigned long long wrong;
};

static tol_status streams_bench_fill(void *user, unsigned long long index, void *data) {
    struct flow *f = user;
    if (index == BLOCKS) return TOL_NOT_FOUND;
    /* One word per page identifies the block; the host is not measured. */
    for (size_t at = 0; at < f->bytes; at += 4096) {
        *(unsigned *)((char *)data + at) = (unsigned)(index * 31 + at);
    }
    return TOL_OK;
}

static tol_status streams_bench_work(void *user, struct tol_stream *stream,
                                     const struct tol_pipeline_block *block) {
    struct flow *f = user;
    /* A few of the words, so that the copies have the memory to themselves. */
    return tol_launch(stream, f->grind, (struct tol_launch_shape){8, 1, 1, 128, 1, 1, 0},
                      TOL_ARGUMENTS(tol_buffer_address(block->input), f->steps));
}

static tol_status streams_bench_take(void *user, unsigned long long index, const void *data) {
    struct flow *f = user;
    for (size_t at = 4096; at < f->bytes; at += 4096) {
        f->wrong += *(const unsigned *)((const char *)data + at) != (unsigned)(index * 31 + at);
    }
    return TOL_OK;
}

static tol_status new_pipeline(struct tol_context *context, struct flow *f, bool serial,
                               struct tol_pipeline **pipeline) {
    const struct tol_pipeline_options options = {.input_bytes = f->bytes,
                                                 .slots = 4,
                                                 .serial = serial,
                                                 .fill = streams_bench_fill,
                                                 .work = streams_bench_work,
                                                 .take = streams_bench_take,
                                                 .user = f};
    return tol_pipeline_create(context, &options, pipeline);
}

/* So many steps that the work takes as long as a copy. */
static tol_status streams_bench_balance(struct tol_pipeline *pipeline, struct flow *f) {
    tol_status status = TOL_OK;
    struct tol_pipeline_times times;
    f->steps = 2000;
    for (int turn = 0; turn < 4; turn++) {
        TOL_TRY(tol_pipeline_run(pipeline, NULL));
        TOL_TRY(tol_pipeline_times(pipeline, BLOCKS - 1, &times));
        double copy = times.to_device[1] - times.to_device[0], busy = times.work[1] - times.work[0];
        double steps = busy > 0 ? f->steps * copy / busy : f->steps;
        f->steps = steps < 1 ? 1 : steps > 1e8 ? 100000000 : (unsigned)steps;
    }
out:
    return status;
}

static tol_status measure_pipeline(struct bench *b) {
    tol_status status = TOL_OK;
    struct flow f = {.grind = b->grind, .bytes = (size_t)(b->is_soft ? 1 : 16) << 20};
    struct tol_pipeline *pipelines[2] = {NULL};
    double ms[2][TURNS], gains[TURNS];
    TOL_TRY(new_pipeline(b->context, &f, true, &pipelines[0]));
    TOL_TRY(new_pipeline(b->context, &f, false, &pipelines[1]));
    TOL_TRY(streams_bench_balance(pipelines[0], &f));
    b->steps = f.steps;
    for (int turn = 0; turn < TURNS; turn++) {
        for (int way = 0; way < 2; way++) {
            double begin = (double)tol_now_ns();
            TOL_TRY(tol_pipeline_run(pipelines[way], NULL));
            ms[way][turn] = ((double)tol_now_ns() - begin) * 1e-6;
        }
        gains[turn] = ms[0][turn] / ms[1][turn];
    }
    TOL_CHECK(f.wrong == 0, TOL_DRIVER_ERROR, "%llu words came back changed", f.wrong);
    for (int way = 0; way < 2; way++) b->pipeline_ms[way] = median(ms[way], TURNS);
    b->gain = median(gains, TURNS);
    printf("\n%-34s %12.3f ms\n%-34s %12.3f ms, %.2f times as fast\n", "32 blocks, step by step",
           b->pipeline_ms[0], "32 blocks, three steps at once", b->pipeline_ms[1], b->gain);
out:
    for (int way = 0; way < 2; way++) tol_pipeline_destroy(pipelines[way]);
    return status;
}

/* The same once more, step by step and at once, in a context whose calls go through a trace. */
static tol_status write_timeline(struct bench *b) {
    tol_status status = TOL_OK;
    struct tol_driver *driver = NULL;
    struct tol_context *context = NULL;
    struct tol_module *module = NULL;
    struct tol_pipeline *pipeline = NULL;
    struct flow f = {.steps = b->steps, .bytes = (size_t)(b->is_soft ? 1 : 16) << 20};
    FILE *file = NULL;
    TOL_TRY(tol_any_driver_open(b->library, &driver, NULL));
    TOL_TRY(tol_trace_install(driver, NULL, NULL));
    TOL_TRY(tol_context_create(driver, 0, &context));
    TOL_TRY(tol_module_load(context, streams_ptx, sizeof streams_ptx, NULL, &module));
    TOL_TRY(tol_module_kernel(module, "grind", &f.grind));
    for (int way = 0; way < 2; way++) {
        TOL_TRY(new_pipeline(context, &f, way == 0, &pipeline));
        TOL_TRY(tol_pipeline_run(pipeline, NULL));
        tol_pipeline_destroy(pipeline);
        pipeline = NULL;
    }
    file = fopen(b->trace, "w");
    TOL_CHECK(file != NULL, TOL_INVALID_ARGUMENT, "%s cannot be written", b->trace);
    TOL_TRY(tol_trace_write(file, "a pipeline", false));
out:
    if (file != NULL) fclose(file);
    tol_pipeline_destroy(pipeline);
    tol_module_destroy(module);
    tol_context_destroy(context);
    if (driver != NULL) tol_trace_remove(driver);
    tol_driver_close(driver);
    return status;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static tol_status streams_bench_write_json(struct bench *b) {
    tol_status status = TOL_OK;
    FILE *file = fopen(b->json, "w");
    TOL_CHECK(file != NULL, TOL_INVALID_ARGUMENT, "%s cannot be written", b->json);
    fprintf(file, "{\"schema\": 1, \"device\": \"%s\", \"threads\": [\n",
            tol_context_device(b->context)->name);
    for (unsigned c = 0; c < COUNTS; c++) {
        fprintf(file,
                "  {\"threads\": %u, \"raw_per_s\": %.0f, \"runtime_per_s\": %.0f, "
                "\"ratio\": %.4f}%s\n",
                counts[c], b->per_second[c][0], b->per_second[c][1], b->ratio[c],
                c + 1 < COUNTS ? "," : "");
    }
    fprintf(file, "], \"launch_ns\": {");
    for (int way = 0; way < TRACED; way++) {
        double(*t)[COSTS] = b->traced_ns[way];
        fprintf(file,
                "%s\n  \"%s\": {\"host\": {\"plain\": %.1f, \"traced\": %.1f}, "
                "\"device\": {\"plain\": %.1f, \"traced\": %.1f}, "
                "\"after_wait\": {\"plain\": %.1f, \"traced\": %.1f}}",
                way > 0 ? "," : "", traced_names[way], t[0][BY_HOST], t[1][BY_HOST],
                t[0][BY_DEVICE], t[1][BY_DEVICE], t[0][AFTER_WAIT], t[1][AFTER_WAIT]);
    }
    fprintf(file, "}, \"launch_with_events_ns\": {");
    for (int way = 0; way < EVENTS; way++) {
        fprintf(file, "%s\"%s\": %.1f", way > 0 ? ", " : "", event_names[way], b->event_ns[way]);
    }
    fprintf(file,
            "}, \"kernel_ns\": {\"launch\": %.1f, \"batch\": %.1f, \"changed_batch\": %.1f},\n"
            " \"held_up\": {\"streams\": %u, \"nothing_behind\": {\"raw\": %u, \"runtime\": %u}, "
            "\"kernels_behind\": {\"raw\": %u, \"runtime\": %u}},\n"
            " \"pipeline_ms\": {\"serial\": %.4f, \"overlapped\": %.4f, \"gain\": %.4f}}\n",
            b->kernel_ns[0], b->kernel_ns[1], b->kernel_ns[2], b->held_streams, b->waiting[0][0],
            b->waiting[0][1], b->waiting[1][0], b->waiting[1][1], b->pipeline_ms[0],
            b->pipeline_ms[1], b->gain);
    TOL_CHECK(fclose(file) == 0, TOL_INVALID_ARGUMENT, "%s cannot be written", b->json);
out:
    return status;
}

static tol_status streams_bench_run(struct bench *b) {
    tol_status status = TOL_OK;
    TOL_TRY(tol_any_driver_open(b->library, &b->driver, &b->is_soft));
    TOL_TRY(tol_context_create(b->driver, 0, &b->context));
    b->raw = tol_driver_functions(b->driver);
    b->launches = b->is_soft ? 3000 : 800; /* below the depth of a driver's queue */
    TOL_TRY(tol_buffer_create(b->context, 1024, 4, &b->buffer));
    TOL_TRY(tol_buffer_fill_at(b->buffer, 0, 0, 4, 1024));
    TOL_TRY(tol_module_load(b->context, streams_ptx, sizeof streams_ptx, NULL, &b->module));
    TOL_TRY(tol_module_kernel(b->module, "none", &b->none));
    TOL_TRY(tol_module_kernel(b->module, "grind", &b->grind));
    printf("%s, medians of %d turns\n\n", tol_context_device(b->context)->name, TURNS);
    TOL_TRY(measure_threads(b));
    TOL_TRY(measure_batches(b));
    TOL_TRY(measure_events(b));
    TOL_TRY(measure_traces(b));
    TOL_TRY(measure_queues(b));
    TOL_TRY(measure_pipeline(b));
    if (b->trace != NULL) TOL_TRY(write_timeline(b));
    if (b->json != NULL) TOL_TRY(streams_bench_write_json(b));
out:
    tol_module_destroy(b->module);
    tol_buffer_destroy(b->buffer);
    tol_context_destroy(b->context);
    tol_driver_close(b->driver);
    return status;
}

int main(int argc, char **argv) {
    static struct bench b;
    for (int i = 1; i < argc; i += 2) {
        const char **value = strcmp(argv[i], "--library") == 0 ? &b.library
                             : strcmp(argv[i], "--json") == 0  ? &b.json
                             : strcmp(argv[i], "--trace") == 0 ? &b.trace
                                                               : NULL;
        if (value == NULL || i + 1 == argc) {
            fprintf(stderr, "usage: bench-streams [--library PATH] [--json FILE] [--trace FILE]\n");
            return 2;
        }
        *value = argv[i + 1];
    }
    if (streams_bench_run(&b) == TOL_OK) return 0;
    fprintf(stderr, "bench-streams: %s\n", tol_message());
    return 1;
}
