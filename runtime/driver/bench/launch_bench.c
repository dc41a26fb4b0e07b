/*
 * Where the nanoseconds of a launch go: raw calls and the runtime's, compared on a driver and on a
 * driver table whose functions return at once, which leaves only what the runtime adds.
 *
 *     bench-launch [LIBRARY]    the driver's library; without, the platform's or the soft device's
 *
 * `ninja bench-launch` runs it. It asserts nothing: H4 and H11 judge.
 */
#include "core/any_driver.h"
#include "core/libcuda_state.h"
#include "core/module_state.h"
#include "core/monotonic.h"
#include "tollens/launch.h"
#include "tollens/memory.h"
#include "tollens/stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCHES = 301 };

static const char ptx[] =
    ".version 6.4\n.target sm_70\n.address_size 64\n"
    ".visible .entry take_1(.param .u64 a)\n{\n    ret;\n}\n"
    ".visible .entry take_4(.param .u64 a, .param .u32 b, .param .u64 c, .param .f32 d)\n"
    "{\n    ret;\n}\n"
    ".visible .entry take_16(.param .u64 a, .param .u32 b, .param .u32 c, .param .u32 d,\n"
    "    .param .u32 e, .param .u32 f, .param .u32 g, .param .u32 h, .param .u32 i,\n"
    "    .param .u32 j, .param .u32 k, .param .u32 l, .param .u32 m, .param .u32 n,\n"
    "    .param .u32 o, .param .u32 p)\n{\n    ret;\n}\n";

struct bench {
    struct tol_stream *stream;
    struct tol_kernel *kernel;
    const struct tol_driver_table *raw;
    CUfunction function;
    CUstream handle;
    CUdeviceptr address;
    unsigned arguments, calls;
    bool waits; /* for the stream after each batch */
    unsigned failures;
};

static inline void launch_bench_launch_raw(struct bench *b, void **values) {
    CUresult result =
        b->raw->cuLaunchKernel(b->function, 1, 1, 1, 32, 1, 1, 0, b->handle, values, NULL);
    b->failures += result != CUDA_SUCCESS;
}

static void run_raw(struct bench *b) {
    for (unsigned i = 0; i < b->calls; i++) {
        CUdeviceptr address = b->address;
        if (b->arguments == 1) {
            launch_bench_launch_raw(b, (void *[]){&address});
        } else if (b->arguments == 4) {
            unsigned second = i;
            unsigned long long third = i;
            float fourth = 1;
            launch_bench_launch_raw(b, (void *[]){&address, &second, &third, &fourth});
        } else {
            unsigned a[15] = {i, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14};
            launch_bench_launch_raw(b, (void *[]){&address, &a[0], &a[1], &a[2], &a[3], &a[4],
                                                  &a[5], &a[6], &a[7], &a[8], &a[9], &a[10], &a[11],
                                                  &a[12], &a[13], &a[14]});
        }
    }
}

static inline void launch_bench_launch_ours(struct bench *b, struct tol_arguments arguments) {
    const struct tol_launch_shape shape = {1, 1, 1, 32, 1, 1, 0};
    b->failures += tol_launch(b->stream, b->kernel, shape, arguments) != TOL_OK;
}

static void launch_bench_run_ours(struct bench *b) {
    for (unsigned i = 0; i < b->calls; i++) {
        if (b->arguments == 1) {
            launch_bench_launch_ours(b, TOL_ARGUMENTS(b->address));
        } else if (b->arguments == 4) {
            launch_bench_launch_ours(b, TOL_ARGUMENTS(b->address, i, (unsigned long long)i, 1.0f));
        } else {
            launch_bench_launch_ours(b, TOL_ARGUMENTS(b->address, i, 1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u,
                                                      9u, 10u, 11u, 12u, 13u, 14u));
        }
    }
}

