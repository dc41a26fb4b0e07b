/*
 * The demand FW-22: copies of pinned memory reach 90 % of the peak of the bus they cross. The peak
 * is that of the PCI Express link as NVML tells its generation and width, after its coding and
 * the packets' headers (tol_pcie_peak, with payloads of 256 bytes). The one test that judges a
 * time: the demand is about one. It takes the best of several batches, since other load slows some.
 */
#include "test/test_device.h"

#include "core/monotonic.h"

#include <stdio.h>

enum { BYTES = 256 << 20, COPIES = 4, BATCHES = 6 };

struct bus {
    struct tol_stream *stream;
    struct tol_buffer *buffer;
    struct tol_pinned *pinned;
    struct tol_links links; /* as they were while copies ran */
};

/* The best bytes per second of the batches. The links are read while the first one runs. */
static double best_rate(struct bus *bus, enum tol_pcie_direction direction) {
    double best = 0;
    void *data = NULL;
    for (int batch = 0; batch < BATCHES; batch++) {
        const uint64_t begin_ns = tol_now_ns();
        for (int i = 0; i < COPIES; i++) {
            MUST(direction == TOL_PCIE_TO_DEVICE
                     ? tol_copy_to_device(bus->stream, bus->buffer, 0, bus->pinned, 0, BYTES)
                     : tol_copy_to_host(bus->stream, bus->pinned, 0, bus->buffer, 0, BYTES));
        }
        if (batch == 0) MUST(tol_links_read(test_context(), &bus->links));
        MUST(tol_stream_synchronize(bus->stream));
        const double rate = (double)BYTES * COPIES * 1e9 / (double)(tol_now_ns() - begin_ns);
        MUST(tol_pinned_access(bus->pinned, &data));
        if (batch > 0 && rate > best) best = rate;
    }
    return best;
}

Test(bus, pinned_copies_reach_nine_tenths_of_the_peak, .fini = test_end) {
    static const char *const names[] = {"to the host", "to the device"};
    if (!test_on_gpu()) cr_skip_test("the soft device has no bus: this takes a GPU");
    struct bus bus = {.stream = NULL};
    MUST(tol_stream_create(test_context(), NULL, &bus.stream));
    MUST(tol_buffer_create(test_context(), BYTES, 1, &bus.buffer));
    MUST(tol_pinned_create(test_context(), BYTES, &bus.pinned));
    MUST(tol_buffer_fill_at(bus.buffer, 0, 1, 1, BYTES));
    MUST(tol_links_read(test_context(), &bus.links)); /* NVML begins, which takes its time */
    for (int i = 0; i < 2; i++) {
        const double rate = best_rate(&bus, (enum tol_pcie_direction)i);
        const int generation = bus.links.pcie_generation, width = bus.links.pcie_width;
        const double peak = tol_pcie_peak(generation, width, (enum tol_pcie_direction)i, 0);
        if (!bus.links.is_told || peak <= 0) {
            cr_skip_test("NVML tells no PCI Express link of generation 1 to 5: %s, generation %d",
                         bus.links.reason, generation);
        }
        fprintf(stderr,
                "bus: %s %.2f GB/s, %.3f of the peak of %d lanes of generation %d, "
                "%.2f GB/s after 128b/130b and headers of packets of 256 bytes\n",
                names[i], rate * 1e-9, rate / peak, width, generation, peak * 1e-9);
        cr_assert(rate >= 0.9 * peak, "%s: %.2f GB/s of %.2f, %.3f", names[i], rate * 1e-9,
                  peak * 1e-9, rate / peak);
    }
    tol_pinned_destroy(bus.pinned);
    tol_buffer_destroy(bus.buffer);
    tol_stream_destroy(bus.stream);
}
