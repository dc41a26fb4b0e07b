/*
 * Clocks, and the accesses of operations.
 */
#include "stream_order.h"

#include "base/call_site.h"
#include "state/contexts.h"
#include "machine/machine_state.h"
#include "base/options.h"
#include "base/report.h"
#include "memory/touch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The finished work per stream: times[n] operations of the stream with number n. */
struct soft_stream_clock {
    uint64_t count;
    uint64_t *times;
};

struct soft_deed {
    unsigned references;
    uint64_t stream, time;
    uint64_t queued;
    const void *site; /* of the call that queued it */
    struct soft_stream_clock *clock;
    char name[128];
};

static struct soft_stream_clock program, ended; /* of the program, and of destroyed streams */

bool soft_order_on(void) {
    return soft_options()->check_stream;
}

/* ---- clocks; one without memory knows less, and more is reported ---- */

void soft_stream_clock_free(struct soft_stream_clock *clock) {
    if (clock == NULL) return;
    free(clock->times);
    free(clock);
}

static bool stream_order_grow(struct soft_stream_clock *clock, uint64_t count) {
    if (count <= clock->count) return true;
    uint64_t *times = realloc(clock->times, count * sizeof *times);
    if (times == NULL) return false;
    memset(times + clock->count, 0, (count - clock->count) * sizeof *times);
    clock->times = times;
    clock->count = count;
    return true;
}

static void stream_order_join(struct soft_stream_clock *clock,
                              const struct soft_stream_clock *other) {
    if (other == NULL || !stream_order_grow(clock, other->count)) return;
    for (uint64_t i = 0; i < other->count; i++) {
        if (other->times[i] > clock->times[i]) clock->times[i] = other->times[i];
    }
}

static uint64_t stream_order_time_of(const struct soft_stream_clock *clock, uint64_t stream) {
    return stream < clock->count ? clock->times[stream] : 0;
}

static struct soft_stream_clock *stream_order_copy_of(const struct soft_stream_clock *clock) {
    struct soft_stream_clock *copy = calloc(1, sizeof *copy);
    if (copy != NULL) stream_order_join(copy, clock);
    return copy;
}

static struct soft_stream_clock *stream_order_clock_of(struct soft_stream *stream) {
    if (stream->clock == NULL) stream->clock = calloc(1, sizeof *stream->clock);
    return stream->clock;
}

/* ---- deeds ---- */

static void stream_order_release(struct soft_deed *deed) {
    if (--deed->references > 0) return;
    soft_stream_clock_free(deed->clock);
    free(deed);
}

static void name_deed(struct soft_deed *deed, const struct soft_operation *operation) {
    const struct soft_task *task = &operation->task;
    const struct soft_copy *copy = &task->is.copy;
    const struct soft_fill_rows *fill = &task->is.fill;
    unsigned long long bytes = 0;
    switch (task->kind) {
    case SOFT_TASK_KERNEL:
        snprintf(deed->name, sizeof deed->name, "kernel %s", operation->launch->code->name);
        break;
    case SOFT_TASK_COPY:
        bytes = copy->width * copy->height * copy->depth;
        snprintf(deed->name, sizeof deed->name, "a copy of %llu bytes", bytes);
        break;
    case SOFT_TASK_FILL:
        bytes = fill->width * fill->height * fill->element_bytes;
        snprintf(deed->name, sizeof deed->name, "a memset of %llu bytes", bytes);
        break;
    case SOFT_TASK_FREE:
        snprintf(deed->name, sizeof deed->name, "a free");
        break;
    default:
        snprintf(deed->name, sizeof deed->name, "a stream memory operation");
        break;
    }
}

static struct soft_deed *new_deed(const struct soft_stream *stream,
                                  const struct soft_operation *operation) {
    struct soft_deed *deed = calloc(1, sizeof *deed);
    if (deed == NULL) return NULL;
    deed->references = 1;
    deed->stream = stream->id;
    deed->queued = operation->queued;
    deed->site = operation->site;
    deed->clock = stream_order_copy_of(stream->clock);
    deed->time = stream_order_time_of(stream->clock, stream->id);
    name_deed(deed, operation);
    return deed;
}

static bool comes_before(const struct soft_deed *earlier, const void *self) {
    const struct soft_deed *deed = self;
    return stream_order_time_of(deed->clock, earlier->stream) >= earlier->time;
}

static struct soft_deed *stream_order_hold(void *self) {
    struct soft_deed *deed = self;
    deed->references++;
    return deed;
}

