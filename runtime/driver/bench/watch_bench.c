/*
 * What a watch costs an operation: launches and small copies with and without one, in turn.
 *
 *     bench-watch [LIBRARY]
 *
 * The library is the argument, else the platform's driver, else the soft device. The same calls are
 * made through two tables of the driver's functions: one was opened without the watch. Each line
 * has the median of BATCHES batches of CALLS calls and the median of the differences of
 * neighbouring batches. Then the same with driver functions that do nothing: a watch's own cost,
 * without what a device's differences add.
 */
#include "core/any_driver.h"
#include "core/check.h"
#include "core/libcuda_state.h"
#include "core/monotonic.h"
#include "tollens/tollens.h"

#include <stdio.h>
#include <stdlib.h>

enum { CALLS = 500, BATCHES = 200, BLOCKS = 1000, BYTES = 4096 };

struct side {
    struct tol_context *context;
    struct tol_stream *stream;
    struct tol_module *module;
    struct tol_kernel *kernel;
    struct tol_buffer *buffer;
    struct tol_pinned *pinned;
};

static const char ptx[] = ".version 6.4\n.target sm_75\n.address_size 64\n"
                          ".visible .entry nothing(.param .u64 at) { ret; }\n";

static const char rules[] = "[[rule]]\nname = \"once\"\nblocks = \"weights*\"\n"
                            "kind = \"written_once\"\n"
                            "[[rule]]\nname = \"stay\"\nblocks = \"weights*\"\n"
                            "kind = \"no_read_back\"\n"
                            "[[rule]]\nname = \"known\"\nkind = \"known_modules\"\n";

static tol_status make_side(struct tol_driver *driver, struct side *side) {
    tol_status status = TOL_OK;
    TOL_TRY(tol_context_create(driver, 0, &side->context));
    TOL_TRY(tol_stream_create(side->context, NULL, &side->stream));
    TOL_TRY(tol_module_load(side->context, ptx, sizeof ptx - 1, NULL, &side->module));
    TOL_TRY(tol_module_kernel(side->module, "nothing", &side->kernel));
    TOL_TRY(tol_buffer_create(side->context, BYTES, 1, &side->buffer));
    TOL_TRY(tol_pinned_create(side->context, BYTES, &side->pinned));
out:
    return status;
}

static void end_side(struct side *side) {
    tol_pinned_destroy(side->pinned);
    tol_buffer_destroy(side->buffer);
    tol_module_destroy(side->module);
    tol_stream_destroy(side->stream);
    tol_context_destroy(side->context);
}

typedef tol_status operation(struct side *side);

static tol_status watch_bench_launch(struct side *side) {
    return tol_launch(side->stream, side->kernel, tol_launch_linear(1, 32),
                      TOL_ARGUMENTS(tol_buffer_address(side->buffer)));
}

static tol_status watch_bench_copy(struct side *side) {
    return tol_copy_to_device(side->stream, side->buffer, 0, side->pinned, 0, 64);
}

static tol_status watch_bench_batch(struct side *side, operation *call, double *ns) {
    tol_status status = TOL_OK;
    const uint64_t begin = tol_now_ns();
    for (unsigned i = 0; i < CALLS; i++) TOL_TRY(call(side));
    *ns = (double)(tol_now_ns() - begin) / CALLS;
    status = tol_stream_synchronize(side->stream);
out:
    return status;
}

