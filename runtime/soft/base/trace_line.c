/*
 * Writes lines of the trace.
 */
#include "trace_line.h"

#include "options.h"
#include "tollens/plain_text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LINE_BYTES = 1024, NAME_BYTES = 400, MEMBERS_BYTES = 320 };

bool soft_trace_is_on(void) {
    const char *path = soft_options()->trace;
    return path != NULL && path[0] != '\0';
}

static void trace_line_complain(const char *path) {
    static atomic_bool told;
    if (atomic_exchange(&told, true)) return;
    tol_plain_print(stderr, "tollens-soft: cannot write the trace to %s: %s\n", path,
                    strerror(errno));
}

/* The file is opened for each line, because a program may close all unknown descriptors. */
static void trace_line_put(const char *line, int length) {
    const char *path = soft_options()->trace;
    int file = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (file < 0 && errno == ENOENT) {
        file = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_CREAT | O_EXCL, 0666);
        if (file >= 0 && write(file, "[\n", 2) != 2) trace_line_complain(path);
        if (file < 0) file = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    }
    if (file < 0 || write(file, line, (size_t)length) != length) trace_line_complain(path);
    if (file >= 0) close(file);
}

/* Characters of a name that JSON does not allow are left out. */
static void trace_line_escape(const char *text, char *to, size_t bytes) {
    size_t length = 0;
    for (; *text != '\0' && length + 3 < bytes; text++) {
        const unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\') to[length++] = '\\';
        if (c >= ' ') to[length++] = (char)c;
    }
    to[length] = '\0';
}

static void trace_line_name(const char *what, unsigned row, const char *text) {
    char line[LINE_BYTES], escaped[NAME_BYTES];
    trace_line_escape(text, escaped, sizeof escaped);
    int length = snprintf(line, sizeof line,
                          "{\"name\":\"%s\",\"ph\":\"M\",\"pid\":%ld,\"tid\":%u,\"args\":{\"name\":"
                          "\"%s\"}},\n",
                          what, (long)getpid(), row, escaped);
    trace_line_put(line, length);
}

/* The process id, and again after a fork. */
static void name_process(void) {
    static atomic_long named;
    const long process = (long)getpid();
    if (atomic_exchange(&named, process) == process) return;
#if defined(__GLIBC__)
    trace_line_name("process_name", 0, program_invocation_short_name);
#else
    trace_line_name("process_name", 0, "program");
#endif
}

void soft_trace_name_row(unsigned row, const char *text, uint64_t number) {
    char numbered[NAME_BYTES];
    snprintf(numbered, sizeof numbered, "%s %llu", text, (unsigned long long)number);
    name_process();
    trace_line_name("thread_name", row, numbered);
}

unsigned soft_trace_thread_row(void) {
    static atomic_uint threads;
    static _Thread_local unsigned row;
    if (row != 0) return row;
    row = atomic_fetch_add(&threads, 1) % (SOFT_TRACE_STREAMS - 1) + 1;
    soft_trace_name_row(row, "thread", row);
    return row;
}

void soft_trace_add(const struct soft_trace_event *event, const char *format, ...) {
    char line[LINE_BYTES], escaped[NAME_BYTES], members[MEMBERS_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(members, sizeof members, format, arguments);
    va_end(arguments);
    trace_line_escape(event->name, escaped, sizeof escaped);
    name_process();
    int length = snprintf(
        line, sizeof line,
        "{\"name\":\"%s\",\"cat\":\"%s\",\"ph\":\"X\",\"ts\":%llu.%03u,\"dur\":%llu.%03u,"
        "\"pid\":%ld,\"tid\":%u,\"args\":{%s}},\n",
        escaped, event->category, (unsigned long long)event->begin_ns / 1000,
        (unsigned)(event->begin_ns % 1000),
        (unsigned long long)(event->end_ns - event->begin_ns) / 1000,
        (unsigned)((event->end_ns - event->begin_ns) % 1000), (long)getpid(), event->row, members);
    trace_line_put(line, length);
}