/* Pairs that were reported: a loop would report each again and again. */
static bool stream_order_is_first(uint64_t serial, const struct soft_deed *earlier,
                                  const struct soft_deed *deed) {
    enum { TOLD = 64 };
    static struct {
        uint64_t serial;
        char names[2][sizeof deed->name];
    } told[TOLD];
    static unsigned count;
    unsigned known = count < TOLD ? count : TOLD;
    for (unsigned i = 0; i < known; i++) {
        if (told[i].serial == serial && strcmp(told[i].names[0], earlier->name) == 0 &&
            strcmp(told[i].names[1], deed->name) == 0) {
            return false;
        }
    }
    unsigned next = count++ % TOLD;
    told[next].serial = serial;
    snprintf(told[next].names[0], sizeof deed->name, "%s", earlier->name);
    snprintf(told[next].names[1], sizeof deed->name, "%s", deed->name);
    return true;
}

/* Reports the operation that was queued first as the first, whichever ran first. */
static void report_conflict(const struct soft_conflict *conflict, void *self) {
    const struct soft_deed *deed = self, *earlier = conflict->earlier;
    struct soft_report report = {.kind = "missing order of streams", .address = conflict->low};
    bool wrote = conflict->wrote, writes = conflict->writes;
    if (earlier->queued > deed->queued) {
        earlier = self;
        deed = conflict->earlier;
        wrote = conflict->writes;
        writes = conflict->wrote;
    }
    if (!stream_order_is_first(conflict->serial, earlier, deed)) return;
    char first[sizeof report.source];
    soft_call_site_text(earlier->site, first, sizeof first);
    soft_call_site_text(deed->site, report.source, sizeof report.source);
    const bool known = first[0] != '\0' && report.source[0] != '\0';
    snprintf(report.detail, sizeof report.detail,
             "%.80s in stream %llu %s and %.80s in stream %llu %s bytes %llu to %llu of allocation "
             "%llu of %llu bytes at 0x%llx, and neither waits for the other%s%s%s%s",
             earlier->name, (unsigned long long)earlier->stream, wrote ? "writes" : "reads",
             deed->name, (unsigned long long)deed->stream, writes ? "writes" : "reads",
             (unsigned long long)(conflict->low - conflict->base),
             (unsigned long long)(conflict->high - conflict->base),
             (unsigned long long)conflict->serial, (unsigned long long)conflict->bytes,
             (unsigned long long)conflict->base, known ? "; they were queued at " : "",
             known ? first : "", known ? " and " : "", known ? report.source : "");
    soft_report_print(&report);
}

static const struct soft_touch_order order = {comes_before, report_conflict, stream_order_hold,
                                              stream_order_release};

/* ---- what operations touch ---- */

/* Adds a row, which may span allocations; memory outside of allocations is ignored. */
static void add_row(struct soft_touched *touched, enum soft_touch touch, uint64_t address,
                    uint64_t bytes) {
    struct soft_allocation found;
    while (bytes > 0 && soft_space_find(address, &found)) {
        uint64_t left = found.address + found.bytes - address;
        uint64_t part = bytes < left ? bytes : left;
        soft_touched_add(touched, touch, found.address, address, part);
        address += part;
        bytes -= part;
    }
}

static void add_end(struct soft_touched *touched, enum soft_touch touch,
                    const struct soft_copy_end *end, const struct soft_copy *copy) {
    for (uint64_t layer = 0; layer < copy->depth; layer++) {
        for (uint64_t row = 0; row < copy->height; row++) {
            add_row(touched, touch, end->address + row * end->pitch + layer * end->slice,
                    copy->width);
        }
    }
}

static void learn_of(const struct soft_deed *writer, void *data) {
    stream_order_join(data, writer->clock);
}

/* A value that was waited for has been written, by recorded operations or by the program. */
static void add_values(struct soft_touched *touched, struct soft_stream_clock *clock,
                       const struct soft_task *task) {
    for (unsigned i = 0; i < task->is.values.count; i++) {
        const struct soft_stream_value *value = &task->is.values.items[i];
        uint64_t bytes = value->wide ? 8 : 4;
        if (value->nothing) continue;
        if (!value->write) {
            stream_order_join(clock, &program);
            soft_touched_writers(value->address, bytes, learn_of, clock);
        }
        add_row(touched, value->write ? SOFT_TOUCH_STRONG_WRITE : SOFT_TOUCH_STRONG_READ,
                value->address, bytes);
    }
}

