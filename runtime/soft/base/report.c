/*
 * Writes reports to stderr, the driver's log and a JSON file.
 */
#include "report.h"

#include "tollens/cuda_abi.h"
#include "options.h"
#include "suppress.h"
#include "tollens/plain_text.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The real driver's log holds 25600 bytes; ours about as much. */
enum { LOG_LINES = 64, LINE_BYTES = 1024 };

static struct {
    pthread_mutex_t lock;
    char lines[LOG_LINES][LINE_BYTES];
    uint32_t end; /* the number of the next line; line n is in lines[n % LOG_LINES] */
} notes = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The severity: what ends a launch on a GPU, what the user suppressed, what may be intended, and
 * the rest. */
static const char *report_severity(const struct soft_report *report) {
    if (report->result != 0) return "error";
    if (soft_suppress(report->kind, report->kernel, report->source, report->ptx_line) ||
        (report->inlined_at[0] != '\0' &&
         soft_suppress(report->kind, report->kernel, report->inlined_at, report->ptx_line))) {
        return "suppressed";
    }
    return report->minor ? "note" : "warning";
}

const char *soft_report_kind(int result) {
    switch (result) {
    case CUDA_ERROR_ILLEGAL_ADDRESS:
        return "illegal address";
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
        return "wrong address space";
    case CUDA_ERROR_MISALIGNED_ADDRESS:
        return "misaligned address";
    case CUDA_ERROR_ASSERT:
        return "assertion failed";
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
        return "stack overflow";
    case CUDA_ERROR_INVALID_PC:
        return "invalid function";
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
        return "illegal instruction";
    case CUDA_ERROR_LAUNCH_TIMEOUT:
        return "no end";
    case CUDA_ERROR_OUT_OF_MEMORY:
        return "out of host memory";
    default:
        return "launch failure";
    }
}

void soft_report_text(const struct soft_report *report, char *text, size_t bytes) {
    char place[256] = "";
    if (report->kernel[0] == '\0') {
        snprintf(text, bytes, "%s: %s", report->kind, report->detail);
        return;
    }
    if (report->instruction[0] != '\0') {
        snprintf(place, sizeof place,
                 " in block (%u,%u,%u), thread (%u,%u,%u)%s, at PTX line %u: %.100s",
                 report->block[0], report->block[1], report->block[2], report->thread[0],
                 report->thread[1], report->thread[2], report->lanes > 1 ? " and others" : "",
                 report->ptx_line, report->instruction);
    }
    bool called = report->function[0] != '\0';
    snprintf(text, bytes, "%s in kernel %s%s%s%s%s%s%s%s%s%s: %s", report->kind, report->kernel,
             called ? ", in function " : "", report->function,
             called && report->source[0] == '\0' && place[0] != '\0' ? "," : "",
             report->source[0] != '\0' ? ", " : "", report->source,
             report->inlined_at[0] != '\0' ? ", inlined at " : "", report->inlined_at, place,
             report->instruction[0] != '\0' ? "" : ",", report->detail);
}

/* A line of JSON as it grows. What does not fit is left out, and the line is not written. */
struct line {
    char text[8192];
    size_t length;
};

static void report_put(struct line *line, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void report_put(struct line *line, const char *format, ...) {
    size_t room = sizeof line->text - line->length;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line->text + line->length, room, format, arguments);
    va_end(arguments);
    line->length += length < 0 ? 0 : (size_t)length < room ? (size_t)length : room - 1;
}

static void report_put_string(struct line *line, const char *name, const char *text) {
    report_put(line, "\"%s\": \"", name);
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\') {
            report_put(line, "\\%c", c);
        } else if (c < ' ' || c > '~') {
            report_put(line, "\\u%04x", c);
        } else {
            report_put(line, "%c", c);
        }
    }
    report_put(line, "\", ");
}

static void put_triple(struct line *line, const char *name, const uint32_t triple[3]) {
    report_put(line, "\"%s\": [%u, %u, %u], ", name, triple[0], triple[1], triple[2]);
}

static void report_write_line(const struct soft_report *report, const char *severity,
                              struct line *line) {
    report_put(line, "{\"kind\": \"%s\", \"result\": %d, ", report->kind, report->result);
    report_put_string(line, "kernel", report->kernel);
    report_put_string(line, "function", report->function);
    report_put_string(line, "source", report->source);
    report_put_string(line, "inlined_at", report->inlined_at);
    report_put(line, "\"ptx_line\": %u, ", report->ptx_line);
    report_put_string(line, "instruction", report->instruction);
    put_triple(line, "block", report->block);
    put_triple(line, "thread", report->thread);
    report_put(line, "\"lanes\": %u, \"address\": %llu, ", report->lanes,
               (unsigned long long)report->address);
    report_put_string(line, "severity", severity);
    report_put_string(line, "detail", report->detail);
    if (report->has_other) {
        const struct soft_report_place *other = &report->other;
        report_put(line, "\"other\": {");
        report_put_string(line, "function", other->function);
        report_put_string(line, "source", other->source);
        report_put_string(line, "inlined_at", other->inlined_at);
        report_put(line, "\"ptx_line\": %u, ", other->ptx_line);
        report_put_string(line, "instruction", other->instruction);
        put_triple(line, "block", other->block);
        put_triple(line, "thread", other->thread);
        line->length -= 2;
        report_put(line, "}, ");
    }
    line->length -= 2;
    report_put(line, "}\n");
}

