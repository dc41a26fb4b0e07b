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
static void add(struct json_writer *writer, const char *format, ...) {
    const size_t room = writer->length < writer->bytes ? writer->bytes - writer->length : 0;
    va_list arguments;
    va_start(arguments, format);
    const int length =
        vsnprintf(room > 0 ? writer->text + writer->length : NULL, room, format, arguments);
    va_end(arguments);
    if (length > 0) writer->length += (size_t)length;
}

static void add_number(struct json_writer *writer, const char *name, uint64_t value) {
    add(writer, ", \"%s\": %llu", name, (unsigned long long)value);
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
    add(writer, "{\"device\": %d", device->ordinal);
    if (status != TOL_OK) {
        add(writer, ", \"failure\": \"%s\"}", tol_status_name(status));
        return;
    }
    torch_arena_sum(device, &graph_held, &graph_used);
    add_number(writer, "allocated", stats.requested);
    add_number(writer, "allocated_peak", stats.requested_peak);
    add_number(writer, "reserved", stats.held);
    add_number(writer, "reserved_peak", stats.held_peak);
    add_number(writer, "blocks", stats.blocks);
    add_number(writer, "allocations", stats.allocations);
    add_number(writer, "frees", stats.frees);
    add_number(writer, "refused", atomic_load(&device->refused));
    add_number(writer, "magazine_hits", stats.magazine_hits);
    add_number(writer, "idle", stats.idle);
    add_number(writer, "page_waste", stats.page_waste);
    add_number(writer, "pending", stats.pending);
    add_number(writer, "driver_allocations", stats.driver_allocations);
    add_number(writer, "driver_frees", stats.driver_frees);
    add_number(writer, "driver_calls", stats.driver_calls);
    add_number(writer, "driver_ns", stats.driver_ns);
    add_number(writer, "stitched", stats.stitched);
    add_number(writer, "stream_waits", stats.stream_waits);
    add_number(writer, "recorded_frees", atomic_load(&device->recorded));
    add_number(writer, "waiting", atomic_load(&device->waiting_count));
    add_number(writer, "graph_reserved", graph_held);
    add_number(writer, "graph_allocated", graph_used);
    add(writer, "}");
}

size_t tol_torch_statistics(char *text, size_t bytes) {
    struct json_writer writer = {text, bytes, 0};
    const char *between = "";
    add(&writer, "{\"devices\": [");
    for (int i = 0; i < TORCH_DEVICES; i++) {
        struct torch_device *device = torch_device_if_open(i);
        if (device == NULL) continue;
        add(&writer, "%s", between);
        add_device(&writer, device);
        between = ", ";
    }
    add(&writer, "]}");
    return writer.length;
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