static void stream_order_add_task(struct soft_touched *touched, struct soft_stream_clock *clock,
                                  const struct soft_operation *operation) {
    const struct soft_task *task = &operation->task;
    const struct soft_fill_rows *fill = &task->is.fill;
    struct soft_allocation found;
    switch (task->kind) {
    case SOFT_TASK_COPY:
        add_end(touched, SOFT_TOUCH_WRITE, &task->is.copy.to, &task->is.copy);
        if (operation->staged == NULL) {
            add_end(touched, SOFT_TOUCH_READ, &task->is.copy.from, &task->is.copy);
        }
        break;
    case SOFT_TASK_FILL:
        for (uint64_t row = 0; row < fill->height; row++) {
            add_row(touched, SOFT_TOUCH_WRITE, fill->address + row * fill->pitch,
                    fill->width * fill->element_bytes);
        }
        break;
    case SOFT_TASK_VALUES:
        add_values(touched, clock, task);
        break;
    case SOFT_TASK_FREE:
        if (soft_space_find(task->is.address, &found)) {
            soft_touched_add(touched, SOFT_TOUCH_WRITE, found.address, found.address, found.bytes);
        }
        break;
    default:
        break;
    }
}

/* ---- the course of things ---- */

/* A kernel that writes host memory may have signalled to the host that earlier work is done. */
static void ask_kernels(void) {
    for (const struct soft_context *c = soft_contexts(); c != NULL; c = c->next) {
        for (const struct soft_stream *s = c->streams; s != NULL; s = s->next) {
            const struct soft_launch *launch = s->first != NULL ? s->first->launch : NULL;
            bool told = launch != NULL && launch->touched != NULL &&
                        soft_touched_told_host(launch->touched);
            if (!told) continue;
            soft_order_know_stream(s);
            /* The part of its own stream will be counted by its next operation. */
            if (stream_order_grow(&program, s->id + 1))
                program.times[s->id] = stream_order_time_of(s->clock, s->id) + 1;
        }
    }
}

void soft_order_queue(struct soft_operation *operation) {
    if (!soft_order_on()) return;
    static uint64_t queued;
    operation->queued = ++queued;
    operation->site = soft_maker.site;
    ask_kernels();
    operation->clock = stream_order_copy_of(&program);
    if (operation->launch != NULL) operation->launch->touched = soft_touched_new();
}

static bool stream_order_touches(const struct soft_operation *operation) {
    if (operation->kind != SOFT_OPERATION_TASK) return false;
    switch (operation->task.kind) {
    case SOFT_TASK_KERNEL:
        return operation->launch->touched != NULL;
    case SOFT_TASK_COPY:
    case SOFT_TASK_FILL:
    case SOFT_TASK_VALUES:
    case SOFT_TASK_FREE:
        return true;
    default:
        return false;
    }
}

static void stream_order_settle(struct soft_stream *stream,
                                const struct soft_operation *operation) {
    bool kernel = operation->launch != NULL;
    struct soft_touched *touched = kernel ? operation->launch->touched : soft_touched_new();
    if (touched == NULL) return;
    if (!kernel) stream_order_add_task(touched, stream->clock, operation);
    if (kernel && soft_touched_asked_host(touched)) stream_order_join(stream->clock, &program);
    struct soft_deed *deed = new_deed(stream, operation);
    if (deed != NULL && deed->clock != NULL) soft_touched_settle(touched, &order, deed);
    if (deed != NULL) stream_order_release(deed);
    bool told = kernel || operation->task.kind == SOFT_TASK_VALUES;
    if (told && soft_touched_told_host(touched)) soft_order_know_stream(stream);
    if (!kernel) soft_touched_free(touched);
}

void soft_order_done(struct soft_stream *stream, const struct soft_operation *operation) {
    if (!soft_order_on() || stream_order_clock_of(stream) == NULL) return;
    struct soft_stream_clock *clock = stream->clock;
    stream_order_join(clock, operation->clock);
    if (operation->kind == SOFT_OPERATION_WAIT) stream_order_join(clock, operation->point->clock);
    if (operation->kind == SOFT_OPERATION_RECORD)
        operation->point->clock = stream_order_copy_of(clock);
    if (!stream_order_touches(operation) || stream->context->error != CUDA_SUCCESS) return;
    if (!stream_order_grow(clock, stream->id + 1)) return;
    clock->times[stream->id]++;
    stream_order_settle(stream, operation);
}

void soft_order_know_stream(const struct soft_stream *stream) {
    if (soft_order_on()) stream_order_join(&program, stream->clock);
}

void soft_order_know_point(const struct soft_event_point *point) {
    if (soft_order_on() && point->reached) stream_order_join(&program, point->clock);
}

void soft_order_know_context(const struct soft_context *context) {
    if (!soft_order_on()) return;
    for (const struct soft_stream *s = context->streams; s != NULL; s = s->next) {
        soft_order_know_stream(s);
    }
    stream_order_join(&program, &ended);
}

void soft_order_end_stream(struct soft_stream *stream) {
    stream_order_join(&ended, stream->clock);
    soft_stream_clock_free(stream->clock);
}