static int watch_bench_by_value(const void *left, const void *right) {
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static double watch_bench_median(double *values) {
    qsort(values, BATCHES, sizeof *values, watch_bench_by_value);
    return values[BATCHES / 2];
}

static tol_status watch_bench_compare(const char *name, struct side sides[2], operation *call) {
    tol_status status = TOL_OK;
    static double times[2][BATCHES], differences[BATCHES];
    for (unsigned i = 0; i < BATCHES; i++) {
        const unsigned first = i & 1;
        TOL_TRY(watch_bench_batch(&sides[first], call, &times[first][i]));
        TOL_TRY(watch_bench_batch(&sides[!first], call, &times[!first][i]));
        differences[i] = times[1][i] - times[0][i];
    }
    const double more = watch_bench_median(differences);
    printf("%-20s %8.0f ns without, %8.0f ns with a watch: %+.0f ns\n", name,
           watch_bench_median(times[0]), watch_bench_median(times[1]), more);
out:
    return status;
}

/* ---- a driver that does nothing ------------------------------------------------------------- */

static CUresult CUDAAPI launch_nothing(CUfunction function, unsigned grid_x, unsigned grid_y,
                                       unsigned grid_z, unsigned block_x, unsigned block_y,
                                       unsigned block_z, unsigned shared, CUstream stream,
                                       void **parameters, void **extra) {
    (void)function, (void)grid_x, (void)grid_y, (void)grid_z, (void)block_x, (void)block_y;
    (void)block_z, (void)shared, (void)stream, (void)parameters, (void)extra;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI launch_nothing_ex(const CUlaunchConfig *config, CUfunction function,
                                          void **parameters, void **extra) {
    (void)config, (void)function, (void)parameters, (void)extra;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI copy_nothing(CUdeviceptr to, const void *from, size_t bytes,
                                     CUstream stream) {
    (void)to, (void)from, (void)bytes, (void)stream;
    return CUDA_SUCCESS;
}

/* From now on, below a watch too. */
static void do_nothing(struct tol_driver *driver) {
    driver->table.cuLaunchKernel = launch_nothing;
    if (driver->table.cuLaunchKernelEx != NULL) driver->table.cuLaunchKernelEx = launch_nothing_ex;
    driver->table.cuMemcpyHtoDAsync_v2 = copy_nothing;
}

int main(int argc, char **argv) {
    tol_status status = TOL_OK;
    struct tol_driver *drivers[2] = {NULL};
    struct tol_watch *watch = NULL;
    struct tol_watch_block counted;
    struct side sides[2] = {{0}};
    for (unsigned i = 0; i < 2; i++) {
        TOL_TRY(tol_any_driver_open(argc > 1 ? argv[1] : NULL, &drivers[i], NULL));
    }
    TOL_TRY(make_side(drivers[0], &sides[0]));
    TOL_TRY(tol_watch_create(&(struct tol_watch_options){.rules = rules}, &watch));
    TOL_TRY(tol_watch_install(watch, drivers[1]));
    TOL_TRY(make_side(drivers[1], &sides[1]));
    TOL_TRY(tol_watch_add(watch, tol_buffer_address(sides[1].buffer), BYTES, "kv.0"));
    /* Addresses of no allocation, so that the look-up is in a large table. */
    for (unsigned i = 1; i < BLOCKS; i++) {
        TOL_TRY(tol_watch_add(watch, 0x1000ull * i, 0x1000, "weights"));
    }
    printf("%s, %d blocks watched, 3 rules\n", tol_context_device(sides[0].context)->name, BLOCKS);
    TOL_TRY(watch_bench_compare("launch", sides, watch_bench_launch));
    TOL_TRY(watch_bench_compare("copy to the device", sides, watch_bench_copy));
    for (unsigned i = 0; i < 2; i++) do_nothing(drivers[i]);
    TOL_TRY(watch_bench_compare("launch, no driver", sides, watch_bench_launch));
    TOL_TRY(watch_bench_compare("copy, no driver", sides, watch_bench_copy));
    TOL_TRY(tol_watch_find(watch, tol_buffer_address(sides[1].buffer), &counted));
    TOL_CHECK(counted.launches == 2 * BATCHES * CALLS && counted.copies_in == 2 * BATCHES * CALLS,
              TOL_MISMATCH, "%llu launches and %llu copies were counted",
              (unsigned long long)counted.launches, (unsigned long long)counted.copies_in);
out:
    if (status != TOL_OK) fprintf(stderr, "bench-watch: %s\n", tol_message());
    end_side(&sides[1]);
    end_side(&sides[0]);
    if (drivers[1] != NULL) tol_interpose_remove(drivers[1]);
    tol_watch_destroy(watch);
    for (unsigned i = 0; i < 2; i++) tol_driver_close(drivers[i]);
    return status == TOL_OK ? 0 : 1;
}
