/*
 * PyTorch's memory snapshot: what torch.cuda.memory._dump_snapshot writes after
 * torch.cuda.memory._record_memory_history() has recorded events.
 *
 *     {"device_traces": [[{"action": "alloc", "addr": 139923456, "size": 4096, "stream": 0,
 *                          "time_us": 1700000000000000}, ...], ...],        one list per device
 *      "segments": [{"device": 0, "address": 139923456, "total_size": 2097152, "stream": 0,
 *                    "blocks": [{"size": 4096, "requested_size": 4000,
 *                                "state": "active_allocated"}, ...]}, ...]}
 *
 * PyTorch keeps the latest events only. A block that is freed or still live without an allocation
 * was allocated before them: the replay allocates it first. Memory that the program freed
 * (free_requested) can be used again when its streams' work is done (free_completed), so that is
 * the free. segments is the state at the end: from it and the events of segments follows what
 * PyTorch's own allocator held at most.
 * Source: PyTorch's documentation, "Understanding CUDA Memory Usage", "Snapshot API Reference".
 */
#include "files/atomic_file.h"
#include "trace_formats.h"
#include "trace_pickle.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define BYTES_MAX ((size_t)1 << 31) /* of a file */
#define SIZE_MAX_BYTES ((1ull << 48) - 1)

struct snapshot {
    struct hyp_trace_maker *maker;
    struct hyp_trace *trace;
    const char *path;
    const json_t *root;
    json_int_t device;
    size_t segment;            /* that is read now */
    size_t visits, visits_max; /* of events and blocks: a pickle can name one many times */
    int64_t held, held_max;    /* by PyTorch, compared with the beginning of the trace */
};

enum { NOTHING = TOL_POOL_EVENT_KINDS, SEGMENT_MORE, SEGMENT_LESS, SEGMENT_SAME };

static const struct {
    const char *name;
    uint8_t kind; /* of an event of the pool, or one of the above */
} actions[] = {{"alloc", TOL_POOL_EVENT_ALLOCATE}, {"free_completed", TOL_POOL_EVENT_FREE},
               {"oom", TOL_POOL_EVENT_REFUSE},     {"free_requested", NOTHING},
               {"segment_alloc", SEGMENT_MORE},    {"segment_map", SEGMENT_MORE},
               {"segment_free", SEGMENT_LESS},     {"segment_unmap", SEGMENT_LESS},
               {"snapshot", SEGMENT_SAME},         {"workspace_snapshot", SEGMENT_SAME}};

/* A list that is shared counts each time: an honest file has a byte for each. */
static bool snapshot_visit(struct snapshot *s) {
    return s->visits++ < s->visits_max ||
           hyp_fail("%s repeats its parts more often than it has bytes", s->path);
}

static bool snapshot_number(const json_t *from, const char *name, uint64_t most, uint64_t *number) {
    const json_t *value = json_object_get(from, name);
    const json_int_t read = json_integer_value(value);
    if (!json_is_integer(value) || read < 0 || (uint64_t)read > most) return false;
    *number = (uint64_t)read;
    return true;
}

/* PyTorch prints a stream as a number, which may be that of a pointer with any sign. */
static bool snapshot_stream(const json_t *from, uint64_t *stream) {
    const json_t *value = json_object_get(from, "stream");
    *stream = (uint64_t)json_integer_value(value);
    return json_is_integer(value);
}

/* ---- events ---------------------------------------------------------------------------------- */

/* Their sum must not wrap around. */
static bool snapshot_hold(struct snapshot *s, int64_t change) {
    s->held += change;
    if (s->held > s->held_max) s->held_max = s->held;
    return (s->held < INT64_MAX / 2 && s->held > INT64_MIN / 2) ||
           hyp_trace_refuse(s->maker, "the segments have 2^62 bytes or more", NULL);
}