/* The line is appended by one write, so that lines of processes that share a file are not mixed. */
static void write_to_file(const struct soft_report *report, const char *severity) {
    static bool complained;
    static struct line line;
    const char *path = soft_options()->report;
    if (path == NULL || path[0] == '\0') return;
    line.length = 0;
    report_write_line(report, severity, &line);
    int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    ssize_t written = file >= 0 ? write(file, line.text, line.length) : -1;
    int why = written < 0 ? errno : ENOSPC;
    if (file >= 0) close(file);
    if (written == (ssize_t)line.length || complained) return;
    complained = true;
    tol_plain_print(stderr, "tollens-soft: cannot write to the report file %s: %s\n", path,
                    strerror(why));
}

void soft_report_print(const struct soft_report *report) {
    char text[LINE_BYTES];
    (void)soft_options(); /* which have the suppressions */
    const char *severity = report_severity(report);
    const bool is_shown = strcmp(severity, "suppressed") != 0;
    soft_report_text(report, text, sizeof text);
    if (is_shown) soft_log_add(text);
    pthread_mutex_lock(&notes.lock);
    if (is_shown) tol_plain_print(stderr, "tollens-soft: %s\n", text);
    write_to_file(report, severity);
    pthread_mutex_unlock(&notes.lock);
}

static struct {
    _Atomic uint64_t count;
    char first[512];
} refusals[SOFT_REFUSALS]; /* guarded by notes.lock */

void soft_refusal_add(enum soft_refusal kind, const char *text) {
    pthread_mutex_lock(&notes.lock);
    if (refusals[kind].count++ == 0) {
        snprintf(refusals[kind].first, sizeof refusals[kind].first, "%.*s",
                 (int)strcspn(text, "\n"), text);
    }
    pthread_mutex_unlock(&notes.lock);
}

void soft_refusal_forgive(enum soft_refusal kind) {
    if (atomic_load_explicit(&refusals[kind].count, memory_order_relaxed) == 0) return;
    pthread_mutex_lock(&notes.lock);
    refusals[kind].count = 0;
    refusals[kind].first[0] = '\0';
    pthread_mutex_unlock(&notes.lock);
}

uint64_t soft_refusal_count(enum soft_refusal kind, char *first, size_t bytes) {
    pthread_mutex_lock(&notes.lock);
    const uint64_t count = refusals[kind].count;
    snprintf(first, bytes, "%s", refusals[kind].first);
    pthread_mutex_unlock(&notes.lock);
    return count;
}

uint32_t soft_log_end(void) {
    pthread_mutex_lock(&notes.lock);
    uint32_t end = notes.end;
    pthread_mutex_unlock(&notes.lock);
    return end;
}

void soft_log_add(const char *text) {
    pthread_mutex_lock(&notes.lock);
    snprintf(notes.lines[notes.end % LOG_LINES], LINE_BYTES, "%s", text);
    notes.end++;
    pthread_mutex_unlock(&notes.lock);
}

void soft_log_print(const char *text) {
    soft_log_add(text);
    pthread_mutex_lock(&notes.lock);
    tol_plain_print(stderr, "tollens-soft: %s", text);
    pthread_mutex_unlock(&notes.lock);
}

size_t soft_log_dump(uint32_t *position, char *text, size_t bytes) {
    static const char cut[] = "[older lines are omitted]\n";
    size_t used = 0;
    pthread_mutex_lock(&notes.lock);
    uint32_t oldest = notes.end > LOG_LINES ? notes.end - LOG_LINES : 0;
    uint32_t first = notes.end, begin = *position > oldest ? *position : oldest;
    bool lost = *position < oldest;
    /* The newest lines that fit, with a note if some do not. */
    size_t needed = 1, room = bytes > sizeof cut ? bytes - sizeof cut : 0;
    while (first > begin) {
        size_t length = strlen(notes.lines[(first - 1) % LOG_LINES]) + 1;
        if (needed + length > room) break;
        needed += length;
        first--;
    }
    lost = lost || first > begin;
    if (bytes > 0) text[0] = '\0';
    if (lost && bytes > sizeof cut) used += (size_t)snprintf(text, bytes, "%s", cut);
    for (uint32_t line = first; line < notes.end; line++) {
        used += (size_t)snprintf(text + used, bytes - used, "%s\n", notes.lines[line % LOG_LINES]);
    }
    *position = notes.end;
    pthread_mutex_unlock(&notes.lock);
    return used;
}
