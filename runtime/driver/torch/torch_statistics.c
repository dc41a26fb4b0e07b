/*
 * The statistics of all devices as JSON: on request, and to a file when the process ends.
 */
#include "tollens/torch.h"

#include "core/check.h"
#include "torch_arena.h"

#include <stdio.h>
#include <stdlib.h>

struct json_writer {
    char *text;
    size_t bytes, length;
};

TOL_PRINTF(2, 3)
static void torch_statistics_add(struct json_writer *writer, const char *format, ...) {
    const size_t room = writer->length < writer->bytes ? writer->bytes - writer->length : 0;
    va_list arguments;
    va_start(arguments, format);
    const int length =
        vsnprintf(room > 0 ? writer->text + writer->length : NULL, room, format, arguments);
    va_end(arguments);
    if (length > 0) writer->length += (size_t)length;
}

static void torch_statistics_add_number(struct json_writer *writer, const char *name,
                                        uint64_t value) {
    torch_statistics_add(writer, ", \"%s\": %llu", name, (unsigned long long)value);
}

static void add_device(struct json_writer *writer, struct torch_device *device) {
    struct tol_pool_stats stats;
    size_t graph_held = 0, graph_used = 0;
    /* A pool of mapped memory counts without the driver, which may have ended before the process:
     * so the thread's context stays as it is. */
    const uint64_t bound = tol_bound_context;
    tol_bound_context = device->context->id;
    const tol_status status = tol_pool_stats(device->pool, &stats);
    tol_bound_context = bound;
    torch_statistics_add(writer, "{\"device\": %d", device->ordinal);
    if (status != TOL_OK) {
        torch_statistics_add(writer, ", \"failure\": \"%s\"}", tol_status_name(status));
        return;
    }
    torch_arena_sum(device, &graph_held, &graph_used);
    torch_statistics_add_number(writer, "allocated", stats.requested);
    torch_statistics_add_number(writer, "allocated_peak", stats.requested_peak);
    torch_statistics_add_number(writer, "reserved", stats.held);
    torch_statistics_add_number(writer, "reserved_peak", stats.held_peak);
    torch_statistics_add_number(writer, "blocks", stats.blocks);
    torch_statistics_add_number(writer, "allocations", stats.allocations);
    torch_statistics_add_number(writer, "frees", stats.frees);
    torch_statistics_add_number(writer, "refused", atomic_load(&device->refused));
    torch_statistics_add_number(writer, "magazine_hits", stats.magazine_hits);
    torch_statistics_add_number(writer, "idle", stats.idle);
    torch_statistics_add_number(writer, "page_waste", stats.page_waste);
    torch_statistics_add_number(writer, "pending", stats.pending);
    torch_statistics_add_number(writer, "driver_allocations", stats.driver_allocations);
    torch_statistics_add_number(writer, "driver_frees", stats.driver_frees);
    torch_statistics_add_number(writer, "driver_calls", stats.driver_calls);
    torch_statistics_add_number(writer, "driver_ns", stats.driver_ns);
    torch_statistics_add_number(writer, "stitched", stats.stitched);
    torch_statistics_add_number(writer, "stream_waits", stats.stream_waits);
    torch_statistics_add_number(writer, "recorded_frees", atomic_load(&device->recorded));
    torch_statistics_add_number(writer, "waiting", atomic_load(&device->waiting_count));
    torch_statistics_add_number(writer, "graph_reserved", graph_held);
    torch_statistics_add_number(writer, "graph_allocated", graph_used);
    torch_statistics_add(writer, "}");
}

size_t tol_torch_statistics(char *text, size_t bytes) {
    struct json_writer writer = {text, bytes, 0};
    const char *between = "";
    torch_statistics_add(&writer, "{\"devices\": [");
    for (int i = 0; i < TORCH_DEVICES; i++) {
        struct torch_device *device = torch_device_if_open(i);
        if (device == NULL) continue;
        torch_statistics_add(&writer, "%s", between);
        add_device(&writer, device);
        between = ", ";
    }
    torch_statistics_add(&writer, "]}");
    return writer.length;
}

void tol_torch_reset_peaks(int ordinal) {
    struct torch_device *device = torch_device_if_open(ordinal);
    if (device != NULL) (void)tol_pool_reset_peaks(device->pool);
}

/* The device may be gone by now: the statistics are the host's own. */
__attribute__((destructor)) static void write_statistics(void) {
    const char *path = getenv("TOLLENS_TORCH_STATISTICS");
    if (path == NULL || path[0] == '\0') return;
    const size_t bytes = tol_torch_statistics(NULL, 0) + 1;
    char *text = malloc(bytes);
    FILE *file = text != NULL ? fopen(path, "w") : NULL;
    if (file != NULL) {
        (void)tol_torch_statistics(text, bytes);
        fprintf(file, "%s\n", text);
        fclose(file);
    }
    free(text);
}
