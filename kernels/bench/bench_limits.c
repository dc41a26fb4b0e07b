/*
 * Operations by clock and multiprocessors; bytes by the memory's clock and its bus, less what the
 * L2 cache may hold.
 */
#include "bench_limits.h"

#include <math.h>

/* Of a multiprocessor of compute capability 9.0 in a cycle, without sparsity: 132 of them have the
 * 1,979, 989 and 495 TFLOP/s of the whitepaper at 1,830 MHz, and the 67 of fp32 at 1,980. */
static const double rates[KN_RATES] = {8192, 4096, 2048, 256};

static double operations_us(const struct tol_device *device, const struct kn_bench_work *work) {
    const double cycles_per_us = device->clock_khz * 1e-3;
    if (device->compute_capability != 90 || !(cycles_per_us > 0)) return 0;
    return work->operations / (rates[work->rate] * device->multiprocessors * cycles_per_us);
}

/* Between two launches with the same set lie all the others. So in a round the cache spares at most
 * its own bytes; and what is written last may still be in it when the batch ends. */
static double bytes_us(const struct tol_device *device, const struct kn_bench_work *work) {
    /* Two transfers a cycle of the clock that the driver reports. */
    const double bytes_per_us = 2 * device->memory_clock_khz * 1e-3 * device->memory_bus_bits / 8;
    const double launches = (double)work->launches;
    if (!(bytes_per_us > 0) || work->turns == 0 || work->launches == 0) return 0;
    const double rounds = ceil(launches / (double)work->turns);
    const double spared = (rounds + 1) * device->l2_bytes;
    return (work->turn_bytes - spared / launches) / bytes_per_us;
}

double kn_bench_least_us(const struct tol_device *device, const struct kn_bench_work *work) {
    if (device->soft) return 0;
    return fmax(0, fmax(operations_us(device, work), bytes_us(device, work)));
}