static bool snapshot_add_event(struct snapshot *s, const json_t *event, uint64_t number,
                               uint8_t kind) {
    struct hyp_trace_found found = {.kind = kind};
    if (!snapshot_number(event, "size", SIZE_MAX_BYTES, &found.bytes)) {
        return hyp_trace_refuse(s->maker, "size must be a number of bytes below 2^48", NULL);
    }
    if (kind == SEGMENT_MORE || kind == SEGMENT_LESS) {
        hyp_trace_notice(s->maker, HYP_TRACE_OTHER_EVENTS);
        return snapshot_hold(s,
                             kind == SEGMENT_MORE ? (int64_t)found.bytes : -(int64_t)found.bytes);
    }
    if (!snapshot_stream(event, &found.stream)) {
        return hyp_trace_refuse(s->maker, "stream must be a whole number", NULL);
    }
    if (kind != TOL_POOL_EVENT_REFUSE && !snapshot_number(event, "addr", INT64_MAX, &found.block)) {
        return hyp_trace_refuse(s->maker, "addr must be an address", NULL);
    }
    if (snapshot_number(event, "time_us", UINT64_MAX / 1000, &found.time_ns)) found.time_ns *= 1000;
    return hyp_trace_add(s->maker, number, &found);
}

static bool snapshot_read_event(struct snapshot *s, const json_t *event, uint64_t number) {
    const char *action = json_string_value(json_object_get(event, "action"));
    hyp_trace_at(s->maker, number);
    if (action == NULL) return hyp_trace_refuse(s->maker, "there is no action", NULL);
    for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++) {
        if (strcmp(action, actions[i].name) != 0) continue;
        if (actions[i].kind == NOTHING) return true;
        if (actions[i].kind != SEGMENT_SAME) {
            return snapshot_add_event(s, event, number, actions[i].kind);
        }
        hyp_trace_notice(s->maker, HYP_TRACE_OTHER_EVENTS);
        return true;
    }
    hyp_trace_notice(s->maker, HYP_TRACE_UNKNOWN_EVENTS);
    return true;
}

/* The trace of the device with the most events. */
static const json_t *snapshot_choose(struct snapshot *s) {
    const json_t *traces = json_object_get(s->root, "device_traces"), *longest = NULL;
    size_t all = 0;
    for (size_t i = 0; i < json_array_size(traces); i++) {
        const json_t *trace = json_array_get(traces, i);
        all += json_array_size(trace);
        if (json_array_size(trace) <= json_array_size(longest)) continue;
        longest = trace;
        s->device = (json_int_t)i;
    }
    s->trace->notes[HYP_TRACE_OTHER_DEVICES].count = all - json_array_size(longest);
    return longest;
}

static bool snapshot_read_events(struct snapshot *s) {
    const json_t *events = snapshot_choose(s);
    if (events == NULL) {
        return hyp_fail("%s has no event in device_traces: call "
                        "torch.cuda.memory._record_memory_history() before the work, and "
                        "torch.cuda.memory._dump_snapshot(FILE) after it",
                        s->path);
    }
    for (size_t i = 0; i < json_array_size(events); i++) {
        if (!snapshot_visit(s) || !snapshot_read_event(s, json_array_get(events, i), i + 1)) {
            return false;
        }
    }
    return true;
}

/* ---- segments -------------------------------------------------------------------------------- */

static bool snapshot_refuse_segment(const struct snapshot *s, const char *what) {
    return hyp_fail("%s segment %zu, counted from 0: %s", s->path, s->segment, what);
}

/* Earlier versions of PyTorch have no address in a block: blocks follow each other. */
static bool snapshot_add_block(struct snapshot *s, const json_t *block, uint64_t stream,
                               uint64_t *address) {
    struct hyp_trace_found found = {.stream = stream};
    uint64_t size = 0;
    const char *state = json_string_value(json_object_get(block, "state"));
    if (!snapshot_number(block, "size", SIZE_MAX_BYTES, &size) || state == NULL) {
        return snapshot_refuse_segment(s, "each block must have size and state");
    }
    if (!snapshot_number(block, "address", INT64_MAX, &found.block)) found.block = *address;
    if (!snapshot_number(block, "requested_size", SIZE_MAX_BYTES, &found.bytes)) found.bytes = size;
    *address = found.block + size;
    if (strncmp(state, "active", 6) != 0) return true;
    if (strcmp(state, "active_allocated") != 0) hyp_trace_notice(s->maker, HYP_TRACE_PENDING);
    return hyp_trace_add_live(s->maker, &found);
}