static double time_one(struct bench *b, void (*run)(struct bench *)) {
    double begin = (double)tol_now_ns();
    run(b);
    double ns = ((double)tol_now_ns() - begin) / b->calls;
    if (b->waits) b->failures += b->raw->cuStreamSynchronize(b->handle) != CUDA_SUCCESS;
    return ns;
}

static int launch_bench_compare(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static void launch_bench_show(struct bench *b, const char *name) {
    double raw[BATCHES], ours[BATCHES], added[BATCHES];
    for (int i = -10; i < BATCHES; i++) {
        double first = time_one(b, i % 2 == 0 ? run_raw : launch_bench_run_ours);
        double second = time_one(b, i % 2 == 0 ? launch_bench_run_ours : run_raw);
        if (i < 0) continue;
        raw[i] = i % 2 == 0 ? first : second;
        ours[i] = i % 2 == 0 ? second : first;
        added[i] = ours[i] - raw[i];
    }
    qsort(raw, BATCHES, sizeof raw[0], launch_bench_compare);
    qsort(ours, BATCHES, sizeof ours[0], launch_bench_compare);
    qsort(added, BATCHES, sizeof added[0], launch_bench_compare);
    printf("%-24s %4u %12.1f %12.1f %12.1f\n", name, b->arguments, raw[BATCHES / 2],
           ours[BATCHES / 2], added[BATCHES / 2]);
}

static CUresult CUDAAPI return_at_once(CUfunction f, unsigned gx, unsigned gy, unsigned gz,
                                       unsigned bx, unsigned by, unsigned bz, unsigned shared,
                                       CUstream stream, void **values, void **extra) {
    static volatile unsigned calls;
    (void)f, (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)shared;
    (void)stream, (void)values, (void)extra;
    calls = calls + 1;
    return CUDA_SUCCESS;
}

int main(int argc, char **argv) {
    static const unsigned arguments[] = {1, 4, 16};
    tol_status status = TOL_OK;
    struct tol_driver *driver = NULL;
    struct tol_context *context = NULL;
    struct tol_module *module = NULL;
    struct tol_buffer *buffer = NULL;
    struct bench b = {0};
    TOL_TRY(tol_any_driver_open(argc > 1 ? argv[1] : NULL, &driver, NULL));
    TOL_TRY(tol_context_create(driver, 0, &context));
    TOL_TRY(tol_stream_create(context, NULL, &b.stream));
    TOL_TRY(tol_buffer_create(context, 1, 64, &buffer));
    TOL_TRY(tol_module_load(context, ptx, sizeof ptx, NULL, &module));
    printf("%s\n%-24s %4s %12s %12s %12s\n", context->device.name, "median of 301 batches, ns",
           "args", "raw", "runtime", "added");

    struct tol_driver_table nothing = driver->table;
    nothing.cuLaunchKernel = return_at_once;
    for (int pass = 0; pass < 2; pass++) {
        context->functions = pass == 0 ? &driver->table : &nothing;
        for (size_t i = 0; i < 3; i++) {
            char name[16];
            snprintf(name, sizeof name, "take_%u", arguments[i]);
            TOL_TRY(tol_module_kernel(module, name, &b.kernel));
            b.raw = b.kernel->functions = context->functions;
            b.function = tol_kernel_handle(b.kernel);
            b.handle = tol_stream_handle(b.stream);
            b.address = tol_buffer_address(buffer);
            b.arguments = arguments[i];
            b.waits = pass == 0;
            b.calls = pass == 0 ? 64 : 2000;
            launch_bench_show(&b, pass == 0 ? "this driver" : "one that returns at once");
        }
    }
    context->functions = &driver->table;
    TOL_CHECK(b.failures == 0, TOL_DRIVER_ERROR, "%u calls failed", b.failures);
out:
    if (status != TOL_OK) fprintf(stderr, "bench-launch: %s\n", tol_message());
    tol_module_destroy(module);
    tol_buffer_destroy(buffer);
    tol_stream_destroy(b.stream);
    tol_context_destroy(context);
    tol_driver_close(driver);
    return status == TOL_OK ? 0 : 1;
}
