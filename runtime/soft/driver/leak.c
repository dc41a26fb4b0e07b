/*
 * Finds objects that were not released.
 */
#include "leak.h"

#include "base/call_site.h"
#include "base/calls.h"
#include "state/mipmap.h"
#include "state/contexts.h"
#include "state/handle_set.h"
#include "memory/maker.h"
#include "state/memory_pool.h"
#include "base/options.h"
#include "state/physical.h"
#include "queue/queue.h"
#include "base/report.h"
#include "graph/task_graph.h"
#include "texture/texture.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* The number of reports per kind of object; then only the remaining number is reported. */
enum { REPORTED_MAX = 20 };

void soft_leak_call(enum soft_call call, const void *site) {
    static _Atomic uint64_t calls;
    if (!soft_options()->check_leak && !soft_options()->check_stream) return;
    soft_maker = (struct soft_maker){
        .function = soft_call_names[call].name,
        .call = atomic_fetch_add(&calls, 1) + 1,
        .site = soft_call_site_of(soft_call_site != NULL ? soft_call_site : site)};
}

static void report_leak(const struct soft_maker *maker, uint64_t address, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void report_leak(const struct soft_maker *maker, uint64_t address, const char *format, ...) {
    struct soft_report report = {.kind = "leak", .address = address};
    char what[160];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    if (maker != NULL && maker->function != NULL) {
        soft_call_site_text(maker->site, report.source, sizeof report.source);
        snprintf(report.detail, sizeof report.detail, "%s, created by call %llu, %s%s%s", what,
                 (unsigned long long)maker->call, maker->function,
                 report.source[0] != '\0' ? ", at " : "", report.source);
    } else {
        snprintf(report.detail, sizeof report.detail, "%s", what);
    }
    soft_report_print(&report);
}

/* ---- memory ---- */

static const char *const kinds[] = {
    [SOFT_KIND_DEVICE] = "device memory",       [SOFT_KIND_PINNED] = "pinned host memory",
    [SOFT_KIND_MANAGED] = "managed memory",     [SOFT_KIND_REGISTERED] = "registered host memory",
    [SOFT_KIND_MODULE] = "a module's variable", [SOFT_KIND_HEAP] = "a kernel's malloc",
    [SOFT_KIND_POOL] = "memory of a pool",      [SOFT_KIND_MAPPED] = "a mapping",
    [SOFT_KIND_ARRAY] = "a CUDA array",         [SOFT_KIND_IMPORTED] = "another process's memory"};

/* Memory of some kinds of a context, or of none. */
static void report_memory(unsigned slot, unsigned wanted) {
    struct soft_allocation found = {.serial = 0};
    uint64_t more = 0, bytes = 0;
    unsigned reported = 0;
    while (soft_space_next(found.serial, &found)) {
        if (found.slot != slot || (wanted >> found.kind & 1) == 0) continue;
        if (found.name[0] != '\0') continue; /* a managed variable: its module is reported */
        if (reported++ < REPORTED_MAX) {
            report_leak(&found.maker, found.address, "%llu bytes of %s at 0x%llx, allocation %llu",
                        (unsigned long long)found.bytes, kinds[found.kind],
                        (unsigned long long)found.address, (unsigned long long)found.serial);
        } else {
            more++;
            bytes += found.bytes;
        }
    }
    if (more > 0) {
        report_leak(NULL, 0, "%llu more bytes in %llu allocations", (unsigned long long)bytes,
                    (unsigned long long)more);
    }
}

static void report_reservations(void) {
    uint64_t begin = 0, bytes = 0, address = 0;
    while (soft_space_reservation_behind(address, &begin, &bytes)) {
        report_leak(NULL, begin, "%llu bytes of reserved addresses at 0x%llx",
                    (unsigned long long)bytes, (unsigned long long)begin);
        address = begin + bytes;
    }
}

/* ---- handles ---- */

struct search {
    const struct soft_context *context; /* NULL: what belongs to none */
    unsigned reported[SOFT_HANDLE_OBJECT + 1];
};

static bool leak_belongs(const struct search *search, enum soft_handle_kind kind,
                         const void *handle) {
    const struct soft_graph *graph = handle;
    const struct soft_pool *pool = handle;
    const struct soft_module *module = handle;
    const struct soft_context *context = search->context;
    switch (kind) {
    case SOFT_HANDLE_STREAM:
        return context != NULL && ((const struct soft_stream *)handle)->context == context;
    case SOFT_HANDLE_EVENT:
        return context != NULL && ((const struct soft_event *)handle)->context == context;
    case SOFT_HANDLE_ARRAY:
        return context != NULL && ((const struct soft_array *)handle)->context == context &&
               !((const struct soft_array *)handle)->is_level;
    case SOFT_HANDLE_MIPMAP:
        return context != NULL && ((const struct soft_mipmap *)handle)->context == context;
    case SOFT_HANDLE_MODULE:
        return context != NULL && module->slot == context->reach.slot && module->library == NULL;
    case SOFT_HANDLE_GRAPH:
        return context == NULL && graph->owner == NULL && !graph->capturing;
    case SOFT_HANDLE_POOL:
        for (int i = 0; i < SOFT_DEVICES_MAX; i++) {
            const struct soft_device *device = soft_device_of(i);
            if (device == NULL) break;
            if (pool == device->usual_pool || pool == device->graph_pool) return false;
        }
        return context == NULL;
    case SOFT_HANDLE_LIBRARY:
    case SOFT_HANDLE_LINK:
    case SOFT_HANDLE_PHYSICAL:
    case SOFT_HANDLE_EXEC:
    case SOFT_HANDLE_OBJECT:
        return context == NULL;
    default:
        return false;
    }
}

static void leak_look_at(enum soft_handle_kind kind, const void *handle,
                         const struct soft_maker *maker, void *data) {
    static const char *const names[] = {[SOFT_HANDLE_STREAM] = "a stream",
                                        [SOFT_HANDLE_EVENT] = "an event",
                                        [SOFT_HANDLE_MODULE] = "a module",
                                        [SOFT_HANDLE_ARRAY] = "a CUDA array",
                                        [SOFT_HANDLE_MIPMAP] = "a mipmapped CUDA array",
                                        [SOFT_HANDLE_LIBRARY] = "a library",
                                        [SOFT_HANDLE_LINK] = "a linker",
                                        [SOFT_HANDLE_PHYSICAL] = "physical memory",
                                        [SOFT_HANDLE_POOL] = "a memory pool",
                                        [SOFT_HANDLE_GRAPH] = "a graph",
                                        [SOFT_HANDLE_EXEC] = "an executable graph",
                                        [SOFT_HANDLE_OBJECT] = "a user object"};
    struct search *search = data;
    if (!leak_belongs(search, kind, handle) || search->reported[kind]++ >= REPORTED_MAX) return;
    unsigned long long address = (uintptr_t)handle;
    if (kind == SOFT_HANDLE_STREAM) {
        report_leak(maker, address, "%s, number %llu, at 0x%llx", names[kind],
                    (unsigned long long)((const struct soft_stream *)handle)->id, address);
    } else if (kind == SOFT_HANDLE_PHYSICAL) {
        report_leak(maker, address, "%llu bytes of %s at 0x%llx",
                    (unsigned long long)((const struct soft_physical *)handle)->bytes, names[kind],
                    address);
    } else {
        report_leak(maker, address, "%s at 0x%llx", names[kind], address);
    }
}

static void report_handles(const struct soft_context *context) {
    struct search search = {.context = context};
    soft_handle_each(leak_look_at, &search);
    for (unsigned kind = 0; kind <= SOFT_HANDLE_OBJECT; kind++) {
        if (search.reported[kind] > REPORTED_MAX) {
            report_leak(NULL, 0, "%u more handles of the same kind",
                        search.reported[kind] - REPORTED_MAX);
        }
    }
}

/* ---- textures and surfaces, whose handles are numbers ---- */

struct texture_search {
    unsigned slot, reported;
};

static void look_at_texture(const struct soft_texture *texture, void *data) {
    struct texture_search *search = data;
    if (texture->slot != search->slot || texture->of_reference) return;
    if (search->reported++ >= REPORTED_MAX) return;
    uint64_t handle = atomic_load(&texture->handle);
    report_leak(NULL, handle, "a %s object, 0x%llx", texture->is_surface ? "surface" : "texture",
                (unsigned long long)handle);
}

static void report_textures(unsigned slot) {
    struct texture_search search = {.slot = slot};
    soft_texture_each(look_at_texture, &search);
    if (search.reported > REPORTED_MAX) {
        report_leak(NULL, 0, "%u more texture and surface objects", search.reported - REPORTED_MAX);
    }
}

/* ---- when ---- */

static void report_context(const struct soft_context *context) {
    report_memory(context->reach.slot, 1u << SOFT_KIND_DEVICE | 1u << SOFT_KIND_PINNED |
                                           1u << SOFT_KIND_MANAGED | 1u << SOFT_KIND_REGISTERED |
                                           1u << SOFT_KIND_HEAP | 1u << SOFT_KIND_IMPORTED);
    report_handles(context);
    report_textures(context->reach.slot);
}

static void report_rest(void) {
    report_memory(SOFT_SLOT_NONE, 1u << SOFT_KIND_POOL | 1u << SOFT_KIND_MAPPED);
    report_reservations();
    report_handles(NULL);
}

static bool rest_is_reported; /* and no context has lived since */

void soft_leak_context(const struct soft_context *context) {
    if (!soft_options()->check_leak) return;
    pthread_mutex_lock(&soft_lock);
    report_context(context);
    bool last = true;
    for (const struct soft_context *c = soft_contexts(); c != NULL; c = c->next) {
        last = last && (c == context || !c->alive);
    }
    if (last) report_rest();
    rest_is_reported = last;
    pthread_mutex_unlock(&soft_lock);
}

static void leak_at_exit(void) {
    if (soft_state_is_forked()) return; /* what is left is the parent's */
    pthread_mutex_lock(&soft_lock);
    bool alive = false;
    for (const struct soft_context *c = soft_contexts(); c != NULL; c = c->next) {
        if (!c->alive) continue;
        alive = true;
        report_context(c);
    }
    if (alive || !rest_is_reported) report_rest();
    pthread_mutex_unlock(&soft_lock);
}

void soft_leak_watch_exit(void) {
    static bool watched;
    if (!soft_options()->check_leak) return;
    pthread_mutex_lock(&soft_lock);
    if (!watched) watched = atexit(leak_at_exit) == 0;
    pthread_mutex_unlock(&soft_lock);
}