/* *total: what PyTorch held at the end. */
static bool snapshot_read_segment(struct snapshot *s, const json_t *segment, uint64_t *total) {
    uint64_t address = 0, bytes = 0, stream = 0;
    const json_t *blocks = json_object_get(segment, "blocks");
    if (json_integer_value(json_object_get(segment, "device")) != s->device) return true;
    if (!snapshot_number(segment, "total_size", SIZE_MAX_BYTES, &bytes) ||
        !snapshot_number(segment, "address", INT64_MAX, &address) ||
        !snapshot_stream(segment, &stream)) {
        return snapshot_refuse_segment(s, "it must have total_size, address and stream");
    }
    *total += bytes;
    if (*total >> 62 != 0) return snapshot_refuse_segment(s, "all have 2^62 bytes or more");
    for (size_t i = 0; i < json_array_size(blocks); i++) {
        if (!snapshot_visit(s)) return false;
        if (!snapshot_add_block(s, json_array_get(blocks, i), stream, &address)) return false;
    }
    return true;
}

static bool snapshot_read_segments(struct snapshot *s) {
    const json_t *segments = json_object_get(s->root, "segments");
    uint64_t total = 0;
    for (s->segment = 0; s->segment < json_array_size(segments); s->segment++) {
        if (!snapshot_visit(s)) return false;
        if (!snapshot_read_segment(s, json_array_get(segments, s->segment), &total)) return false;
    }
    /* The beginning is the end without the changes between them. */
    const int64_t most = (int64_t)total - s->held + s->held_max;
    if (total > 0 && most > 0) s->trace->recorded_peak = (uint64_t)most;
    return true;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static unsigned char *snapshot_load(const char *path, FILE *file, size_t *count) {
    size_t room = 1 << 20, used = 0;
    unsigned char *bytes = malloc(room);
    while (bytes != NULL) {
        used += fread(bytes + used, 1, room - used, file);
        if (used < room || room >= BYTES_MAX) break;
        room *= 2;
        unsigned char *more = realloc(bytes, room);
        if (more == NULL) free(bytes);
        bytes = more;
    }
    *count = used;
    if (bytes != NULL && used < room && !ferror(file)) return bytes;
    if (bytes == NULL) {
        hyp_fail("%s: out of host memory", path);
    } else if (ferror(file)) {
        hyp_fail("%s: %s", path, strerror(errno));
    } else {
        hyp_fail("%s has 2 GiB or more: record fewer events (max_entries)", path);
    }
    free(bytes);
    return NULL;
}

static json_t *snapshot_parse(struct hyp_trace *trace, const char *path, const unsigned char *bytes,
                              size_t count) {
    json_error_t error;
    trace->format = "a PyTorch snapshot (pickle)";
    if (bytes[0] == 0x80) return hyp_pickle_read(path, bytes, count);
    trace->format = "a PyTorch snapshot (JSON)";
    json_t *root = json_loadb((const char *)bytes, count, 0, &error);
    if (root == NULL)
        hyp_fail("%s line %d column %d: %s", path, error.line, error.column, error.text);
    return root;
}

bool hyp_trace_read_snapshot(struct hyp_trace_maker *maker, struct hyp_trace *trace,
                             const char *path, FILE *file) {
    size_t count = 0;
    unsigned char *bytes = snapshot_load(path, file, &count);
    if (bytes == NULL) return false;
    json_t *root = snapshot_parse(trace, path, bytes, count);
    free(bytes);
    struct snapshot s = {
        .maker = maker, .trace = trace, .path = path, .root = root, .visits_max = count};
    trace->unit = trace->places = "event";
    hyp_trace_maker_rule(maker, HYP_TRACE_COMPLETES);
    const bool ok = root != NULL && snapshot_read_events(&s) && snapshot_read_segments(&s);
    json_decref(root);
    return ok;
}
