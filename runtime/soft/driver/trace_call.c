/*
 * Describes calls for the trace.
 */
#include "trace_call.h"

#include "base/soft_clock.h"
#include "base/trace_line.h"
#include "memory/maker.h"
#include "state/thread_state.h"

#include <string.h>

static bool has_any(const char *name, const char *const *parts) {
    for (; *parts != NULL; parts++) {
        if (strstr(name, *parts) != NULL) return true;
    }
    return false;
}

/* Queries, and calls that only change the thread's current state. */
static bool only_asks(const char *name) {
    static const char *const parts[] = {"Get",
                                        "Query",
                                        "Occupancy",
                                        "ElapsedTime",
                                        "SetCurrent",
                                        "PushCurrent",
                                        "PopCurrent",
                                        "cuDeviceCanAccessPeer",
                                        "cuThreadExchangeStreamCaptureMode",
                                        NULL};
    return has_any(name, parts);
}

/* Calls whose memory is worth a word. */
static bool is_about_memory(const char *name) {
    static const char *const parts[] = {"cuMemAlloc",      "cuMemHost",      "cuMemFree",
                                        "cuMemMap",        "cuMemUnmap",     "cuArrayCreate",
                                        "cuArray3DCreate", "cuArrayDestroy", NULL};
    return has_any(name, parts);
}

void soft_trace_call_begin(void) {
    if (!soft_trace_is_on()) return;
    soft_made = (struct soft_made){0};
    soft_thread()->call_ns = soft_now_ns();
}

void soft_trace_call_end(enum soft_call call, CUresult result) {
    const char *name = soft_call_names[call].name;
    if (!soft_trace_is_on() || only_asks(name)) return;
    const struct soft_trace_event event = {.name = name,
                                           .category = "driver",
                                           .row = soft_trace_thread_row(),
                                           .begin_ns = soft_thread()->call_ns,
                                           .end_ns = soft_now_ns()};
    if (is_about_memory(name) && soft_made.bytes > 0) {
        soft_trace_add(&event, "\"result\":%d,\"bytes\":%llu,\"address\":\"0x%llx\"", (int)result,
                       (unsigned long long)soft_made.bytes, (unsigned long long)soft_made.address);
    } else {
        soft_trace_add(&event, "\"result\":%d", (int)result);
    }
}
